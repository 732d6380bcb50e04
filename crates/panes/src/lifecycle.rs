//! The lifecycle of a process: it is started, stopped, restarted and closed, and recovered by the next server.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use patterm_events::in_scope;
use patterm_keeper::log::{Log, Reader};
use patterm_keeper::{Pane, Program};
use patterm_screen::Size;
use tokio::sync::mpsc;

use crate::data_plane::{DraftMark, Event, MARK_BYTES, ProcessRun, Replay, RunProgress};
use crate::env_file::{self, EnvFileError};
use crate::environment::{Environment, PANE_VARIABLE};
use crate::environments::Stored;
use crate::error::PaneError;
use crate::offset::Offset;
use crate::panes::{Panes, pane_name};
use crate::ports::Ports;
use crate::process::{Exit, Kind, Process, ProcessId, Recipe, RunNumber, Status};
use crate::size;

/// How long a program may take to end after the first signal before everything is killed.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long everything may take to end after that.
pub const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// The size of a terminal that no view shows yet.
pub const SIZE: patterm_keeper::Size = patterm_keeper::Size::DEFAULT;

/// A process to start.
#[derive(Debug)]
pub struct NewProcess {
    /// Its label.
    pub name: String,
    /// What it runs.
    pub kind: Kind,
    /// The process that starts it.
    pub parent_id: Option<ProcessId>,
    /// There is no evidence that a person asked for it.
    pub not_a_persons: bool,
    /// How it is started.
    pub recipe: Recipe,
    /// The environment that its caller passed; `None` for the server's.
    pub environment: Option<Environment>,
    /// The variables that its caller set by name.
    pub set_variables: BTreeSet<String>,
}

/// What a single start adds to an entry's recipe. None of it is stored.
#[derive(Debug, Clone, Default)]
pub struct StartExtra {
    /// Arguments after the others.
    pub arguments: Vec<String>,
    /// Variables that override all others.
    pub variables: BTreeMap<String, String>,
}

impl Panes {
    /// Starts a process under a new id. If that fails, nothing of it is left.
    pub async fn spawn(&self, new: NewProcess) -> Result<Process, PaneError> {
        self.admit_process()?;
        let NewProcess { name, kind, parent_id, not_a_persons, recipe, environment, set_variables } =
            new;
        let process = self.add_process(&name, kind, parent_id, environment, |process| {
            process.not_a_persons = not_a_persons;
            process.recipe = Some(recipe);
            process.set_variables = set_variables;
            process.runs = RunNumber::FIRST;
        })?;
        let started = self.launch(&process, &StartExtra::default()).await;
        if started.is_err() {
            self.forget(&process.id);
            self.remove_output(&process.id);
        }
        started
    }

    /// Adds an entry, with the environment that it will be started with.
    pub fn add_process(
        &self,
        name: &str,
        kind: Kind,
        parent_id: Option<ProcessId>,
        environment: Option<Environment>,
        more: impl FnOnce(&mut Process),
    ) -> Result<Process, PaneError> {
        let stored = environment.map(|environment| self.store_environment(environment));
        let stored = stored.transpose()?;
        let process = self.processes.add_with(name, kind, parent_id, |process| {
            if let Some(stored) = &stored {
                stored.note(process);
            }
            more(process);
        })?;
        if let Some(stored) = stored {
            self.environments.settle(&process.id, stored);
        }
        Ok(process)
    }

