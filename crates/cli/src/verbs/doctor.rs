//! `patterm doctor`: checks the setup and advises what to do.

use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;
use patterm_host::runtime::RuntimeDir;
use patterm_host::{Project, VERSION};
use patterm_store::reserve::RESERVE_BYTES;
use patterm_store::state::StateDir;
use patterm_wire::follow::ProjectFileState;
use patterm_wire::method::Empty;
use patterm_wire::servers::{ServerInfo, Servers, ServersRequest};
use patterm_wire::tools::{
    AgentList, GetProjectStatus, ListAgents, ProcessSummary, ProjectFileStatus,
};
use serde_json::{Value, json};

use crate::client::Client;
use crate::print::{error_chain, one_line, print, print_json, print_red, printable_path};
use crate::start;

/// Less space than this fills up within a day of work.
const LITTLE_SPACE: u64 = 512 << 20;

/// The smallest terminal that shows everything.
const LEAST_SIZE: (u16, u16) = (24, 80);

/// Fewer open files than this are soon used up: each pane needs some in the server and in the keeper.
const FEW_FILES: u64 = 1_024;

/// The oldest Node that agents' CLIs from npm support.
const LEAST_NODE: u32 = 20;

/// Damaged files that are listed: more than a single fault leaves behind.
const MOST_DAMAGED: usize = 10;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// Everything is fine.
    Good,
    /// It works with restrictions.
    Fair,
    /// It does not work.
    Broken,
}

impl Health {
    fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Broken => "broken",
        }
    }
}

/// What a check found.
#[derive(Debug)]
struct Finding {
    check: &'static str,
    health: Health,
    text: String,
    /// What to do about it.
    advice: Option<String>,
}

fn good(check: &'static str, text: impl Into<String>) -> Finding {
    Finding { check, health: Health::Good, text: text.into(), advice: None }
}

fn fair(check: &'static str, text: impl Into<String>, advice: &str) -> Finding {
    Finding { check, health: Health::Fair, text: text.into(), advice: Some(advice.into()) }
}

fn broken(check: &'static str, text: impl Into<String>, advice: &str) -> Finding {
    Finding { check, health: Health::Broken, text: text.into(), advice: Some(advice.into()) }
}

/// Check the setup and advise what to do
#[derive(Debug, Args)]
pub(crate) struct DoctorVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DoctorVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run(self.json)
    }
}

fn run(as_json: bool) -> anyhow::Result<()> {
    let findings = examine()?;
    if as_json {
        let all = findings.iter().map(|finding| {
            let mut value = json!({"check": finding.check, "health": finding.health.name(),
                "says": finding.text});
            if let Some(advice) = &finding.advice {
                value["advice"] = json!(advice);
            }
            value
        });
        print_json(&Value::from_iter(all))?;
    } else {
        for finding in &findings {
            let (line, advice) = lines(finding);
            match finding.health {
                Health::Broken => print_red(&line),
                _ => print(&line),
            }
            if let Some(advice) = advice {
                print(&advice);
            }
        }
    }
    let failed = findings.iter().filter(|finding| finding.health == Health::Broken).count();
    anyhow::ensure!(failed == 0, "{failed} of {} checks failed", findings.len());
    Ok(())
}

/// A finding as it is printed: its line, and the advice below it.
fn lines(finding: &Finding) -> (String, Option<String>) {
    let Finding { check, health, text, advice } = finding;
    let text = text.replace('\n', "\n                       ");
    let advice = advice.as_ref().map(|advice| format!("                       → {advice}"));
    (format!("{:<7} {check:<14} {text}", health.name()), advice)
}

