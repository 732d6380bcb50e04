//! `patterm hooks`: lists the hooks, and tests one.

use clap::{Args, Subcommand};
use patterm_store::clock::Clock;
use patterm_wire::hooks::{HookInfo, HookList, HookTest, HookTested, ListHooks, TestHook};
use patterm_wire::method::Empty;
use serde_json::Value;

use super::timers::duration;
use super::{trust, user_settings};
use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// List the hooks, the commands and requests that events start
///
/// Hooks are declared with [[hooks]] in patterm.toml, or in config.toml for all projects.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HooksVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<HooksAction>,
}

#[derive(Debug, Subcommand)]
enum HooksAction {
    /// Run a hook now with a sample event, and wait for its outcome
    ///
    /// It runs without waiting and as often as you like: after_seconds, unless_viewed and at_most do not apply. Exits with
    /// code 1 if it fails. Only a person may do this.
    Test {
        /// Its name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl HooksVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.action {
            None => list(self.json),
            Some(HooksAction::Test { name, json }) => test(name, json),
        }
    }
}

fn list(json: bool) -> anyhow::Result<()> {
    let reply = Client::connect_to_read()?.query::<ListHooks>(&Empty {})?;
    if json {
        return print_json(&reply.read_as::<HookList<Value>>()?.hooks);
    }
    let hooks = reply.result.hooks;
    match hooks.is_empty() {
        true => print("no hooks; declare one with `[[hooks]]` in patterm.toml or config.toml"),
        false => print(&table(&hooks, Clock::system().wall_ms())),
    }
    trust::hint().inspect(|hint| print(hint));
    user_settings::hint().inspect(|hint| print(hint));
    Ok(())
}

fn test(name: String, json: bool) -> anyhow::Result<()> {
    trust::for_a_person("test a hook")?;
    let reply = Client::connect()?.call::<TestHook>(&HookTest { name })?;
    let tested = reply.result.tested.clone();
    if json {
        print_json(&reply.read_as::<HookTested>()?.tested)?;
    } else {
        for outcome in &tested {
            let (name, file) = (one_line(&outcome.name), one_line(outcome.file.name()));
            match &outcome.error {
                None => print(&format!("{name} ({file}) succeeded")),
                Some(error) => print(&format!("{name} ({file}) failed: {}", one_line(error))),
            }
        }
    }
    let failed = tested.iter().filter(|outcome| outcome.error.is_some()).count();
    anyhow::ensure!(failed == 0, "{failed} of {} hooks failed", tested.len());
    Ok(())
}

fn table(hooks: &[HookInfo], now_ms: u64) -> String {
    let wide = hooks.iter().map(|hook| one_line(&hook.name).chars().count()).max();
    let wide = wide.unwrap_or(0).max(4);
    let mut rows = vec![format!(
        "{:<wide$}  FILE          STATE    FIRED  LAST      FAILED  WAITING  NOT FIRED  DROPPED  DOES",
        "NAME"
    )];
    for hook in hooks {
        let state = if hook.failing { "failing" } else { "ok" };
        let ago = |at: u64| duration(now_ms.saturating_sub(at) / 1_000);
        let last = hook.last_fired.map_or_else(|| "-".to_owned(), ago);
        let does = match (&hook.run, &hook.host) {
            (Some(argv), _) => argv.join(" "),
            (None, Some(host)) => format!("posts to {host}"),
            (None, None) => String::new(),
        };
        let row = format!(
            "{:<wide$}  {:<12}  {state:<7}  {:<5}  {last:<8}  {:<6}  {:<7}  {:<9}  {:<7}  {}",
            one_line(&hook.name),
            one_line(hook.file.name()),
            hook.fired,
            hook.failures,
            hook.waiting,
            hook.suppressed,
            hook.dropped,
            one_line(&does),
        );
        rows.push(row.trim_end().to_owned());
        rows.push(format!("{:wide$}  on {}", "", one_line(&hook.on.join(", "))));
        // The error of a hook that works again is from an earlier event.
        let mark = if hook.failing { "!" } else { "last error:" };
        rows.extend(
            hook.last_error.iter().map(|error| format!("{:wide$}  {mark} {}", "", one_line(error))),
        );
    }
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use patterm_wire::hooks::HookFile;

    use super::*;

    #[test]
    fn the_table_of_hooks() {
        let hooks = [
            HookInfo {
                name: "notify".into(),
                on: vec!["agent.blocked".into(), "agent.limited".into()],
                run: Some(vec!["notify-send".into(), "--".into(), "{name}".into()]),
                fired: 3,
                last_fired: Some(1_000_000),
                suppressed: 2,
                ..HookInfo::default()
            },
            HookInfo {
                name: "ntfy.example".into(),
                file: HookFile::Project,
                on: vec!["process.*".into()],
                host: Some("ntfy.example".into()),
                failing: true,
                failures: 1,
                waiting: 4,
                dropped: 12,
                last_error: Some("ntfy.example answered 500\u{1b}".into()),
                ..HookInfo::default()
            },
        ];
        assert_eq!(
            table(&hooks, 1_061_000),
            "NAME          FILE          STATE    FIRED  LAST      FAILED  WAITING  NOT FIRED  DROPPED  DOES\n\
             notify        config.toml   ok       3      1m01s     0       0        2          0        notify-send -- {name}\n              \
             on agent.blocked, agent.limited\n\
             ntfy.example  patterm.toml  failing  0      -         1       4        0          12       posts to ntfy.example\n              \
             on process.*\n              \
             ! ntfy.example answered 500\\u{1b}"
        );
    }
}
