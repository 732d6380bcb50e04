//! The process table and its state file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::record::{Cause, Kind, Process, ProcessId};
use super::recorder::ProcessRecorder;
use patterm_events::EventLog;
use patterm_store::clock::Moment;
use patterm_store::state::{self, StateDir, StateError};
use patterm_store::sync::lock;

const FILE: &str = "processes.json";
const VERSION: u32 = 1;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Table {
    /// The highest number of an id so far.
    last: u64,
    /// The boot in which it was written; empty if unknown.
    #[serde(default)]
    boot: String,
    /// The versions of screens start above this number. Each server uses a higher one.
    #[serde(default)]
    version_base: u64,
    processes: Vec<Process>,
}

/// The least distance between the version bases of two servers, whatever the clock says: more changes than one
/// server sees.
const VERSION_STEP: u64 = 1 << 32;

/// The process table of a project. Changes are on disk before they are visible.
#[derive(Debug)]
pub struct Processes {
    file: PathBuf,
    table: Mutex<Table>,
    /// The machine was restarted since the last server wrote the table.
    rebooted: bool,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    /// Locked while the table is.
    recorder: Mutex<ProcessRecorder>,
}

impl Processes {
    /// Reads the table that earlier servers of this project left. `now` is the current time.
    pub fn load(state: &StateDir, now: &Moment) -> Result<Self, StateError> {
        let boot = &*now.boot;
        let file = state.file(FILE);
        let mut table: Table = state::read(&file, VERSION)?.unwrap_or_default();
        // A damaged table that was set aside may have had higher ids than this one. Their output still exists
        // and must not be assigned to other processes.
        table.last = table.last.max(highest_output(state));
        let rebooted = !table.boot.is_empty() && !boot.is_empty() && table.boot != boot;
        table.boot = boot.to_owned();
        table.version_base = next_version_base(table.version_base, now);
        if rebooted {
            // A machine that shuts down sends signals to all programs.
            let interrupted = table.processes.iter_mut().filter_map(|p| p.interrupted.as_mut());
            interrupted
                .filter(|interruption| interruption.cause == Cause::Signal)
                .for_each(|interruption| interruption.cause = Cause::Reboot);
        }
        let (table, changes) = (Mutex::new(table), watch::Sender::new(0));
        Ok(Self { file, table, rebooted, changes, recorder: Mutex::default() })
    }

    /// Records all changes as events, and those that an earlier server made without recording them.
    #[must_use]
    pub fn with_events(self, events: EventLog) -> Self {
        let mut recorder = ProcessRecorder::new(events);
        recorder.compare(&self.table().processes, true);
        Self { recorder: Mutex::new(recorder), ..self }
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

    /// Adds an entry and lets `more` complete it, in one write.
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

    /// Adds an entry that a damaged table has lost. Like `note`, it does not fail: the program is running. The
    /// number of its id counts as used.
    pub fn restore(&self, number: u64, process: Process) {
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

    /// Gives an entry another label, with a number if it is taken.
    pub fn rename(&self, id: &ProcessId, name: &str) -> Result<Option<Process>, StateError> {
        self.change(state::write_reserved, |table| {
            let name = free_name(name, table, Some(id));
            let process = table.processes.iter_mut().find(|process| process.id == *id)?;
            process.name = name;
            Some(process.clone())
        })
    }

    /// Records a fact about an entry, which a full disk cannot undo: if the table cannot be written now, the next
    /// change writes it. A server that starts before that finds the fact out again.
    pub fn note(&self, id: &ProcessId, change: impl FnOnce(&mut Process)) {
        self.note_all(|table| {
            if let Some(process) = table.processes.iter_mut().find(|process| process.id == *id) {
                change(process);
            }
        });
    }

    /// Records a fact about all entries, in one write.
    pub fn note_each(&self, change: impl FnMut(&mut Process)) {
        self.note_all(|table| table.processes.iter_mut().for_each(change));
    }

    /// Removes an entry, like `note`; its id is never reused.
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

    /// Whether the machine was restarted since the last server of this project wrote the table.
    pub fn rebooted(&self) -> bool {
        self.rebooted
    }

    /// The versions of screens start above this number, which is higher than any version of an earlier server.
    pub(crate) fn version_base(&self) -> u64 {
        self.table().version_base
    }

    /// Counts the changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The nearest agent above an entry.
    pub fn agent_above(&self, process: &Process) -> Option<Process> {
        self.ancestors(process).into_iter().find(|above| above.kind == Kind::Agent)
    }

    /// The number of agents above an entry.
    pub fn agents_above(&self, process: &Process) -> usize {
        self.ancestors(process).iter().filter(|above| above.kind == Kind::Agent).count()
    }

    /// Whether an entry is below another.
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
        // A damaged table could contain a cycle.
        while let Some(found) = next.and_then(|id| self.get(&id)) {
            if above.iter().any(|known| known.id == found.id) {
                break;
            }
            next = found.parent_id.clone();
            above.push(found);
        }
        above
    }

    /// Changes the table if it can be written. `write` decides whether the write may use the space that is reserved
    /// on disk; new entries may not.
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
        self.record(&table);
        drop(table);
        self.notify();
        Ok(answer)
    }

