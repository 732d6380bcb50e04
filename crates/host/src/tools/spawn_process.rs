//! `spawn_process`: starts a terminal or a command below the caller.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::process::{Started, check_group, check_name, folder, label};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::environment::{Environment, OWN_PREFIX, is_own};
use patterm_panes::lifecycle::{NewProcess, SIZE};
use patterm_panes::process::{Kind, Process, ProcessId, Recipe, is_readable};
use patterm_wire::printable;

pub(super) struct SpawnProcess;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SpawnKind {
    Terminal,
    Command,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Default: `command` with argv, else `terminal`, a shell.
    kind: Option<SpawnKind>,
    /// A process declared in patterm.toml, instead of argv.
    preset: Option<String>,
    /// Program and arguments.
    argv: Option<Vec<String>>,
    /// Default: the program's name.
    name: Option<String>,
    /// Relative to the project.
    working_dir: Option<String>,
    /// Extra variables.
    env: Option<BTreeMap<String, String>>,
    /// Run argv as a command line with `sh -lc`.
    #[serde(default)]
    shell: bool,
}

impl Tool for SpawnProcess {
    const NAME: &'static str = "spawn_process";
    const TITLE: &'static str = "Start a process";
    const DESCRIPTION: &'static str = "Starts a command or a terminal under you in its own pane \
        and returns at once. Close what you spawn. For agents use spawn_agent.";
    const HELP: &'static str = "preset starts a process that patterm.toml declares: it has one \
        entry that all agents share, so if it is running you get already_running, and only a \
        person can close it. Its dependencies are started first; until they are ready, its status is \
        starting, and get_process_status says what it is waiting for. Without argv you get a terminal: your \
        $SHELL, ready for send_input. A bad executable or a missing folder is an error, and \
        leaves no process behind. The terminal has 24 rows and 80 columns.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading =
        Loading::OnSearch("run a command, dev server, test or shell in a pane");
    type Args = Args;
    type Answer = Started;

    async fn call(args: Args, call: Call) -> Result<Started, ToolError> {
        if args.preset.is_some() {
            return start_declared(args, call).await;
        }
        let kind = match (&args.kind, &args.argv) {
            (Some(SpawnKind::Terminal), _) | (None, None) => Kind::Terminal,
            (Some(SpawnKind::Command), Some(_)) | (None, Some(_)) => Kind::Command,
            (Some(SpawnKind::Command), None) => {
                return Err(ToolError::invalid("argv", "is missing: a command needs a program"));
            }
        };
        let extra = args.env.unwrap_or_default();
        check_variables(&extra)?;
        let mut set_variables = call.set_variables();
        set_variables.extend(extra.keys().cloned());
        let environment = match extra.is_empty() {
            true => call.own_environment(),
            false => {
                let mut environment = call.environment();
                environment.extend(extra);
                Some(environment)
            }
        };
        // Without a command line there is nothing for `sh` to run: start the shell itself.
        let through_shell = args.shell && args.argv.is_some();
        let argv = args.argv.unwrap_or_else(|| vec![shell(environment.as_ref(), &call)]);
        let Some(program) = argv.first().filter(|program| !program.is_empty()) else {
            return Err(ToolError::invalid("argv", "does not name a program"));
        };
        let name = match &args.name {
            Some(given) => {
                let name = label(given)?;
                check_group(&call, name)?;
                name.to_owned()
            }
            None => name_of(program),
        };
        let argv = match through_shell {
            true => vec!["sh".into(), "-lc".into(), argv.join(" ")],
            false => argv,
        };
        let working_dir = folder(&call, args.working_dir.as_deref());
        let parent_id = call.caller.process().cloned();
        let env = BTreeMap::new();
        let recipe =
            Recipe { argv, env, env_file: None, working_dir, size: SIZE, terminal_name: None };
        let not_a_persons = !call.caller.is_human_origin();
        let new =
            NewProcess { name, kind, parent_id, not_a_persons, recipe, environment, set_variables };
        call.detached(|host| async move { Ok(host.panes.spawn(new).await?) }).await.map(Into::into)
    }
}

