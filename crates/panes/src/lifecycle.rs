//! The lifecycle of a process: started, stopped, started again, closed, and found again by the next
//! server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use patterm_keeper::log::{Log, Reader};
use patterm_keeper::{Pane, Program};
use patterm_screen::{Screen, Size};
use patterm_store::clock::now_ms;
use tokio::sync::mpsc;

use crate::data_plane::{DraftMark, Event, MARK_BYTES, ProcessRun, RunProgress};
use crate::environment::PANE_VARIABLE;
use crate::error::PaneError;
use crate::panes::{Panes, pane_name};
use crate::process::{Exit, Kind, Process, ProcessId, Recipe, Status};

/// How long a program may take to end after the first signal before everything is killed.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long everything may take to end after that.
pub const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// The size of a terminal that no view shows yet.
pub const SIZE: patterm_keeper::Size = patterm_keeper::Size { rows: 24, columns: 80 };

/// A process to start.
#[derive(Debug)]
pub struct NewProcess {
    /// Its label.
    pub name: String,
    /// What it runs.
    pub kind: Kind,
    /// The process that starts it.
    pub parent_id: Option<ProcessId>,
    /// Nothing says that a person asked for it.
    pub not_a_persons: bool,
    /// How it is started.
    pub recipe: Recipe,
}

