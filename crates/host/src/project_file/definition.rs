//! What a project file declares, once it is known to be sound.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::GlobBuilder;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use toml::Table;

use super::check::{Checked, last_line};
use super::fault::{Fault, nearest};
use super::limits::{DELAY, LONGEST_DELAY, PROCESSES, READY, RESTARTS, WATCH_PATTERNS};
use super::servers::{
    self, BotsDefinition, HttpDefinition, ServerDefinition, WrittenBots, WrittenHttp, WrittenServer,
};
use patterm_store::private;

/// Bytes that a pattern may take when compiled: what waits for a line takes no more.
const PATTERN_BYTES: usize = 1 << 20;

/// All that a file declares.
#[derive(Debug, Clone, Default)]
pub struct ProjectFile {
    /// Its processes, by name.
    pub processes: BTreeMap<String, Definition>,
    /// Its presets, as they stand there.
    pub agents: BTreeMap<String, Table>,
    /// Shared MCP servers, by name.
    pub servers: BTreeMap<String, ServerDefinition>,
    /// The containers of bots.
    pub bots: Option<BotsDefinition>,
    /// The door over HTTP.
    pub http: Option<HttpDefinition>,
    /// Limits by their names.
    pub limits: BTreeMap<String, u64>,
}

/// A process that the project declares.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The program and its arguments, as they are executed.
    pub argv: Vec<String>,
    /// Where it starts, relative to the project.
    pub directory: Option<PathBuf>,
    /// Variables beyond the usual ones.
    pub environment: BTreeMap<String, String>,
    /// Whether it starts with the server.
    pub autostart: bool,
    /// Whether it is started again.
    pub restart: Restart,
    /// It is restarted when files that match change.
    pub watch: Vec<String>,
    /// What must be ready before it.
    pub depends_on: Vec<String>,
    /// When it is ready; as soon as it runs, where it does not say.
    pub ready: Option<Ready>,
}

/// Whether and how often a process that ended is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// When.
    pub policy: Policy,
    /// How often in a row.
    pub limit: u32,
    /// The time before the first.
    pub delay: Duration,
    /// The longest time before one.
    pub longest: Duration,
}

/// When a process that ended by itself is started again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Never.
    #[default]
    Never,
    /// When it did not end with 0.
    OnFailure,
    /// However it ended.
    Always,
}

/// When a process is ready, and how long that may take.
#[derive(Debug, Clone)]
pub struct Ready {
    /// What shows it.
    pub when: ReadyWhen,
    /// After this, those that wait for it are given up.
    pub timeout: Duration,
}

/// What shows that a process is ready.
#[derive(Debug, Clone)]
pub enum ReadyWhen {
    /// A line of its output.
    Pattern(Regex),
    /// A port that something of it listens on.
    Port(u16),
    /// Its end, with 0.
    Exits,
}

