//! One binary for all integration tests, with a module per area.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod support;

mod agents;
mod bad_input;
mod clients;
mod containers;
mod events;
mod follow;
mod fuzz_corpus;
mod gateway;
mod hooks;
mod http;
mod keeper;
mod lifecycle;
mod pads;
mod panics;
mod processes;
mod protocol;
mod proxy;
mod release;
mod restore;
mod screen_reference;
mod set_up;
mod shared;
mod smoke;
mod storm;
mod tidy;
mod tui;
mod upgrade;
mod view;
mod widths;