fn examine() -> anyhow::Result<Vec<Finding>> {
    let project = start::project_here()?;
    let mut findings = vec![good("patterm", VERSION), runtime_folder(), state_folder(&project)];
    let mut server = None;
    match start::find_or_start(&project) {
        Err(error) => {
            let log = StateDir::from_env(project.key()).map(|state| state.file("server.log"));
            let log = match log {
                Ok(log) => format!("its log is {}", log.display()),
                Err(error) => format!("it has no log: {error}"),
            };
            let advice = format!("fix what is broken above, if anything; {log}");
            findings.push(broken("server", error_chain(&error), &advice));
        }
        Ok((entry, started)) => {
            let how = if started { "just started" } else { "running" };
            findings.push(good("server", format!("{how}, pid {}", entry.pid)));
            server = Some(entry.pid);
            findings.push(match entry.patterm == VERSION {
                true => good("version", "the server has the same version"),
                false => fair(
                    "version",
                    format!("the server has {}", one_line(&entry.patterm)),
                    "`patterm upgrade` replaces it; everything keeps running",
                ),
            });
            match Client::connect() {
                Ok(mut client) => findings.extend(ask_server(&mut client)),
                Err(error) => findings.push(broken(
                    "connection",
                    error_chain(&error),
                    "`patterm kill` ends the server; the next command starts another",
                )),
            }
        }
    }
    // After the server has started, which may have found some.
    findings.extend(damaged_state(&project));
    findings.push(open_files(server));
    findings.extend(node());
    findings.push(terminal());
    findings.push(locale());
    Ok(findings)
}

/// Checks that need the server.
fn ask_server(client: &mut Client) -> Vec<Finding> {
    let mut findings = Vec::new();
    match client.query::<ListAgents>(&Empty {}) {
        Ok(reply) => findings.extend(agents(&reply.result)),
        Err(error) => findings.push(broken(
            "agents",
            error_chain(&error),
            "`patterm upgrade` replaces the server",
        )),
    }
    match client.query::<GetProjectStatus>(&Empty {}) {
        Ok(reply) => {
            let status = reply.result;
            findings.push(project_file(&status.project_file));
            findings.extend(status.disk_problem.map(|problem| {
                let advice = "free some space; what could not be recorded is tried again";
                broken("output", problem, advice)
            }));
            findings.extend(lost_output(&status.processes));
        }
        Err(error) => findings.push(broken(
            "project file",
            error_chain(&error),
            "`patterm upgrade` replaces the server",
        )),
    }
    if let Ok(reply) = client.query::<Servers>(&ServersRequest::default()) {
        findings.extend(shared_servers(&reply.result.servers));
    }
    findings
}

/// Processes whose output cannot be stored.
fn lost_output(processes: &[ProcessSummary]) -> Option<Finding> {
    let problem = |process: &ProcessSummary| {
        let problem = process.output_problem.as_ref()?;
        Some(format!("{}: {problem}", one_line(&process.process_id)))
    };
    let lost: Vec<_> = processes.iter().filter_map(problem).collect();
    (!lost.is_empty())
        .then(|| broken("logs", lost.join("\n"), "the server retries automatically, once a second"))
}

/// Shared MCP servers, if there are any.
fn shared_servers(servers: &[ServerInfo]) -> Option<Finding> {
    // Servers in bots' containers are not in `[servers]`.
    let is_declared = |server: &&ServerInfo| !server.name.starts_with("bots/");
    let servers: Vec<_> = servers.iter().filter(is_declared).collect();
    let failure = |server: &&ServerInfo| {
        let error = server.last_error.as_deref().unwrap_or_default();
        format!("{}: {}", one_line(&server.name), one_line(error))
    };
    let failed = servers.iter().filter(|server| server.state == "failed");
    let failed: Vec<_> = failed.map(failure).collect();
    let names: Vec<_> = servers.iter().map(|server| one_line(&server.name)).collect();
    match (names.is_empty(), failed.is_empty()) {
        (true, _) => None,
        (_, true) => Some(good("shared servers", names.join(", "))),
        _ => Some(fair(
            "shared servers",
            failed.join("\n"),
            "fix `[servers]`; `patterm servers` shows their status",
        )),
    }
}

