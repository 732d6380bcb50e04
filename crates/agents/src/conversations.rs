//! Which conversation an agent is in: the CLI reports it, or it is derived from the names of the
//! files that the CLI has open.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use regex::Regex;
use serde_json::Value;
use tokio::time::error::Elapsed;

use crate::activity::Activities;
use crate::presets::ToldByFiles;
use patterm_panes::Panes;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::{Process, ProcessId};
use patterm_panes::tree;

/// The longest first line that is read: codex writes its instructions into it, some 20 kB.
const LONGEST_LINE: u64 = 4 << 20;

/// How many levels below a pane's init are searched for the CLI: `npx`, a wrapper, a launcher, the
/// program.
const SEARCH_DEPTH: usize = 8;

/// How long the search for a conversation in open files may take. Normally it takes milliseconds; a
/// disk that does not respond must not prevent an agent from being stopped.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(2);

/// The conversations of a project's agents.
#[derive(Debug)]
pub struct Conversations {
    panes: Arc<Panes>,
    activities: Arc<Activities>,
}

impl Conversations {
    pub(crate) fn new(panes: Arc<Panes>, activities: Arc<Activities>) -> Self {
        Self { panes, activities }
    }

    /// Whether a process must be killed instead of terminated: an agent whose CLI would delete its
    /// unused conversation. An earlier server may have started it.
    pub fn must_be_killed(&self, id: &ProcessId) -> bool {
        let preset = self.activities.signals(id).preset();
        let kills = preset.and_then(|preset| preset.resume.as_ref().map(|r| r.kill_unused));
        let took_a_turn =
            || self.panes.processes.get(id).is_some_and(|process| process.took_a_turn());
        kills == Some(true) && !took_a_turn()
    }

    /// Finds the conversation of an agent by its CLI's open files; `true` if there is one. Runs on
    /// a blocking thread, because there may be many files.
    pub async fn find(&self, run: &ProcessRun) -> Result<bool, Elapsed> {
        let Some((init, files)) = self.search_scope(run) else { return Ok(false) };
        let look = tokio::task::spawn_blocking(move || open_conversation(init, &files));
        let found = tokio::time::timeout(SEARCH_TIMEOUT, look).await?;
        Ok(self.note_found(run, found.ok().flatten()))
    }

    /// Like [`Self::find`], on this thread, for callers that may block.
    pub fn find_blocking(&self, run: &ProcessRun) {
        let look = self.search_scope(run);
        self.note_found(run, look.and_then(|(init, files)| open_conversation(init, &files)));
    }

    fn search_scope(&self, run: &ProcessRun) -> Option<(i32, ToldByFiles)> {
        if run.watch().borrow().is_over() {
            return None;
        }
        let preset = self.activities.signals(&run.id).preset()?;
        let files = preset.resume.as_ref()?.told_by_files.clone()?;
        Some((run.init()?, files))
    }

    fn note_found(&self, run: &ProcessRun, found: Option<String>) -> bool {
        let Some(reported) = found else { return false };
        self.activities.signals(&run.id).note_found_by_files();
        self.note(&run.id, reported, true);
        self.note_turn(&run.id);
        true
    }

    /// Records the id by which the conversation can be resumed, and whether it already has turns.
    pub(crate) fn note(&self, id: &ProcessId, reported: String, has_turns: bool) {
        let known = self.panes.processes.get(id).and_then(|process| process.agent);
        if known.is_some_and(|agent| !agent.id_reported || agent.conversation != reported) {
            self.panes.processes.note(id, |process| {
                if let Some(agent) = &mut process.agent {
                    // A different conversation: the turns of the old one do not count.
                    if agent.conversation != reported && (agent.id_reported || !has_turns) {
                        agent.had_turn = has_turns;
                    }
                    agent.conversation = reported;
                    agent.id_reported = true;
                }
            });
        }
    }

    /// Records that an agent had a turn: there is a conversation to resume.
    pub(crate) fn note_turn(&self, id: &ProcessId) {
        let is_news = |process: Process| {
            let took_one = process.took_a_turn();
            process.agent.is_some_and(|agent| !agent.had_turn || !took_one)
        };
        if self.panes.processes.get(id).is_some_and(is_news) {
            self.panes.processes.note(id, |process| {
                if let Some(agent) = &mut process.agent {
                    agent.had_turn = true;
                    agent.turn_in_run = Some(process.runs);
                }
            });
        }
    }
}

/// The conversation that a program below an init has open and used last. Processes nearest to the
/// init take precedence: the programs that they start may have conversations of their own.
fn open_conversation(init: i32, files: &ToldByFiles) -> Option<String> {
    let mut level = vec![init];
    for _ in 0..SEARCH_DEPTH {
        level = level.into_iter().flat_map(tree::children).collect();
        let found = newest(level.iter().flat_map(|pid| open_files(*pid)), files);
        if found.is_some() || level.is_empty() {
            return found;
        }
    }
    None
}

/// The paths of the files that a process has open.
fn open_files(pid: i32) -> impl Iterator<Item = String> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let path = |path: std::path::PathBuf| path.into_os_string().into_string().ok();
    open.filter_map(move |entry| fs::read_link(entry.path()).ok().and_then(path))
}

