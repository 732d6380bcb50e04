//! Starts agents from presets, with an identity and patterm's tools, and resumes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use patterm_panes::environment::Environment;
use patterm_panes::lifecycle::SIZE;
use patterm_panes::process::{AgentEntry, Kind, Process, ProcessId, Recipe, RunNumber};
use patterm_panes::{Panes, StartExtra};
use patterm_project::declared::Declared;
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::state::{self, StateDir, StateError};
use serde_json::Value;

use crate::activity::{Activities, ended};
use crate::conversations::Conversations;
use crate::delivery::{Deliverer, Deliveries, NewDelivery, Source, long_texts};
use crate::error::AgentError;
use crate::identity::{Identities, write_file};
use crate::observer::Observers;
use crate::presets::{
    Catalogue, IDENTITY_FILE, Known, Launch, LaunchContext, LaunchError, Opening, Preset, Presets,
    find_program, write_back,
};

/// Tools that still need the user's approval in the CLI: with them an agent could run any program
/// unnoticed by its CLI, or answer another agent's question in the user's place.
const NEEDS_APPROVAL: [&str; 2] = ["spawn_process", "send_input"];

/// How late a report of a hook may be. One that seems older comes from a clock that was set.
const MAX_HOOK_AGE: Duration = Duration::from_secs(60);

/// The agents of a project.
#[derive(Debug)]
pub struct Agents {
    /// The presets of their CLIs.
    pub presets: Arc<Presets>,
    /// Their identity tokens.
    pub identities: Arc<Identities>,
    /// The activity of all processes, agents or not.
    pub activities: Arc<Activities>,
    /// The texts on their way into them.
    pub deliveries: Arc<Deliveries>,
    /// Types those texts.
    pub deliverer: Arc<Deliverer>,
    /// Their conversations.
    pub conversations: Arc<Conversations>,
    panes: Arc<Panes>,
    project: Project,
    state: StateDir,
    limits: Limits,
    /// The patterm binary.
    program: PathBuf,
    /// Where the server listens.
    socket: PathBuf,
    /// Tools that CLIs may call without asking the user.
    approved: Vec<String>,
}

/// What [`Agents`] is built from.
#[derive(Debug)]
pub struct AgentParts {
    /// The panes they run in.
    pub panes: Arc<Panes>,
    /// The project file, which may define presets.
    pub declared: Arc<Declared>,
    /// Their project.
    pub project: Project,
    /// The folder for their state.
    pub state: StateDir,
    /// The limits on their number and depth.
    pub limits: Limits,
    /// The user's settings.
    pub settings: Option<PathBuf>,
    /// The patterm binary, which they run to connect.
    pub program: PathBuf,
    /// The socket they connect to.
    pub socket: PathBuf,
    /// The names of all tools.
    pub tools: Vec<String>,
}

/// An agent to start.
#[derive(Debug)]
pub struct NewAgent {
    /// The preset of its CLI.
    pub preset: String,
    /// Its label; the preset's name if `None`.
    pub name: Option<String>,
    /// The process that starts it.
    pub parent_id: Option<ProcessId>,
    /// The tag of its caller, if that is not a process: `human`, `external`.
    pub asked_by: Option<String>,
    /// Its first instructions, without control characters.
    pub instructions: Option<String>,
    /// Its working directory.
    pub working_dir: PathBuf,
    /// The environment that its caller passed; `None` for the server's.
    pub environment: Option<Environment>,
    /// The variables that its caller set by name.
    pub set_variables: BTreeSet<String>,
}

/// How to restart an agent that ended.
#[derive(Debug, Default)]
pub struct Relaunch {
    /// Why it begins a new conversation, if it does.
    pub new_conversation: Option<String>,
    /// What this start adds to the entry's recipe.
    pub extra: StartExtra,
}

impl Agents {
    /// The panes they run in.
    pub(crate) fn panes(&self) -> &Panes {
        &self.panes
    }