impl Panes {
    /// Starts a process under a new id. If that fails, nothing of it is left.
    pub async fn spawn(&self, new: NewProcess) -> Result<Process, PaneError> {
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

    /// Checks whether there is room for one more process.
    pub fn admit_process(&self) -> Result<(), PaneError> {
        let most = self.limits.processes;
        let there = self.processes.all().len();
        if there < most {
            return Ok(());
        }
        Err(PaneError::TooMany { count: there, limit: most })
    }

    /// Ends a run: the signal to its group, the grace time, then everything. Returns the entry once it
    /// is over.
    pub async fn end(&self, run: &Arc<ProcessRun>, signal: i32) -> Result<Process, PaneError> {
        // It may have ended by itself meanwhile.
        let is_gone = run.watch().borrow().empty;
        if let Some(pane) = run.pane.as_ref().filter(|_| !is_gone) {
            let failed = |source| PaneError::InitGone { id: run.id.clone(), source };
            pane.stop(signal, GRACE).map_err(failed)?;
        }
        // Not before what it started is gone as well: that has the rest of the grace time.
        self.over(run, GRACE + KILL_PATIENCE, |progress| progress.empty).await?;
        Ok(self.settled(&run.id))
    }

    /// Kills a process with everything it ever started, and lets go of its pane.
    pub async fn kill(&self, id: &ProcessId) -> Result<(), PaneError> {
        if let Some(run) = self.run_of(id) {
            run.stopping.store(true, Ordering::Release);
            if let Some(pane) = &run.pane {
                // What is left behind by a program that ended is killed as well.
                let _ = pane.kill();
                self.close_pane(&run).await?;
            }
            self.take_run(id);
        }
        Ok(())
    }

    /// Waits until nothing is left in a pane that is being killed, and has the keeper let go of it.
    async fn close_pane(&self, run: &Arc<ProcessRun>) -> Result<(), PaneError> {
        let name = pane_name(&run.id, run.number);
        let ended = self.over(run, KILL_PATIENCE, |progress| progress.empty).await;
        // A program can hinder its init; the keeper ends both, and the entry stays until that is
        // seen.
        let failed = |source| PaneError::NotClosed { id: run.id.clone(), source };
        self.keeper.forget(name).await.map_err(failed)?;
        if ended.is_err() {
            self.over(run, KILL_PATIENCE, |progress| progress.empty).await?;
        }
        self.data_plane.remove(run);
        Ok(())
    }

    /// Releases a pane that is no longer needed.
    pub async fn let_go(&self, pane: String) {
        if let Err(error) = self.keeper.forget(pane).await {
            tracing::error!(%error, "the keeper does not let go of a pane yet");
        }
    }

    /// The current run of a process.
    pub fn running(&self, process: &Process) -> Result<Arc<ProcessRun>, PaneError> {
        let run = self.run_of(&process.id).filter(|run| !run.watch().borrow().is_over());
        let Process { id, name, .. } = process;
        run.ok_or_else(|| PaneError::NotRunning { id: id.clone(), name: name.clone() })
    }

    /// Begins a new run of a process; `instructions` are arguments for this one time.
    pub async fn begin(
        &self,
        id: &ProcessId,
        instructions: &[String],
    ) -> Result<Process, PaneError> {
        let mut begins = false;
        let process = self.update(id, |process| {
            // Decided under the lock, so that it is started only once.
            begins = !process.status.is_alive();
            if begins {
                process.runs += 1;
                process.status = Status::Starting;
                process.exit = None;
            }
        })?;
        if !begins {
            return Err(PaneError::AlreadyRunning(process.id));
        }
        let started = self.launch(&process, instructions).await;
        if started.is_err() {
            self.processes.note(id, |process| process.status = Status::Failed);
        }
        started
    }

    /// Starts the program of a process. If that fails half-way, nothing keeps running.
    /// `more` are arguments for this one time.
    pub async fn launch(&self, process: &Process, more: &[String]) -> Result<Process, PaneError> {
        let id = &process.id;
        let Some(mut recipe) = process.recipe.clone() else {
            return Err(PaneError::NoRecipe(id.clone()));
        };
        recipe.argv.extend(more.iter().cloned());
        let mut env = self.environment.clone();
        env.extend(recipe.env);
        env.insert(PANE_VARIABLE.to_owned(), format!("{}/{id}", self.project.key()));
        let program =
            Program { argv: recipe.argv, env, working_dir: recipe.working_dir, size: recipe.size };
        let log = self.begin_log(process).await?;
        let pane = self.keeper.spawn(process.pane(), program, None).await;
        let pane = pane.map_err(PaneError::Spawn)?;
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
                self.attach(&running, pane, log);
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

    /// Gives a pane to the data plane, its screen showing what the log holds of this run.
    pub(crate) fn attach(&self, process: &Process, pane: Arc<Pane>, log: Log) {
        let (mut screen, parsed) = replay(process, &log.reader(), u64::MAX);
        screen.raise_version(self.version_base(&process.id));
        let (id, number, reader) = (process.id.clone(), process.runs, log.reader());
        let run = Arc::new(ProcessRun::new(id, number, Some(pane.clone()), reader, screen, parsed));
        run.mark.store(process.output_mark.unwrap_or(0), Ordering::Relaxed);
        run.keep_draft(DraftMark::within(&self.output_folder(&process.id)));
        if let Some(before) = self.set_run(run.clone())
            && before.pane.is_some()
        {
            before.settle();
            self.data_plane.remove(&before);
            let keeping = self.keeper.clone();
            let name = pane_name(&before.id, before.number);
            tokio::spawn(async move {
                if let Err(error) = keeping.forget(name).await {
                    tracing::error!(%error, "the keeper does not let go of a pane yet");
                }
            });
        }
        self.data_plane.add(run, pane, log);
    }

    /// Records the size of a terminal, so that the next server shows the same screen.
    pub fn note_size(&self, id: &ProcessId, size: Option<Size>) {
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
                tracing::error!(%id, %error, "a size could not be written down");
            }
        }
    }

    /// Clears a process's call for attention: a person typed into it or went there.
    pub fn attended(&self, id: &ProcessId) {
        if self.processes.get(id).is_some_and(|process| process.attention.is_some()) {
            self.processes.note(id, |process| process.attention = None);
        }
    }

    /// Marks all runs: what ends from now on was stopped with the server.
    pub fn begin_shutdown(&self) {
        for (_, run) in self.runs() {
            run.stopping.store(true, Ordering::Release);
        }
    }

    /// Records that everything was stopped with the server.
    pub fn note_shutdown(&self) {
        for process in self.processes.all().iter().filter(|process| process.status.is_alive()) {
            let _ = self.update(&process.id, |process| {
                process.status = Status::Stopped;
                process.ended_at = Some(now_ms());
            });
        }
    }

