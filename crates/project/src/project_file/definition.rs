//! A valid project file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::GlobBuilder;
use serde::Deserialize;
use toml::Table;

use super::bots::BotsDefinition;
use super::check::Checked;
use super::command::{RawCommand, argv};
use super::env_file;
use super::fault::{Fault, nearest};
use super::file_schema::FILE;
use super::groups;
use super::hooks::{self, HookDefinition, RawHook};
use super::http::{self, HttpDefinition, RawHttp};
use super::limits::{DELAY, LONGEST_DELAY, PROCESSES, RESTARTS, WATCH_PATTERNS};
use super::ready::{self, Healthy, RawHealthy, RawReady, Ready, ReadyWhen};
use super::servers::{self, ServerDefinition, invalid_variable};
use super::stop::{self, RawStop, Stop};
use patterm_panes::environment::IDENTITY;
use patterm_store::private;

/// Everything that a file declares.
#[derive(Debug, Clone, Default)]
pub struct ProjectFile {
    /// Its processes, by name.
    pub processes: BTreeMap<String, Definition>,
    /// Groups of processes, by name.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Its presets, as TOML.
    pub agents: BTreeMap<String, Table>,
    /// Shared MCP servers, by name.
    pub servers: BTreeMap<String, ServerDefinition>,
    /// The servers in bots' containers.
    pub bots: Option<BotsDefinition>,
    /// The HTTP endpoint.
    pub http: Option<HttpDefinition>,
    /// What happens when events happen.
    pub hooks: Vec<HookDefinition>,
    /// Limits, by name.
    pub limits: BTreeMap<String, u64>,
    /// Whether environments are kept for restarts.
    pub remember_environment: Option<bool>,
    /// The variables that an attachment updates for programs that are started later.
    pub update_environment: Option<Vec<String>>,
}

/// A process that the project declares.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its working directory, relative to the project.
    pub directory: Option<PathBuf>,
    /// Additional environment variables.
    pub environment: BTreeMap<String, String>,
    /// A file with more of them, relative to the project.
    pub env_file: Option<PathBuf>,
    /// Whether it starts together with the server.
    pub autostart: bool,
    /// Whether it is restarted when it exits.
    pub restart: Restart,
    /// Patterns of files; it restarts when one of them changes.
    pub watch: Vec<String>,
    /// Processes that must be ready before it starts.
    pub depends_on: Vec<String>,
    /// When it is ready; `None` means as soon as it runs.
    pub ready: Option<Ready>,
    /// How its health is checked once it is ready.
    pub healthy: Option<Healthy>,
    /// How it is stopped.
    pub stop: Stop,
}

/// Whether and how often a process is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// When to restart.
    pub policy: Policy,
    /// The maximum number of consecutive restarts.
    pub limit: u32,
    /// The delay before the first restart.
    pub delay: Duration,
    /// The longest delay.
    pub longest: Duration,
}

/// When to restart a process that nobody stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Never.
    #[default]
    Never,
    /// If it is unhealthy.
    OnUnhealthy,
    /// If its exit code is not 0, or it is unhealthy.
    OnFailure,
    /// If it exits or is unhealthy.
    Always,
}