    /// Loads the state of the agents; starts nothing yet.
    pub fn load(parts: AgentParts) -> Result<Self, StateError> {
        let AgentParts {
            panes,
            declared,
            project,
            state,
            limits,
            settings,
            program,
            socket,
            tools,
        } = parts;
        let presets = Arc::new(Presets::new(settings, declared));
        let activities = Arc::new(Activities::default());
        let deliveries = Deliveries::load(&state, panes.clock().clone())?;
        let deliveries = Arc::new(deliveries.with_events(panes.events().clone()));
        let conversations = Arc::new(Conversations::new(panes.clone(), activities.clone()));
        let deliverer = Arc::new(Deliverer {
            panes: panes.clone(),
            activities: activities.clone(),
            deliveries: deliveries.clone(),
            conversations: conversations.clone(),
        });
        Ok(Self {
            identities: Arc::new(Identities::load(&state)?),
            approved: tools.into_iter().filter(|name| !NEEDS_APPROVAL.contains(&&**name)).collect(),
            panes,
            presets,
            activities,
            deliveries,
            conversations,
            deliverer,
            project,
            state,
            limits,
            program,
            socket,
        })
    }

    /// Observes every run from its beginning to its end.
    pub async fn observe(&self) {
        let observers = Observers {
            panes: self.panes.clone(),
            presets: self.presets.clone(),
            activities: self.activities.clone(),
            deliveries: self.deliveries.clone(),
            conversations: self.conversations.clone(),
        };
        Arc::new(observers).run().await;
    }

    /// Records how a process of an earlier server ended.
    pub fn note_ended(&self, process: &Process) {
        // A process that may be restored does not count as settled.
        self.activities.set(&process.id, ended(process), !process.awaits_decision());
    }

    /// Records that a run ended: its CLI will read nothing more.
    pub fn note_run_over(&self, id: &ProcessId, run: RunNumber) {
        if self.panes.processes.get(id).is_some_and(|process| process.runs == run) {
            self.deliveries.lose_unread(id);
        }
    }

    /// Forgets a closed process and the texts queued for it.
    pub fn close(&self, id: &ProcessId) {
        self.deliveries.give_up(id, "the process was closed");
        self.activities.forget(id);
        self.forget(id);
    }

    /// The text as a prompt: itself, or a reference to a file that contains it if it is too long.
    pub fn as_prompt(&self, to: &ProcessId, text: &str) -> Result<String, StateError> {
        long_texts::as_prompt(self.project.root(), to, text)
    }

    /// Starts an agent under a new id. On failure, everything it created is removed.
    pub async fn spawn(&self, new: NewAgent) -> Result<Process, AgentError> {
        let environment = new.environment.clone();
        let around = environment.clone().unwrap_or_else(|| self.panes.environments.of_new());
        let (preset, program) = self.usable_preset(&new.preset, &around)?;
        self.admit_agent(new.parent_id.as_ref())?;
        let label = new.name.clone().unwrap_or_else(|| new.preset.clone());
        let conversation = fresh_uuid()?;
        let agent = AgentEntry {
            preset: new.preset.clone(),
            conversation,
            id_reported: false,
            had_turn: false,
            lost_conversation: false,
            turn_in_run: None,
        };
        let parent_id = new.parent_id.clone();
        let process =
            self.panes.add_process(&label, Kind::Agent, parent_id, environment, |entry| {
                entry.agent = Some(agent);
                entry.set_variables = new.set_variables.clone();
                entry.runs = RunNumber::FIRST;
            })?;
        let started = self.begin_agent(&process, &preset, &program, &new).await;
        if started.is_err() {
            let _ = self.identities.revoke(&process.id);
            self.forget(&process.id);
            self.panes.forget(&process.id);
            self.panes.remove_output(&process.id);
        }
        started
    }

    async fn begin_agent(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
        new: &NewAgent,
    ) -> Result<Process, AgentError> {
        let prompt = match &new.instructions {
            Some(text) => Some(preset.as_plain_turn(&self.as_prompt(&process.id, text)?)),
            None => None,
        };
        let opening = Opening::Fresh { prompt: prompt.as_deref() };
        let launch = self.prepare_agent(process, preset, program, opening)?;
        let recipe = Recipe {
            argv: launch.argv,
            env: BTreeMap::new(),
            env_file: preset.env_file.clone(),
            working_dir: new.working_dir.clone(),
            size: SIZE,
            terminal_name: preset.terminal_name.clone(),
        };
        let process = self.panes.update(&process.id, |entry| entry.recipe = Some(recipe))?;
        let by_argument = !launch.prompt_args.is_empty();
        if let Some(text) = prompt {
            let tag = new.asked_by.clone();
            let source = Source::FirstPrompt { from: new.parent_id.clone(), tag };
            let delivery = NewDelivery { to: process.id.clone(), source, key: None, text };
            let id = self.deliveries.enqueue(delivery)?;
            if by_argument {
                // Marked as begun before the program runs, so that it is never given twice.
                self.deliveries.begin(id, false)?;
            }
        }
        let extra = StartExtra { arguments: launch.prompt_args, variables: launch.env };
        let started = self.panes.launch(&process, &extra).await;
        if started.is_err() {
            self.deliveries.give_up(&process.id, "the agent could not be started");
        }
        Ok(started?)
    }

