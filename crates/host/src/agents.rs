//! Agents: started from presets with an identity and patterm's tools, and taken up again.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::error::Elapsed;

use crate::delivery::{NewDelivery, Source};
use crate::host::Host;
use crate::identity::hand_over;
use crate::open_files::open_conversation;
use crate::plane::Live;
use crate::presets::{
    Catalogue, IDENTITY_FILE, Known, Launch, LaunchError, Opening, Preset, Surroundings,
    ToldByFiles, find_program, write_back,
};
use crate::process::{AgentEntry, Kind, Process, ProcessId, Recipe};
use crate::tools::{ErrorKind, ToolError};
use patterm_store::state;

/// Tools that the CLI goes on asking its person about: with them an agent could run any program
/// without its CLI noticing, or answer another agent's question in its person's place.
const ASKED_ABOUT: [&str; 2] = ["spawn_process", "send_input"];

/// The preset for agents of which nothing more is known.
const GENERIC: &str = "generic";

/// How long a look for a conversation in open files may take. It takes milliseconds; a disk that does not
/// answer must not keep an agent from being stopped.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

/// An agent to be.
#[derive(Debug)]
pub(crate) struct NewAgent {
    pub(crate) preset: String,
    pub(crate) name: Option<String>,
    pub(crate) parent_id: Option<ProcessId>,
    /// What it is to do first, free of control characters.
    pub(crate) instructions: Option<String>,
    /// Where it works.
    pub(crate) working_dir: PathBuf,
}

/// How an agent that ended is started again.
#[derive(Debug, Default)]
pub(crate) struct Again {
    /// Why it begins a new conversation, if it does.
    pub(crate) anew: Option<String>,
    /// Arguments for this one time: what it is told first.
    pub(crate) instructions: Vec<String>,
}

impl Host {
    /// The presets there are now.
    pub(crate) fn catalogue(&self) -> Catalogue {
        let file = self.declared.effect().unwrap_or_default();
        Catalogue::with_project(self.settings.as_deref(), &self.declared.path(), &file.agents)
    }

    /// What is known of an agent's CLI; `None` for what is no agent.
    pub(crate) fn preset_of(&self, process: &Process) -> Option<Arc<Preset>> {
        let agent = process.agent.as_ref()?;
        let mut presets = self.catalogue().presets;
        let named = presets.remove(&agent.preset).and_then(|known| known.preset.ok());
        let generic = || presets.remove(GENERIC).and_then(|known| known.preset.ok());
        named.or_else(generic).map(Arc::new)
    }

    /// Starts an agent under a new id. Nothing is left of one that could not be started.
    pub(crate) async fn spawn_agent(&self, new: NewAgent) -> Result<Process, ToolError> {
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
            self.processes.add_with(&label, Kind::Agent, new.parent_id.clone(), |entry| {
                entry.agent = Some(agent);
                entry.runs = 1;
            })?;
        let started = self.begin_agent(&process, &preset, &program, &new).await;
        if started.is_err() {
            let _ = self.identities.revoke(&process.id);
            self.forget_agent(&process.id);
            self.processes.forget(&process.id);
            self.remove_output(&process.id);
        }
        started
    }