/// The file as serde reads it, after validation against the schema.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct RawFile {
    processes: BTreeMap<String, RawProcess>,
    groups: BTreeMap<String, Vec<String>>,
    agents: BTreeMap<String, Table>,
    servers: BTreeMap<String, Table>,
    bots: Option<BotsDefinition>,
    http: Option<RawHttp>,
    hooks: Vec<RawHook>,
    limits: BTreeMap<String, u64>,
    remember_environment: Option<bool>,
    update_environment: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RawProcess {
    command: RawCommand,
    directory: Option<PathBuf>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    env_file: Option<PathBuf>,
    #[serde(default)]
    autostart: bool,
    restart: Option<RawRestart>,
    #[serde(default)]
    watch: Vec<String>,
    #[serde(default)]
    depends_on: Vec<String>,
    ready: Option<RawReady>,
    healthy: Option<RawHealthy>,
    stop: Option<RawStop>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawRestart {
    Plain(Policy),
    More {
        policy: Policy,
        limit: Option<u32>,
        delay_seconds: Option<f64>,
        longest_delay_seconds: Option<f64>,
    },
}

impl ProjectFile {
    /// Parses a file; fails with all its errors.
    pub fn parse(text: &str) -> Result<Self, Vec<Fault>> {
        let mut checked = Checked::new(text, &FILE).map_err(|fault| vec![fault])?;
        if !checked.faults.is_empty() {
            return Err(checked.faults);
        }
        let raw: RawFile = match std::mem::take(&mut checked.table).try_into() {
            Ok(raw) => raw,
            Err(error) => {
                checked.fault("", error.message().to_owned(), None);
                return Err(checked.faults);
            }
        };
        let names: Vec<String> = raw.processes.keys().cloned().collect();
        if names.len() > PROCESSES {
            let message =
                format!("the file has {} processes; at most {PROCESSES} are allowed", names.len());
            checked.fault("processes", message, None);
        }
        let mut file = Self {
            processes: BTreeMap::new(),
            groups: raw.groups,
            agents: raw.agents,
            servers: BTreeMap::new(),
            bots: raw.bots,
            http: None,
            hooks: Vec::new(),
            limits: raw.limits,
            remember_environment: raw.remember_environment,
            update_environment: raw.update_environment,
        };
        file.http = raw.http.map(|raw| http::read(&mut checked, raw));
        file.hooks = hooks::read(&mut checked, raw.hooks);
        for (name, table) in raw.servers {
            let definition = servers::read(&mut checked, &name, &table);
            file.servers.extend(definition.map(|definition| (name, definition)));
        }
        for (name, process) in raw.processes {
            let path = format!("processes.{name}");
            check_dependencies(&mut checked, &path, &name, &process.depends_on, &names);
            let definition = definition(&mut checked, &path, process);
            file.processes.insert(name, definition);
        }
        check_cycles(&mut checked, &file.processes);
        groups::check(&mut checked, &file.groups, &names);
        if checked.faults.is_empty() {
            return Ok(file);
        }
        checked.faults.sort_by_key(|fault| (fault.line, fault.column));
        Err(checked.faults)
    }

    /// Parses the user's own settings, which have the same tables and need no trust. A missing file is
    /// an empty one.
    pub fn of_the_user(path: &Path) -> Result<Self, Vec<String>> {
        let text = match private::read_settings(path) {
            Ok(text) => text,
            Err(refusal) if refusal.is_absence() => return Ok(Self::default()),
            Err(error) => return Err(vec![format!("{}: {error}", path.display())]),
        };
        let with_path = |faults: Vec<Fault>| {
            faults.iter().map(|fault| format!("{}:{fault}", path.display())).collect::<Vec<_>>()
        };
        Self::parse(&text).map_err(with_path)
    }

    /// The processes in an order in which each comes after its dependencies.
    pub fn in_order(&self) -> Vec<&str> {
        let mut order: Vec<&str> = Vec::new();
        let mut known = BTreeSet::new();
        while order.len() < self.processes.len() {
            let before = order.len();
            for (name, definition) in &self.processes {
                let ready = |other: &String| known.contains(other.as_str());
                if !known.contains(name.as_str()) && definition.depends_on.iter().all(ready) {
                    order.push(name);
                    known.insert(name.as_str());
                }
            }
            // A file with a cycle is invalid; this only ends the loop.
            if order.len() == before {
                break;
            }
        }
        order
    }
}

impl Definition {
    /// Its working directory.
    pub fn folder(&self, root: &Path) -> PathBuf {
        self.directory.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder))
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self { policy: Policy::Never, limit: RESTARTS, delay: DELAY, longest: LONGEST_DELAY }
    }
}

fn definition(checked: &mut Checked<'_>, path: &str, raw: RawProcess) -> Definition {
    let argv = argv(checked, &format!("{path}.command"), raw.command);
    for (name, value) in &raw.environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let path = format!("{path}.environment.{name}");
            checked.fault(&path, invalid_variable(name), None);
        }
        if IDENTITY.contains(&name.as_str()) {
            let message = format!("only patterm may set `{name}`");
            checked.fault(&format!("{path}.environment.{name}"), message, None);
        }
    }
    env_file::check(checked, path, raw.env_file.as_deref());
    check_watch(checked, path, &raw.watch);
    let restart = raw.restart.map_or_else(Restart::default, |raw| restart(checked, path, &raw));
    let has_check = raw.healthy.is_some();
    let ready = raw.ready.and_then(|raw| ready::ready(checked, path, raw));
    let healthy = raw.healthy.and_then(|raw| ready::healthy(checked, path, raw));
    if restart.policy == Policy::OnUnhealthy && !has_check {
        let message = "a process without `healthy` is never unhealthy".to_owned();
        let hint = "add `healthy`, or use \"on-failure\"".to_owned();
        checked.fault(&format!("{path}.restart"), message, Some(hint));
    }
    if has_check && matches!(&ready, Some(ready) if matches!(ready.when, ReadyWhen::Exits)) {
        let message = "a process that is ready when it has exited cannot be healthy".to_owned();
        checked.fault(&format!("{path}.healthy"), message, Some("remove it".into()));
    }
    Definition {
        argv,
        directory: raw.directory,
        environment: raw.environment,
        env_file: raw.env_file,
        autostart: raw.autostart,
        restart,
        watch: raw.watch,
        depends_on: raw.depends_on,
        ready,
        healthy,
        stop: raw.stop.map(|raw| stop::stop(checked, path, raw)).unwrap_or_default(),
    }
}

