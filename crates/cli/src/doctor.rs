//! `patterm doctor`: checks the set-up and says what to do.

use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, Stdio};

use patterm_host::runtime::RuntimeDir;
use patterm_host::{Project, VERSION};
use patterm_store::reserve::RESERVE_BYTES;
use patterm_store::state::StateDir;
use patterm_wire::servers;
use serde_json::{Value, json};

use crate::args::Doctor;
use crate::client::Client;
use crate::said::{one_line, say, say_json, say_red, shown, shown_path, why};
use crate::start;

/// Less room than this fills up within a day of work.
const LITTLE_ROOM: u64 = 512 << 20;

/// The smallest terminal that shows what there is.
const LEAST_SIZE: (u16, u16) = (24, 80);

/// Fewer open files than this are soon used up: each pane takes some in the server and in the keeper.
const FEW_FILES: u64 = 1_024;

/// What the CLIs of agents that npm installs want at the least.
const LEAST_NODE: u32 = 20;

/// Damaged files that are named: more than one fault leaves.
const MOST_DAMAGED: usize = 10;

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// As it should be.
    Good,
    /// It works, but not all of it.
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

/// One thing that was looked at.
#[derive(Debug)]
struct Finding {
    what: &'static str,
    health: Health,
    says: String,
    /// What to do about it.
    advice: Option<String>,
}

fn good(what: &'static str, says: impl Into<String>) -> Finding {
    Finding { what, health: Health::Good, says: says.into(), advice: None }
}

fn fair(what: &'static str, says: impl Into<String>, advice: &str) -> Finding {
    Finding { what, health: Health::Fair, says: says.into(), advice: Some(advice.into()) }
}

fn broken(what: &'static str, says: impl Into<String>, advice: &str) -> Finding {
    Finding { what, health: Health::Broken, says: says.into(), advice: Some(advice.into()) }
}

pub(crate) fn run(options: &Doctor) -> anyhow::Result<()> {
    let findings = examine()?;
    if options.json {
        let all = findings.iter().map(|finding| {
            let mut value = json!({"check": finding.what, "health": finding.health.name(),
                "says": finding.says});
            if let Some(advice) = &finding.advice {
                value["advice"] = json!(advice);
            }
            value
        });
        say_json(&Value::from_iter(all))?;
    } else {
        for finding in &findings {
            let (line, advice) = lines(finding);
            match finding.health {
                Health::Broken => say_red(&line),
                _ => say(&line),
            }
            if let Some(advice) = advice {
                say(&advice);
            }
        }
    }
    let ill = findings.iter().filter(|finding| finding.health == Health::Broken).count();
    anyhow::ensure!(ill == 0, "{ill} of {} checks found something broken", findings.len());
    Ok(())
}

/// What is printed of a finding: its line, and the advice below it.
fn lines(finding: &Finding) -> (String, Option<String>) {
    let Finding { what, health, says, advice } = finding;
    let says = says.replace('\n', "\n                       ");
    let advice = advice.as_ref().map(|advice| format!("                       → {advice}"));
    (format!("{:<7} {what:<14} {says}", health.name()), advice)
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
                Err(error) => format!("it has no log, since {error}"),
            };
            let advice = format!("mend what is broken above, if anything is; {log}");
            findings.push(broken("server", why(&error), &advice));
        }
        Ok((entry, started)) => {
            let how = if started { "started just now" } else { "running" };
            findings.push(good("server", format!("{how}, pid {}", entry.pid)));
            server = Some(entry.pid);
            findings.push(match entry.patterm == VERSION {
                true => good("version", "the server's is the same"),
                false => fair(
                    "version",
                    format!("the server's is {}", one_line(&entry.patterm)),
                    "`patterm upgrade` replaces it; what runs goes on",
                ),
            });
            match Client::connect() {
                Ok(mut client) => findings.extend(ask(&mut client)),
                Err(error) => findings.push(broken(
                    "connection",
                    why(&error),
                    "`patterm kill` ends the server; the next verb starts another",
                )),
            }
        }
    }
    // After the start of a server, which may have found one.
    findings.extend(damaged_state(&project));
    findings.push(open_files(server));
    findings.extend(node());
    findings.push(terminal());
    findings.push(locale());
    Ok(findings)
}