fn agents(list: &AgentList) -> Vec<Finding> {
    let found = list.agents.iter().filter(|agent| agent.found);
    let found: Vec<_> = found.map(|agent| one_line(&agent.agent)).collect();
    let mut findings = vec![match found.is_empty() {
        false => good("agents", found.join(", ")),
        true => fair(
            "agents",
            "no agent CLI was found",
            "install Claude Code, Codex, opencode or Gemini CLI, or configure another in config.toml; \
             `patterm agents` says why each was not found",
        ),
    }];
    if let Some(fault) = &list.fault {
        findings.push(broken(
            "settings",
            fault.trim_end().lines().map(one_line).collect::<Vec<_>>().join("\n"),
            "fix this file; it is your own, not the project's",
        ));
    }
    findings
}

fn project_file(file: &ProjectFileStatus) -> Finding {
    const CHECK: &str = "project file";
    let path = one_line(&file.path);
    match file.state {
        ProjectFileState::Trusted => good(CHECK, format!("{path} is trusted")),
        ProjectFileState::Untrusted => fair(
            CHECK,
            format!("{path} is not trusted and does not take effect"),
            "`patterm trust` shows what it would run",
        ),
        ProjectFileState::Faulty => {
            let faults: Vec<_> = file.faults.iter().map(|fault| one_line(fault)).collect();
            broken(CHECK, faults.join("\n"), "fix it; `patterm schema` prints what it may contain")
        }
        ProjectFileState::Absent => good(CHECK, "none; `patterm init` writes one"),
    }
}

/// How many files the server may open; it raises its own limit to the hard limit.
fn open_files(server: Option<u32>) -> Finding {
    const CHECK: &str = "open files";
    let whose = server.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let limits = std::fs::read_to_string(format!("/proc/{whose}/limits")).unwrap_or_default();
    match most_files(&limits) {
        Some(most) if most < FEW_FILES => fair(
            CHECK,
            format!("at most {most}"),
            "raise it with `ulimit -Hn 4096` before the server starts (`patterm kill` ends this one), or \
             with nofile in /etc/security/limits.conf",
        ),
        Some(most) => good(CHECK, format!("at most {most}")),
        None => good(CHECK, "unknown"),
    }
}

/// The hard limit in a process's `/proc/PID/limits`.
fn most_files(limits: &str) -> Option<u64> {
    let row = limits.lines().find(|row| row.starts_with("Max open files"))?;
    row.split_whitespace().nth(4)?.parse().ok()
}

/// Node, which most agents' CLIs need, if it is installed.
#[expect(clippy::disallowed_methods, reason = "asks a program of the user's for its version")]
fn node() -> Option<Finding> {
    let output = Command::new("node").arg("--version").stdin(Stdio::null()).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Some(node_finding(&version))
}

fn node_finding(version: &str) -> Finding {
    let major: Option<u32> =
        version.trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok());
    match major {
        Some(major) if major < LEAST_NODE => fair(
            "node",
            version,
            &format!("agents' CLIs from npm need {LEAST_NODE} or newer; get it from nodejs.org"),
        ),
        Some(_) => good("node", version),
        None => fair(
            "node",
            "`node --version` prints no version",
            "agents' CLIs from npm may not start; check which `node` is on your PATH",
        ),
    }
}

fn runtime_folder() -> Finding {
    let folder = RuntimeDir::from_env();
    // With the longest process id: the socket's path must fit into an address.
    match folder.ensure().and_then(|()| folder.socket(u32::MAX)) {
        Ok(_) => good("runtime folder", folder.folder().display().to_string()),
        Err(error) => broken(
            "runtime folder",
            error.to_string(),
            "it must belong to you and be inaccessible to others: chmod 700",
        ),
    }
}