/// Of the conversations in these files, the one that was written or resumed last.
fn newest(paths: impl Iterator<Item = String>, files: &ToldByFiles) -> Option<String> {
    let mut kept: BTreeMap<String, SystemTime> = BTreeMap::new();
    let mut resumed_at: BTreeMap<String, SystemTime> = BTreeMap::new();
    for path in paths {
        let Ok(at) = fs::metadata(&path).and_then(|meta| meta.modified()) else { continue };
        let id_by =
            |pattern: &Regex| Some(pattern.captures(&path)?.name("id")?.as_str().to_owned());
        if let Some(id) = id_by(&files.path) {
            if is_main_conversation(Path::new(&path), &files.unless) {
                kept.insert(id, at);
            }
        } else if let Some(id) = files.taken_up.as_ref().and_then(id_by) {
            resumed_at.insert(id, at);
        }
    }
    let last = |(id, written): (String, SystemTime)| {
        let resumed = resumed_at.get(&id).copied();
        (resumed.map_or(written, |at| at.max(written)), id)
    };
    kept.into_iter().map(last).max().map(|(_, id)| id)
}

/// Whether none of these JSON pointers matches the first line of a file. Conversations of subagents
/// have one that does.
fn is_main_conversation(path: &Path, unless: &[String]) -> bool {
    if unless.is_empty() {
        return true;
    }
    let mut line = Vec::new();
    let read = File::open(path)
        .and_then(|file| BufReader::new(file.take(LONGEST_LINE)).read_until(b'\n', &mut line));
    let first = read.ok().and_then(|_| serde_json::from_slice::<Value>(&line).ok());
    let is_there = |pointer: &String| {
        first.as_ref().and_then(|first| first.pointer(pointer)).is_some_and(|v| !v.is_null())
    };
    first.is_some() && !unless.iter().any(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Catalogue;
    use std::time::{Duration, UNIX_EPOCH};

    const OLD: &str = "01a1e4d0-d4bf-72c0-aa55-884d3b0604d0";
    const NEW: &str = "01a1e4d1-5ce5-78a2-bbf7-283e8b5056f6";
    const HELPER: &str = "01a1e4d0-d591-7ca1-9fd8-43588e807118";

    fn codex() -> ToldByFiles {
        let catalogue = Catalogue::read(None);
        let preset = catalogue.presets["codex"].preset.as_ref().unwrap();
        preset.resume.as_ref().unwrap().told_by_files.clone().unwrap()
    }

    /// Codex's home with files written at these seconds.
    fn home(files: &[(&str, &str, u64)]) -> (tempfile::TempDir, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (name, text, at) in files {
            let path = dir.path().join(".codex").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(*at)).unwrap();
            paths.push(path.to_str().unwrap().to_owned());
        }
        (dir, paths)
    }

    fn rollout(id: &str) -> String {
        format!("sessions/2026/11/16/rollout-2026-11-16T14-42-09-{id}.jsonl")
    }

    fn lock(id: &str) -> String {
        format!("thread-writer-locks/{id}.lock")
    }

    /// First lines as codex 0.166.0 writes them.
    fn person(id: &str) -> String {
        format!(
            "{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"source\":\"cli\"}}}}\n{{}}\n"
        )
    }

    fn helper(id: &str) -> String {
        format!(
            "{{\"payload\":{{\"id\":\"{id}\",\"parent_thread_id\":\"{OLD}\",\
             \"source\":{{\"subagent\":{{}}}}}}}}\n"
        )
    }

    #[test]
    fn the_conversation_used_last_counts_and_subagents_do_not() {
        let check = |files: &[(&str, &str, u64)], wanted: Option<&str>| {
            let (_dir, paths) = home(files);
            assert_eq!(newest(paths.into_iter(), &codex()).as_deref(), wanted, "{files:?}");
        };
        let (old, new, kid) = (rollout(OLD), rollout(NEW), rollout(HELPER));
        let (old_lock, new_lock) = (lock(OLD), lock(NEW));
        let (said_old, said_new, said_kid) = (person(OLD), person(NEW), helper(HELPER));
        check(&[], None);
        check(&[("state_5.sqlite", "", 9), (&old_lock, "", 1)], None);
        check(&[(&old, &said_old, 1), (&old_lock, "", 1)], Some(OLD));
        check(&[(&old, &said_old, 1), (&kid, &said_kid, 5)], Some(OLD));
        check(&[(&old, &said_old, 1), (&new, &said_new, 2)], Some(NEW));
        // The person has returned to it, and has not sent anything yet.
        let back = [(&*old, &*said_old, 1), (&old_lock, "", 9), (&new, &said_new, 5)];
        check(&back, Some(OLD));
        // A new one without turns is not on disk.
        check(&[(&old, &said_old, 1), (&new_lock, "", 9)], Some(OLD));
        check(&[(&old, "no JSON", 1)], None);
    }

    #[test]
    fn only_files_of_programs_below_the_init_count() {
        let own = i32::try_from(std::process::id()).unwrap();
        let (_dir, paths) = home(&[(&rollout(OLD), &person(OLD), 1)]);
        let files = codex();
        let open = File::open(&paths[0]).unwrap();
        assert!(open_files(own).any(|path| path == paths[0]));
        let parent = tree::parent_of(own).unwrap();
        assert_eq!(open_conversation(parent, &files).as_deref(), Some(OLD));
        assert_eq!(
            open_conversation(own, &files),
            None,
            "only processes below the given one are searched"
        );
        drop(open);
        assert_eq!(open_conversation(parent, &files), None);
    }
}
