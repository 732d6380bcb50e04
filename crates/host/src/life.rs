//! The life of a process: started, stopped, started again, closed, and found again by the next
//! server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use patterm_keeper::log::{Log, Reader};
use patterm_keeper::{Pane, Program, SpawnError, SpawnFault};
use patterm_screen::{Screen, Size};
use rustix::process::Signal;
use tokio::sync::mpsc;

use crate::activity;
use crate::agents::Again;
use crate::environment::PANE_VARIABLE;
use crate::host::{Host, pane_name};
use crate::plane::{DraftMark, Event, Live, MARK_BYTES, Progress};
use crate::process::{Cause, Exit, Interruption, Kind, Process, ProcessId, Recipe, Status};
use crate::tools::{ErrorKind, ToolError};
use patterm_store::clock::now_ms;
use patterm_store::state::StateError;

/// How long a program may take to end after the first signal, before everything is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// How long everything may take to be gone after that.
pub(crate) const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How much of an ended process's output is shown again by the next server.
const REPLAY_BYTES: u64 = 8 << 20;

/// The size of a terminal that nobody looks at yet.
pub(crate) const SIZE: patterm_keeper::Size = patterm_keeper::Size { rows: 24, columns: 80 };

/// A process to be.
#[derive(Debug)]
pub(crate) struct NewProcess {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) parent_id: Option<ProcessId>,
    /// Nothing says that a person asked for it.
    pub(crate) not_a_persons: bool,
    pub(crate) recipe: Recipe,
}

impl Host {
    /// Starts a process under a new id. Nothing is left of one that could not be started.
    pub(crate) async fn spawn(&self, new: NewProcess) -> Result<Process, ToolError> {
        self.admit_process()?;
        let NewProcess { name, kind, parent_id, not_a_persons, recipe } = new;
        let process = self.processes.add_with(&name, kind, parent_id, |process| {
            process.not_a_persons = not_a_persons;
            process.recipe = Some(recipe);
            process.runs = 1;
        })?;
        let started = self.launch(&process, &[]).await;
        if started.is_err() {
            self.processes.forget(&process.id);
            self.remove_output(&process.id);
        }
        started
    }

    /// Whether there may be one more process.
    pub(crate) fn admit_process(&self) -> Result<(), ToolError> {
        let most = self.limits.processes;
        let there = self.processes.all().len();
        if there < most {
            return Ok(());
        }
        let enough = there - most + 1;
        let message = format!(
            "there are {there} processes, ended ones included, and the limit is {most}; close {enough} first"
        );
        Err(ToolError::new(ErrorKind::Limit, message))
    }

    /// Starts a process that ended again, in its own entry. Says why too, where that is an agent that
    /// cannot go on where it was.
    pub(crate) async fn start(
        &self,
        process: &Process,
    ) -> Result<(Process, Option<String>), ToolError> {
        if process.status.is_alive() {
            return Err(already_running(process));
        }
        let Again { anew, instructions } = self.prepare_again(process)?;
        if let Some(waiting) = self.prepare_declared(process)? {
            return Ok((waiting, anew));
        }
        Ok((self.begin(&process.id, &instructions).await?, anew))
    }

    /// Ends a process: the signal to its group, the grace time, then everything. Returns once it
    /// is over.
    pub(crate) async fn stop(&self, process: &Process, signal: i32) -> Result<Process, ToolError> {
        let waited = self.unwant_declared(process);
        let live = match self.running(process) {
            // It would have been started soon.
            Err(_) if waited => return Ok(self.settled(&process.id)),
            running => running?,
        };
        live.stopping.store(true, Ordering::Release);
        let _ = self.look_for_conversation(&live).await;
        let signal = if self.must_be_killed(&live.id) { Signal::KILL.as_raw() } else { signal };
        // It may have ended by itself during that look.
        let is_gone = live.watch().borrow().empty;
        if let Some(pane) = live.pane.as_ref().filter(|_| !is_gone) {
            pane.stop(signal, GRACE).map_err(|e| unreachable_init(process, e))?;
        }
        // Not before what it started is gone as well: that has the rest of the grace time.
        self.over(&live, GRACE + KILL_PATIENCE, |progress| progress.empty).await?;
        Ok(self.settled(&process.id))
    }

