//! The server's socket: who may connect, and one task for each who does.

mod calls;
mod connection;
mod dispatch;
mod follow;
mod listener;
mod upgrade;
mod view;

pub(crate) use dispatch::Dispatch;
pub use dispatch::{
    HANDOVER_METHOD, HOOK_METHOD, HTTP_METHOD, SHUTDOWN_METHOD, TOKEN_METHOD, TRUST_METHOD,
};
pub(crate) use listener::Listener;
