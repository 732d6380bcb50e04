//! The panes of commands that run beside processes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use patterm_keeper::Pane;

use crate::process::ProcessId;

/// The panes of the commands that run now, with the processes that they run beside: a program in one of them that
/// connects to the server is treated like one in the pane of that process.
#[derive(Debug, Default)]
pub(crate) struct SidePanes(Mutex<Vec<(ProcessId, Arc<Pane>)>>);

impl SidePanes {
    /// Lists a pane until the guard is dropped.
    pub(crate) fn list(&self, beside: &ProcessId, pane: &Arc<Pane>) -> ListedSidePane<'_> {
        self.panes().push((beside.clone(), pane.clone()));
        ListedSidePane { list: self, pane: pane.clone() }
    }

    /// The processes beside which a command runs whose init is one of these.
    pub(crate) fn with_inits(&self, pids: &[i32]) -> Vec<ProcessId> {
        // Once a pane is empty, the kernel may give the number of its init to another process.
        let is_among = |pane: &Pane| {
            let status = pane.status().ok().flatten().filter(|status| !status.empty);
            status.is_some_and(|status| pids.contains(&status.init))
        };
        self.panes().iter().filter(|(_, pane)| is_among(pane)).map(|(id, _)| id.clone()).collect()
    }

    fn panes(&self) -> MutexGuard<'_, Vec<(ProcessId, Arc<Pane>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pane in the list.
#[derive(Debug)]
pub(crate) struct ListedSidePane<'l> {
    list: &'l SidePanes,
    pane: Arc<Pane>,
}

impl Drop for ListedSidePane<'_> {
    fn drop(&mut self) {
        self.list.panes().retain(|(_, pane)| !Arc::ptr_eq(pane, &self.pane));
    }
}