fn state_folder(project: &Project) -> Finding {
    const CHECK: &str = "state folder";
    let state =
        match StateDir::from_env(project.key()).and_then(|state| state.ensure().map(|()| state)) {
            Ok(state) => state,
            Err(error) => {
                return broken(
                    CHECK,
                    error.to_string(),
                    "XDG_STATE_HOME must be a folder that you can write to",
                );
            }
        };
    let probe = state.file("doctor");
    let written = std::fs::write(&probe, "");
    let _ = std::fs::remove_file(&probe);
    let folder = probe.parent().unwrap_or(&probe).to_owned();
    if let Err(error) = written {
        return broken(
            CHECK,
            format!("{}: {error}", folder.display()),
            "make it writable, or free some space",
        );
    }
    match free_space(&folder) {
        Some(bytes) if bytes < RESERVE_BYTES => {
            let text = format!("the disk of {} is full", folder.display());
            broken(CHECK, text, "programs' output and all state are stored there; free some space")
        }
        Some(bytes) if bytes < LITTLE_SPACE => {
            let text = format!("{} has {} MiB left", folder.display(), bytes >> 20);
            fair(CHECK, text, "programs' output is stored there; free some space")
        }
        _ => good(CHECK, folder.display().to_string()),
    }
}

/// State files that a server found damaged and no longer uses.
fn damaged_state(project: &Project) -> Option<Finding> {
    let damaged = StateDir::from_env(project.key()).ok()?.damaged();
    let mut names: Vec<_> =
        damaged.iter().take(MOST_DAMAGED).map(|path| printable_path(path)).collect();
    if damaged.len() > MOST_DAMAGED {
        names.push(format!("and {} more", damaged.len() - MOST_DAMAGED));
    }
    (!names.is_empty()).then(|| {
        let text = format!("damaged, set aside and no longer used: {}", names.join("\n"));
        fair("state files", text, "recover what you need from them, then remove them")
    })
}

fn free_space(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}

fn terminal() -> Finding {
    const CHECK: &str = "terminal";
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return good(CHECK, "unknown: standard output is not a terminal");
    }
    let kind = std::env::var("TERM").unwrap_or_default();
    let colours = match std::env::var("COLORTERM").as_deref() {
        Ok("truecolor" | "24bit") => "true colour",
        _ if kind.contains("256color") => "256 colours",
        _ => "16 colours",
    };
    if kind.is_empty() || kind == "dumb" {
        return fair(
            CHECK,
            format!("TERM is {kind:?}"),
            "set TERM to your terminal's type, for example xterm-256color",
        );
    }
    let (rows, columns) =
        rustix::termios::tcgetwinsize(&stdout).map_or((0, 0), |size| (size.ws_row, size.ws_col));
    let text = format!("{kind}, {colours}, {rows} rows, {columns} columns");
    match rows < LEAST_SIZE.0 || columns < LEAST_SIZE.1 {
        true => fair(CHECK, text, "24 rows and 80 columns show everything"),
        false => good(CHECK, text),
    }
}

fn locale() -> Finding {
    let set = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let text = locale.clone().unwrap_or_else(|| "not set".into());
    let utf8 = locale.is_some_and(|l| l.to_lowercase().replace('-', "").contains("utf8"));
    match utf8 {
        true => good("locale", text),
        false => fair("locale", text, "full-screen programs need UTF-8, for example LANG=C.UTF-8"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report() {
        assert_eq!(lines(&good("patterm", "1.0")).0, "good    patterm        1.0");
        let (line, advice) = lines(&broken("project file", "a\nb", "fix it"));
        assert_eq!(line, "broken  project file   a\n                       b");
        assert_eq!(advice.unwrap(), "                       → fix it");
    }

    #[test]
    fn old_node_and_few_files() {
        assert_eq!(node_finding("v22.1.0").health, Health::Good);
        assert_eq!(node_finding("v16.20.2").health, Health::Fair);
        assert_eq!(node_finding("segmentation fault").health, Health::Fair);
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
            Max open files            20                   4096                 files\n";
        assert_eq!(most_files(limits), Some(4096));
        assert_eq!(most_files("Max open files  unlimited  unlimited  files"), None);
    }

    #[test]
    fn the_state_of_the_project_file() {
        use ProjectFileState::{Absent, Faulty, Trusted, Untrusted};
        let health = |state| {
            project_file(&ProjectFileStatus { state, ..ProjectFileStatus::default() }).health
        };
        assert_eq!(
            [Absent, Trusted, Untrusted, Faulty].map(health),
            [Health::Good, Health::Good, Health::Fair, Health::Broken]
        );
    }
}