    /// Notes what the data plane reports. `ended` is called for every end of a run once it is written
    /// down, before anyone who waits for that end goes on.
    pub async fn follow(&self, mut events: mpsc::Receiver<Event>, ended: impl Fn(&ProcessId, u64)) {
        while let Some(event) = events.recv().await {
            match event {
                Event::Ended { id, run, exit } => self.note_end(&id, run, Some(exit), &ended),
                Event::Lost { id, run } => self.note_end(&id, run, None, &ended),
                Event::Trouble => self.processes.notify(),
                Event::Mark { id, run, offset } => self.processes.note(&id, |process| {
                    if process.runs == run {
                        process.output_mark = Some(offset);
                    }
                }),
            }
        }
    }

    fn note_end(
        &self,
        id: &ProcessId,
        number: u64,
        exit: Option<Exit>,
        ended: impl Fn(&ProcessId, u64),
    ) {
        let stopping = self.run_of(id).is_some_and(|run| run.stopping.load(Ordering::Acquire));
        self.processes.note(id, |process| {
            // An end that an earlier server wrote down is seen again by the next.
            if process.runs != number || !process.status.is_alive() {
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
        ended(id, number);
        if let Some(run) = self.run_of(id).filter(|run| run.number == number) {
            run.settle();
        }
    }

    /// Waits until a run is over and recorded as such, and `wanted` holds.
    async fn over(
        &self,
        run: &Arc<ProcessRun>,
        patience: Duration,
        wanted: impl Fn(&RunProgress) -> bool,
    ) -> Result<RunProgress, PaneError> {
        let mut watch = run.watch();
        let over =
            watch.wait_for(|progress| progress.is_over() && progress.settled && wanted(progress));
        match tokio::time::timeout(patience, over).await {
            Ok(Ok(progress)) => Ok(*progress),
            Ok(Err(_)) | Err(_) => Err(PaneError::NotEnded { id: run.id.clone(), patience }),
        }
    }

    /// The entry of a process after its end.
    pub fn settled(&self, id: &ProcessId) -> Process {
        self.processes.get(id).unwrap_or_else(|| unknown(id))
    }

    /// Changes an entry; what was changed is on the disk when this returns.
    pub fn update(
        &self,
        id: &ProcessId,
        change: impl FnOnce(&mut Process),
    ) -> Result<Process, PaneError> {
        self.processes.update(id, change)?.ok_or_else(|| self.no_such_process(id.as_str()))
    }

    /// The error for an id that no process has; it lists those there are.
    pub fn no_such_process(&self, id: &str) -> PaneError {
        let known: Vec<_> =
            self.processes.all().iter().map(|p| format!("{} ({})", p.id, p.name)).collect();
        let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
        PaneError::NotFound { id: id.to_owned(), known }
    }

    pub(crate) fn output_folder(&self, id: &ProcessId) -> PathBuf {
        self.state.file("output").join(id.as_str())
    }

    /// The log for a new run of a process, with room for what it prints first. It is opened on a thread
    /// that may wait for the disk: it may have many files.
    async fn begin_log(&self, process: &Process) -> Result<Log, PaneError> {
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
        begun.map_err(|source| PaneError::Log { id: process.id.clone(), folder, source })
    }

    /// Removes all that a process printed.
    pub fn remove_output(&self, id: &ProcessId) {
        let _ = std::fs::remove_dir_all(self.output_folder(id));
    }
}

/// Has a log that lost its end go on where nothing was printed before: no offset is told twice.
pub(crate) fn go_on(process: &Process, log: &mut Log) {
    if log.is_end_missing() {
        log.skip_to(process.output_mark.unwrap_or(process.run_offset));
    }
}

/// A screen that shows what a log holds of a process's present run, and up to where. Of a long
/// one only the last `most` bytes are read.
pub(crate) fn replay(process: &Process, log: &Reader, most: u64) -> (Screen, u64) {
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

/// Stands for an entry that was closed while a caller waited for its end.
fn unknown(id: &ProcessId) -> Process {
    Process { status: Status::Stopped, ..Process::unstarted(id.clone()) }
}