/// What only the server knows.
fn ask(client: &mut Client) -> Vec<Finding> {
    let mut findings = Vec::new();
    match client.look("list_agents", &json!({})) {
        Ok(answer) => findings.extend(agents(&answer)),
        Err(error) => {
            findings.push(broken("agents", why(&error), "`patterm upgrade` replaces the server"))
        }
    }
    match client.look("get_project_status", &json!({})) {
        Ok(answer) => {
            findings.push(project_file(&answer["project_file"]));
            findings.extend(answer["disk_problem"].as_str().map(|problem| {
                let advice = "remove what you can do without; what was not recorded is tried again";
                broken("output", problem, advice)
            }));
            findings.extend(lost_output(&answer["processes"]));
        }
        Err(error) => findings.push(broken(
            "project file",
            why(&error),
            "`patterm upgrade` replaces the server",
        )),
    }
    if let Ok(answer) = client.look(servers::METHOD, &json!({})) {
        findings.extend(shared_servers(&answer["servers"]));
    }
    findings
}

/// Processes whose output cannot be kept.
fn lost_output(processes: &Value) -> Option<Finding> {
    let processes = processes.as_array().into_iter().flatten();
    let lost: Vec<_> = processes
        .filter_map(|process| {
            Some((shown(&process["process_id"]), process["output_problem"].as_str()?))
        })
        .map(|(id, problem)| format!("{id}: {problem}"))
        .collect();
    (!lost.is_empty()).then(|| {
        broken("logs", lost.join("\n"), "the server tries it again by itself, once a second")
    })
}

/// Shared MCP servers, where there are any.
fn shared_servers(servers: &Value) -> Option<Finding> {
    // Those of bots' containers are not in `[servers]`.
    let is_named = |server: &&Value| !shown(&server["name"]).starts_with("bots/");
    let servers: Vec<_> = servers.as_array().into_iter().flatten().filter(is_named).collect();
    let failed: Vec<_> = servers
        .iter()
        .filter(|server| server["state"] == "failed")
        .map(|server| format!("{}: {}", shown(&server["name"]), shown(&server["last_error"])))
        .collect();
    let names: Vec<_> = servers.iter().map(|server| shown(&server["name"])).collect();
    match (names.is_empty(), failed.is_empty()) {
        (true, _) => None,
        (_, true) => Some(good("shared servers", names.join(", "))),
        _ => Some(fair(
            "shared servers",
            failed.join("\n"),
            "mend `[servers]`; `patterm servers` says how each stands",
        )),
    }
}

fn agents(answer: &Value) -> Vec<Finding> {
    let all: Vec<_> = answer["agents"].as_array().into_iter().flatten().collect();
    let found: Vec<_> = all
        .iter()
        .filter(|agent| agent["found"] == true)
        .map(|agent| shown(&agent["agent"]))
        .collect();
    let mut findings = vec![match found.is_empty() {
        false => good("agents", found.join(", ")),
        true => fair(
            "agents",
            "no agent's CLI is found",
            "install Claude Code, Codex, opencode or Gemini CLI, or name another in config.toml; \
             `patterm agents` says where was looked",
        ),
    }];
    if let Some(fault) = answer["fault"].as_str() {
        findings.push(broken(
            "settings",
            fault.trim_end().lines().map(one_line).collect::<Vec<_>>().join("\n"),
            "mend the file; it is yours, not the project's",
        ));
    }
    findings
}

fn project_file(standing: &Value) -> Finding {
    let path = shown(&standing["path"]);
    match standing["state"].as_str() {
        Some("trusted") => good("project file", format!("{path} is trusted")),
        Some("untrusted") => fair(
            "project file",
            format!("{path} is not trusted, so nothing of it takes effect"),
            "`patterm trust` shows what it would run",
        ),
        Some("faulty") => {
            let faults: Vec<_> =
                standing["faults"].as_array().into_iter().flatten().map(shown).collect();
            broken(
                "project file",
                faults.join("\n"),
                "mend it; `patterm schema` says what it may hold",
            )
        }
        _ => good("project file", "none; `patterm init` writes one"),
    }
}

/// How many files the server may open at the most; it raises its own limit that far.
fn open_files(server: Option<u32>) -> Finding {
    const WHAT: &str = "open files";
    let whose = server.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let limits = std::fs::read_to_string(format!("/proc/{whose}/limits")).unwrap_or_default();
    match most_files(&limits) {
        Some(most) if most < FEW_FILES => fair(
            WHAT,
            format!("{most} at the most"),
            "`ulimit -Hn 4096` before the server starts (`patterm kill` ends this one), or nofile in \
             /etc/security/limits.conf",
        ),
        Some(most) => good(WHAT, format!("{most} at the most")),
        None => good(WHAT, "no limit is known"),
    }
}

/// The hard limit in what the kernel says of a process.
fn most_files(limits: &str) -> Option<u64> {
    let row = limits.lines().find(|row| row.starts_with("Max open files"))?;
    row.split_whitespace().nth(4)?.parse().ok()
}

