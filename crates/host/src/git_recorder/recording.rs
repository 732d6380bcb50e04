//! One pass over the folders of runs: what is in them, what the repositories say about it, and the events. It reads files
//! and runs git, so it needs a thread that may block.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use patterm_events::{About, EventLog, NewEvent};
use patterm_git::{
    Changes, CheckedOut, Git, Made, Repository, Taken, TraceFolder, TracedCommand, branch_by,
    commits_by, own_change,
};
use patterm_panes::TracedRun;
use patterm_wire::events::{Actor, Fact, GitEvidence, format_time};
use patterm_wire::printable::one_line;

/// Commits of one command that are recorded: the last of them. A rebase may make thousands.
const MOST_COMMITS: usize = 256;

/// Commits that are known to be recorded.
const MOST_KNOWN: usize = 4_096;

/// Changes of HEAD that are read for each command: those after it, which say on which branch it was, and its own.
const ENTRIES: usize = 64;

/// The same for a command that can make many commits.
const ENTRIES_OF_MANY: usize = 1_000;

/// How often a run may name a repository that takes too long to read, such as one on a file system that hangs.
const MOST_SLOW: usize = 2;

/// A run whose folder is read.
#[derive(Debug)]
pub(super) struct RunToRead {
    pub(super) traced: TracedRun,
    pub(super) folder: PathBuf,
    pub(super) actor: Actor,
    /// Nothing of it is running: its folder is removed afterwards.
    pub(super) is_over: bool,
    /// The end of its output.
    pub(super) offset: Option<u64>,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct RunRead {
    pub(super) traced: TracedRun,
    /// There is more to read.
    pub(super) has_more: bool,
    /// Its traces are not worth reading.
    pub(super) is_given_up: bool,
}

/// What passes share.
#[derive(Debug)]
pub(super) struct Pass {
    events: EventLog,
    git: Git,
    /// When this server began, in milliseconds since 1970: commands before that ended without one.
    began_ms: u64,
    recorded: RecordedCommits,
    /// Runs whose repositories took too long to read, with how often that happened.
    slow: HashMap<TracedRun, usize>,
}

/// The commits that have an event, as far back as a trace of them can still exist.
#[derive(Debug, Default)]
struct RecordedCommits {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl RecordedCommits {
    fn of(commits: VecDeque<String>) -> Self {
        Self { known: commits.iter().cloned().collect(), order: commits }
    }

    fn note(&mut self, commit: &str) {
        if self.known.insert(commit.to_owned()) {
            self.order.push_back(commit.to_owned());
        }
        if self.order.len() > MOST_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// A command of a run.
struct RunCommand<'r> {
    run: &'r RunToRead,
    folder: &'r TraceFolder,
    taken: Taken,
}

impl Pass {
    pub(super) fn new(events: EventLog, git: Git, began_ms: u64) -> Self {
        let recorded = RecordedCommits::of(events.known_state().commits);
        Self { events, git, began_ms, recorded, slow: HashMap::new() }
    }

    /// Reads folders, and records what is in them.
    pub(super) fn read(&mut self, runs: Vec<RunToRead>) -> Vec<RunRead> {
        let open = |run: &RunToRead| TraceFolder::open(&run.folder).ok();
        let folders: Vec<(RunToRead, Option<TraceFolder>)> = runs
            .into_iter()
            .map(|run| {
                let folder = open(&run);
                (run, folder)
            })
            .collect();
        let mut commands = Vec::new();
        let mut outcomes = Vec::new();
        for (run, folder) in &folders {
            let drained = folder.as_ref().and_then(|folder| folder.drain(run.is_over).ok());
            let drained = drained.unwrap_or_default();
            if drained.refused > 0 {
                let (id, refused) = (&run.traced.id, drained.refused);
                tracing::warn!(%id, refused, "removed files that are no traces of git");
            }
            outcomes.push(RunRead {
                traced: run.traced.clone(),
                has_more: drained.is_partial && !drained.is_stuck,
                is_given_up: drained.is_stuck,
            });
            if let Some(folder) = folder {
                let of = drained.commands.into_iter();
                commands.extend(of.map(|taken| RunCommand { run, folder, taken }));
            }
        }
        commands.sort_by_key(|command| command.taken.command.end_us);
        let repositories = self.repositories(&commands);
        let claims = self.claims(&commands, &repositories);
        for (command, made) in commands.iter().zip(claims) {
            let found = repositories.get(&command.taken.command.worktree);
            if let Some(repository) = found {
                self.record(command, repository, made);
            }
            command.folder.remove(&command.taken);
        }
        for ((run, _), outcome) in folders.iter().zip(&mut outcomes) {
            outcome.is_given_up |= self.is_slow(&run.traced);
            if run.is_over && !outcome.has_more {
                let _ = std::fs::remove_dir_all(&run.folder);
                self.slow.remove(&run.traced);
            }
        }
        outcomes
    }

