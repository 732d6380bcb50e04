//! What other parts of a server are told of declared processes.

use std::fmt::Debug;

use patterm_panes::process::Process;

/// Learns what happens to declared processes.
pub trait Observer: Debug + Send + Sync {
    /// A process has a new entry and was not started yet.
    fn added(&self, process: &Process);

    /// A process that was to be started will not be.
    fn not_wanted(&self);

    /// The project file or the user's settings may say something else.
    fn reconfigured(&self);
}

/// Nobody is told.
#[derive(Debug)]
pub(super) struct Nobody;

impl Observer for Nobody {
    fn added(&self, _: &Process) {}

    fn not_wanted(&self) {}

    fn reconfigured(&self) {}
}