    async fn begin_agent(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
        new: &NewAgent,
    ) -> Result<Process, ToolError> {
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
            size: crate::life::SIZE,
        };
        let process = self.update(&process.id, |entry| entry.recipe = Some(recipe))?;
        let by_argument = !launch.prompt_args.is_empty();
        if let Some(text) = prompt {
            let source = Source::FirstPrompt { from: new.parent_id.clone() };
            let delivery = NewDelivery { to: process.id.clone(), source, key: None, text };
            let id = self.deliveries.hand_in(delivery)?;
            if by_argument {
                // On its way before the program runs: never given a second time.
                self.deliveries.begin(id, false)?;
            }
        }
        let started = self.launch(&process, &launch.prompt_args).await;
        if started.is_err() {
            self.deliveries.give_up(&process.id, "the agent could not be started");
        }
        started
    }

    /// Whether an agent's preset says how a conversation is taken up again: only then is it started
    /// again by itself.
    pub(crate) fn can_resume(&self, process: &Process) -> Result<(), ToolError> {
        let Some(agent) = &process.agent else { return Ok(()) };
        let (preset, _) = self.usable_preset(&agent.preset)?;
        match preset.resume {
            Some(_) => Ok(()),
            None => {
                let message = format!("{}; restart_process starts it anew", unresumable(agent));
                Err(ToolError::new(ErrorKind::Unavailable, message))
            }
        }
    }

    /// Whether an agent could be started, so that none is ended for nothing.
    pub(crate) fn can_restart(&self, process: &Process) -> Result<(), ToolError> {
        let Some(agent) = &process.agent else { return Ok(()) };
        self.usable_preset(&agent.preset).map(drop)
    }

    /// Makes an agent that ended ready to be started: where it was if that can be, else with a new
    /// conversation. Returns why it is a new one.
    pub(crate) fn prepare_again(&self, process: &Process) -> Result<Again, ToolError> {
        let Some(agent) = &process.agent else { return Ok(Again::default()) };
        let (preset, program) = self.usable_preset(&agent.preset)?;
        let going_on = going_on(agent, &preset);
        let instructions = match going_on {
            GoingOn::Resumes => {
                self.reopen(process, &preset, &program, Opening::Again)?;
                Vec::new()
            }
            _ => self.prepare_anew(process, &preset, &program)?,
        };
        Ok(Again { anew: going_on.why_anew(), instructions })
    }

    /// Whether an agent that ended would go on where it was; if not, why. An error says why it could
    /// not be started at all.
    pub(crate) fn would_resume(
        &self,
        agent: &AgentEntry,
        catalogue: &Catalogue,
    ) -> Result<Option<String>, ToolError> {
        let (preset, _) = self.usable(&agent.preset, catalogue)?;
        Ok(going_on(agent, preset).why_anew())
    }

    /// Returns the arguments with the instructions that it was given before and was not seen to take.
    fn prepare_anew(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
    ) -> Result<Vec<String>, ToolError> {
        let conversation = fresh_uuid()?;
        let process = self.update(&process.id, |entry| {
            // One that somebody else has started meanwhile has a conversation.
            if let Some(agent) = entry.agent.as_mut().filter(|_| !entry.status.is_alive()) {
                // What an earlier restart lost stays lost, though nothing was said since.
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
            let again = self.deliveries.hand_in(NewDelivery { to, source, key: None, text })?;
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
    ) -> Result<Vec<String>, ToolError> {
        let goes_on = matches!(opening, Opening::Again);
        let launch = self.prepare_agent(process, preset, program, opening)?;
        self.update(&process.id, |entry| {
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

    /// Writes an agent's own files, its identity among them, and says how it is started.
    fn prepare_agent(
        &self,
        process: &Process,
        preset: &Preset,
        program: &Path,
        opening: Opening<'_>,
    ) -> Result<Launch, ToolError> {
        let folder = self.agent_folder(&process.id);
        let make = || DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        make().map_err(state::failed("make", &folder))?;
        let launch = self
            .launch_of(process, preset, program, opening)
            .map_err(|e| ToolError::new(ErrorKind::Unavailable, e.to_string()))?;
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
        let approved: Vec<&str> =
            self.tools.names().filter(|name| !ASKED_ABOUT.contains(name)).collect();
        let around = Surroundings {
            patterm: &self.program,
            socket: &self.socket,
            project_key: self.project.key(),
            folder: &self.agent_folder(&process.id),
            approved: &approved,
            conversation: process.agent.as_ref().map_or("", |agent| &agent.conversation),
            environment: &self.environment,
        };
        Launch::new(preset, program, around, opening)
    }

    /// Moves what an agent's CLI wrote into a home of its own to the user's.
    fn write_back(&self, id: &ProcessId) -> io::Result<()> {
        let process = self.processes.get(id);
        let preset = process.as_ref().and_then(|process| self.preset_of(process));
        // Where the program is does not matter here; it may be gone.
        let launch = process.zip(preset).and_then(|(process, preset)| {
            self.launch_of(&process, &preset, Path::new(&preset.program), Opening::Again).ok()
        });
        match launch.and_then(|launch| launch.overlay) {
            Some(overlay) => overlay.write_back(),
            None => write_back(&self.agent_folder(id), None),
        }
    }

    /// Takes away what an agent had of its own, but for what its CLI wrote and cannot be moved to the
    /// user's folder.
    pub(crate) fn forget_agent(&self, id: &ProcessId) {
        let folder = self.agent_folder(id);
        match self.write_back(id) {
            Ok(()) => drop(std::fs::remove_dir_all(folder)),
            Err(error) => tracing::warn!(
                %id, %error, folder = %folder.display(),
                "what the agent's CLI wrote cannot be moved to the user's folder; it stays where it is"
            ),
        }
        self.forget_letters(id);
    }

    /// A hook of an agent's CLI says something.
    pub(crate) fn hear_hook(&self, id: &ProcessId, event: &str, given: &Value) {
        let said = self.activities.facts(id).hear(event, given);
        if let Some(turn) = &said.turn {
            self.hear_turn(id, turn);
        }
        if let Some(told) = said.conversation {
            self.note_conversation(id, told, !said.fresh);
        }
        if said.turn.is_some() {
            self.note_spoken(id);
        }
    }

    /// A call of an agent's CLI may tell the id of its conversation in its metadata. A helper inside of
    /// the CLI calls in the name of its own one: where files tell the conversation, they are right.
    pub(crate) fn hear_call(
        self: &Arc<Self>,
        id: &ProcessId,
        meta: impl Fn(&str) -> Option<String>,
    ) {
        let facts = self.activities.facts(id);
        let preset = facts.preset();
        let resume = preset.as_ref().and_then(|preset| preset.resume.as_ref());
        let member = resume.and_then(|resume| resume.told_by_calls.as_ref());
        let Some(told) = member.and_then(|member| meta(member)) else { return };
        let known = self.processes.get(id).and_then(|process| process.agent);
        let is_known = known.is_some_and(|agent| agent.told && agent.conversation == told);
        if is_known || facts.told_by_files() {
            return;
        }
        let (host, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            let found = match host.live(&id) {
                Some(live) => host.look_for_conversation(&live).await,
                None => Ok(false),
            };
            if found.is_ok_and(|found| !found) {
                host.note_conversation(&id, told, true);
            }
        });
    }

    /// Whether a process must be killed where others are asked to end: an agent that would delete its
    /// conversation. The server that started it may have been another one.
    pub(crate) fn must_be_killed(&self, id: &ProcessId) -> bool {
        let preset = self.activities.facts(id).preset();
        let kills = preset.and_then(|preset| preset.resume.as_ref().map(|r| r.kill_unused));
        let took_a_turn = || self.processes.get(id).is_some_and(|process| process.took_a_turn());
        kills == Some(true) && !took_a_turn()
    }

    /// Looks for the conversation of an agent whose CLI tells it by the files that it has open; `true` if
    /// there is one. Off this thread: there may be many files.
    pub(crate) async fn look_for_conversation(&self, live: &Live) -> Result<bool, Elapsed> {
        let Some((init, files)) = self.where_to_look(live) else { return Ok(false) };
        let look = tokio::task::spawn_blocking(move || open_conversation(init, &files));
        let found = tokio::time::timeout(LOOK_PATIENCE, look).await?;
        Ok(self.note_found(live, found.ok().flatten()))
    }

    /// The same on this thread, for those that may wait.
    pub(crate) fn look_for_conversation_here(&self, live: &Live) {
        let look = self.where_to_look(live);
        self.note_found(live, look.and_then(|(init, files)| open_conversation(init, &files)));
    }

    fn where_to_look(&self, live: &Live) -> Option<(i32, ToldByFiles)> {
        if live.watch().borrow().is_over() {
            return None;
        }
        let preset = self.activities.facts(&live.id).preset()?;
        let files = preset.resume.as_ref()?.told_by_files.clone()?;
        Some((live.init()?, files))
    }

    fn note_found(&self, live: &Live, found: Option<String>) -> bool {
        let Some(told) = found else { return false };
        self.activities.facts(&live.id).note_told_by_files();
        self.note_conversation(&live.id, told, true);
        self.note_spoken(&live.id);
        true
    }

    /// Notes under which id the conversation can be taken up again; one that `goes_on` has turns already.
    fn note_conversation(&self, id: &ProcessId, told: String, goes_on: bool) {
        let known = self.processes.get(id).and_then(|process| process.agent);
        if known.is_some_and(|agent| !agent.told || agent.conversation != told) {
            self.processes.note(id, |process| {
                if let Some(agent) = &mut process.agent {
                    // Another conversation than before: the turns of that one do not count.
                    if agent.conversation != told && (agent.told || !goes_on) {
                        agent.spoken = goes_on;
                    }
                    agent.conversation = told;
                    agent.told = true;
                }
            });
        }
    }

    /// An agent took a turn: there is a conversation to take up again.
    pub(crate) fn note_spoken(&self, id: &ProcessId) {
        let is_news = |process: Process| {
            let took_one = process.took_a_turn();
            process.agent.is_some_and(|agent| !agent.spoken || !took_one)
        };
        if self.processes.get(id).is_some_and(is_news) {
            self.processes.note(id, |process| {
                if let Some(agent) = &mut process.agent {
                    agent.spoken = true;
                    agent.turn_in_run = Some(process.runs);
                }
            });
        }
    }

    fn agent_folder(&self, id: &ProcessId) -> PathBuf {
        self.state.file("agents").join(id.as_str())
    }

    /// A preset that can be used, and where its program is.
    fn usable_preset(&self, name: &str) -> Result<(Preset, PathBuf), ToolError> {
        let catalogue = self.catalogue();
        self.usable(name, &catalogue).map(|(preset, program)| (preset.clone(), program))
    }

    fn usable<'a>(
        &self,
        name: &str,
        catalogue: &'a Catalogue,
    ) -> Result<(&'a Preset, PathBuf), ToolError> {
        let Some(Known { preset, .. }) = catalogue.presets.get(name) else {
            let known: Vec<_> = catalogue.presets.keys().map(String::as_str).collect();
            let fault = catalogue.fault.as_ref();
            let fault = fault.map(|fault| format!(" ({fault})")).unwrap_or_default();
            let why = format!("names no preset: `{name}`; there are {}{fault}", known.join(", "));
            return Err(ToolError::invalid("agent", why));
        };
        let unavailable = |message: String| ToolError::new(ErrorKind::Unavailable, message);
        let preset = preset.as_ref();
        let preset =
            preset.map_err(|why| unavailable(format!("the preset {name} is wrong: {why}")))?;
        let path = self.environment.get("PATH").map_or("", String::as_str);
        let program = find_program(&preset.program, path, self.project.root())
            .map_err(|why| unavailable(format!("{} cannot be started: {why}", preset.title)))?;
        Ok((preset, program))
    }

    /// Whether one more agent may run.
    pub(crate) fn room_for_agent(&self) -> Result<(), ToolError> {
        let all = self.processes.all();
        let agents = all.iter().filter(|p| p.kind == Kind::Agent && p.status.is_alive()).count();
        let most = self.limits.agents;
        if agents >= most {
            let message = format!("{most} agents run already; close one first");
            return Err(ToolError::new(ErrorKind::Limit, message));
        }
        Ok(())
    }

    /// Agents have ceilings: a mistake in a prompt must not fill the machine with them.
    fn admit_agent(&self, parent: Option<&ProcessId>) -> Result<(), ToolError> {
        self.admit_process()?;
        self.room_for_agent()?;
        let above = parent.and_then(|parent| self.processes.get(parent));
        let depth = above.map_or(0, |above| self.processes.agents_above(&above) + 1);
        let deepest = self.limits.agent_depth;
        if depth > deepest {
            let message = format!(
                "you stand {deepest} agents below the top, and none may stand deeper; do it \
                 yourself, or ask the agent above you"
            );
            return Err(ToolError::new(ErrorKind::Limit, message));
        }
        Ok(())
    }
}

/// How an agent that ended would go on.
enum GoingOn {
    /// Where it was.
    Resumes,
    /// Anew: nothing was said before.
    Unspoken,
    /// Not where it was, and why.
    Cannot(String),
}

impl GoingOn {
    /// Why it would begin anew; `None` for one that would not.
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
fn fresh_uuid() -> Result<String, ToolError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| ToolError::new(ErrorKind::Internal, format!("no random numbers: {e}")))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = patterm_store::hex::encode(&bytes);
    Ok([&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-"))
}