    /// What the repositories of commands show now, after all of them have ended.
    fn repositories(&mut self, commands: &[RunCommand<'_>]) -> HashMap<PathBuf, Repository> {
        let mut wanted: BTreeMap<&Path, (&TracedRun, usize)> = BTreeMap::new();
        for RunCommand { run, taken, .. } in commands {
            let (_, entries) = wanted.entry(&taken.command.worktree).or_insert((&run.traced, 0));
            *entries += if taken.command.makes_many() { ENTRIES_OF_MANY } else { ENTRIES };
        }
        let mut repositories = HashMap::new();
        for (worktree, (run, entries)) in wanted {
            if self.is_slow(run) {
                continue;
            }
            let read = self.git.repository(worktree, entries);
            // A command may be changing it just now.
            let read = match read {
                Err(error) if error.kind() != ErrorKind::TimedOut => {
                    self.git.repository(worktree, entries)
                }
                read => read,
            };
            match read {
                Ok(repository) => drop(repositories.insert(worktree.to_owned(), repository)),
                Err(error) => {
                    let folder = worktree.display();
                    tracing::debug!(%folder, %error, "cannot read a repository");
                    if error.kind() == ErrorKind::TimedOut {
                        *self.slow.entry(run.clone()).or_default() += 1;
                    }
                }
            }
        }
        repositories
    }

    /// The commits of each command. The time of a file may be behind, so the next commit may seem to be written while a
    /// command still ran: the last command takes first what HEAD's history calls its own. What is left belongs to the
    /// command that ended first after it was written.
    fn claims<'r>(
        &self,
        commands: &[RunCommand<'_>],
        repositories: &'r HashMap<PathBuf, Repository>,
    ) -> Vec<Vec<Made<'r>>> {
        let mut claims: Vec<Vec<Made<'r>>> = commands.iter().map(|_| Vec::new()).collect();
        let mut used: HashSet<(&Path, usize)> = HashSet::new();
        let mut taken: HashSet<&str> = HashSet::new();
        for (at, command) in commands.iter().enumerate().rev() {
            let command = &command.taken.command;
            let Some(repository) = repositories.get(&command.worktree) else { continue };
            let is_unused = |change| !used.contains(&(command.worktree.as_path(), change));
            let Some((change, made)) = own_change(command, repository, is_unused) else { continue };
            used.insert((&command.worktree, change));
            if let Some(made) = made.filter(|made| taken.insert(&made.entry.commit)) {
                claims[at].push(made);
            }
        }
        for (at, command) in commands.iter().enumerate() {
            let command = &command.taken.command;
            let Some(repository) = repositories.get(&command.worktree) else { continue };
            if claims[at].is_empty() {
                claims[at] = commits_by(command, repository, |entry| {
                    let commit = entry.commit.as_str();
                    !taken.contains(commit) && !self.recorded.known.contains(commit)
                });
                taken.extend(claims[at].iter().map(|made| made.entry.commit.as_str()));
            }
            claims[at].retain(|made| !self.recorded.known.contains(&made.entry.commit));
        }
        claims
    }

    fn is_slow(&self, run: &TracedRun) -> bool {
        self.slow.get(run).is_some_and(|times| *times >= MOST_SLOW)
    }

    fn record(
        &mut self,
        command: &RunCommand<'_>,
        repository: &Repository,
        mut made: Vec<Made<'_>>,
    ) {
        let traced = &command.taken.command;
        if let Some(moved) = branch_by(traced, repository) {
            // Nothing that is stored tells whether this is recorded, so the trace goes first.
            command.folder.remove(&command.taken);
            self.append(command, checked_out(traced, moved));
        }
        let excess = made.len().saturating_sub(MOST_COMMITS);
        made.drain(..excess);
        if made.is_empty() {
            return;
        }
        let entries: Vec<_> = made.iter().map(|made| made.entry).collect();
        let mut changes = self.git.changes(&traced.worktree, &entries).unwrap_or_default();
        for made in made {
            let changes = changes.remove(&made.entry.commit);
            self.recorded.note(&made.entry.commit);
            self.append(command, commit(traced, made, changes));
        }
    }

    fn append(&self, command: &RunCommand<'_>, fact: Fact) {
        let RunToRead { traced, actor, offset, .. } = command.run;
        let mut about = About::process(&traced.id).run(traced.run.get());
        about.offset = *offset;
        let recovered = command.taken.command.end_us / 1_000 < self.began_ms;
        let event = NewEvent { fact, about, actor: actor.clone(), recovered };
        if let Err(error) = self.events.append(event) {
            tracing::error!(%error, "cannot record a commit");
        }
    }
}

fn commit(traced: &TracedCommand, made: Made<'_>, changes: Option<Changes>) -> Fact {
    let counted = changes.as_ref();
    Fact::GitCommit {
        commit: made.entry.commit.clone(),
        subject: Some(one_line(&made.entry.subject)),
        branch: made.branch.as_deref().map(one_line),
        repository: folder_text(&traced.worktree),
        command: one_line(&traced.command),
        file_count: counted.map(|changes| changes.file_count),
        insertions: counted.map(|changes| changes.insertions),
        deletions: counted.map(|changes| changes.deletions),
        files: changes
            .map(|changes| changes.files.iter().map(|file| one_line(file)).collect())
            .unwrap_or_default(),
        ended_at: format_time(traced.end_us / 1_000),
        evidence: made.evidence,
    }
}

fn checked_out(traced: &TracedCommand, moved: CheckedOut) -> Fact {
    Fact::GitBranch {
        branch: one_line(&moved.branch),
        before: moved.before.as_deref().map(one_line),
        repository: folder_text(&traced.worktree),
        // The command names the branch, and HEAD's history confirms it.
        evidence: GitEvidence::ProcessTree,
    }
}

fn folder_text(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}