    /// Ends a process with everything it ever started and removes it and all below it, youngest
    /// first. Returns the ids that are gone.
    pub(crate) async fn close(&self, process: &Process) -> Result<Vec<ProcessId>, ToolError> {
        let mut going = self.processes.below(&process.id);
        going.push(process.clone());
        let mut closed = Vec::new();
        for process in going {
            // On a full disk it is tried again below, where there is room.
            let revoked = self.identities.revoke(&process.id);
            if let Some(live) = self.live(&process.id) {
                live.stopping.store(true, Ordering::Release);
                if let Some(pane) = &live.pane {
                    // What is left behind by a program that ended is killed as well.
                    let _ = pane.kill();
                    self.close_pane(&live).await?;
                }
                self.take_live(&process.id);
            }
            self.deliveries.give_up(&process.id, "the process was closed");
            self.activities.forget(&process.id);
            self.forget_agent(&process.id);
            // The output first: it makes room where the disk is full.
            self.remove_output(&process.id);
            if revoked.is_err() {
                self.identities.revoke(&process.id)?;
            }
            self.forget_declared(&process);
            self.processes.forget(&process.id);
            self.timers.close(&process.id);
            closed.push(process.id);
        }
        Ok(closed)
    }

    /// Waits until nothing is left in a pane that is being killed, and has the keeper let go of it.
    async fn close_pane(&self, live: &Arc<Live>) -> Result<(), ToolError> {
        let name = pane_name(&live.id, live.run);
        let ended = self.over(live, KILL_PATIENCE, |progress| progress.empty).await;
        // A program can hinder its init; the keeper ends both, and the entry stays until that is
        // seen.
        self.keeping.forget(name).await.map_err(|error| {
            let message = format!("{} was not closed: {error}; close it again then", live.id);
            ToolError::new(ErrorKind::Unavailable, message)
        })?;
        if ended.is_err() {
            self.over(live, KILL_PATIENCE, |progress| progress.empty).await?;
        }
        self.plane.remove(live);
        Ok(())
    }

    /// Lets go of a pane that nobody needs any more.
    pub(crate) async fn let_go(&self, pane: String) {
        if let Err(error) = self.keeping.forget(pane).await {
            tracing::error!(%error, "the keeper does not let go of a pane yet");
        }
    }

    /// The life of a process that runs.
    pub(crate) fn running(&self, process: &Process) -> Result<Arc<Live>, ToolError> {
        let live = self.live(&process.id).filter(|live| !live.watch().borrow().is_over());
        live.ok_or_else(|| {
            let message = format!("{} ({}) is not running", process.id, process.name);
            ToolError::new(ErrorKind::NotRunning, message).suggest("start_process", "to start it")
        })
    }

    /// Begins a new life of a process; `instructions` are arguments for this one time.
    pub(crate) async fn begin(
        &self,
        id: &ProcessId,
        instructions: &[String],
    ) -> Result<Process, ToolError> {
        let mut begins = false;
        let process = self.update(id, |process| {
            // Decided here, where nobody else can start it at the same time.
            begins = !process.status.is_alive();
            if begins {
                process.runs += 1;
                process.status = Status::Starting;
                process.exit = None;
            }
        })?;
        if !begins {
            return Err(already_running(&process));
        }
        let started = self.launch(&process, instructions).await;
        if started.is_err() {
            self.processes.note(id, |process| process.status = Status::Failed);
        }
        self.declared.ring();
        started
    }

    /// Starts the program of a process. Nothing of it runs on if that fails half-way.
    /// `more` are arguments for this one time.
    pub(crate) async fn launch(
        &self,
        process: &Process,
        more: &[String],
    ) -> Result<Process, ToolError> {
        let id = &process.id;
        let Some(mut recipe) = process.recipe.clone() else {
            let message = format!("nobody knows how to start {id}");
            return Err(ToolError::new(ErrorKind::Unavailable, message));
        };
        recipe.argv.extend(more.iter().cloned());
        let mut env = self.environment.clone();
        env.extend(recipe.env);
        env.insert(PANE_VARIABLE.to_owned(), format!("{}/{id}", self.project.key()));
        let program =
            Program { argv: recipe.argv, env, working_dir: recipe.working_dir, size: recipe.size };
        let log = self.begin_log(process).await?;
        let pane = self.keeping.spawn(process.pane(), program, None).await;
        let pane = pane.map_err(spawn_failed)?;
        let run_offset = log.end();
        let running = self.update(id, |process| {
            process.status = Status::Running;
            process.run_offset = run_offset;
            process.output_mark = Some(run_offset + MARK_BYTES);
            process.started_at = Some(now_ms());
            process.ended_at = None;
            process.interrupted = None;
        });
        match running {
            Ok(running) => {
                self.take_in(&running, pane, log);
                Ok(running)
            }
            // The disk is full, or the entry was closed meanwhile.
            Err(error) => {
                self.let_go(process.pane()).await;
                if self.processes.get(id).is_none() {
                    self.remove_output(id);
                }
                Err(error)
            }
        }
    }

