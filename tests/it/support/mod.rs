//! Shared support: an isolated environment for each test, servers, clients, and tools to test with.

mod account;
mod baseline;
mod fake;
mod peer;
mod place;
mod process_stats;
mod rng;
mod running;
pub(crate) mod schema;
mod server;
pub(crate) mod tool_client;
pub(crate) mod tools;
mod user;

pub(crate) use account::account;
pub(crate) use baseline::Baseline;
pub(crate) use fake::{Conversation, FakeServer};
pub(crate) use peer::{Peer, Transport};
pub(crate) use place::{Place, patterm_binary};
pub(crate) use process_stats::ProcessStats;
pub(crate) use rng::Rng;
pub(crate) use running::{Running, running_in};
pub(crate) use server::{Serving, Spawned};
pub(crate) use user::User;
