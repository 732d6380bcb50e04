//! Helpers for the tools about processes: lookup, permissions and descriptions.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::{ErrorKind, ToolError};
use super::tool::Call;
use crate::caller::Caller;
use crate::host::Host;
use patterm_agents::activity::Activity;
use patterm_panes::Panes;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::process::{
    Attention, Exit, Kind, Process, ProcessId, RunNumber, Status, has_hidden_character, is_readable,
};
use patterm_panes::tree;
use patterm_project::declared::Health;
use std::sync::Arc;

/// The process with this id, or the only one with this name.
pub(super) fn find(call: &Call, given: &str) -> Result<Process, ToolError> {
    let Ok(wanted) = given.parse::<ProcessId>();
    if let Some(process) = call.host.panes.processes.get(&wanted) {
        return Ok(process);
    }
    let all = call.host.panes.processes.all();
    let mut named = all.into_iter().filter(|process| process.name == given);
    match (named.next(), named.next()) {
        (Some(process), None) => Ok(process),
        (None, _) => Err(call.host.panes.no_such_process(given).into()),
        (Some(one), Some(other)) => {
            let message =
                format!("{} and {} are both named `{given}`; use an id", one.id, other.id);
            Err(ToolError::new(ErrorKind::NotFound, message))
        }
    }
}

/// The process with this id or name, if the caller may act on it: itself, its descendants, and
/// processes that the project file declares.
pub(super) fn own(call: &Call, given: &str) -> Result<Process, ToolError> {
    let process = find(call, given)?;
    if may_act_on(call, &process) {
        return Ok(process);
    }
    Err(not_owner(&call.host, call.caller.process(), &process))
}

/// The error for a process that the caller may not act on; it says whom to ask.
pub(crate) fn not_owner(host: &Host, caller: Option<&ProcessId>, process: &Process) -> ToolError {
    let Process { id, name, .. } = process;
    let advice = whom_to_ask(host, caller, process);
    let message = format!("{id} ({name}) is neither you nor below you; {advice}");
    ToolError::new(ErrorKind::NotOwner, message)
}

/// Says who can do it instead.
fn whom_to_ask(host: &Host, caller: Option<&ProcessId>, process: &Process) -> String {
    let above = host.panes.processes.agent_above(process);
    let owner = above.filter(|above| caller != Some(&above.id));
    let agent = (process.kind == Kind::Agent).then(|| process.clone());
    match owner.or(agent).filter(|agent| agent.status.is_alive()) {
        Some(agent) => format!(
            "ask {} with send_message (target_process_id {}) to do it",
            agent.name, agent.id
        ),
        None => format!(
            "it belongs to a person, so ask with request_human_attention (process_id {}) and say \
             what should be done",
            process.id
        ),
    }
}

/// Whether the caller may act on a process.
pub(super) fn may_act_on(call: &Call, process: &Process) -> bool {
    call.caller.process().is_none_or(|me| is_owner(&call.host.panes, me, process))
}

/// Whether one process may act on another: itself, its descendants, and processes that the
/// project file declares.
pub(crate) fn is_owner(panes: &Panes, me: &ProcessId, process: &Process) -> bool {
    let own = process.id == *me || panes.processes.is_below(process, me);
    own || process.declared.is_some()
}

/// The error for a process without a run; it says why, if that is known.
pub(crate) fn no_output(process: &Process, host: &Host) -> ToolError {
    let status = host.declared.status(process).unwrap_or_default();
    let why = match (status.problem, status.waits_for.as_slice()) {
        (Some(problem), _) => problem,
        (None, [_, ..]) => format!("it is waiting for {}", status.waits_for.join(", ")),
        (None, []) if process.runs == RunNumber::NONE => "it has not been started yet".to_owned(),
        (None, []) => "it was lost, or was never started".to_owned(),
    };
    let message = format!("{} ({}) has no output: {why}", process.id, process.name);
    ToolError::new(ErrorKind::Unavailable, message)
}

