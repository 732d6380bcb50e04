//! The panes of commands that run beside processes, and of hooks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use patterm_keeper::Pane;

use crate::process::ProcessId;

/// The panes of the commands that run now, with the processes that they run beside: a program in one of them that
/// connects to the server is treated like one in the pane of that process. The command of a hook runs beside none.
#[derive(Debug, Default)]
pub(crate) struct SidePanes(Mutex<Vec<(Option<ProcessId>, Arc<Pane>)>>);

impl SidePanes {
    /// Lists a pane until the guard is dropped.
    pub(crate) fn list(&self, beside: Option<ProcessId>, pane: &Arc<Pane>) -> ListedSidePane<'_> {
        self.panes().push((beside, pane.clone()));
        ListedSidePane { list: self, pane: pane.clone() }
    }

    /// The processes beside which a command runs whose init is one of these.
    pub(crate) fn with_inits(&self, pids: &[i32]) -> Vec<ProcessId> {
        let panes = self.panes();
        let beside = panes.iter().filter_map(|(id, pane)| Some((id.as_ref()?, pane)));
        beside.filter(|(_, pane)| is_among(pane, pids)).map(|(id, _)| id.clone()).collect()
    }

    /// Whether the init of a hook's command is one of these.
    pub(crate) fn is_of_hook(&self, pids: &[i32]) -> bool {
        self.panes().iter().any(|(beside, pane)| beside.is_none() && is_among(pane, pids))
    }

    fn panes(&self) -> MutexGuard<'_, Vec<(Option<ProcessId>, Arc<Pane>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the init of a pane is one of these. Once a pane is empty, the kernel may give the number of its init to
/// another process.
fn is_among(pane: &Pane, pids: &[i32]) -> bool {
    let status = pane.status().ok().flatten().filter(|status| !status.empty);
    status.is_some_and(|status| pids.contains(&status.init))
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
