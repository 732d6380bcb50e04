//! `patterm up` and `patterm down`: the processes that patterm.toml declares.

use std::process::ExitCode;

use clap::Args;
use patterm_wire::Method;
use patterm_wire::declared::{
    DeclaredNames, DeclaredOutcome, DeclaredResult, Down, OutcomeKind, Readiness, ReadinessState,
    Up, WaitUntilReady, WaitUntilReadyRequest, WaitUntilReadyResult,
};
use serde_json::Value;

use super::wait::seconds;
use super::{environment, trust, user_settings};
use crate::client::{Client, ServerReply};
use crate::print::{one_line, print, print_json, warn};
use crate::start;

/// The exit code if something was not ready in time.
const NOT_READY: u8 = 3;

/// How long `--wait` waits: longer than one process may take (`timeout_seconds` in `ready`, 60 by default) with those it
/// depends on, and shorter than most CI systems wait for a step.
const WAIT_SECONDS: f64 = 300.0;

const CODES: &str = "Exit codes with --wait: 0 everything is ready, 1 something failed, 3 \
    something is not ready in time, 2 wrong usage. Without --wait: 0 everything was started or \
    waits for others, 1 something could not be started.";

/// Start the processes that patterm.toml declares
///
/// Starts them in the background, each as soon as the processes it depends on are ready.
#[derive(Debug, Args)]
#[command(after_help = CODES)]
pub(crate) struct UpVerb {
    /// Names of processes and groups [default: all processes]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Wait until each of them is ready (and healthy, if that is checked) or has failed
    #[arg(short, long)]
    wait: bool,
    /// How long --wait waits, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT_SECONDS, value_parser = seconds, requires = "wait")]
    timeout: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl UpVerb {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut client = Client::connect()?;
        environment::pass_own(&mut client)?;
        // Old content may be in effect, which is not what the file says now.
        trust::outdated_hint().inspect(|hint| warn(hint));
        user_settings::hint().inspect(|hint| warn(hint));
        if !self.wait {
            return report::<Up>(client, self.names, self.json).map(|()| ExitCode::SUCCESS);
        }
        let names = DeclaredNames { names: self.names.clone() };
        let started = client.call::<Up>(&names)?.result.processes;
        if !self.json {
            print(&table(&started));
        }
        // What these names mean may change while it waits.
        let names: Vec<_> = started.into_iter().map(|process| process.name).collect();
        let request =
            |timeout_seconds| WaitUntilReadyRequest { names: names.clone(), timeout_seconds };
        let reply = client.query_for::<WaitUntilReady>(self.timeout, request)?;
        let processes = reply.result.processes.clone();
        match self.json {
            true => print_json(&reply.read_as::<WaitUntilReadyResult<Value>>()?.processes)?,
            false => print(&ready_table(&processes)),
        }
        outcome(&processes, self.timeout)
    }
}

/// The exit code of a wait.
fn outcome(processes: &[Readiness], timeout: f64) -> anyhow::Result<ExitCode> {
    let names = |state| -> Vec<String> {
        let those = processes.iter().filter(|process| process.state == state);
        those.map(|process| one_line(&process.name)).collect()
    };
    let (failed, pending) = (names(ReadinessState::Failed), names(ReadinessState::Pending));
    let of_all = |names: &[String]| format!("{} of {}", names.len(), processes.len());
    if !failed.is_empty() {
        let printed_by = processes.iter().find_map(|process| process.printed_by.as_deref());
        let logs = printed_by.map(one_line).map(|name| match failed.contains(&name) {
            true if failed.len() == 1 => format!("; `patterm logs {name}` shows what it printed"),
            _ => format!("; `patterm logs {name}` shows what {name} printed"),
        });
        let logs = logs.unwrap_or_default();
        anyhow::bail!("{} failed: {}{logs}", of_all(&failed), failed.join(", "));
    }
    if pending.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    warn(&format!("{} not ready within {timeout} s: {}", of_all(&pending), pending.join(", ")));
    Ok(ExitCode::from(NOT_READY))
}

/// The processes after a wait.
fn ready_table(processes: &[Readiness]) -> String {
    let rows = processes.iter().map(|process| {
        let why = process.reason.as_deref().map(|why| format!(": {}", one_line(why)));
        let word = match process.state {
            ReadinessState::Ready => "is ready",
            ReadinessState::Pending => "is not ready",
            ReadinessState::Failed => "failed",
        };
        (
            process.process_id.as_deref(),
            process.name.as_str(),
            word.to_owned() + &why.unwrap_or_default(),
        )
    });
    aligned(rows.collect())
}

/// Stop the processes that patterm.toml declares
#[derive(Debug, Args)]
pub(crate) struct DownVerb {
    /// Names of processes and groups [default: all processes]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DownVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if !start::is_served(&start::project_here()?)? {
            match self.json {
                true => print_json(&Vec::<Value>::new())?,
                false => print("nothing to stop: no server is running for this project"),
            }
            return Ok(());
        }
        report::<Down>(Client::connect()?, self.names, self.json)
    }
}

