//! The process table, as the state folder holds it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::record::{Cause, Kind, Process, ProcessId};
use patterm_store::state::{self, StateDir, StateError};

const FILE: &str = "processes.json";
const VERSION: u32 = 1;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Table {
    /// The highest number ever given out.
    last: u64,
    /// The boot of the machine in which it was written; empty where nobody knew.
    #[serde(default)]
    boot: String,
    /// What screens' versions begin above while this server serves; those of the next begin further on.
    #[serde(default)]
    version_base: u64,
    processes: Vec<Process>,
}

/// How much further on they begin at the least, whatever the clock says: more changes than a server sees.
const VERSION_STEP: u64 = 1 << 32;

/// The table of a project. What it says is on the disk before it says it.
#[derive(Debug)]
pub struct Processes {
    file: PathBuf,
    table: Mutex<Table>,
    /// The machine was started again since the last server wrote.
    rebooted: bool,
    /// Rung at every change.
    changes: watch::Sender<u64>,
}

impl Processes {
    /// Reads the table that earlier servers of this project left. `boot` is the machine's present one.
    pub fn load(state: &StateDir, boot: &str) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let mut table: Table = state::read(&file, VERSION)?.unwrap_or_default();
        // A table that was damaged and set aside knew more ids than the new one: what they
        // printed is still there and must not come to belong to others.
        table.last = table.last.max(highest_output(state));
        let rebooted = !table.boot.is_empty() && !boot.is_empty() && table.boot != boot;
        table.boot = boot.to_owned();
        table.version_base = next_version_base(table.version_base);
        if rebooted {
            // A machine that goes down tells everybody to end.
            let interrupted = table.processes.iter_mut().filter_map(|p| p.interrupted.as_mut());
            interrupted
                .filter(|interruption| interruption.cause == Cause::Signal)
                .for_each(|interruption| interruption.cause = Cause::Reboot);
        }
        Ok(Self { file, table: Mutex::new(table), rebooted, changes: watch::Sender::new(0) })
    }

    /// Adds an entry under a new id. A name that is taken gets a number.
    pub fn add(
        &self,
        name: &str,
        kind: Kind,
        parent_id: Option<ProcessId>,
    ) -> Result<Process, StateError> {
        self.add_with(name, kind, parent_id, |_| ())
    }

    /// The same with more about it, in one write.
    pub fn add_with(
        &self,
        name: &str,
        kind: Kind,
        parent_id: Option<ProcessId>,
        more: impl FnOnce(&mut Process),
    ) -> Result<Process, StateError> {
        self.change(state::write, |table| {
            table.last += 1;
            let mut process = Process {
                name: free_name(name, table, None),
                kind,
                parent_id,
                ..Process::unstarted(ProcessId::new(table.last))
            };
            more(&mut process);
            table.processes.push(process.clone());
            process
        })
    }

    /// Makes an entry again that a damaged table does not have any more, in the same way as `note`:
    /// what runs, runs. The number of its id counts as given out.
    pub(crate) fn restore(&self, number: u64, process: Process) {
        self.note_all(|table| {
            table.last = table.last.max(number);
            let name = free_name(&process.name, table, None);
            table.processes.push(Process { name, ..process });
        });
    }

    /// Changes an entry; `None` if there is none with this id.
    pub fn update(
        &self,
        id: &ProcessId,
        change: impl FnOnce(&mut Process),
    ) -> Result<Option<Process>, StateError> {
        self.change(state::write_reserved, |table| {
            let process = table.processes.iter_mut().find(|process| process.id == *id)?;
            change(process);
            Some(process.clone())
        })
    }

    /// Gives an entry another label, with a number if that is taken.
    pub fn rename(&self, id: &ProcessId, name: &str) -> Result<Option<Process>, StateError> {
        self.change(state::write_reserved, |table| {
            let name = free_name(name, table, Some(id));
            let process = table.processes.iter_mut().find(|process| process.id == *id)?;
            process.name = name;
            Some(process.clone())
        })
    }

    /// Notes what has happened to an entry, which no full disk can undo: what cannot be written
    /// now is written with the next change. A server that dies before that finds it out again.
    pub fn note(&self, id: &ProcessId, change: impl FnOnce(&mut Process)) {
        self.note_all(|table| {
            if let Some(process) = table.processes.iter_mut().find(|process| process.id == *id) {
                change(process);
            }
        });
    }

    /// The same for all entries, in one write.
    pub(crate) fn note_each(&self, change: impl FnMut(&mut Process)) {
        self.note_all(|table| table.processes.iter_mut().for_each(change));
    }

    /// Removes an entry, in the same way; its id is never used again.
    pub fn forget(&self, id: &ProcessId) {
        self.note_all(|table| table.processes.retain(|process| process.id != *id));
    }

    /// The entry with this id.
    pub fn get(&self, id: &ProcessId) -> Option<Process> {
        self.table().processes.iter().find(|process| process.id == *id).cloned()
    }

    /// All entries, oldest first.
    pub fn all(&self) -> Vec<Process> {
        self.table().processes.clone()
    }

    /// Whether the machine was started again since the last server of this project wrote.
    pub(crate) fn rebooted(&self) -> bool {
        self.rebooted
    }

    /// What screens' versions begin above: higher than any that an earlier server told.
    pub(crate) fn version_base(&self) -> u64 {
        self.table().version_base
    }

    /// Rung at every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The nearest agent above an entry.
    pub fn agent_above(&self, process: &Process) -> Option<Process> {
        self.ancestors(process).into_iter().find(|above| above.kind == Kind::Agent)
    }

    /// How many agents stand above an entry.
    pub fn agents_above(&self, process: &Process) -> usize {
        self.ancestors(process).iter().filter(|above| above.kind == Kind::Agent).count()
    }

    /// Whether an entry stands below another.
    pub fn is_below(&self, process: &Process, other: &ProcessId) -> bool {
        self.ancestors(process).iter().any(|above| above.id == *other)
    }

    /// All entries below one, youngest first.
    pub fn below(&self, id: &ProcessId) -> Vec<Process> {
        let mut below: Vec<_> =
            self.all().into_iter().filter(|process| self.is_below(process, id)).collect();
        below.reverse();
        below
    }

    fn ancestors(&self, process: &Process) -> Vec<Process> {
        let mut above: Vec<Process> = Vec::new();
        let mut next = process.parent_id.clone();
        // Bounded by the table: an id that stands twice would be a circle.
        while let Some(found) = next.and_then(|id| self.get(&id)) {
            if above.iter().any(|known| known.id == found.id) {
                break;
            }
            next = found.parent_id.clone();
            above.push(found);
        }
        above
    }

    /// Changes the table if that can be written: something new only where there is room for it,
    /// everything else in the room that is kept as well.
    fn change<T>(
        &self,
        write: fn(&Path, u32, &Table) -> Result<(), StateError>,
        change: impl FnOnce(&mut Table) -> T,
    ) -> Result<T, StateError> {
        let mut table = self.table();
        let mut next = table.clone();
        let answer = change(&mut next);
        write(&self.file, VERSION, &next)?;
        *table = next;
        drop(table);
        self.ring();
        Ok(answer)
    }

    fn note_all(&self, change: impl FnOnce(&mut Table)) {
        let mut table = self.table();
        change(&mut table);
        if let Err(error) = state::write_reserved(&self.file, VERSION, &*table) {
            tracing::error!(%error, "what happened to a process is not written down yet");
        }
        drop(table);
        self.ring();
    }

    /// Tells whoever follows that something is different.
    pub(crate) fn ring(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that no screen's version has reached under an earlier server: microseconds since 1970, and
/// no screen changes more than once in each. Until the year 2255 that is below 2^53, as a JSON number
/// must be; what is not is no number of ours.
fn next_version_base(before: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let before = if before < 1 << 53 { before + VERSION_STEP } else { 0 };
    u64::try_from(now.as_micros()).unwrap_or(0).max(before)
}

/// The highest number among the ids that have output.
fn highest_output(state: &StateDir) -> u64 {
    let folders = std::fs::read_dir(state.file("output")).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix('p')?.parse().ok();
    folders.filter_map(|folder| number(folder.file_name().to_str()?)).max().unwrap_or(0)
}

/// The name itself, or the first of `name-2`, `name-3`, … that nobody has.
fn free_name(name: &str, table: &Table, own: Option<&ProcessId>) -> String {
    let taken = |name: &str| {
        table.processes.iter().any(|process| process.name == name && Some(&process.id) != own)
    };
    if !taken(name) {
        return name.to_owned();
    }
    let numbered = (2..).map(|n: u64| format!("{name}-{n}")).find(|name| !taken(name));
    numbered.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Interruption;

    fn processes(dir: &tempfile::TempDir) -> Processes {
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        Processes::load(&state, "boot").unwrap()
    }

    #[test]
    fn a_reboot_is_known_by_what_the_kernel_calls_this_boot() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let load = |boot: &str| Processes::load(&state, boot).unwrap();
        assert!(!load("one").rebooted(), "nothing was written before");
        let id = load("one").add("a", Kind::Command, None).unwrap().id;
        let told = Interruption { cause: Cause::Signal, at: Some(1) };
        load("one").note(&id, |process| process.interrupted = Some(told));
        let cause = |table: &Processes| table.get(&id).unwrap().interrupted.unwrap().cause;
        assert_eq!((load("one").rebooted(), cause(&load("one"))), (false, Cause::Signal));
        assert_eq!((load("two").rebooted(), cause(&load("two"))), (true, Cause::Reboot));
        assert!(!load("").rebooted(), "nobody knows");
    }

    #[test]
    fn versions_of_screens_begin_further_on_with_every_server_even_if_the_clock_is_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let before = processes(&dir);
        before.add("a", Kind::Command, None).unwrap();
        let after = processes(&dir);
        assert!(after.version_base() > before.version_base());
        assert!(after.version_base() < 1 << 53);
        let far = 1 << 52;
        assert!(next_version_base(far) > far, "a clock that is behind");
    }

    #[test]
    fn ids_are_never_reused_even_across_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let before = processes(&dir);
        before.add("a", Kind::Agent, None).unwrap();
        let second = before.add("b", Kind::Command, None).unwrap();
        before.forget(&second.id);
        let after = processes(&dir);
        assert_eq!(after.add("c", Kind::Agent, None).unwrap().id, ProcessId::new(3));
        assert_eq!(after.get(&second.id), None);
        assert_eq!(after.get(&ProcessId::new(1)).unwrap().name, "a");
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let dir = tempfile::tempdir().unwrap();
        let processes = processes(&dir);
        let add = |name: &str| processes.add(name, Kind::Command, None).unwrap();
        let names = [add("dev"), add("dev"), add("dev"), add("test")].map(|p| p.name);
        assert_eq!(names, ["dev", "dev-2", "dev-3", "test"]);
        let renamed = |n: u64, name: &str| {
            processes.rename(&ProcessId::new(n), name).unwrap().map(|process| process.name)
        };
        assert_eq!(renamed(4, "dev").as_deref(), Some("dev-4"));
        assert_eq!(renamed(1, "dev").as_deref(), Some("dev"), "its own name is free to it");
        assert_eq!(renamed(9, "dev"), None);
    }

    #[test]
    fn who_stands_above_and_below() {
        let dir = tempfile::tempdir().unwrap();
        let processes = processes(&dir);
        let top = processes.add("lead", Kind::Agent, None).unwrap();
        let shell = processes.add("sh", Kind::Terminal, Some(top.id.clone())).unwrap();
        let sub = processes.add("sub", Kind::Agent, Some(shell.id.clone())).unwrap();
        assert_eq!(processes.agent_above(&sub), Some(top.clone()));
        assert_eq!(processes.agent_above(&top), None);
        assert!(processes.is_below(&sub, &top.id) && !processes.is_below(&top, &sub.id));
        let below: Vec<_> = processes.below(&top.id).into_iter().map(|p| p.id).collect();
        assert_eq!(below, [sub.id, shell.id]);
    }
}