/// Node, which most agents' CLIs are written for, where there is one.
#[expect(clippy::disallowed_methods, reason = "asks a program of the person's own for its version")]
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
            &format!(
                "agents' CLIs that npm installs want {LEAST_NODE} or newer: nodejs.org has it"
            ),
        ),
        Some(_) => good("node", version),
        None => fair(
            "node",
            "`node --version` names no version",
            "agents' CLIs that npm installs may not start: see what `node` on your PATH is",
        ),
    }
}

fn runtime_folder() -> Finding {
    let folder = RuntimeDir::from_env();
    // The longest process id: its socket's path must fit into an address.
    match folder.ensure().and_then(|()| folder.socket(u32::MAX)) {
        Ok(_) => good("runtime folder", folder.folder().display().to_string()),
        Err(error) => broken(
            "runtime folder",
            error.to_string(),
            "it must be yours and closed to others: chmod 700",
        ),
    }
}

fn state_folder(project: &Project) -> Finding {
    const WHAT: &str = "state folder";
    let state =
        match StateDir::from_env(project.key()).and_then(|state| state.ensure().map(|()| state)) {
            Ok(state) => state,
            Err(error) => {
                return broken(
                    WHAT,
                    error.to_string(),
                    "XDG_STATE_HOME must name a folder that is yours to write",
                );
            }
        };
    let probe = state.file("doctor");
    let written = std::fs::write(&probe, "");
    let _ = std::fs::remove_file(&probe);
    let folder = probe.parent().unwrap_or(&probe).to_owned();
    if let Err(error) = written {
        return broken(
            WHAT,
            format!("{}: {error}", folder.display()),
            "make it writable, or free some room",
        );
    }
    match room(&folder) {
        Some(bytes) if bytes < RESERVE_BYTES => {
            let says = format!("the disk of {} is full", folder.display());
            broken(WHAT, says, "programs' output and all state are kept there; free some room")
        }
        Some(bytes) if bytes < LITTLE_ROOM => {
            let says = format!("{} has {} MiB left", folder.display(), bytes >> 20);
            fair(WHAT, says, "programs' output is kept there; free some room")
        }
        _ => good(WHAT, folder.display().to_string()),
    }
}

/// State files that a server found damaged: what they held is not known to it any more.
fn damaged_state(project: &Project) -> Option<Finding> {
    let damaged = StateDir::from_env(project.key()).ok()?.damaged();
    let mut names: Vec<_> =
        damaged.iter().take(MOST_DAMAGED).map(|path| shown_path(path)).collect();
    if damaged.len() > MOST_DAMAGED {
        names.push(format!("and {} more", damaged.len() - MOST_DAMAGED));
    }
    (!names.is_empty()).then(|| {
        let says = format!("damaged, set aside, and not in effect any more: {}", names.join("\n"));
        fair("state files", says, "take from them what you need, and remove them")
    })
}

fn room(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}

fn terminal() -> Finding {
    const WHAT: &str = "terminal";
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return good(WHAT, "standard output is not one, so nothing is known of it");
    }
    let kind = std::env::var("TERM").unwrap_or_default();
    let colours = match std::env::var("COLORTERM").as_deref() {
        Ok("truecolor" | "24bit") => "true colour",
        _ if kind.contains("256color") => "256 colours",
        _ => "16 colours",
    };
    if kind.is_empty() || kind == "dumb" {
        return fair(
            WHAT,
            format!("TERM is {kind:?}"),
            "set TERM to what your terminal is, for example xterm-256color",
        );
    }
    let (rows, columns) =
        rustix::termios::tcgetwinsize(&stdout).map_or((0, 0), |size| (size.ws_row, size.ws_col));
    let says = format!("{kind}, {colours}, {rows} rows, {columns} columns");
    match rows < LEAST_SIZE.0 || columns < LEAST_SIZE.1 {
        true => fair(WHAT, says, "24 rows and 80 columns show everything"),
        false => good(WHAT, says),
    }
}

fn locale() -> Finding {
    let set = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let says = locale.clone().unwrap_or_else(|| "none is set".into());
    let utf8 = locale.is_some_and(|l| l.to_lowercase().replace('-', "").contains("utf8"));
    match utf8 {
        true => good("locale", says),
        false => fair("locale", says, "programs that draw need UTF-8: LANG=C.UTF-8, for example"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report() {
        assert_eq!(lines(&good("patterm", "1.0")).0, "good    patterm        1.0");
        let (line, advice) = lines(&broken("project file", "a\nb", "mend it"));
        assert_eq!(line, "broken  project file   a\n                       b");
        assert_eq!(advice.unwrap(), "                       → mend it");
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
    fn how_the_project_file_stands() {
        let health = |state: &str| project_file(&json!({"state": state, "path": "p"})).health;
        assert_eq!(
            ["absent", "trusted", "untrusted", "faulty"].map(health),
            [Health::Good, Health::Good, Health::Fair, Health::Broken]
        );
    }
}
