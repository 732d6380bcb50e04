//! Shared servers behind their HTTP doors: a server of the tests that can do everything, and
//! everything wrong, reached over real sockets.

mod client;
mod clients;
mod conformance;
mod faults;
mod gate;
mod limits;
mod probe;
mod smuggling;
