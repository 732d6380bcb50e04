//! The server's socket: who may connect, and one task for each who does.

mod calls;
mod connection;
mod dispatch;
mod follow;
mod listener;
mod upgrade;
mod view;

pub(crate) use dispatch::Dispatch;
pub(crate) use listener::Listener;