fn seconds(raw: Option<f64>, default: Duration) -> Duration {
    raw.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(default)
}

fn restart(checked: &mut Checked<'_>, path: &str, raw: &RawRestart) -> Restart {
    match raw {
        RawRestart::Plain(policy) => Restart { policy: *policy, ..Restart::default() },
        RawRestart::More { policy, limit, delay_seconds, longest_delay_seconds } => {
            let delay = seconds(*delay_seconds, DELAY);
            let longest = seconds(*longest_delay_seconds, LONGEST_DELAY.max(delay));
            if longest < delay {
                let path = format!("{path}.restart.longest_delay_seconds");
                checked.fault(
                    &path,
                    "the longest delay is shorter than the first one".into(),
                    None,
                );
            }
            Restart { policy: *policy, limit: limit.unwrap_or(RESTARTS), delay, longest }
        }
    }
}

fn check_watch(checked: &mut Checked<'_>, path: &str, patterns: &[String]) {
    if patterns.len() > WATCH_PATTERNS {
        let message = format!("at most {WATCH_PATTERNS} patterns are allowed");
        checked.fault(&format!("{path}.watch"), message, None);
    }
    for (n, pattern) in patterns.iter().enumerate() {
        let path = format!("{path}.watch[{n}]");
        let is_outside =
            Path::new(pattern).is_absolute() || pattern.split('/').any(|part| part == "..");
        if is_outside || pattern.is_empty() {
            let message =
                format!("`{pattern}` must be relative to the project and must not contain `..`");
            checked.fault(&path, message, None);
        } else if let Err(error) = GlobBuilder::new(pattern).literal_separator(true).build() {
            checked.fault(
                &path,
                format!("`{pattern}` is not a valid glob pattern: {}", error.kind()),
                None,
            );
        }
    }
}

fn check_dependencies(
    checked: &mut Checked<'_>,
    path: &str,
    own: &str,
    depends_on: &[String],
    names: &[String],
) {
    for (n, other) in depends_on.iter().enumerate() {
        let path = format!("{path}.depends_on[{n}]");
        if other == own {
            checked.fault(&path, format!("`{own}` cannot depend on itself"), None);
        } else if !names.contains(other) {
            let meant =
                nearest(other, names.iter().map(String::as_str).filter(|name| *name != own));
            let hint = meant.map(|meant| format!("did you mean `{meant}`?"));
            checked.fault(&path, format!("there is no process `{other}`"), hint);
        }
    }
}

/// Processes that depend on each other would never start.
fn check_cycles(checked: &mut Checked<'_>, processes: &BTreeMap<String, Definition>) {
    let mut done = BTreeSet::new();
    let cycle = processes.keys().find_map(|name| cycle_from(name, processes, &mut done));
    if let Some(cycle) = cycle {
        let path = format!("processes.{}.depends_on", cycle[0]);
        checked.fault(
            &path,
            format!("these processes depend on each other: {}", cycle.join(" → ")),
            None,
        );
    }
}

/// A cycle that can be reached from a process. Each process is visited once.
fn cycle_from<'a>(
    name: &'a str,
    processes: &'a BTreeMap<String, Definition>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    // The path to the current process, each with the number of its dependencies visited so far.
    let mut path = vec![(name, 0)];
    while let Some((name, next)) = path.last_mut() {
        let depends_on = processes.get(*name).map(|definition| definition.depends_on.as_slice());
        let Some(other) = depends_on.and_then(|others| others.get(*next)) else {
            done.insert(*name);
            path.pop();
            continue;
        };
        *next += 1;
        if let Some(at) = path.iter().position(|(name, _)| name == other) {
            // A process that depends on itself was reported already.
            let mut cycle: Vec<_> = path[at..].iter().map(|(name, _)| *name).collect();
            cycle.push(other);
            if cycle.len() > 2 {
                return Some(cycle);
            }
        } else if !done.contains(other.as_str()) {
            path.push((other, 0));
        }
    }
    None
}