    /// Gives a pane to the data plane, its screen showing what the log holds of this life.
    fn take_in(&self, process: &Process, pane: Arc<Pane>, log: Log) {
        let (mut screen, parsed) = replay(process, &log.reader(), u64::MAX);
        screen.raise_version(self.version_base(&process.id));
        let (id, run, reader) = (process.id.clone(), process.runs, log.reader());
        let live = Arc::new(Live::new(id, run, Some(pane.clone()), reader, screen, parsed));
        live.mark.store(process.output_mark.unwrap_or(0), Ordering::Relaxed);
        live.keep_draft(DraftMark::within(&self.output_folder(&process.id)));
        if let Some(before) = self.set_live(live.clone())
            && before.pane.is_some()
        {
            before.settle();
            self.plane.remove(&before);
            let keeping = self.keeping.clone();
            let name = pane_name(&before.id, before.run);
            tokio::spawn(async move {
                if let Err(error) = keeping.forget(name).await {
                    tracing::error!(%error, "the keeper does not let go of a pane yet");
                }
            });
        }
        self.plane.add(live, pane, log);
    }

    /// Remembers the size a terminal was given, so that the next server shows the same screen.
    pub(crate) fn note_size(&self, id: &ProcessId, size: Option<Size>) {
        let Some(size) =
            size.map(|size| patterm_keeper::Size { rows: size.rows, columns: size.columns })
        else {
            return;
        };
        let known = self.processes.get(id).and_then(|process| process.recipe);
        if known.is_some_and(|recipe| recipe.size != size) {
            let noted = self.update(id, |process| {
                if let Some(recipe) = &mut process.recipe {
                    recipe.size = size;
                }
            });
            if let Err(error) = noted {
                tracing::error!(%id, error = error.message, "a size could not be written down");
            }
        }
    }

    /// A person typed into a process, or went there because it asks: nobody needs to be called any more.
    pub(crate) fn attended(&self, id: &ProcessId) {
        if self.processes.get(id).is_some_and(|process| process.attention.is_some()) {
            self.processes.note(id, |process| process.attention = None);
        }
    }

    /// Finds a process again after the server died.
    pub(crate) fn recover_process(&self, process: &Process, pane: Option<Arc<Pane>>) {
        let log = self.find_log(process);
        match pane {
            Some(pane) => {
                let begun = self.note_begun(process, &log);
                self.take_in(&begun, pane, log);
            }
            None => {
                if process.status.is_alive() {
                    let cause = if self.processes.rebooted() { Cause::Reboot } else { Cause::Lost };
                    if cause == Cause::Lost {
                        self.note_left_behind(process);
                    }
                    let lost = self.update(&process.id, |process| {
                        process.status = Status::Lost;
                        process.ended_at = Some(now_ms());
                        process.interrupted.get_or_insert(Interruption { cause, at: None });
                    });
                    tracing::warn!(id = %process.id, written = lost.is_ok(), "a process is lost");
                }
                let known = self.settled(&process.id);
                let settled = !known.awaits_decision();
                self.activities.set(&process.id, activity::ended(&known), settled);
                if log.is_open() {
                    self.show_last(&known, &log);
                }
            }
        }
    }

    /// A server that died while it started a program could not say that it runs; one that died
    /// before it ended everything said too much.
    fn note_begun(&self, process: &Process, log: &Log) -> Process {
        if process.interrupted.is_some() && process.status.is_alive() {
            self.processes.note(&process.id, |process| process.interrupted = None);
        }
        if process.status == Status::Starting {
            self.processes.note(&process.id, |process| {
                process.status = Status::Running;
                // Nobody has read anything of this life yet.
                process.run_offset = log.end();
                process.started_at = Some(now_ms());
                process.ended_at = None;
            });
        }
        self.settled(&process.id)
    }

