//! Agents: started from presets with an identity and patterm's tools, and resumed.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use patterm_panes::Panes;
use patterm_panes::lifecycle::SIZE;
use patterm_panes::process::{AgentEntry, Kind, Process, ProcessId, Recipe};
use patterm_project::declared::Declared;
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::state::{self, StateDir, StateError};
use serde_json::Value;

use crate::activity::{Activities, ended};
use crate::conversations::Conversations;
use crate::delivery::{Deliverer, Deliveries, NewDelivery, Source, long_texts};
use crate::error::AgentError;
use crate::identity::{Identities, hand_over};
use crate::observer::Observers;
use crate::presets::{
    Catalogue, IDENTITY_FILE, Known, Launch, LaunchContext, LaunchError, Opening, Preset, Presets,
    find_program, write_back,
};

/// Tools that still need the user's approval in the CLI: with them an agent could run any program
/// unnoticed by its CLI, or answer another agent's question in the user's place.
const ASKED_ABOUT: [&str; 2] = ["spawn_process", "send_input"];

/// The agents of a project.
#[derive(Debug)]
pub struct Agents {
    /// What their CLIs are like.
    pub presets: Arc<Presets>,
    /// Who they are.
    pub identities: Arc<Identities>,
    /// What they and other processes do.
    pub activities: Arc<Activities>,
    /// What is on its way into them.
    pub deliveries: Arc<Deliveries>,
    /// Types it in.
    pub deliverer: Arc<Deliverer>,
    /// Which conversations they are in.
    pub conversations: Arc<Conversations>,
    panes: Arc<Panes>,
    project: Project,
    state: StateDir,
    limits: Limits,
    /// The patterm binary.
    program: PathBuf,
    /// Where the server listens.
    socket: PathBuf,
    /// Tools that CLIs need not ask about.
    approved: Vec<String>,
}

/// What agents are made from.
#[derive(Debug)]
pub struct AgentParts {
    /// Where they run.
    pub panes: Arc<Panes>,
    /// The project file may have presets.
    pub declared: Arc<Declared>,
    /// Their project.
    pub project: Project,
    /// Where their state goes.
    pub state: StateDir,
    /// How many there may be.
    pub limits: Limits,
    /// The user's settings.
    pub settings: Option<PathBuf>,
    /// The patterm binary, by which they connect.
    pub program: PathBuf,
    /// Where they connect to.
    pub socket: PathBuf,
    /// The names of all tools.
    pub tools: Vec<String>,
}

/// An agent to start.
#[derive(Debug)]
pub struct NewAgent {
    /// The preset of its CLI.
    pub preset: String,
    /// Its label; that of the preset where there is none.
    pub name: Option<String>,
    /// The process that starts it.
    pub parent_id: Option<ProcessId>,
    /// Its first instructions, without control characters.
    pub instructions: Option<String>,
    /// Where it works.
    pub working_dir: PathBuf,
}

/// How to start an agent again after its end.
#[derive(Debug, Default)]
pub struct Relaunch {
    /// Why it begins a new conversation, if it does.
    pub anew: Option<String>,
    /// Arguments for this one start: its first prompt.
    pub instructions: Vec<String>,
}