/// The file as serde reads it; its shape is known to be right.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Written {
    processes: BTreeMap<String, WrittenProcess>,
    agents: BTreeMap<String, Table>,
    servers: BTreeMap<String, WrittenServer>,
    bots: Option<WrittenBots>,
    http: Option<WrittenHttp>,
    limits: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct WrittenProcess {
    command: Command,
    directory: Option<PathBuf>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    autostart: bool,
    restart: Option<WrittenRestart>,
    #[serde(default)]
    watch: Vec<String>,
    #[serde(default)]
    depends_on: Vec<String>,
    ready: Option<WrittenReady>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Command {
    Line(String),
    Words(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenRestart {
    Plain(Policy),
    More {
        policy: Policy,
        limit: Option<u32>,
        delay_seconds: Option<f64>,
        longest_delay_seconds: Option<f64>,
    },
}

#[derive(Deserialize)]
struct WrittenReady {
    pattern: Option<String>,
    port: Option<u16>,
    exits: Option<bool>,
    timeout_seconds: Option<f64>,
}

impl ProjectFile {
    /// Reads a file's text; all its mistakes if there are any.
    pub fn parse(text: &str) -> Result<Self, Vec<Fault>> {
        let mut checked = Checked::new(text).map_err(|fault| vec![fault])?;
        if !checked.faults.is_empty() {
            return Err(checked.faults);
        }
        let written: Written = match std::mem::take(&mut checked.table).try_into() {
            Ok(written) => written,
            Err(error) => {
                checked.fault("", error.message().to_owned(), None);
                return Err(checked.faults);
            }
        };
        let names: Vec<String> = written.processes.keys().cloned().collect();
        if names.len() > PROCESSES {
            let message =
                format!("there are {} processes; at most {PROCESSES} are taken", names.len());
            checked.fault("processes", message, None);
        }
        let mut file = Self {
            processes: BTreeMap::new(),
            agents: written.agents,
            servers: BTreeMap::new(),
            bots: written.bots.map(servers::bots),
            http: None,
            limits: written.limits,
        };
        file.http = written.http.map(|written| servers::http(&mut checked, written));
        for (name, written) in written.servers {
            let definition = servers::server(&mut checked, &format!("servers.{name}"), written);
            file.servers.extend(definition.map(|definition| (name, definition)));
        }
        for (name, process) in written.processes {
            let path = format!("processes.{name}");
            check_dependencies(&mut checked, &path, &name, &process.depends_on, &names);
            let definition = definition(&mut checked, &path, process);
            file.processes.insert(name, definition);
        }
        check_circles(&mut checked, &file.processes);
        if checked.faults.is_empty() {
            return Ok(file);
        }
        checked.faults.sort_by_key(|fault| (fault.line, fault.column));
        Err(checked.faults)
    }

    /// The shared servers and doors in the user's own settings: the same tables, which need no trust;
    /// a file that is not there has none. Other tables of it are others' to read.
    pub fn of_the_user(path: &Path) -> Result<Self, Vec<String>> {
        let text = match private::read_settings(path) {
            Ok(text) => text,
            Err(refusal) if refusal.is_absence() => return Ok(Self::default()),
            Err(error) => return Err(vec![format!("{}: {error}", path.display())]),
        };
        let place = |faults: Vec<Fault>| {
            faults.iter().map(|fault| format!("{}:{fault}", path.display())).collect::<Vec<_>>()
        };
        Self::parse(&text).map_err(place)
    }

    /// Processes in an order in which each comes after those that it depends on.
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
            // A file with a circle was refused; this only ends the loop.
            if order.len() == before {
                break;
            }
        }
        order
    }
}

impl Definition {
    /// Where it starts.
    pub fn folder(&self, root: &Path) -> PathBuf {
        self.directory.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder))
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self { policy: Policy::Never, limit: RESTARTS, delay: DELAY, longest: LONGEST_DELAY }
    }
}

fn definition(checked: &mut Checked<'_>, path: &str, written: WrittenProcess) -> Definition {
    let argv = match written.command {
        Command::Line(line) => vec!["sh".into(), "-c".into(), line],
        Command::Words(words) => words,
    };
    let nothing = argv.first().is_none_or(|program| program.is_empty())
        || argv.last().is_some_and(|last| argv[0] == "sh" && last.trim().is_empty());
    if nothing {
        checked.fault(&format!("{path}.command"), "the command names no program".into(), None);
    }
    if argv.iter().any(|word| word.contains('\0')) {
        checked.fault(&format!("{path}.command"), "a command cannot hold a NUL".into(), None);
    }
    for (name, value) in &written.environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let message =
                format!("`{name}` is no environment variable: no `=` and no NUL is taken");
            checked.fault(&format!("{path}.environment.{name}"), message, None);
        }
    }
    check_watch(checked, path, &written.watch);
    Definition {
        argv,
        directory: written.directory,
        environment: written.environment,
        autostart: written.autostart,
        restart: written
            .restart
            .map_or_else(Restart::default, |written| restart(checked, path, &written)),
        watch: written.watch,
        depends_on: written.depends_on,
        ready: written.ready.and_then(|written| ready(checked, path, &written)),
    }
}

fn seconds(written: Option<f64>, otherwise: Duration) -> Duration {
    written.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(otherwise)
}