    /// Checks that an agent's preset can resume a conversation: only such an agent is started again
    /// without a new one.
    pub fn can_resume(&self, process: &Process) -> Result<(), AgentError> {
        let Some(agent) = &process.agent else { return Ok(()) };
        let (preset, _) = self.usable_preset(&agent.preset, &self.around(process))?;
        match preset.resume {
            Some(_) => Ok(()),
            None => Err(AgentError::NotResumable(agent.preset.clone())),
        }
    }

    /// Checks that an agent could be started, before it is stopped for a restart.
    pub fn can_restart(&self, process: &Process) -> Result<(), AgentError> {
        let Some(agent) = &process.agent else { return Ok(()) };
        self.usable_preset(&agent.preset, &self.around(process)).map(drop)
    }

    /// Prepares the restart of an agent: it resumes its conversation if possible, else it begins a new
    /// one, and the result says why.
    pub fn prepare_again(&self, process: &Process) -> Result<Relaunch, AgentError> {
        let Some(agent) = &process.agent else { return Ok(Relaunch::default()) };
        let (preset, program) = self.usable_preset(&agent.preset, &self.around(process))?;
        let continuation = continuation(agent, &preset);
        let extra = match continuation {
            Continuation::Resumes => self.reopen(process, &preset, &program, Opening::Again)?,
            _ => self.prepare_new_conversation(process, &preset, &program)?,
        };
        Ok(Relaunch { new_conversation: continuation.why_new(), extra })
    }

    /// Why a restarted agent would begin a new conversation; `None` if it would resume. Fails if it
    /// could not be started at all.
    pub fn would_resume(
        &self,
        process: &Process,
        agent: &AgentEntry,
        catalogue: &Catalogue,
    ) -> Result<Option<String>, AgentError> {
        let (preset, _) = self.usable(&agent.preset, catalogue, &self.around(process))?;
        Ok(continuation(agent, preset).why_new())
    }

    /// Gives the agent a new conversation. Also returns the first prompt if there is no evidence that the
    /// agent accepted it before.
    fn prepare_new_conversation(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
    ) -> Result<StartExtra, AgentError> {
        let conversation = fresh_uuid()?;
        let process = self.panes.update(&process.id, |entry| {
            // If it has been started in the meantime, it has a conversation.
            if let Some(agent) = entry.agent.as_mut().filter(|_| !entry.status.is_alive()) {
                // A conversation that an earlier restart lost stays lost.
                agent.lost_conversation |= agent.had_turn;
                agent.conversation = conversation;
                (agent.id_reported, agent.had_turn) = (false, false);
            }
        })?;
        let before = self.deliveries.first_prompt_not_accepted(&process.id);
        let prompt = before.as_ref().map(|before| before.text.as_str());
        let extra = self.reopen(&process, preset, program, Opening::Fresh { prompt })?;
        if let Some(before) = before.filter(|_| !extra.arguments.is_empty()) {
            let (to, source, text) = (before.to, before.source, before.text);
            let again = self.deliveries.enqueue(NewDelivery { to, source, key: None, text })?;
            self.deliveries.begin(again, false)?;
            let why = format!(
                "its CLI was restarted before it accepted this text; message {again} repeats it"
            );
            self.deliveries.supersede(before.id, &why);
        }
        Ok(extra)
    }

    /// Prepares the agent's files and recipe for another start. Returns the arguments that carry a
    /// first prompt, and the variables.
    fn reopen(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
        opening: Opening<'_>,
    ) -> Result<StartExtra, AgentError> {
        let resumes = matches!(opening, Opening::Again);
        let launch = self.prepare_agent(process, preset, program, opening)?;
        self.panes.update(&process.id, |entry| {
            if let Some(agent) = entry.agent.as_mut().filter(|_| resumes) {
                agent.lost_conversation = false;
            }
            if let Some(recipe) = &mut entry.recipe {
                recipe.argv = launch.argv;
                recipe.env = BTreeMap::new();
                recipe.env_file = preset.env_file.clone();
                recipe.terminal_name = preset.terminal_name.clone();
            }
        })?;
        Ok(StartExtra { arguments: launch.prompt_args, variables: launch.env })
    }