    /// Stores an environment, if a program can be started with it.
    fn store_environment(&self, environment: Environment) -> Result<Stored<'_>, PaneError> {
        let bare = Program {
            argv: Vec::new(),
            env: environment,
            working_dir: self.project.root().to_owned(),
            size: SIZE,
        };
        bare.check().map_err(PaneError::Spawn)?;
        Ok(self.environments.store(bare.env)?)
    }

    /// Gives an entry the environment of its next starts, with the variables that its caller has set by name.
    pub fn set_environment(
        &self,
        id: &ProcessId,
        mut environment: Environment,
    ) -> Result<Process, PaneError> {
        if let Some(process) = self.processes.get(id) {
            self.environments.keep_set(&process, &mut environment);
        }
        let stored = self.store_environment(environment)?;
        let process = self.update(id, |process| stored.note(process))?;
        self.environments.settle(id, stored);
        self.environments.sweep(&self.processes);
        Ok(process)
    }

    /// Makes an entry start with the server's environment.
    pub fn clear_environment(&self, id: &ProcessId) {
        let has_own =
            |process: Process| process.environment.is_some() || process.environment_forgotten;
        if self.processes.get(id).is_some_and(has_own) {
            self.processes.note(id, |process| {
                (process.environment, process.environment_forgotten) = (None, false);
            });
            self.environments.sweep(&self.processes);
        }
    }

    /// Removes an entry, and its environment if no other entry has the same.
    pub fn forget(&self, id: &ProcessId) {
        self.processes.forget(id);
        self.environments.sweep(&self.processes);
    }

    /// Checks whether there is room for one more process.
    pub fn admit_process(&self) -> Result<(), PaneError> {
        let most = self.limits.processes;
        let count = self.processes.all().len();
        if count < most {
            return Ok(());
        }
        Err(PaneError::TooMany { count, limit: most })
    }

    /// Ends a run: the signal to its group, the grace period, then everything. Returns the entry once it is over.
    pub async fn end(
        &self,
        run: &Arc<ProcessRun>,
        signal: i32,
        grace: Duration,
    ) -> Result<Process, PaneError> {
        self.command_init(run, |pane| pane.stop(signal, grace))?;
        self.ended(run, grace).await
    }

    /// Kills what is left of a run after this time. Something else asks it to end before.
    pub fn kill_after(&self, run: &Arc<ProcessRun>, grace: Duration) -> Result<(), PaneError> {
        self.command_init(run, |pane| pane.kill_after(grace))
    }

    /// Waits for the end of a run that is killed after the grace period.
    pub async fn ended(
        &self,
        run: &Arc<ProcessRun>,
        grace: Duration,
    ) -> Result<Process, PaneError> {
        // Its descendants must end too; they have the rest of the grace period.
        self.over(run, grace + KILL_PATIENCE, |progress| progress.empty).await?;
        Ok(self.settled(&run.id))
    }

    /// Gives a command to the init of a run, unless the run has ended by itself.
    fn command_init(
        &self,
        run: &ProcessRun,
        command: impl FnOnce(&Pane) -> rustix::io::Result<()>,
    ) -> Result<(), PaneError> {
        let is_gone = run.watch().borrow().empty;
        let Some(pane) = run.pane.as_ref().filter(|_| !is_gone) else { return Ok(()) };
        match command(pane) {
            // It has just ended, and the end was not noticed yet.
            Err(_) if pane.is_init_gone() => Ok(()),
            sent => sent.map_err(|source| PaneError::InitGone { id: run.id.clone(), source }),
        }
    }

    /// Kills a process with everything it started, and releases its pane.
    pub async fn kill(&self, id: &ProcessId) -> Result<(), PaneError> {
        if let Some(run) = self.run_of(id) {
            run.set_stopping();
            if let Some(pane) = &run.pane {
                // Processes that outlived the program are killed as well.
                let _ = pane.kill();
                self.close_pane(&run).await?;
            }
            self.take_run(id);
        }
        Ok(())
    }

    /// Waits until a pane that is being killed is empty, and has the keeper release it.
    async fn close_pane(&self, run: &Arc<ProcessRun>) -> Result<(), PaneError> {
        let name = pane_name(&run.id, run.number);
        let ended = self.over(run, KILL_PATIENCE, |progress| progress.empty).await;
        // A program can disturb its init; the keeper then ends both, and the entry stays until they are gone.
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
            tracing::error!(%error, "the keeper has not released a pane yet");
        }
    }

    /// The current run of a process.
    pub fn running(&self, process: &Process) -> Result<Arc<ProcessRun>, PaneError> {
        let run = self.run_of(&process.id).filter(|run| !run.watch().borrow().is_over());
        let Process { id, name, .. } = process;
        run.ok_or_else(|| PaneError::NotRunning { id: id.clone(), name: name.clone() })
    }

    /// The current run of a process. If it is just being started, or has ended and that is not recorded yet, this
    /// waits until it is known.
    pub async fn settled_run(&self, process: &Process) -> Result<Arc<ProcessRun>, PaneError> {
        let Process { id, name, .. } = process;
        let mut changes = self.processes.changes();
        let found = async {
            loop {
                changes.borrow_and_update();
                let now = self.processes.get(id).filter(|process| process.status.is_alive())?;
                let is_current = |run: &Arc<ProcessRun>| {
                    run.number == now.runs && !run.watch().borrow().is_over()
                };
                if let Some(run) = self.run_of(id).filter(is_current) {
                    return Some(run);
                }
                changes.changed().await.ok()?;
            }
        };
        let found = tokio::time::timeout(KILL_PATIENCE, found).await.unwrap_or(None);
        found.ok_or_else(|| PaneError::NotRunning { id: id.clone(), name: name.clone() })
    }

    /// Starts a new run of a process.
    pub async fn begin(&self, id: &ProcessId, extra: &StartExtra) -> Result<Process, PaneError> {
        let mut begins = false;
        let process = self.update(id, |process| {
            // Decided under the lock, so that only one caller starts it.
            begins = !process.status.is_alive();
            if begins {
                process.runs = process.runs.next();
                process.status = Status::Starting;
                process.exit = None;
            }
        })?;
        if !begins {
            return Err(PaneError::AlreadyRunning(process.id));
        }
        let started = self.launch(&process, extra).await;
        if started.is_err() {
            self.processes.note(id, |process| process.status = Status::Failed);
        }
        started
    }

    /// Starts the program of a process. If that fails half-way, nothing keeps running.
    pub async fn launch(
        &self,
        process: &Process,
        extra: &StartExtra,
    ) -> Result<Process, PaneError> {
        let id = &process.id;
        let mut program = self.program_of(process, extra)?;
        self.trace_git(process, &mut program).await;
        program.check().map_err(PaneError::Spawn)?;
        if let Some(before) = self.run_of(id) {
            // The versions of the new screen continue those of the last one, which may still have to be rebuilt.
            self.data_plane.rebuilt(&before).await;
        }
        let log = self.begin_log(process).await?;
        let pane = self.keeper.spawn(process.pane(), program, None).await;
        let pane = pane.map_err(PaneError::Spawn)?;
        self.environments.note_started(id);
        let run_offset = Offset::new(log.end());
        let running = self.update(id, |process| {
            process.status = Status::Running;
            process.run_offset = run_offset;
            process.output_mark = Some(run_offset.plus(MARK_BYTES));
            process.started_at = Some(self.clock.wall_ms());
            process.ended_at = None;
            process.restored = process.interrupted.take();
        });
        match running {
            Ok(running) => {
                self.attach(&running, pane, log);
                // For those who wait for this run.
                self.processes.notify();
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

    /// The variables in a file, which is relative to the project.
    pub fn variables_in(&self, env_file: &Path) -> Result<Environment, EnvFileError> {
        env_file::read(&self.project.root().join(env_file))
    }

    /// The program of a process, with its whole environment.
    pub(crate) fn program_of(
        &self,
        process: &Process,
        extra: &StartExtra,
    ) -> Result<Program, PaneError> {
        let Some(recipe) = process.recipe.clone() else {
            return Err(PaneError::NoRecipe(process.id.clone()));
        };
        let Recipe { mut argv, env: variables, env_file, working_dir, size, .. } = recipe;
        argv.extend(extra.arguments.iter().cloned());
        let mut env = self.environments.of_start(process);
        if let Some(file) = env_file {
            env.extend(self.variables_in(&file)?);
        }
        // A PWD that names another folder would mislead programs that trust it.
        let is_folder =
            |shown: &OsStr| Path::new(shown).canonicalize().is_ok_and(|at| at == working_dir);
        let is_set = process.set_variables.contains("PWD");
        if !is_set && !env.get("PWD").is_some_and(is_folder) {
            env.insert("PWD", &working_dir);
        }
        env.extend(variables);
        env.extend(extra.variables.clone());
        env.insert(PANE_VARIABLE, format!("{}/{}", self.project.key(), process.id));
        Ok(Program { argv, env, working_dir, size })
    }

    /// Adds a pane to the data plane, with a screen that shows the output of this run in the log.
    pub(crate) fn attach(&self, process: &Process, pane: Arc<Pane>, log: Log) {
        // The entry is updated a little later than the terminal.
        let size = pane.size().ok().filter(|size| size.rows > 0 && size.columns > 0);
        let version_base = self.version_base(&process.id);
        let replay = replay(process, size, &log.reader(), u64::MAX, version_base);
        let run = run_of(process, Some(pane.clone()), &log, replay);
        run.set_mark(process.output_mark.unwrap_or_default());
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
                    tracing::error!(%error, "the keeper has not released a pane yet");
                }
            });
        }
        if !run.is_rebuilt() {
            self.data_plane.rebuild(&run);
        }
        self.data_plane.add(run, pane, log);
        // Callers that wait for this run find it only now.
        self.processes.notify();
    }

    /// Records the size of a terminal, so that the next server shows the same screen.
    pub fn note_size(&self, id: &ProcessId, size: Option<Size>) {
        let Some(size) = size.map(size::for_terminal) else { return };
        let known = self.processes.get(id).and_then(|process| process.recipe);
        if known.is_some_and(|recipe| recipe.size != size) {
            let noted = self.update(id, |process| {
                if let Some(recipe) = &mut process.recipe {
                    recipe.size = size;
                }
            });
            if let Err(error) = noted {
                tracing::error!(%id, %error, "cannot record the size of a terminal");
            }
        }
    }

    /// Clears a process's request for attention, and the record that it was interrupted: a person typed into it,
    /// answered, or dismissed it.
    pub fn attended(&self, id: &ProcessId) {
        let is_open = |process: &Process| process.attention.is_some() || process.restored.is_some();
        if self.processes.get(id).is_some_and(|process| is_open(&process)) {
            self.processes.note(id, |process| {
                (process.attention, process.restored) = (None, None);
            });
        }
    }

    /// Marks all runs as stopping: the server ends them.
    pub fn begin_shutdown(&self) {
        for (_, run) in self.runs() {
            run.set_stopping();
        }
    }

    /// Records that everything was stopped with the server.
    pub fn note_shutdown(&self) {
        for process in self.processes.all().iter().filter(|process| process.status.is_alive()) {
            let _ = self.update(&process.id, |process| {
                process.status = Status::Stopped;
                process.ended_at = Some(self.clock.wall_ms());
            });
        }
    }

    /// Records the events of the data plane. `ended` is called for every end of a run after it is recorded and before
    /// anyone who waits for that end continues.
    pub async fn follow(
        &self,
        mut events: mpsc::Receiver<Event>,
        ended: impl Fn(&ProcessId, RunNumber),
    ) {
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
        number: RunNumber,
        exit: Option<Exit>,
        ended: impl Fn(&ProcessId, RunNumber),
    ) {
        let stopping = self.run_of(id).filter(|run| run.is_stopping());
        let actor = stopping.as_ref().map(|run| run.stopped_by()).unwrap_or_default();
        let stopping = stopping.is_some();
        let note = |process: &mut Process| {
            // The next server sees an end again that an earlier one has recorded.
            if process.runs != number || !process.status.is_alive() {
                return;
            }
            process.exit = exit;
            process.ended_at = Some(self.clock.wall_ms());
            process.status = match exit {
                None => Status::Lost,
                Some(_) if stopping => Status::Stopped,
                Some(_) => Status::Exited,
            };
        };
        in_scope(actor, || self.processes.note(id, note));
        ended(id, number);
        if let Some(run) = self.run_of(id).filter(|run| run.number == number) {
            run.settle();
        }
    }

    /// Waits until a run is over, its end is recorded, and `wanted` holds.
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

    /// Changes an entry; the change is on disk when this returns.
    pub fn update(
        &self,
        id: &ProcessId,
        change: impl FnOnce(&mut Process),
    ) -> Result<Process, PaneError> {
        self.processes.update(id, change)?.ok_or_else(|| self.no_such_process(id.as_str()))
    }

    /// The error for an unknown id; it lists the processes.
    pub fn no_such_process(&self, id: &str) -> PaneError {
        let known: Vec<_> =
            self.processes.all().iter().map(|p| format!("{} ({})", p.id, p.name)).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        PaneError::NotFound { id: id.to_owned(), known }
    }

    pub(crate) fn output_folder(&self, id: &ProcessId) -> PathBuf {
        self.state.file("output").join(id.as_str())
    }

    /// Opens the log for a new run of a process, with room for its first output, on a thread that may wait for the
    /// disk: a log may have many files.
    async fn begin_log(&self, process: &Process) -> Result<Log, PaneError> {
        let folder = self.output_folder(&process.id);
        let (wanted, entry, budget) = (folder.clone(), process.clone(), self.limits.log_bytes);
        let begun = tokio::task::spawn_blocking(move || {
            let mut log = Log::open(&wanted, budget)?;
            skip_lost_end(&entry, &mut log);
            if log.is_empty() {
                log.make_room()?;
            }
            Ok(log)
        });
        let begun = begun.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        begun.map_err(|source| PaneError::Log { id: process.id.clone(), folder, source })
    }

    /// Removes the output of a process.
    pub fn remove_output(&self, id: &ProcessId) {
        let _ = std::fs::remove_dir_all(self.output_folder(id));
    }
}

