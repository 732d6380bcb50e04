//! `patterm overview`: all projects of this user that have a server, with their agents. It starts nothing.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use clap::Args;
use patterm_host::registry;
use patterm_host::runtime::{self, RuntimeDir};
use patterm_wire::follow::{self, DialogInfo, Follow, FollowRequest, ProcessInfo, ProjectSnapshot};
use patterm_wire::overview::listed;
use patterm_wire::requests::ServerEntry;
use patterm_wire::{Framing, Id, Incoming, Message, Method, reply};
use serde::Serialize;

use crate::print::{one_line, print, print_json, printable_path};
use crate::{hung, start};

/// How long a server may take: all of them are asked at the same time.
const PATIENCE: Duration = Duration::from_secs(2);

/// Show all your projects: their agents, which wait for you, and why
///
/// Projects are shown if they have a server. To answer a question or jump to a project, use the same view on a
/// terminal: `patterm`, then ctrl+b L.
#[derive(Debug, Args)]
pub(crate) struct OverviewVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A project, for JSON.
#[derive(Debug, Serialize)]
struct Project {
    #[serde(flatten)]
    server: ServerEntry,
    /// `running` or `hung`.
    state: &'static str,
    /// What to do about a server that hangs.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// How many of its processes are running; `None` if the server does not answer.
    running: Option<usize>,
    /// Its agents, and the other processes that ended or need a person.
    processes: Vec<Listed>,
}

/// A process, for JSON.
#[derive(Debug, Serialize)]
struct Listed {
    process_id: String,
    name: String,
    kind: String,
    status: String,
    /// How deep it is in the tree.
    depth: usize,
    /// Its activity, or how it ended.
    state: String,
    /// Why.
    reason: String,
    /// It waits for a person.
    needs_you: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialog: Option<DialogInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
}

impl OverviewVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let entries = registry::entries(&RuntimeDir::candidates(None));
        // One thread each, so that none waits for another.
        let projects: Vec<Project> = std::thread::scope(|scope| {
            let asked: Vec<_> =
                entries.into_iter().map(|entry| scope.spawn(|| describe(entry))).collect();
            asked.into_iter().filter_map(|asked| asked.join().ok().flatten()).collect()
        });
        if self.json {
            return print_json(&projects);
        }
        if projects.is_empty() {
            print("no project has a server; `patterm` starts one");
            return Ok(());
        }
        let here = start::project_here().ok();
        print(&text(&projects, here.as_ref().map(patterm_host::Project::key)));
        Ok(())
    }
}

/// A project; `None` if its server has ended.
fn describe(server: ServerEntry) -> Option<Project> {
    let snapshot = match runtime::connect_within(&server.socket, PATIENCE) {
        Ok(None) => return None,
        Ok(Some(stream)) => snapshot(stream),
        Err(error) => Err(error.into()),
    };
    Some(match snapshot {
        Ok(snapshot) => {
            let running = snapshot.processes.iter().filter(|p| p.status.is_alive()).count();
            let processes = listed(&snapshot.processes).into_iter().map(Listed::of).collect();
            Project { server, state: "running", advice: None, running: Some(running), processes }
        }
        Err(_) => {
            let advice = Some(hung::advice_for(server.pid));
            Project { server, state: "hung", advice, running: None, processes: Vec::new() }
        }
    })
}

/// The state of a project, as its followers get it.
fn snapshot(mut stream: UnixStream) -> anyhow::Result<ProjectSnapshot> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = FollowRequest { version: follow::VERSION, answers: false, observes: true };
    let params = serde_json::to_string(&request)?;
    let mut line = Vec::new();
    let request = reply::request(&Id::from_number(1), Follow::NAME, Some(&params));
    Framing::Newline.encode(&request, &mut line);
    stream.write_all(&line)?;
    let mut answer = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut answer)?;
    match Incoming::parse(answer.trim_ascii_end()) {
        Ok(Incoming::One(Message::Response { outcome: Ok(snapshot), .. })) => {
            Ok(serde_json::from_str(snapshot.get())?)
        }
        _ => anyhow::bail!("the server does not report its project"),
    }
}

impl Listed {
    fn of((depth, process): (usize, &ProcessInfo)) -> Self {
        Self {
            process_id: process.id.clone(),
            name: process.name.clone(),
            kind: process.kind.name().to_owned(),
            status: process.status.name().to_owned(),
            depth,
            state: process.state_word(),
            reason: process.why().to_owned(),
            needs_you: process.needs_person(),
            attention: process.attention.clone(),
            dialog: process.dialog.clone(),
            exit_code: process.code,
            signal: process.signal,
        }
    }
}

/// The projects as people see them; `here` is the key of the current folder's project.
fn text(projects: &[Project], here: Option<&str>) -> String {
    let mut lines = Vec::new();
    for project in projects {
        let path = printable_path(&project.server.project);
        let mark = if here == Some(&project.server.key) { " (here)" } else { "" };
        lines.push(match (&project.advice, project.running) {
            (Some(advice), _) => format!("{path}{mark}  does not answer: {advice}"),
            (None, running) => format!("{path}{mark}  {} running", running.unwrap_or(0)),
        });
        let label = |p: &Listed| {
            format!("{}{} {}", "  ".repeat(p.depth), one_line(&p.process_id), one_line(&p.name))
        };
        let width = project.processes.iter().map(|p| label(p).chars().count()).max().unwrap_or(0);
        for process in &project.processes {
            let mark = if process.needs_you { '!' } else { ' ' };
            let reason = one_line(&process.reason);
            let row = format!(
                "{mark} {:<width$}  {:<9} {reason}",
                label(process),
                one_line(&process.state)
            );
            lines.push(row.trim_end().to_owned());
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_with_their_agents() {
        let server = |key: &str| ServerEntry {
            pid: 7,
            socket: "/run/x.sock".into(),
            project: format!("/home/ada/{key}").into(),
            key: key.to_owned(),
            patterm: "0.0.1".to_owned(),
            started_at: 0,
            http: None,
        };
        let listed = |id: &str, depth, state: &str, reason: &str| Listed {
            process_id: id.to_owned(),
            name: format!("agent-{id}"),
            kind: "agent".to_owned(),
            status: "running".to_owned(),
            depth,
            state: state.to_owned(),
            reason: reason.to_owned(),
            needs_you: state == "blocked",
            attention: None,
            dialog: None,
            exit_code: None,
            signal: None,
        };
        let projects = [
            Project {
                server: server("one"),
                state: "running",
                advice: None,
                running: Some(2),
                processes: vec![
                    listed("p1", 0, "working", "it took a turn"),
                    listed("p12", 1, "blocked", "Push? (1. Yes | 2. No)"),
                    listed("p3", 0, "exit 1", ""),
                ],
            },
            Project {
                server: server("two"),
                state: "hung",
                advice: Some("it is suspended (pid 7)".to_owned()),
                running: None,
                processes: Vec::new(),
            },
        ];
        assert_eq!(
            text(&projects, Some("one")),
            "/home/ada/one (here)  2 running\n\
             \x20 p1 agent-p1      working   it took a turn\n\
             !   p12 agent-p12  blocked   Push? (1. Yes | 2. No)\n\
             \x20 p3 agent-p3      exit 1\n\
             /home/ada/two  does not answer: it is suspended (pid 7)"
        );
    }
}