/// The status of a process that the project file declares.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct DeclaredAnswer {
    /// Whether the project file declares it: all agents may use it, and none may close it.
    #[serde(skip_serializing_if = "is_false")]
    declared: bool,
    /// Whether it is ready, according to the file's condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<bool>,
    /// `healthy` or `unhealthy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<&'static str>,
    /// The number of consecutive automatic restarts.
    #[serde(skip_serializing_if = "Option::is_none")]
    restarts: Option<u32>,
    /// Seconds until it is restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_restart_in: Option<f64>,
    /// The processes that must be ready before it starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting_for: Vec<String>,
    /// Why it is not started, not restarted, or not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Why it is not running.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not_running: Option<String>,
    /// It runs with an earlier version of the file; restart_process applies the current one.
    #[serde(skip_serializing_if = "is_false")]
    outdated: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl DeclaredAnswer {
    fn of(process: &Process, host: &Host) -> Self {
        let Some(seen) = host.declared.status(process) else { return Self::default() };
        Self {
            declared: true,
            ready: Some(seen.ready),
            health: seen.health.map(Health::name),
            restarts: process.declared.as_ref().map(|declared| declared.restarts),
            next_restart_in: seen.again_in.map(|time| time.as_secs_f64()),
            waiting_for: seen.waits_for,
            problem: seen.problem,
            why_not_running: host.declared.why_not_running(process),
            outdated: host.declared.is_outdated(process),
        }
    }
}

/// The current or last run of a process, whose output can be read.
pub(super) async fn find_run(
    call: &Call,
    id: &str,
) -> Result<(Process, Arc<ProcessRun>), ToolError> {
    let process = find(call, id)?;
    let run = call.host.panes.run_of(&process.id).ok_or_else(|| no_output(&process, &call.host))?;
    call.host.panes.data_plane.rebuilt(&run).await;
    Ok((process, run))
}

/// An address that a process printed.
#[derive(Debug, Serialize, JsonSchema)]
struct PrintedPort {
    /// The address as it was printed.
    url: String,
    /// Its port.
    port: u16,
    /// Its offset in the output.
    seen_at: u64,
}

/// A process in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Summary {
    /// Its id.
    process_id: ProcessId,
    /// Its label.
    name: String,
    /// What it runs.
    kind: Kind,
    /// The preset of an agent, or the name of a process in the project file.
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<String>,
    /// The process that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<ProcessId>,
    /// Its status.
    status: Status,
    /// Whether it is working.
    activity: Activity,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
    /// Why a person should look at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<Attention>,
    /// It was interrupted when everything ended: how, and what waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<String>,
    /// Why its output cannot be stored completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_problem: Option<String>,
    /// It was running when everything ended; a person decides whether to restore it.
    #[serde(skip_serializing_if = "is_false")]
    can_be_brought_back: bool,
    /// The addresses it printed; get_process_ports says which are in use.
    ports: Vec<PrintedPort>,
    #[serde(flatten)]
    declared: DeclaredAnswer,
}

impl Summary {
    pub(super) fn of(process: &Process, host: &Host) -> Self {
        let run = host.panes.run_of(&process.id);
        let seen = run.map(|run| host.panes.data_plane.ports(&run)).unwrap_or_default();
        let ports = seen.into_iter().map(|seen| PrintedPort {
            url: seen.url,
            port: seen.port,
            seen_at: seen.offset.get(),
        });
        Self {
            process_id: process.id.clone(),
            name: process.name.clone(),
            kind: process.kind,
            preset: preset_of(process),
            declared: DeclaredAnswer::of(process, host),
            attention: process.attention.clone(),
            parent_id: process.parent_id.clone(),
            status: shown_status(process, host),
            activity: host.activity.of(process),
            exit: process.exit,
            interrupted: host.lifecycle.interruption_text(process),
            output_problem: output_problem(process, host),
            can_be_brought_back: host.lifecycle.is_offered(process),
            ports: ports.collect(),
        }
    }
}

/// The status for callers: a process that waits for its dependencies is starting.
pub(super) fn shown_status(process: &Process, host: &Host) -> Status {
    match host.declared.starts_after(process) {
        Some(_) => Status::Starting,
        None => process.status,
    }
}

/// Why a process's output cannot be stored completely.
pub(crate) fn output_problem(process: &Process, host: &Host) -> Option<String> {
    let run = host.panes.run_of(&process.id).filter(|_| process.status.is_alive())?;
    run.trouble().map(|trouble| trouble.to_string())
}

fn preset_of(process: &Process) -> Option<String> {
    let agent = process.agent.as_ref().map(|agent| agent.preset.clone());
    agent.or_else(|| process.declared.as_ref().map(|declared| declared.name.clone()))
}

/// The answer of tools that start something.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Started {
    /// The id for further calls.
    pub(super) process_id: ProcessId,
    /// Its label.
    pub(super) name: String,
    /// Its status.
    pub(super) status: Status,
    /// The processes that must be ready before it is started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) waiting_for: Vec<String>,
    /// Why an agent could not resume its conversation, and began a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) began_anew: Option<String>,
    /// Why its environment is not the one it was started with before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) environment_changed: Option<String>,
}

