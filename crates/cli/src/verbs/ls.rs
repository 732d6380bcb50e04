//! `patterm ls`: lists this user's servers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_wire::follow::ProcessStatus;
use patterm_wire::method::Empty;
use patterm_wire::requests::ServerEntry;
use patterm_wire::tools::{ListProcesses, ProcessSummary};
use serde::Serialize;

use crate::client::Client;
use crate::print::{one_line, print, print_json, printable_path};
use crate::{hung, start};

/// How long a server may take to answer: one that hangs must not delay the list.
const PATIENCE: Duration = Duration::from_secs(2);

/// A server and its panes.
#[derive(Debug, Serialize)]
struct ListedServer {
    #[serde(flatten)]
    entry: ServerEntry,
    /// How many panes it has; `None` if it does not answer.
    panes: Option<usize>,
    /// How many of them are running.
    running: Option<usize>,
    /// The processes that need a person.
    attention: Vec<NeedsAttention>,
}

#[derive(Debug, Serialize)]
struct NeedsAttention {
    process_id: String,
    name: String,
    reason: String,
}

/// List your servers, with the agents that need attention
#[derive(Debug, Args)]
pub(crate) struct LsVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl LsVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let entries = registry::list(&RuntimeDir::candidates(None));
        let servers: Vec<_> = entries.into_iter().map(describe).collect();
        if self.json {
            print_json(&servers)?;
        } else if servers.is_empty() {
            print("no servers are running; `patterm` starts one");
        } else {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
            print(&table(&servers, now));
        }
        Ok(())
    }
}

fn describe(entry: ServerEntry) -> ListedServer {
    let processes = processes(&entry);
    let alive = |all: &Vec<ProcessSummary>| all.iter().filter(|p| p.is_alive()).count();
    ListedServer {
        panes: processes.as_ref().map(|all| all.iter().filter(|p| has_pane(p)).count()),
        running: processes.as_ref().map(alive),
        attention: processes.iter().flatten().filter_map(attention).collect(),
        entry,
    }
}

/// The processes of a server, if it answers.
fn processes(entry: &ServerEntry) -> Option<Vec<ProcessSummary>> {
    let stream = start::connect(&entry.socket).ok()??;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let reply = Client::over(stream).call::<ListProcesses>(&Empty {}).ok()?;
    Some(reply.result.processes)
}

/// Whether a process has a pane: one that the project file declares has none before its first start.
fn has_pane(process: &ProcessSummary) -> bool {
    let never_ran = process.status == ProcessStatus::Stopped && process.exit.is_none();
    !(process.declared && never_ran)
}

/// How many programs of a server are running, if it answers.
pub(super) fn running(entry: &ServerEntry) -> Option<usize> {
    Some(processes(entry)?.iter().filter(|process| process.is_alive()).count())
}

/// Why a process needs a person, if it does.
fn attention(process: &ProcessSummary) -> Option<NeedsAttention> {
    let reason = process.needs()?;
    let (process_id, name) = (process.process_id.clone(), process.name.clone());
    Some(NeedsAttention { process_id, name, reason })
}

fn table(servers: &[ListedServer], now: u64) -> String {
    let mut text = format!(
        "{:>8}  {:>8}  {:<9}  {:>5}  {:>7}  PROJECT\n",
        "PID", "UP", "VERSION", "PANES", "RUNNING"
    );
    for ListedServer { entry, panes, running, attention } in servers {
        let up = duration(now.saturating_sub(entry.started_at));
        let is_silent = panes.is_none();
        let [panes, running] =
            [panes, running].map(|count| count.map_or_else(|| "?".to_owned(), |n| n.to_string()));
        let (pid, version) = (entry.pid, one_line(&entry.patterm));
        let project = printable_path(&entry.project);
        text += &format!("{pid:>8}  {up:>8}  {version:<9}  {panes:>5}  {running:>7}  {project}\n");
        if is_silent {
            let advice = hung::advice_for(pid);
            text += &format!("{:>49}the server does not answer: {advice}\n", "! ");
        }
        for NeedsAttention { process_id, name, reason } in attention {
            let [name, reason] = [name, reason].map(|text| one_line(text));
            text += &format!("{:>49}{process_id} {name}: {reason}\n", "! ");
        }
    }
    text
}

/// A duration, short enough for a column.
pub(super) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use patterm_wire::tools::{Activity, AttentionInfo};

    use super::*;

    #[test]
    fn the_table() {
        let entry = |pid, started_at, project: &str| ServerEntry {
            http: None,
            pid,
            started_at,
            project: project.into(),
            socket: "/run/x.sock".into(),
            key: "k".into(),
            patterm: "0.0.1".into(),
        };
        let needs = NeedsAttention {
            process_id: "p1".into(),
            name: "lead".into(),
            reason: "may I push?".into(),
        };
        let servers = [
            ListedServer {
                entry: entry(7, 1_000_000, "/a"),
                panes: Some(3),
                running: Some(2),
                attention: vec![needs],
            },
            ListedServer {
                entry: entry(123_456, 900_000, "/b c"),
                panes: None,
                running: None,
                attention: Vec::new(),
            },
        ];
        assert_eq!(
            table(&servers, 1_000_042),
            "     PID        UP  VERSION    PANES  RUNNING  PROJECT\n\
             \x20      7       42s  0.0.1          3        2  /a\n\
             \x20                                              ! p1 lead: may I push?\n\
             \x20 123456     1d03h  0.0.1          ?        ?  /b c\n\
             \x20                                              ! the server does not answer: it is busy or the \
             machine is swapping (pid 123456); `kill -KILL 123456` ends only the server: the programs keep \
             running, and the next verb starts a new one\n"
        );
        assert_eq!([59, 60, 3_661].map(duration), ["59s", "1m", "1h01m"]);
    }

    #[test]
    fn a_declared_process_has_a_pane_once_it_was_started() {
        let process = |status, declared, exit| ProcessSummary {
            status,
            declared,
            exit,
            ..ProcessSummary::default()
        };
        let exit = Some(patterm_wire::tools::ExitInfo::default());
        assert!(!has_pane(&process(ProcessStatus::Stopped, true, None)));
        assert!(has_pane(&process(ProcessStatus::Stopped, true, exit)));
        assert!(has_pane(&process(ProcessStatus::Running, true, None)));
        assert!(has_pane(&process(ProcessStatus::Stopped, false, None)));
    }

    #[test]
    fn who_needs_attention() {
        let process = |state: &str, reason: &str| ProcessSummary {
            activity: Activity { state: state.into(), reason: reason.into(), asks: None },
            ..ProcessSummary::default()
        };
        let reason = |process: &ProcessSummary| attention(process).map(|needs| needs.reason);
        let asks = AttentionInfo { reason: "look".into() };
        let asking = ProcessSummary { attention: Some(asks), ..process("idle", "") };
        assert_eq!(reason(&asking).as_deref(), Some("look"));
        assert_eq!(reason(&process("blocked", "a dialog")).as_deref(), Some("a dialog"));
        let hook = process("blocked", "hook PermissionRequest");
        assert_eq!(reason(&hook).as_deref(), Some("it is waiting for you"), "no hook is named");
        assert_eq!(reason(&process("limited", "used up")).as_deref(), Some("limited: used up"));
        assert_eq!(reason(&process("idle", "")), None);
    }
}