    /// Makes the output of a life that is over readable again.
    fn show_last(&self, process: &Process, log: &Log) {
        let (mut screen, parsed) = replay(process, &log.reader(), REPLAY_BYTES);
        screen.raise_version(self.version_base(&process.id));
        let live = Live::new(process.id.clone(), process.runs, None, log.reader(), screen, parsed);
        live.set_over(process.exit);
        self.set_live(Arc::new(live));
    }

    /// Everything that ends from now on was ended with the server, on request.
    pub(crate) fn begin_shutdown(&self) {
        for (_, live) in self.lives() {
            live.stopping.store(true, Ordering::Release);
        }
    }

    /// Writes down that everything was ended with the server.
    pub(crate) fn note_shutdown(&self) {
        for process in self.processes.all().iter().filter(|process| process.status.is_alive()) {
            let _ = self.update(&process.id, |process| {
                process.status = Status::Stopped;
                process.ended_at = Some(now_ms());
            });
        }
    }

    /// Notes what the data plane tells.
    pub(crate) async fn follow(&self, mut events: mpsc::Receiver<Event>) {
        while let Some(event) = events.recv().await {
            match event {
                Event::Ended { id, run, exit } => self.note_end(&id, run, Some(exit)),
                Event::Lost { id, run } => self.note_end(&id, run, None),
                Event::Trouble => self.processes.ring(),
                Event::Mark { id, run, offset } => self.processes.note(&id, |process| {
                    if process.runs == run {
                        process.output_mark = Some(offset);
                    }
                }),
            }
        }
    }

    fn note_end(&self, id: &ProcessId, run: u64, exit: Option<Exit>) {
        let stopping = self.live(id).is_some_and(|live| live.stopping.load(Ordering::Acquire));
        self.processes.note(id, |process| {
            // An end that an earlier server wrote down is seen again by the next.
            if process.runs != run || !process.status.is_alive() {
                return;
            }
            process.exit = exit;
            process.ended_at = Some(now_ms());
            process.status = match exit {
                None => Status::Lost,
                Some(_) if stopping => Status::Stopped,
                Some(_) => Status::Exited,
            };
        });
        if self.processes.get(id).is_some_and(|process| process.runs == run) {
            self.deliveries.lose_unread(id);
        }
        self.timers.ring();
        self.declared.ring();
        if let Some(live) = self.live(id).filter(|live| live.run == run) {
            live.settle();
        }
    }

    /// Waits until a life is over, that is written down, and what else is wanted holds.
    async fn over(
        &self,
        live: &Arc<Live>,
        patience: Duration,
        wanted: impl Fn(&Progress) -> bool,
    ) -> Result<Progress, ToolError> {
        let mut watch = live.watch();
        let over =
            watch.wait_for(|progress| progress.is_over() && progress.settled && wanted(progress));
        match tokio::time::timeout(patience, over).await {
            Ok(Ok(progress)) => Ok(*progress),
            Ok(Err(_)) | Err(_) => {
                let message = format!("{} could not be ended within {patience:?}", live.id);
                Err(ToolError::new(ErrorKind::Timeout, message))
            }
        }
    }

    fn settled(&self, id: &ProcessId) -> Process {
        self.processes.get(id).unwrap_or_else(|| unknown(id))
    }

    pub(crate) fn update(
        &self,
        id: &ProcessId,
        change: impl FnOnce(&mut Process),
    ) -> Result<Process, ToolError> {
        self.processes.update(id, change)?.ok_or_else(|| no_such_process(id.as_str(), self))
    }

    fn output_folder(&self, id: &ProcessId) -> PathBuf {
        self.state.file("output").join(id.as_str())
    }

    /// The log for a new life of a process, with room for what it prints first. It is opened on a thread
    /// that may wait for the disk: it may have many files.
    async fn begin_log(&self, process: &Process) -> Result<Log, ToolError> {
        let folder = self.output_folder(&process.id);
        let (wanted, entry, budget) = (folder.clone(), process.clone(), self.limits.log_bytes);
        let begun = tokio::task::spawn_blocking(move || {
            let mut log = Log::open(&wanted, budget)?;
            go_on(&entry, &mut log);
            if log.is_empty() {
                log.make_room()?;
            }
            Ok(log)
        });
        let begun = begun.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        begun.map_err(|e| {
            let (id, folder) = (&process.id, folder.display());
            let message = format!("cannot keep the output of {id} in {folder}: {e}");
            ToolError::new(ErrorKind::Unavailable, message)
        })
    }