    fn note_all(&self, change: impl FnOnce(&mut Table)) {
        let mut table = self.table();
        change(&mut table);
        if let Err(error) = state::write_reserved(&self.file, VERSION, &*table) {
            tracing::error!(%error, "cannot write the process table; the next change writes it again");
        }
        self.record(&table);
        drop(table);
        self.notify();
    }

    fn record(&self, table: &Table) {
        lock(&self.recorder).compare(&table.processes, false);
    }

    /// Notifies everyone who follows the table.
    pub fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number above the versions of all screens of earlier servers: microseconds since 1970, since no screen changes
/// more than once in each. Until the year 2255 that is below 2^53, as a JSON number must be; a larger number in the
/// file is not from patterm.
fn next_version_base(before: u64, now: &Moment) -> u64 {
    let before = if before < 1 << 53 { before + VERSION_STEP } else { 0 };
    now.wall_ms.saturating_mul(1_000).max(before)
}

/// The highest number of an id that has output.
fn highest_output(state: &StateDir) -> u64 {
    let folders = std::fs::read_dir(state.file("output")).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix('p')?.parse().ok();
    folders.filter_map(|folder| number(folder.file_name().to_str()?)).max().unwrap_or(0)
}

/// The name itself, or the first of `name-2`, `name-3`, … that is free.
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
        Processes::load(&state, &now("boot")).unwrap()
    }

    fn now(boot: &str) -> Moment {
        Moment { boot: boot.into(), up_ms: 1_000, wall_ms: 1_800_000_000_000 }
    }

    #[test]
    fn a_reboot_is_recognised_by_the_kernels_boot_id() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let load = |boot: &str| Processes::load(&state, &now(boot)).unwrap();
        assert!(!load("one").rebooted(), "nothing was written before");
        let id = load("one").add("a", Kind::Command, None).unwrap().id;
        let interruption = Interruption { cause: Cause::Signal, at: Some(1), question: None };
        load("one").note(&id, |process| process.interrupted = Some(interruption));
        let cause = |table: &Processes| table.get(&id).unwrap().interrupted.unwrap().cause;
        assert_eq!((load("one").rebooted(), cause(&load("one"))), (false, Cause::Signal));
        assert_eq!((load("two").rebooted(), cause(&load("two"))), (true, Cause::Reboot));
        assert!(!load("").rebooted(), "unknown");
    }

    #[test]
    fn the_version_base_grows_with_every_server_even_if_the_clock_is_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let before = processes(&dir);
        before.add("a", Kind::Command, None).unwrap();
        let after = processes(&dir);
        assert!(after.version_base() > before.version_base());
        assert!(after.version_base() < 1 << 53);
        let far = 1 << 52;
        assert!(next_version_base(far, &now("boot")) > far, "the clock was set back");
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
    fn ancestors_and_descendants() {
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
