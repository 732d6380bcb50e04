//! Hooks: commands that are run and requests that are sent when something happens in a project. Each hook follows the
//! log of events by itself, so it delays neither the log nor another hook. This crate knows nothing about agents' CLIs,
//! tools or MCP.

mod action;
mod condition;
mod failure;
mod headers;
mod hook;
mod hooks;
mod limiter;
mod message;
mod post;
mod progress;
mod queue;
mod retry;
mod summary;
mod worker;
#[cfg(test)]
mod worker_tests;

pub use hooks::{HookParts, Hooks, UnknownHook};