impl Started {
    /// A process that was started, or waits for others.
    pub(super) fn of(process: Process, host: &Host) -> Self {
        Self { waiting_for: waiting_for(&process, host), ..process.into() }
    }
}

/// The processes that must be ready before a declared process is started.
pub(super) fn waiting_for(process: &Process, host: &Host) -> Vec<String> {
    // The driver's view of the entry: a process that waits is shown as starting.
    let entry = host.panes.processes.get(&process.id);
    entry.and_then(|entry| host.declared.starts_after(&entry)).unwrap_or_default()
}

impl From<Process> for Started {
    fn from(process: Process) -> Self {
        let Process { id, name, status, .. } = process;
        Self {
            process_id: id,
            name,
            status,
            waiting_for: Vec::new(),
            began_anew: None,
            environment_changed: None,
        }
    }
}

/// The answer of a tool that returns nothing.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Done {
    ok: bool,
}

impl Done {
    pub(super) const OK: Self = Self { ok: true };
}

/// A label must fit on a line.
const NAME_CHARS: usize = 100;

/// Checks a label.
pub(super) fn label(given: &str) -> Result<&str, ToolError> {
    let name = given.trim();
    let fits =
        name.chars().count() <= NAME_CHARS && is_readable(name) && !has_hidden_character(name);
    if ProcessId::is_like(name) {
        let why = "must not look like a process's id, such as p1 or 1; use another name";
        return Err(ToolError::invalid("name", why));
    }
    let why = format_args!(
        "takes 1 to {NAME_CHARS} characters, at least one of them visible, without control or invisible characters"
    );
    fits.then_some(name).ok_or_else(|| ToolError::invalid("name", why))
}

/// Checks a label on a command line before it is sent to a server; the error says what is wrong with it.
pub fn check_label(given: &str) -> Result<(), String> {
    let checked = label(given);
    checked.map(drop).map_err(|error| error.message.trim_start_matches("`name` ").to_owned())
}

/// Checks whether the caller may give a process this name and remove its old one. Only a person may
/// assign or remove names for which shared servers show tools.
pub(super) fn check_name(
    call: &Call,
    name: &str,
    before: Option<&str>,
    preset: Option<&str>,
) -> Result<(), ToolError> {
    if before != Some(name) {
        check_group(call, name)?;
    }
    let shared = &call.host.shared;
    let given = shared.filtered_name(name);
    let taken = before.filter(|before| shared.filtered_name(before).as_deref() == Some(before));
    // The name of its preset applies in any case.
    let mut keys = given.iter().map(String::as_str).chain(taken).filter(|key| preset != Some(key));
    let is_person = call.caller.process().is_none() && call.caller != Caller::Elsewhere;
    let Some(key) = keys.next().filter(|_| !is_person) else { return Ok(()) };
    let message = format!(
        "`{key}` is a name that a shared server shows tools to ([servers.*.agents]), so only a \
         person may assign or remove it; use another name, or ask with request_human_attention"
    );
    Err(ToolError::new(ErrorKind::NotOwner, message))
}

/// Refuses the name of a group in the project file: verbs take both, so a name must not mean two things.
pub(super) fn check_group(call: &Call, name: &str) -> Result<(), ToolError> {
    let file = call.host.declared.effect();
    if !file.is_some_and(|file| file.groups.contains_key(name)) {
        return Ok(());
    }
    let why = format_args!(
        "is `{name}`, which is a group in patterm.toml; processes and groups share their names, so use another one"
    );
    Err(ToolError::invalid("name", why))
}

/// Resolves a folder that a caller gave, relative to the project. Without one, the caller's own folder: the one
/// that its connection passed, or the one in which its agent was started.
pub(super) fn folder(call: &Call, given: Option<&str>) -> PathBuf {
    let root = call.host.project.root();
    if let Some(given) = given {
        return root.join(given);
    }
    let passed = call.passed.as_ref().and_then(|passed| passed.working_dir.clone());
    let of_agent = || {
        let agent = call.host.panes.processes.get(call.caller.process()?)?;
        agent.recipe.map(|recipe| recipe.working_dir)
    };
    passed.or_else(of_agent).unwrap_or_else(|| root.to_owned())
}

/// The folder that a process is in now; if it is not running, the one it was started in.
pub(super) fn current_folder(call: &Call, process: &Process) -> Option<PathBuf> {
    let run = call.host.panes.run_of(&process.id).filter(|_| process.status.is_alive());
    let program = run.and_then(|run| run.status()).map(|status| status.program);
    let now = program.and_then(tree::working_dir).filter(|folder| folder.is_dir());
    now.or_else(|| process.recipe.as_ref().map(|recipe| recipe.working_dir.clone()))
}