/// Lets a log that lost its end continue at an offset that was never used, so that no offset has two meanings.
pub(crate) fn skip_lost_end(process: &Process, log: &mut Log) {
    if log.is_end_missing() {
        log.skip_to(process.output_mark.unwrap_or(process.run_offset).get());
    }
}

/// A run whose screen shows what is to be replayed, as soon as that is done.
pub(crate) fn run_of(
    process: &Process,
    pane: Option<Arc<Pane>>,
    log: &Log,
    replay: Replay,
) -> Arc<ProcessRun> {
    let (id, number, reader) = (process.id.clone(), process.runs, log.reader());
    let mut run = match replay.is_empty() {
        true => ProcessRun::new(id, number, pane, reader, replay.blank_screen(), replay.until),
        false => ProcessRun::to_rebuild(id, number, pane, reader, replay),
    };
    run.ports = Ports::since(process.run_offset);
    Arc::new(run)
}

/// The last `most` bytes of a process's current run, to be replayed; `size` is that of its terminal, if it is known.
pub(crate) fn replay(
    process: &Process,
    size: Option<patterm_keeper::Size>,
    log: &Reader,
    most: u64,
    version_base: u64,
) -> Replay {
    let recipe = process.recipe.as_ref();
    let recorded = recipe.map_or(SIZE, |recipe| recipe.size);
    let terminal_name = recipe.and_then(|recipe| recipe.terminal_name.clone()).unwrap_or_default();
    let size = size::for_screen(size.unwrap_or(recorded));
    let end = Offset::new(log.end());
    let from = process.run_offset.max(Offset::new(end.get().saturating_sub(most)));
    let until = end.max(process.run_offset);
    Replay { run: process.runs, size, from, until, version_base, terminal_name }
}

/// Replaces an entry that was closed while a caller waited for its end.
fn unknown(id: &ProcessId) -> Process {
    Process { status: Status::Stopped, ..Process::unstarted(id.clone()) }
}
