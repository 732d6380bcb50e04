//! `spawn_process`: starts a terminal or a command under the caller.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ToolError;
use super::process::{Started, check_name, folder, label};
use super::tool::{Call, Effect, Loading, Tool};
use patterm_panes::lifecycle::{NewProcess, SIZE};
use patterm_panes::process::{Kind, Recipe};

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
    /// A process that patterm.toml declares, instead of argv.
    preset: Option<String>,
    /// Program and arguments.
    argv: Option<Vec<String>>,
    /// Default: the program's.
    name: Option<String>,
    /// Relative to the project.
    working_dir: Option<String>,
    /// Extra variables.
    env: Option<BTreeMap<String, String>>,
    /// Run argv as a command line, by `sh -lc`.
    #[serde(default)]
    shell: bool,
}

impl Tool for SpawnProcess {
    const NAME: &'static str = "spawn_process";
    const TITLE: &'static str = "Start a process";
    const DESCRIPTION: &'static str = "Starts a command or a terminal under you in its own pane \
        and returns at once. Whoever spawns closes. For agents use spawn_agent. Then \
        wait_for_pattern, get_process_output, send_input.";
    const HELP: &'static str = "With preset it is a process that patterm.toml declares: it has \
        one entry that all agents share, so one that runs is already_running, and nobody but a \
        person closes it. What it needs is started first: then the answer's status is not \
        running yet, and get_process_status says what it waits for. Without argv it is a \
        terminal: your $SHELL, ready for send_input. A bad executable or a missing folder is an \
        error, and no process is left behind. The process gets a real terminal of 24 rows and 80 \
        columns.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading =
        Loading::OnSearch("run a command, dev server, test or shell in a pane");
    type Args = Args;
    type Answer = Started;

    async fn call(args: Args, call: Call) -> Result<Started, ToolError> {
        if args.preset.is_some() {
            return start_preset(args, call).await;
        }
        let kind = match (&args.kind, &args.argv) {
            (Some(SpawnKind::Terminal), _) | (None, None) => Kind::Terminal,
            (Some(SpawnKind::Command), Some(_)) | (None, Some(_)) => Kind::Command,
            (Some(SpawnKind::Command), None) => {
                return Err(ToolError::invalid("argv", "is missing: a command needs a program"));
            }
        };
        let env = args.env.unwrap_or_default();
        check_names(&env)?;
        // Without a command line there is nothing for `sh` to run: it is the terminal itself.
        let through_shell = args.shell && args.argv.is_some();
        let argv = args.argv.unwrap_or_else(|| vec![shell(&env, &call)]);
        let Some(program) = argv.first().filter(|program| !program.is_empty()) else {
            return Err(ToolError::invalid("argv", "names no program"));
        };
        let name = match &args.name {
            Some(given) => label(given)?.to_owned(),
            None => name_of(program),
        };
        let argv = match through_shell {
            true => vec!["sh".into(), "-lc".into(), argv.join(" ")],
            false => argv,
        };
        let working_dir = folder(&call, args.working_dir.as_deref());
        let parent_id = call.caller.process().cloned();
        let recipe = Recipe { argv, env, working_dir, size: SIZE };
        let not_a_persons = !call.caller.is_human_origin();
        let new = NewProcess { name, kind, parent_id, not_a_persons, recipe };
        call.detached(|host| async move { Ok(host.panes.spawn(new).await?) }).await.map(Into::into)
    }
}

/// Starts what the project file declares.
async fn start_preset(args: Args, call: Call) -> Result<Started, ToolError> {
    let preset = args.preset.unwrap_or_default();
    let said_there = [
        ("argv", args.argv.is_some()),
        ("working_dir", args.working_dir.is_some()),
        ("env", args.env.is_some()),
        ("shell", args.shell),
        ("kind", matches!(args.kind, Some(SpawnKind::Terminal))),
    ];
    if let Some((field, _)) = said_there.into_iter().find(|(_, given)| *given) {
        let why = format_args!("does not go with `preset`: patterm.toml says how `{preset}` runs");
        return Err(ToolError::invalid(field, why));
    }
    let name = args.name.as_deref().map(label).transpose()?.map(str::to_owned);
    if let Some(name) = &name {
        let before = call.host.declared.declared_entry(&preset).map(|process| process.name);
        check_name(&call, name, before.as_deref(), None)?;
    }
    let work = call.detached(|host| async move {
        let started = host.declared.start_preset(&preset).await?;
        let renamed = match name {
            Some(name) => host.panes.processes.rename(&started.id, &name)?,
            None => None,
        };
        Ok(renamed.unwrap_or(started))
    });
    work.await.map(Into::into)
}

/// Refuses names that no environment can hold: a program would see another name, or none.
fn check_names(env: &BTreeMap<String, String>) -> Result<(), ToolError> {
    let is_bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    match env.keys().find(is_bad) {
        Some(name) => {
            let why = format_args!(
                "has the name {name:?}; the name of a variable has at least one character, and neither \
                 `=` nor a zero byte"
            );
            Err(ToolError::invalid("env", why))
        }
        None => Ok(()),
    }
}

/// The shell that the process itself would find.
fn shell(env: &BTreeMap<String, String>, call: &Call) -> String {
    let own = env.get("SHELL").or_else(|| call.host.panes.environment.get("SHELL"));
    own.cloned().unwrap_or_else(|| "/bin/sh".into())
}

/// The last part of a program's path, without blanks.
fn name_of(program: &str) -> String {
    let first = program.split_whitespace().next().unwrap_or(program);
    first.rsplit('/').next().unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_environment_can_hold_is_refused() {
        let env = |name: &str| BTreeMap::from([(name.to_owned(), "c".to_owned())]);
        for name in ["", "A=B", "=", "A\0"] {
            let error = check_names(&env(name)).unwrap_err();
            assert!(error.message.contains(&format!("{name:?}")), "{}", error.message);
        }
        for name in ["A", "a.b-c", "Ä"] {
            assert_eq!(check_names(&env(name)), Ok(()), "{name}");
        }
    }

    #[test]
    fn labels_are_short() {
        assert_eq!(name_of("/usr/bin/python3"), "python3");
        assert_eq!(name_of("npm run dev"), "npm");
        assert_eq!(name_of("make"), "make");
    }
}