    /// The log that an earlier server left. One that cannot be opened costs a process no more than
    /// its output: it is tried again as long as that lives.
    fn find_log(&self, process: &Process) -> Log {
        let folder = self.output_folder(&process.id);
        let mut log = Log::open(&folder, self.limits.log_bytes).unwrap_or_else(|error| {
            tracing::error!(id = %process.id, %error, "its log cannot be opened now");
            Log::unopened(&folder, self.limits.log_bytes)
        });
        go_on(process, &mut log);
        log
    }

    pub(crate) fn remove_output(&self, id: &ProcessId) {
        let _ = std::fs::remove_dir_all(self.output_folder(id));
    }
}

/// Has a log that lost its end go on where nothing was printed before: no offset is told twice.
fn go_on(process: &Process, log: &mut Log) {
    if log.lacks_end() {
        log.skip_to(process.output_mark.unwrap_or(process.run_offset));
    }
}

/// A screen that shows what a log holds of a process's present life, and up to where. Of a long
/// one only the last `most` bytes are read.
fn replay(process: &Process, log: &Reader, most: u64) -> (Screen, u64) {
    let size = process
        .recipe
        .as_ref()
        .map_or(Size::new(24, 80), |recipe| Size::new(recipe.size.rows, recipe.size.columns));
    let from = process.run_offset.max(log.end().saturating_sub(most));
    let mut screen = Screen::new(size);
    screen.set_offset(from.max(log.start()));
    // What was answered, noticed and copied then must not be so again.
    screen.set_replay(true);
    let end = log.visit(from, usize::MAX, |at, bytes| {
        screen.skip_to(at);
        screen.feed(bytes);
        true
    });
    log.release(from, end);
    screen.set_replay(false);
    let end = end.max(process.run_offset);
    screen.skip_to(end);
    (screen, end)
}

/// The error for an id that nobody has; it says which there are.
pub(crate) fn no_such_process(id: &str, host: &Host) -> ToolError {
    let known: Vec<_> =
        host.processes.all().iter().map(|p| format!("{} ({})", p.id, p.name)).collect();
    let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
    let message = format!("there is no process `{id}`; processes: {known}");
    ToolError::new(ErrorKind::NotFound, message)
}

/// The error for a process that has, or had, no life to look at; it says why, where that is known.
pub(crate) fn no_output(process: &Process, host: &Host) -> ToolError {
    let seen = host.declared_seen(process).unwrap_or_default();
    let why = match (seen.problem, seen.waits_for.as_slice()) {
        (Some(problem), _) => problem,
        (None, [_, ..]) => format!("it waits for {}", seen.waits_for.join(", ")),
        (None, []) if process.runs == 0 => "it was not started yet".to_owned(),
        (None, []) => "it was lost, or never started".to_owned(),
    };
    let message = format!("{} ({}) has no output: {why}", process.id, process.name);
    ToolError::new(ErrorKind::Unavailable, message)
}

/// What stands for an entry that was closed while somebody waited for its end.
fn unknown(id: &ProcessId) -> Process {
    Process { status: Status::Stopped, ..Process::unstarted(id.clone()) }
}

fn already_running(process: &Process) -> ToolError {
    let message = format!("{} runs; restart_process would end it first", process.id);
    ToolError::new(ErrorKind::AlreadyRunning, message)
}

fn spawn_failed(error: SpawnError) -> ToolError {
    let kind = match error.fault {
        SpawnFault::Request => ErrorKind::InvalidArgument,
        SpawnFault::Exhausted => ErrorKind::Limit,
        SpawnFault::System => ErrorKind::Unavailable,
    };
    ToolError::new(kind, error.message)
}

fn unreachable_init(process: &Process, error: rustix::io::Errno) -> ToolError {
    let message = format!("what watches over {} is gone: {error}", process.id);
    ToolError::new(ErrorKind::Unavailable, message)
}

impl From<StateError> for ToolError {
    fn from(error: StateError) -> Self {
        // The disk is full, or not ours to write: whoever can change that must hear of it.
        let kind = match error {
            StateError::Io { .. } | StateError::Full { .. } | StateError::NotOurs { .. } => {
                ErrorKind::Unavailable
            }
            StateError::NoPlace | StateError::Newer { .. } => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}
