//! The one place that deals with what a started program inherits, and the only crate with
//! `unsafe`. It knows nothing of MCP or screens.

pub mod descriptors;