    /// Writes an agent's own files, including its identity, and returns how it is started.
    fn prepare_agent(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
        opening: Opening<'_>,
    ) -> Result<Launch, AgentError> {
        let folder = self.agent_folder(&process.id);
        let make = || DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        make().map_err(state::failed("make", &folder))?;
        let launch = self.launch_of(process, preset, program, opening)?;
        for (path, text) in &launch.files {
            state::write_whole(path, text.as_bytes()).map_err(state::failed("write", path))?;
        }
        if let Some(overlay) = &launch.overlay {
            overlay.create().map_err(state::failed("make", &overlay.folder))?;
        }
        let identity = folder.join(IDENTITY_FILE);
        if !self.identities.has(&process.id) || !identity.exists() {
            self.identities.revoke(&process.id)?;
            let token = self.identities.issue(&process.id)?;
            let _ = std::fs::remove_file(&identity);
            write_file(&token, &identity).map_err(state::failed("write", &identity))?;
        }
        Ok(launch)
    }

    /// How an agent is started, and with which files.
    fn launch_of(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
        opening: Opening<'_>,
    ) -> Result<Launch, LaunchError> {
        let approved: Vec<&str> = self.approved.iter().map(String::as_str).collect();
        let context = LaunchContext {
            patterm: &self.program,
            socket: &self.socket,
            project_key: self.project.key(),
            folder: &self.agent_folder(&process.id),
            approved: &approved,
            conversation: process.agent.as_ref().map_or("", |agent| &agent.conversation),
            environment: &self.around(process),
        };
        Launch::new(preset, program, context, opening)
    }

    /// Moves the files that the CLI wrote in the agent's own home to the user's home.
    fn write_back(&self, id: &ProcessId) -> io::Result<()> {
        let process = self.panes.processes.get(id);
        let preset = process.as_ref().and_then(|process| self.presets.of(process));
        // The path of the program does not matter here; it may be gone.
        let launch = process.zip(preset).and_then(|(process, preset)| {
            self.launch_of(&process, &preset, Path::new(&preset.program), Opening::Again).ok()
        });
        match launch.and_then(|launch| launch.overlay) {
            Some(overlay) => overlay.write_back(),
            None => write_back(&self.agent_folder(id), None),
        }
    }

    /// Removes an agent's own files, except those that its CLI wrote and that cannot be moved to
    /// the user's folder.
    fn forget(&self, id: &ProcessId) {
        let folder = self.agent_folder(id);
        match self.write_back(id) {
            Ok(()) => drop(std::fs::remove_dir_all(folder)),
            Err(error) => tracing::warn!(
                %id, %error, folder = %folder.display(),
                "cannot move the files of the agent's CLI into the user's folder; they stay where they are"
            ),
        }
        long_texts::remove(self.project.root(), id);
    }

    /// Handles a hook of an agent's CLI. `at_ms` is when the CLI reported it, on the wall clock.
    pub fn handle_hook(&self, id: &ProcessId, event: &str, given: &Value, at_ms: Option<u64>) {
        let age_ms = at_ms.map_or(0, |at_ms| self.panes.clock().wall_ms().saturating_sub(at_ms));
        let age = Duration::from_millis(age_ms).min(MAX_HOOK_AGE);
        let report = self.activities.signals(id).record_hook(event, given, age);
        if let Some(turn) = &report.turn {
            self.deliverer.note_turn(id, turn);
        }
        if let Some(conversation) = report.conversation {
            self.conversations.note(id, conversation, !report.fresh);
        }
        if report.turn.is_some() {
            self.conversations.note_turn(id);
        }
    }

    /// Records the conversation that a CLI names in the metadata of a tool call. A subagent inside
    /// the CLI sends the id of its own conversation, so open files take precedence.
    pub fn note_call(&self, id: &ProcessId, meta: impl Fn(&str) -> Option<String>) {
        let signals = self.activities.signals(id);
        let preset = signals.preset();
        let resume = preset.as_ref().and_then(|preset| preset.resume.as_ref());
        let member = resume.and_then(|resume| resume.told_by_calls.as_ref());
        let Some(reported) = member.and_then(|member| meta(member)) else { return };
        let known = self.panes.processes.get(id).and_then(|process| process.agent);
        let is_known =
            known.is_some_and(|agent| agent.id_reported && agent.conversation == reported);
        if is_known || signals.found_by_files() {
            return;
        }
        let (conversations, run) = (self.conversations.clone(), self.panes.run_of(id));
        let id = id.clone();
        tokio::spawn(async move {
            let found = match run {
                Some(run) => conversations.find(&run).await,
                None => Ok(false),
            };
            if found.is_ok_and(|found| !found) {
                conversations.note(&id, reported, true);
            }
        });
    }

