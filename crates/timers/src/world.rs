//! What timers need of other parts: somebody who observes processes, and somebody who delivers texts.

use std::fmt::Debug;
use std::pin::Pin;

use patterm_panes::process::{Process, ProcessId};
use tokio::sync::watch;

use crate::record::TimerId;
use crate::sight::{BusyAgent, Sight};

/// Ends when a process looks different, with its id.
pub type Following = Pin<Box<dyn Future<Output = ProcessId> + Send>>;

/// What timers see of processes.
pub trait Observe: Debug + Send + Sync {
    /// The entry of a process; `None` if it is closed.
    fn process(&self, id: &ProcessId) -> Option<Process>;

    /// How a process looks now.
    fn sight(&self, id: &ProcessId) -> Sight;

    /// Waits until a process that runs looks different from now.
    fn changed(&self, id: ProcessId) -> Following;

    /// The agents below a process that do not rest.
    fn busy_below(&self, id: &ProcessId) -> Vec<BusyAgent>;

    /// Whether an agent rests because its last turn failed.
    fn has_failed(&self, id: &ProcessId) -> bool;

    /// Whether a text is on its way to a process.
    fn awaits_text(&self, id: &ProcessId) -> bool;

    /// When the limit of a process ends, where its CLI says it.
    fn limited_until(&self, id: &ProcessId) -> Option<String>;
}

/// Takes the texts of timers.
pub trait Deliver: Debug + Send + Sync {
    /// Queues a text for a process, once for each timer; it is on the disk when this returns. An error
    /// says why it is not taken now.
    fn deliver(&self, to: &ProcessId, timer: &TimerId, text: String) -> Result<(), String>;

    /// The timers whose texts were queued, as far as that is known.
    fn delivered(&self) -> Vec<TimerId>;

    /// Changes when there may be room for a text again.
    fn changes(&self) -> watch::Receiver<u64>;
}