fn restart(checked: &mut Checked<'_>, path: &str, written: &WrittenRestart) -> Restart {
    match written {
        WrittenRestart::Plain(policy) => Restart { policy: *policy, ..Restart::default() },
        WrittenRestart::More { policy, limit, delay_seconds, longest_delay_seconds } => {
            let delay = seconds(*delay_seconds, DELAY);
            let longest = seconds(*longest_delay_seconds, LONGEST_DELAY.max(delay));
            if longest < delay {
                let path = format!("{path}.restart.longest_delay_seconds");
                checked.fault(&path, "the longest delay is shorter than the first".into(), None);
            }
            Restart { policy: *policy, limit: limit.unwrap_or(RESTARTS), delay, longest }
        }
    }
}

fn ready(checked: &mut Checked<'_>, path: &str, written: &WrittenReady) -> Option<Ready> {
    let path = format!("{path}.ready");
    let when = match written {
        WrittenReady { pattern: Some(text), port: None, exits: None | Some(false), .. } => {
            match RegexBuilder::new(text).size_limit(PATTERN_BYTES).build() {
                Ok(pattern) => ReadyWhen::Pattern(pattern),
                Err(error) => {
                    let why = last_line(&error.to_string());
                    let message = format!("the pattern does not compile: {why}");
                    checked.fault(&format!("{path}.pattern"), message, None);
                    return None;
                }
            }
        }
        WrittenReady { pattern: None, port: Some(port), exits: None | Some(false), .. } => {
            ReadyWhen::Port(*port)
        }
        WrittenReady { pattern: None, port: None, exits: Some(true), .. } => ReadyWhen::Exits,
        _ => {
            let message = format!("`{path}` takes one of `pattern`, `port` and `exits = true`");
            checked.fault(&path, message, None);
            return None;
        }
    };
    Some(Ready { when, timeout: seconds(written.timeout_seconds, READY) })
}

fn check_watch(checked: &mut Checked<'_>, path: &str, patterns: &[String]) {
    if patterns.len() > WATCH_PATTERNS {
        let message = format!("at most {WATCH_PATTERNS} patterns are taken");
        checked.fault(&format!("{path}.watch"), message, None);
    }
    for (n, pattern) in patterns.iter().enumerate() {
        let path = format!("{path}.watch[{n}]");
        let leaves =
            Path::new(pattern).is_absolute() || pattern.split('/').any(|part| part == "..");
        if leaves || pattern.is_empty() {
            let message = format!("`{pattern}` is not relative to the project, without `..`");
            checked.fault(&path, message, None);
        } else if let Err(error) = GlobBuilder::new(pattern).literal_separator(true).build() {
            checked.fault(
                &path,
                format!("`{pattern}` is no pattern of files: {}", error.kind()),
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

/// Processes that wait for each other would never start.
fn check_circles(checked: &mut Checked<'_>, processes: &BTreeMap<String, Definition>) {
    let mut done = BTreeSet::new();
    let circle = processes.keys().find_map(|name| circle_from(name, processes, &mut done));
    if let Some(circle) = circle {
        let path = format!("processes.{}.depends_on", circle[0]);
        checked.fault(&path, format!("these wait for each other: {}", circle.join(" → ")), None);
    }
}

/// A circle that one leads into. Each is gone through once, however many ways lead to it.
fn circle_from<'a>(
    name: &'a str,
    processes: &'a BTreeMap<String, Definition>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    // Those on the way to here, each with how many of its dependencies were gone through.
    let mut way = vec![(name, 0)];
    while let Some((name, next)) = way.last_mut() {
        let depends_on = processes.get(*name).map(|definition| definition.depends_on.as_slice());
        let Some(other) = depends_on.and_then(|others| others.get(*next)) else {
            done.insert(*name);
            way.pop();
            continue;
        };
        *next += 1;
        if let Some(at) = way.iter().position(|(name, _)| name == other) {
            // One that depends on itself was told already.
            let mut circle: Vec<_> = way[at..].iter().map(|(name, _)| *name).collect();
            circle.push(other);
            if circle.len() > 2 {
                return Some(circle);
            }
        } else if !done.contains(other.as_str()) {
            way.push((other, 0));
        }
    }
    None
}