impl Agents {
    /// Reads what is known of agents; starts nothing yet.
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
        let deliveries = Arc::new(Deliveries::load(&state)?);
        let conversations = Arc::new(Conversations::new(panes.clone(), activities.clone()));
        let deliverer = Arc::new(Deliverer {
            panes: panes.clone(),
            activities: activities.clone(),
            deliveries: deliveries.clone(),
            conversations: conversations.clone(),
        });
        Ok(Self {
            identities: Arc::new(Identities::load(&state)?),
            approved: tools.into_iter().filter(|name| !ASKED_ABOUT.contains(&&**name)).collect(),
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
        // One that may be restored has not come to rest.
        self.activities.set(&process.id, ended(process), !process.awaits_decision());
    }

    /// A run is over: its CLI reads nothing more.
    pub fn note_run_over(&self, id: &ProcessId, run: u64) {
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

    /// The text as a turn: itself, or if it is too long, a reference to a file that holds it.
    pub fn as_prompt(&self, to: &ProcessId, text: &str) -> Result<String, StateError> {
        long_texts::as_prompt(self.project.root(), to, text)
    }

    /// Starts an agent under a new id. If that fails, nothing of it is left.
    pub async fn spawn(&self, new: NewAgent) -> Result<Process, AgentError> {
        let (preset, program) = self.usable_preset(&new.preset)?;
        self.admit_agent(new.parent_id.as_ref())?;
        let label = new.name.clone().unwrap_or_else(|| new.preset.clone());
        let conversation = fresh_uuid()?;
        let agent = AgentEntry {
            preset: new.preset.clone(),
            conversation,
            told: false,
            spoken: false,
            anew: false,
            turn_in_run: None,
        };
        let process =
            self.panes.processes.add_with(&label, Kind::Agent, new.parent_id.clone(), |entry| {
                entry.agent = Some(agent);
                entry.runs = 1;
            })?;
        let started = self.begin_agent(&process, &preset, &program, &new).await;
        if started.is_err() {
            let _ = self.identities.revoke(&process.id);
            self.forget(&process.id);
            self.panes.processes.forget(&process.id);
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
            Some(text) => Some(preset.as_words(&self.as_prompt(&process.id, text)?)),
            None => None,
        };
        let opening = Opening::Fresh { prompt: prompt.as_deref() };
        let launch = self.prepare_agent(process, preset, program, opening)?;
        let recipe = Recipe {
            argv: launch.argv,
            env: launch.env,
            working_dir: new.working_dir.clone(),
            size: SIZE,
        };
        let process = self.panes.update(&process.id, |entry| entry.recipe = Some(recipe))?;
        let by_argument = !launch.prompt_args.is_empty();
        if let Some(text) = prompt {
            let source = Source::FirstPrompt { from: new.parent_id.clone() };
            let delivery = NewDelivery { to: process.id.clone(), source, key: None, text };
            let id = self.deliveries.enqueue(delivery)?;
            if by_argument {
                // Begun before the program runs, so that it is never given twice.
                self.deliveries.begin(id, false)?;
            }
        }
        let started = self.panes.launch(&process, &launch.prompt_args).await;
        if started.is_err() {
            self.deliveries.give_up(&process.id, "the agent could not be started");
        }
        Ok(started?)
    }

    /// Checks that an agent's preset can resume a conversation: only then is the agent started again
    /// without a new one.
    pub fn can_resume(&self, process: &Process) -> Result<(), AgentError> {
        let Some(agent) = &process.agent else { return Ok(()) };
        let (preset, _) = self.usable_preset(&agent.preset)?;
        match preset.resume {
            Some(_) => Ok(()),
            None => Err(AgentError::NotResumable(agent.preset.clone())),
        }
    }

    /// Checks that an agent could be started, before it is stopped for a restart.
    pub fn can_restart(&self, process: &Process) -> Result<(), AgentError> {
        let Some(agent) = &process.agent else { return Ok(()) };
        self.usable_preset(&agent.preset).map(drop)
    }

    /// Prepares the restart of an agent: it resumes its conversation if possible, else it begins a new
    /// one, and the result says why.
    pub fn prepare_again(&self, process: &Process) -> Result<Relaunch, AgentError> {
        let Some(agent) = &process.agent else { return Ok(Relaunch::default()) };
        let (preset, program) = self.usable_preset(&agent.preset)?;
        let going_on = going_on(agent, &preset);
        let instructions = match going_on {
            GoingOn::Resumes => {
                self.reopen(process, &preset, &program, Opening::Again)?;
                Vec::new()
            }
            _ => self.prepare_anew(process, &preset, &program)?,
        };
        Ok(Relaunch { anew: going_on.why_anew(), instructions })
    }

    /// Why a restarted agent would begin a new conversation; `None` if it would resume. The error says
    /// why it could not be started at all.
    pub fn would_resume(
        &self,
        agent: &AgentEntry,
        catalogue: &Catalogue,
    ) -> Result<Option<String>, AgentError> {
        let (preset, _) = self.usable(&agent.preset, catalogue)?;
        Ok(going_on(agent, preset).why_anew())
    }

    /// Returns arguments with the first prompt, if the agent was not seen to take it before.
    fn prepare_anew(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
    ) -> Result<Vec<String>, AgentError> {
        let conversation = fresh_uuid()?;
        let process = self.panes.update(&process.id, |entry| {
            // If it was started meanwhile, it has a conversation.
            if let Some(agent) = entry.agent.as_mut().filter(|_| !entry.status.is_alive()) {
                // What an earlier restart lost stays lost.
                agent.anew |= agent.spoken;
                agent.conversation = conversation;
                (agent.told, agent.spoken) = (false, false);
            }
        })?;
        let before = self.deliveries.first_prompt_not_taken(&process.id);
        let prompt = before.as_ref().map(|before| before.text.as_str());
        let arguments = self.reopen(&process, preset, program, Opening::Fresh { prompt })?;
        if let Some(before) = before.filter(|_| !arguments.is_empty()) {
            let (to, source, text) = (before.to, before.source, before.text);
            let again = self.deliveries.enqueue(NewDelivery { to, source, key: None, text })?;
            self.deliveries.begin(again, false)?;
            let why = format!(
                "its CLI was started again before it took this; message {again} is the same"
            );
            self.deliveries.supersede(before.id, &why);
        }
        Ok(arguments)
    }

    /// Returns the arguments that carry a first prompt.
    fn reopen(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
        opening: Opening<'_>,
    ) -> Result<Vec<String>, AgentError> {
        let goes_on = matches!(opening, Opening::Again);
        let launch = self.prepare_agent(process, preset, program, opening)?;
        self.panes.update(&process.id, |entry| {
            if let Some(agent) = entry.agent.as_mut().filter(|_| goes_on) {
                agent.anew = false;
            }
            if let Some(recipe) = &mut entry.recipe {
                recipe.argv = launch.argv;
                recipe.env = launch.env;
            }
        })?;
        Ok(launch.prompt_args)
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
            overlay.make().map_err(state::failed("make", &overlay.folder))?;
        }
        let identity = folder.join(IDENTITY_FILE);
        if !self.identities.has(&process.id) || !identity.exists() {
            self.identities.revoke(&process.id)?;
            let token = self.identities.issue(&process.id)?;
            let _ = std::fs::remove_file(&identity);
            hand_over(&token, &identity).map_err(state::failed("write", &identity))?;
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
        let around = LaunchContext {
            patterm: &self.program,
            socket: &self.socket,
            project_key: self.project.key(),
            folder: &self.agent_folder(&process.id),
            approved: &approved,
            conversation: process.agent.as_ref().map_or("", |agent| &agent.conversation),
            environment: &self.panes.environment,
        };
        Launch::new(preset, program, around, opening)
    }

    /// Moves what the CLI wrote in the agent's own home to the user's.
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

    /// Removes an agent's own files, except what its CLI wrote and cannot be moved to the user's
    /// folder.
    fn forget(&self, id: &ProcessId) {
        let folder = self.agent_folder(id);
        match self.write_back(id) {
            Ok(()) => drop(std::fs::remove_dir_all(folder)),
            Err(error) => tracing::warn!(
                %id, %error, folder = %folder.display(),
                "what the agent's CLI wrote cannot be moved to the user's folder; it stays where it is"
            ),
        }
        long_texts::remove(self.project.root(), id);
    }

    /// Handles a hook of an agent's CLI.
    pub fn hear_hook(&self, id: &ProcessId, event: &str, given: &Value) {
        let said = self.activities.signals(id).hear(event, given);
        if let Some(turn) = &said.turn {
            self.deliverer.hear_turn(id, turn);
        }
        if let Some(told) = said.conversation {
            self.conversations.note(id, told, !said.fresh);
        }
        if said.turn.is_some() {
            self.conversations.note_spoken(id);
        }
    }

    /// The metadata of a CLI's tool call may carry the id of its conversation. A subagent inside the
    /// CLI sends the id of its own conversation, so open files take precedence.
    pub fn hear_call(&self, id: &ProcessId, meta: impl Fn(&str) -> Option<String>) {
        let signals = self.activities.signals(id);
        let preset = signals.preset();
        let resume = preset.as_ref().and_then(|preset| preset.resume.as_ref());
        let member = resume.and_then(|resume| resume.told_by_calls.as_ref());
        let Some(told) = member.and_then(|member| meta(member)) else { return };
        let known = self.panes.processes.get(id).and_then(|process| process.agent);
        let is_known = known.is_some_and(|agent| agent.told && agent.conversation == told);
        if is_known || signals.told_by_files() {
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
                conversations.note(&id, told, true);
            }
        });
    }

