//! What tools about processes share: finding one, who may touch it, and how it is described.

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
use patterm_panes::process::{Attention, Exit, Kind, Process, ProcessId, Status};
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

/// The process with this id, if the caller may act on it: on itself, on what stands below it, and on
/// what the project file declares.
pub(super) fn own(call: &Call, given: &str) -> Result<Process, ToolError> {
    let process = find(call, given)?;
    if may_act_on(call, &process) {
        return Ok(process);
    }
    Err(not_owner(&call.host, call.caller.process(), &process))
}

/// Why a caller may not act on a process, and who may.
pub(crate) fn not_owner(host: &Host, caller: Option<&ProcessId>, process: &Process) -> ToolError {
    let Process { id, name, .. } = process;
    let advice = whom_to_ask(host, caller, process);
    let message = format!("{id} ({name}) is neither you nor below you; {advice}");
    ToolError::new(ErrorKind::NotOwner, message)
}

/// Who can do to a process what the caller may not.
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
            "it belongs to the person, so ask with request_human_attention (process_id {}) and say \
             what should be done",
            process.id
        ),
    }
}

/// Whether the caller may act on a process.
pub(super) fn may_act_on(call: &Call, process: &Process) -> bool {
    call.caller.process().is_none_or(|me| is_owner(&call.host.panes, me, process))
}

/// Whether one process may act on another: itself, what stands below it, what the project file
/// declares.
pub(crate) fn is_owner(panes: &Panes, me: &ProcessId, process: &Process) -> bool {
    let own = process.id == *me || panes.processes.is_below(process, me);
    own || process.declared.is_some()
}

/// The error for a process that has, or had, no run to look at; it says why, where that is known.
pub(crate) fn no_output(process: &Process, host: &Host) -> ToolError {
    let status = host.declared.status(process).unwrap_or_default();
    let why = match (status.problem, status.waits_for.as_slice()) {
        (Some(problem), _) => problem,
        (None, [_, ..]) => format!("it waits for {}", status.waits_for.join(", ")),
        (None, []) if process.runs == 0 => "it was not started yet".to_owned(),
        (None, []) => "it was lost, or never started".to_owned(),
    };
    let message = format!("{} ({}) has no output: {why}", process.id, process.name);
    ToolError::new(ErrorKind::Unavailable, message)
}

/// How a process of the project file stands.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct DeclaredAnswer {
    /// Whether the project file declares it: all agents may use it, and none may close it.
    #[serde(skip_serializing_if = "is_false")]
    declared: bool,
    /// Whether it is ready, as the file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<bool>,
    /// How often in a row it was started again by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    restarts: Option<u32>,
    /// Seconds until it is started again.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_restart_in: Option<f64>,
    /// What must be ready before it is started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting_for: Vec<String>,
    /// Why it is not started, not started again, or not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// It runs as an earlier content of the file said; restart_process starts it as it says now.
    #[serde(skip_serializing_if = "is_false")]
    outdated: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl DeclaredAnswer {
    fn of(process: &Process, host: &Host) -> Self {
        let Some(seen) = host.declared.status(process) else { return Self::default() };
        Self {
            declared: true,
            ready: Some(seen.ready),
            restarts: process.declared.as_ref().map(|declared| declared.restarts),
            next_restart_in: seen.again_in.map(|time| time.as_secs_f64()),
            waiting_for: seen.waits_for,
            problem: seen.problem,
            outdated: host.declared.is_outdated(process),
        }
    }
}

/// The present or last run of a process, whose output can be looked at.
pub(super) fn find_run(call: &Call, id: &str) -> Result<(Process, Arc<ProcessRun>), ToolError> {
    let process = find(call, id)?;
    let run = call.host.panes.run_of(&process.id).ok_or_else(|| no_output(&process, &call.host))?;
    Ok((process, run))
}

/// An address that a process printed.
#[derive(Debug, Serialize, JsonSchema)]
struct PrintedPort {
    /// The address as it was printed.
    url: String,
    /// Its port.
    port: u16,
    /// Where in the output.
    seen_at: u64,
}

/// A process as lists show it.
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
    /// Who started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<ProcessId>,
    /// How it stands.
    status: Status,
    /// Whether it works.
    activity: Activity,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
    /// Why a person should look at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<Attention>,
    /// Why its output cannot be kept as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_problem: Option<String>,
    /// It ran when everything was ended, and a person is asked whether to bring it back.
    #[serde(skip_serializing_if = "is_false")]
    can_be_brought_back: bool,
    /// The addresses it printed; get_process_ports says which are listened on.
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
            seen_at: seen.offset,
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
            output_problem: output_problem(process, host),
            can_be_brought_back: host.lifecycle.is_offered(process),
            ports: ports.collect(),
        }
    }
}

/// The status that callers are told: one that waits for others to be ready is starting.
pub(super) fn shown_status(process: &Process, host: &Host) -> Status {
    match host.declared.starts_after(process) {
        Some(_) => Status::Starting,
        None => process.status,
    }
}

/// Why a process's output cannot be kept as it should be.
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
    /// The id to use from here on.
    pub(super) process_id: ProcessId,
    /// Its label.
    pub(super) name: String,
    /// How it stands.
    pub(super) status: Status,
    /// Why an agent could not go on with its conversation, and began a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) began_anew: Option<String>,
}

impl From<Process> for Started {
    fn from(process: Process) -> Self {
        let Process { id, name, status, .. } = process;
        Self { process_id: id, name, status, began_anew: None }
    }
}

/// The answer of a tool with nothing to say.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Done {
    ok: bool,
}

impl Done {
    pub(super) const OK: Self = Self { ok: true };
}

/// A label must fit into a line.
const NAME_CHARS: usize = 100;

/// A label as callers give it.
pub(super) fn label(given: &str) -> Result<&str, ToolError> {
    let name = given.trim();
    let fits = !name.is_empty()
        && name.chars().count() <= NAME_CHARS
        && !name.chars().any(char::is_control);
    let why = format_args!("takes 1 to {NAME_CHARS} characters, none of them control");
    fits.then_some(name).ok_or_else(|| ToolError::invalid("name", why))
}

/// Whether the caller may give a process a name, and take from it the one it had. What a project shows
/// to agents by their names is a person's to give and to take.
pub(super) fn check_name(
    call: &Call,
    name: &str,
    before: Option<&str>,
    preset: Option<&str>,
) -> Result<(), ToolError> {
    let shared = &call.host.shared;
    let given = shared.filtered_name(name);
    let taken = before.filter(|before| shared.filtered_name(before).as_deref() == Some(before));
    // By the name of its preset it is known in any case.
    let mut keys = given.iter().map(String::as_str).chain(taken).filter(|key| preset != Some(key));
    let is_person = call.caller.process().is_none() && call.caller != Caller::Elsewhere;
    let Some(key) = keys.next().filter(|_| !is_person) else { return Ok(()) };
    let message = format!(
        "`{key}` is a name by which a shared server shows its tools ([servers.*.agents]): only a \
         person gives it to a process, or takes it away; use another name, or ask with \
         request_human_attention"
    );
    Err(ToolError::new(ErrorKind::NotOwner, message))
}

/// A folder as callers give it: relative to the project.
pub(super) fn folder(call: &Call, given: Option<&str>) -> PathBuf {
    let root = call.host.project.root();
    given.map_or_else(|| root.to_owned(), |given| root.join(given))
}
