//! The server's socket: who may connect, and one task for each who does.

mod calls;
mod connection;
mod dispatch;
mod follow;
mod listener;
mod view;
mod wish;

pub(crate) use dispatch::Dispatch;
pub(crate) use listener::Listener;
