//! The interfaces through which timers observe processes and deliver texts.

use std::fmt::Debug;
use std::pin::Pin;

use patterm_panes::process::{Process, ProcessId};
use tokio::sync::watch;

use crate::observation::{BusyAgent, Observation};
use crate::record::TimerId;

/// Resolves when the state of a process changes, to its id.
pub type StateChange = Pin<Box<dyn Future<Output = ProcessId> + Send>>;

/// Observes processes.
pub trait Observe: Debug + Send + Sync {
    /// The entry of a process; `None` if it is closed.
    fn process(&self, id: &ProcessId) -> Option<Process>;

    /// The current state of a process.
    fn observation(&self, id: &ProcessId) -> Observation;

    /// Waits until the state of a running process changes.
    fn changed(&self, id: ProcessId) -> StateChange;

    /// The agents below a process that are not idle.
    fn busy_below(&self, id: &ProcessId) -> Vec<BusyAgent>;

    /// Whether an agent is idle because its last turn failed.
    fn has_failed(&self, id: &ProcessId) -> bool;

    /// Whether a delivery for a process is pending.
    fn awaits_text(&self, id: &ProcessId) -> bool;

    /// When the usage limit of a process ends, if its CLI says so.
    fn limited_until(&self, id: &ProcessId) -> Option<String>;
}

/// Delivers the texts of timers.
pub trait Deliver: Debug + Send + Sync {
    /// Queues a text for a process, at most once per timer; it is on disk when this
    /// returns. The error says why it cannot be queued now.
    fn deliver(&self, to: &ProcessId, timer: &TimerId, text: String) -> Result<(), String>;

    /// The timers whose texts are known to have been queued.
    fn delivered(&self) -> Vec<TimerId>;

    /// Changes when there may be room for a text again.
    fn changes(&self) -> watch::Receiver<u64>;
}