/// Starts or stops the processes and prints the outcome for each.
fn report<M>(mut client: Client, names: Vec<String>, json: bool) -> anyhow::Result<()>
where
    M: Method<Params = DeclaredNames, Result = DeclaredResult>,
{
    let reply: ServerReply<_> = client.call::<M>(&DeclaredNames { names })?;
    let processes = reply.result.processes.clone();
    match json {
        true => print_json(&reply.read_as::<DeclaredResult<Value>>()?.processes)?,
        false => print(&table(&processes)),
    }
    let failed = processes.iter().filter(|process| process.outcome == OutcomeKind::Failed).count();
    anyhow::ensure!(failed == 0, "{failed} of {} failed", processes.len());
    Ok(())
}

fn table(processes: &[DeclaredOutcome]) -> String {
    let rows = processes
        .iter()
        .map(|process| (process.process_id.as_deref(), process.name.as_str(), words(process)));
    aligned(rows.collect())
}

/// Rows with an id, a name and what is said about it.
fn aligned(rows: Vec<(Option<&str>, &str, String)>) -> String {
    let width = rows.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
    let row = |(id, name, words): &(Option<&str>, &str, String)| {
        let line = format!("{:<5} {:<width$}  {words}", id.unwrap_or("-"), one_line(name));
        line.trim_end().to_owned()
    };
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// The outcome for a process, in words.
fn words(process: &DeclaredOutcome) -> String {
    let others = || {
        let names: Vec<_> = process.waiting_for.iter().map(|name| one_line(name)).collect();
        format!("waits for {}", names.join(", "))
    };
    match process.outcome {
        OutcomeKind::Started => "started".into(),
        OutcomeKind::Waiting => others(),
        OutcomeKind::Stopped => "stopped".into(),
        OutcomeKind::Unchanged if !process.waiting_for.is_empty() => others(),
        OutcomeKind::Unchanged if process.status.is_alive() => "is running".into(),
        OutcomeKind::Unchanged => "is not running".into(),
        OutcomeKind::Failed => {
            format!("failed: {}", one_line(process.error.as_deref().unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use patterm_wire::follow::ProcessStatus;

    use super::*;

    #[test]
    fn the_outcome_for_each_process_is_one_row() {
        let process = |name: &str, outcome, status| DeclaredOutcome {
            name: name.into(),
            process_id: Some("p1".into()),
            outcome,
            status,
            ..DeclaredOutcome::default()
        };
        use OutcomeKind::{Failed, Started, Unchanged, Waiting};
        use ProcessStatus::{Running, Starting, Stopped};
        let processes = [
            process("db", Started, Running),
            DeclaredOutcome { waiting_for: vec!["db".into()], ..process("api", Waiting, Starting) },
            process("docs", Unchanged, Running),
            DeclaredOutcome { process_id: None, ..process("seed", Unchanged, Stopped) },
            DeclaredOutcome { error: Some("no program".into()), ..process("web", Failed, Stopped) },
        ];
        assert_eq!(
            table(&processes),
            "p1    db    started\n\
             p1    api   waits for db\n\
             p1    docs  is running\n\
             -     seed  is not running\n\
             p1    web   failed: no program"
        );
    }

    #[test]
    fn after_a_wait_each_row_says_what_is_ready_and_why_not() {
        use ReadinessState::{Failed, Pending, Ready};
        let process = |name: &str, state, reason: Option<&str>| Readiness {
            name: name.into(),
            process_id: Some("p1".into()),
            state,
            reason: reason.map(str::to_owned),
            printed_by: (state == Failed).then(|| name.to_owned()),
        };
        let ready = process("db", Ready, None);
        let pending = process("api", Pending, Some("waits for db"));
        let failed = process("web", Failed, Some("ended with exit code 1"));
        let all = [ready.clone(), pending.clone(), failed];
        assert_eq!(
            ready_table(&all),
            "p1    db   is ready\n\
             p1    api  is not ready: waits for db\n\
             p1    web  failed: ended with exit code 1"
        );
        assert_eq!(
            outcome(&all, 5.0).unwrap_err().to_string(),
            "1 of 3 failed: web; `patterm logs web` shows what it printed"
        );
        let because_of_db =
            Readiness { printed_by: Some("db".into()), ..process("web", Failed, None) };
        assert_eq!(
            outcome(&[because_of_db], 5.0).unwrap_err().to_string(),
            "1 of 1 failed: web; `patterm logs db` shows what db printed"
        );
        let silent = Readiness { printed_by: None, ..process("web", Failed, None) };
        assert_eq!(outcome(&[silent], 5.0).unwrap_err().to_string(), "1 of 1 failed: web");
        let code = |processes: &[Readiness]| format!("{:?}", outcome(processes, 5.0).unwrap());
        assert_eq!(code(&[ready.clone(), pending]), format!("{:?}", ExitCode::from(NOT_READY)));
        assert_eq!(code(&[ready]), format!("{:?}", ExitCode::SUCCESS));
    }
}
