//! `patterm doctor`: checks the setup and suggests fixes.

mod clis;
mod folders;
mod leader;
mod terminal;

use std::process::{Command, Stdio};

use clap::Args;
use patterm_host::{Project, VERSION};
use patterm_project::project_file::SettingsProblems;
use patterm_store::state::StateDir;
use patterm_wire::follow::ProjectFileState;
use patterm_wire::method::Empty;
use patterm_wire::requests::ServerEntry;
use patterm_wire::servers::{ServerInfo, Servers, ServersRequest};
use patterm_wire::tools::{GetProjectStatus, ListAgents, ProcessSummary, ProjectFileStatus};
use serde_json::{Value, json};

use super::{environment, user_settings};
use crate::client::Client;
use crate::print::{error_chain, one_line, print, print_json, print_red, printable_path};
use crate::{hung, start};

/// Fewer open files than this are soon used up: each pane needs some in the server and in the keeper.
const FEW_FILES: u64 = 1_024;

/// The oldest Node that agents' CLIs from npm support.
const LEAST_NODE: u32 = 20;

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

/// Check the setup and suggest fixes
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
    let mut findings = vec![good("patterm", VERSION), folders::runtime(), folders::state(&project)];
    let is_usable = findings.iter().all(|finding| finding.health != Health::Broken);
    let problems = user_settings::problems();
    findings.extend(settings(&problems));
    let advice = format!("fix any problems listed above; {}", log_hint(&project));
    let server = start::find_running(&project);
    let pid = server.as_ref().ok().and_then(|entry| Some(entry.as_ref()?.pid));
    let mut answers = true;
    match server {
        Ok(None) if !is_usable => {
            let text = "none is running, and none can be started";
            findings.push(broken("server", text, &advice));
        }
        Ok(Some(entry)) if !hung::answers(&entry.socket) => {
            let text = format!("running, pid {}, but it does not answer", entry.pid);
            findings.push(broken("server", text, &hung::advice_for(entry.pid)));
            answers = false;
        }
        Ok(entry) => findings.extend(server_findings(entry.as_ref())),
        Err(error) => findings.push(broken("server", error_chain(&error), &advice)),
    }
    if answers && (pid.is_some() || is_usable) {
        match Client::connect_to_read() {
            Ok(mut client) => findings.extend(ask_server(&mut client, &problems)),
            Err(error) => findings.push(broken("connection", error_chain(&error), &advice)),
        }
    }
    findings.extend(folders::damaged_files(&project));
    findings.push(open_files(pid));
    findings.extend(node());
    findings.push(terminal::check());
    findings.extend(leader::check());
    findings.push(locale());
    Ok(findings)
}

/// Where the server's log is.
fn log_hint(project: &Project) -> String {
    match StateDir::from_env(project.key()).map(|state| state.file("server.log")) {
        Ok(log) => format!("the server's log is {}", printable_path(&log)),
        Err(error) => format!("it has no log: {error}"),
    }
}

/// The running server, and whether it is the installed one.
fn server_findings(entry: Option<&ServerEntry>) -> Vec<Finding> {
    let Some(entry) = entry else {
        return vec![good("server", "none is running; the next command that needs one starts it")];
    };
    let running = good("server", format!("running, pid {}", entry.pid));
    let program = std::fs::read_link(format!("/proc/{}/exe", entry.pid)).unwrap_or_default();
    vec![running, version(&entry.patterm, &program.to_string_lossy())]
}

/// Whether a server with this version and program is the installed one.
fn version(version: &str, program: &str) -> Finding {
    let advice = "`patterm upgrade` replaces it; everything keeps running";
    match version == VERSION {
        false => fair("version", format!("the server has {}", one_line(version)), advice),
        // As the kernel marks a program whose file is gone.
        true if program.ends_with(" (deleted)") => {
            let text = "the server's program was replaced since it started";
            fair("version", text, advice)
        }
        true => good("version", "the server has the same version"),
    }
}

/// Checks that need the server, or the project's state on disk.
fn ask_server(client: &mut Client, problems: &SettingsProblems) -> Vec<Finding> {
    let mut findings = Vec::new();
    // The CLIs are searched for in this shell's PATH, as `patterm agent` does.
    let agents = environment::pass_own(client).and_then(|()| client.query::<ListAgents>(&Empty {}));
    match agents {
        Ok(reply) => findings.extend(clis::check(&reply.result, problems.errors.is_empty())),
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

/// The user's own settings, if anything is wrong with them.
fn settings(problems: &SettingsProblems) -> Vec<Finding> {
    const CHECK: &str = "settings";
    let listed = |problems: &[String]| -> Option<String> {
        let lines: Vec<_> = problems.iter().map(|problem| one_line(problem)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    };
    let errors = listed(&problems.errors).map(|errors| {
        let advice = "fix this file, which is your own, not the project's; until then only the presets in it \
            take effect, and no environments are stored";
        broken(CHECK, errors, advice)
    });
    let ignored = listed(&problems.ignored)
        .map(|ignored| fair(CHECK, ignored, "remove this from the file, which is your own"));
    errors.into_iter().chain(ignored).collect()
}

fn project_file(file: &ProjectFileStatus) -> Finding {
    const CHECK: &str = "project file";
    let path = one_line(&file.path);
    match &file.state {
        ProjectFileState::Trusted => good(CHECK, format!("{path} is trusted")),
        ProjectFileState::Untrusted if file.changes.is_some() => fair(
            CHECK,
            format!("{path} has changed since you trusted it; the changes do not take effect"),
            "`patterm trust` shows the changes",
        ),
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
        ProjectFileState::Other(state) => fair(
            CHECK,
            format!("{path} is {}", one_line(state)),
            "the server is newer than this program; use the server's version",
        ),
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
    fn an_old_server_after_an_upgrade() {
        let health = |number: &str, program: &str| version(number, program).health;
        assert_eq!(health(VERSION, "/usr/bin/patterm"), Health::Good);
        assert_eq!(health("0.0.9", "/usr/bin/patterm"), Health::Fair);
        assert_eq!(health(VERSION, "/usr/bin/patterm (deleted)"), Health::Fair);
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
