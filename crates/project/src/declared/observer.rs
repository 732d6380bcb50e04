//! How other parts of the server learn about declared processes.

use std::fmt::Debug;

use patterm_panes::process::Process;

/// Is notified about declared processes.
pub trait Observer: Debug + Send + Sync {
    /// A process has a new entry and was not started yet.
    fn added(&self, process: &Process);

    /// A pending start was cancelled.
    fn not_wanted(&self);

    /// The project file or the user's settings may have changed.
    fn reconfigured(&self);
}

/// Ignores all notifications.
#[derive(Debug)]
pub(super) struct Nobody;

impl Observer for Nobody {
    fn added(&self, _: &Process) {}

    fn not_wanted(&self) {}

    fn reconfigured(&self) {}
}
