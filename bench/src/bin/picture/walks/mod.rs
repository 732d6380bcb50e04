//! The walks of newcomers.

pub(crate) mod agents;
pub(crate) mod processes;
pub(crate) mod ssh;
pub(crate) mod tmux;
