//! What the tests share: a place of its own for each test, servers, clients, tools to test with.

mod peer;
mod place;
mod server;
pub(crate) mod tools;

pub(crate) use peer::{Door, Peer};
pub(crate) use place::Place;
pub(crate) use server::{Serving, Spawned};
