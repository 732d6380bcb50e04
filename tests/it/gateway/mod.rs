//! Shared servers behind their HTTP endpoints: a test server with every feature and every kind of
//! misbehaviour, reached over real sockets.

mod client;
mod clients;
mod conformance;
mod faults;
mod harness;
mod limits;
mod probe;
mod smuggling;
