//! The process table: entries with ids that are never reused, and who stands below whom.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::{self, StateDir, StateError};

const FILE: &str = "processes.json";
const VERSION: u32 = 1;

/// The id of an entry: `p1`, `p2`, …
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProcessId(String);

impl ProcessId {
    /// The id with this number.
    pub fn new(number: u64) -> Self {
        Self(format!("p{number}"))
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What kind of program an entry runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A coding agent's CLI.
    Agent,
    /// A program that can be started again.
    Command,
    /// An interactive shell.
    Terminal,
}

/// One entry of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id.
    pub id: ProcessId,
    /// Its label.
    pub name: String,
    /// What it runs.
    pub kind: Kind,
    /// Who started it; `None` at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<ProcessId>,
}

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Table {
    /// The highest number ever given out.
    last: u64,
    processes: Vec<Process>,
}

/// The table of a project. What it says is on the disk before it says it.
#[derive(Debug)]
pub struct Processes {
    file: PathBuf,
    table: Mutex<Table>,
}

impl Processes {
    /// Reads the table that earlier servers of this project left.
    pub fn load(state: &StateDir) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let table = state::read(&file, VERSION)?.unwrap_or_default();
        Ok(Self { file, table: Mutex::new(table) })
    }

    /// Adds an entry under a new id.
    pub fn add(
        &self,
        name: &str,
        kind: Kind,
        parent_id: Option<ProcessId>,
    ) -> Result<Process, StateError> {
        self.change(|table| {
            table.last += 1;
            let process =
                Process { id: ProcessId::new(table.last), name: name.to_owned(), kind, parent_id };
            table.processes.push(process.clone());
            process
        })
    }

    /// Removes an entry; its id is never used again.
    pub fn remove(&self, id: &ProcessId) -> Result<(), StateError> {
        self.change(|table| table.processes.retain(|process| process.id != *id))
    }

    /// The entry with this id.
    pub fn get(&self, id: &ProcessId) -> Option<Process> {
        self.table().processes.iter().find(|process| process.id == *id).cloned()
    }

    /// The nearest agent above an entry.
    pub fn agent_above(&self, process: &Process) -> Option<Process> {
        let mut next = process.parent_id.clone();
        while let Some(above) = next.and_then(|id| self.get(&id)) {
            if above.kind == Kind::Agent {
                return Some(above);
            }
            next = above.parent_id;
        }
        None
    }

    fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> Result<T, StateError> {
        let mut table = self.table();
        let mut next = table.clone();
        let answer = change(&mut next);
        state::write(&self.file, VERSION, &next)?;
        *table = next;
        Ok(answer)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_never_reused_even_across_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let before = Processes::load(&state).unwrap();
        before.add("a", Kind::Agent, None).unwrap();
        let second = before.add("b", Kind::Command, None).unwrap();
        before.remove(&second.id).unwrap();
        let after = Processes::load(&state).unwrap();
        assert_eq!(after.add("c", Kind::Agent, None).unwrap().id, ProcessId::new(3));
        assert_eq!(after.get(&second.id), None);
        assert_eq!(after.get(&ProcessId::new(1)).unwrap().name, "a");
    }

    #[test]
    fn the_agent_above_is_found_past_commands() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let processes = Processes::load(&state).unwrap();
        let top = processes.add("lead", Kind::Agent, None).unwrap();
        let shell = processes.add("sh", Kind::Terminal, Some(top.id.clone())).unwrap();
        let sub = processes.add("sub", Kind::Agent, Some(shell.id)).unwrap();
        assert_eq!(processes.agent_above(&sub), Some(top.clone()));
        assert_eq!(processes.agent_above(&top), None);
    }
}