    fn agent_folder(&self, id: &ProcessId) -> PathBuf {
        self.state.file("agents").join(id.as_str())
    }

    /// A usable preset and the path of its program.
    fn usable_preset(&self, name: &str) -> Result<(Preset, PathBuf), AgentError> {
        let catalogue = self.presets.catalogue();
        self.usable(name, &catalogue).map(|(preset, program)| (preset.clone(), program))
    }

    fn usable<'a>(
        &self,
        name: &str,
        catalogue: &'a Catalogue,
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
        let path = self.panes.environment.get("PATH").map_or("", String::as_str);
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

    /// Checks the limits of agents: a mistake in a prompt must not fill the machine with them.
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
enum GoingOn {
    /// In its conversation.
    Resumes,
    /// In a new one: the old one has no turns.
    Unspoken,
    /// In a new one, for this reason.
    Cannot(String),
}

impl GoingOn {
    /// Why it would begin a new conversation; `None` if it would resume.
    fn why_anew(self) -> Option<String> {
        match self {
            Self::Resumes => None,
            Self::Unspoken => Some("nothing was said in its conversation yet".into()),
            Self::Cannot(why) => Some(why),
        }
    }
}

fn going_on(agent: &AgentEntry, preset: &Preset) -> GoingOn {
    match &preset.resume {
        None => GoingOn::Cannot(unresumable(agent)),
        Some(_) if !agent.spoken => GoingOn::Unspoken,
        Some(resume) if resume.begin.is_empty() && !agent.told => {
            GoingOn::Cannot("its CLI never told the id of its conversation".into())
        }
        Some(_) => GoingOn::Resumes,
    }
}

fn unresumable(agent: &AgentEntry) -> String {
    format!("the preset {} does not say how a conversation is taken up again", agent.preset)
}

/// A random UUID (version 4), as CLIs take for the id of a conversation.
fn fresh_uuid() -> Result<String, AgentError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(AgentError::NoRandom)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = patterm_store::hex::encode(&bytes);
    Ok([&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-"))
}