/// Starts a process that the project file declares.
async fn start_declared(args: Args, call: Call) -> Result<Started, ToolError> {
    let preset = args.preset.unwrap_or_default();
    let conflicting = [
        ("argv", args.argv.is_some()),
        ("working_dir", args.working_dir.is_some()),
        ("env", args.env.is_some()),
        ("shell", args.shell),
        ("kind", matches!(args.kind, Some(SpawnKind::Terminal))),
    ];
    if let Some((field, _)) = conflicting.into_iter().find(|(_, given)| *given) {
        let why =
            format_args!("cannot be combined with `preset`: patterm.toml says how `{preset}` runs");
        return Err(ToolError::invalid(field, why));
    }
    let name = args.name.as_deref().map(label).transpose()?.map(str::to_owned);
    if let Some(name) = &name {
        let before = call.host.declared.declared_entry(&preset).map(|process| process.name);
        check_name(&call, name, before.as_deref(), None)?;
    }
    let host = call.host.clone();
    let (passed, is_person) = (call.passed.clone(), call.caller.is_human_origin());
    let work = call.detached(move |host| async move {
        let environment = passed.as_ref().map(|passed| passed.given(is_person));
        let started = host.declared.start_declared(&preset, environment).await?;
        let renamed = match name {
            Some(name) => host.panes.processes.rename(&started.id, &name)?,
            None => None,
        };
        // A process that waits is shown as starting, which its stored entry is not.
        let status = started.status;
        Ok(Process { status, ..renamed.unwrap_or(started) })
    });
    work.await.map(|started| Started::of(started, &host))
}

/// Refuses names and values that an environment cannot contain: a program would see other variables.
fn check_variables(env: &BTreeMap<String, String>) -> Result<(), ToolError> {
    let is_bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    if let Some(name) = env.keys().find(|name| is_own(name.as_ref())) {
        let why = format_args!(
            "contains {name}, but only patterm may set variables that begin with {OWN_PREFIX}"
        );
        return Err(ToolError::invalid("env", why));
    }
    if let Some((name, _)) = env.iter().find(|(_, value)| value.contains('\0')) {
        let why = format_args!("has a value for {name} that contains a NUL byte");
        return Err(ToolError::invalid("env", why));
    }
    match env.keys().find(is_bad) {
        Some(name) => {
            let why = format_args!(
                "contains the name {name:?}; a variable's name must not be empty or contain `=` or a \
                 NUL byte"
            );
            Err(ToolError::invalid("env", why))
        }
        None => Ok(()),
    }
}

/// The shell that the process itself would use.
fn shell(environment: Option<&Environment>, call: &Call) -> String {
    let own = environment.and_then(|environment| environment.text("SHELL"));
    let own = own.or_else(|| call.host.panes.environments.server().text("SHELL"));
    own.unwrap_or("/bin/sh").to_owned()
}

/// The name for a program: the last part of its path, up to the first space. If that looks like an id, `./` is put
/// before it.
fn name_of(program: &str) -> String {
    let first = program.split_whitespace().next().unwrap_or(program);
    let last = first.rsplit('/').next().unwrap_or(first);
    // A program may be called anything; the name of its process must be readable.
    let shown = printable::one_line(last);
    match ProcessId::is_like(last) || !is_readable(last) {
        true => format!("./{shown}"),
        false => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_variable_name_is_refused() {
        let env = |name: &str| BTreeMap::from([(name.to_owned(), "c".to_owned())]);
        for name in ["", "A=B", "=", "A\0", "PATTERM_IDENTITY_FILE"] {
            let error = check_variables(&env(name)).unwrap_err();
            let shown = format!("{name:?}");
            let shown = if name.starts_with(OWN_PREFIX) { name } else { &shown };
            assert!(error.message.contains(shown), "{}", error.message);
        }
        let two = BTreeMap::from([("A".to_owned(), "1\0PATTERM_X=2".to_owned())]);
        assert!(check_variables(&two).unwrap_err().message.contains("value for A"));
        for name in ["A", "a.b-c", "Ä"] {
            assert_eq!(check_variables(&env(name)), Ok(()), "{name}");
        }
    }

    #[test]
    fn labels_are_short() {
        assert_eq!(name_of("/usr/bin/python3"), "python3");
        assert_eq!(name_of("npm run dev"), "npm");
        assert_eq!(name_of("make"), "make");
    }
}