    fn agent_folder(&self, id: &ProcessId) -> PathBuf {
        self.state.file("agents").join(id.as_str())
    }

    /// The environment of an agent's next start, without what its preset adds.
    fn around(&self, process: &Process) -> Environment {
        self.panes.environments.of_start(process)
    }

    /// A valid preset and the path of its program.
    fn usable_preset(
        &self,
        name: &str,
        around: &Environment,
    ) -> Result<(Preset, PathBuf), AgentError> {
        let catalogue = self.presets.catalogue();
        self.usable(name, &catalogue, around).map(|(preset, program)| (preset.clone(), program))
    }

    fn usable<'a>(
        &self,
        name: &str,
        catalogue: &'a Catalogue,
        around: &Environment,
    ) -> Result<(&'a Preset, PathBuf), AgentError> {
        let Some(Known { preset, .. }) = catalogue.presets.get(name) else {
            return Err(AgentError::UnknownPreset {
                name: name.to_owned(),
                known: catalogue.presets.keys().cloned().collect(),
                fault: catalogue.fault.clone(),
            });
        };
        let bad = |why: &String| AgentError::BadPreset { name: name.to_owned(), why: why.clone() };
        let preset = preset.as_ref().map_err(bad)?;
        let path = around.get("PATH").unwrap_or_default();
        let program = find_program(&preset.program, path, self.project.root()).map_err(|why| {
            AgentError::NoProgram { title: preset.title.clone(), why: why.to_string() }
        })?;
        Ok((preset, program))
    }

    /// Checks that one more agent may run.
    pub fn check_room(&self) -> Result<(), AgentError> {
        let all = self.panes.processes.all();
        let agents = all.iter().filter(|p| p.kind == Kind::Agent && p.status.is_alive()).count();
        let most = self.limits.agents;
        if agents >= most {
            return Err(AgentError::TooMany(most));
        }
        Ok(())
    }

    /// Checks the limits on agents, so that a mistake in a prompt cannot fill the machine with
    /// them.
    fn admit_agent(&self, parent: Option<&ProcessId>) -> Result<(), AgentError> {
        self.panes.admit_process()?;
        self.check_room()?;
        let above = parent.and_then(|parent| self.panes.processes.get(parent));
        let depth = above.map_or(0, |above| self.panes.processes.agents_above(&above) + 1);
        let deepest = self.limits.agent_depth;
        if depth > deepest {
            return Err(AgentError::TooDeep(deepest));
        }
        Ok(())
    }
}

/// How a restarted agent would continue.
enum Continuation {
    /// In its conversation.
    Resumes,
    /// In a new conversation, because the old one has no turns.
    Unused,
    /// In a new conversation, for this reason.
    Cannot(String),
}

impl Continuation {
    /// Why it would begin a new conversation; `None` if it would resume.
    fn why_new(self) -> Option<String> {
        match self {
            Self::Resumes => None,
            Self::Unused => Some("its conversation has no turns yet".into()),
            Self::Cannot(why) => Some(why),
        }
    }
}

fn continuation(agent: &AgentEntry, preset: &Preset) -> Continuation {
    match &preset.resume {
        None => Continuation::Cannot(unresumable(agent)),
        Some(_) if !agent.had_turn => Continuation::Unused,
        Some(resume) if resume.begin.is_empty() && !agent.id_reported => {
            Continuation::Cannot("its CLI never reported the id of its conversation".into())
        }
        Some(_) => Continuation::Resumes,
    }
}

fn unresumable(agent: &AgentEntry) -> String {
    format!(
        "the preset {} has no `resume` section, so a conversation cannot be resumed",
        agent.preset
    )
}

/// A random UUID (version 4), which CLIs accept as the id of a conversation.
fn fresh_uuid() -> Result<String, AgentError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(AgentError::NoRandom)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = patterm_store::hex::encode(&bytes);
    Ok([&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-"))
}
