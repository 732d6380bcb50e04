//! Shared MCP servers as a project file declares them. Each kind of backend is one file with its keys,
//! their validation and the description for trust; a new one is a file and its lines here.

mod container;
pub(super) mod engine;
mod image;
mod local;
mod remote;
mod settings;
mod tool_filter;
mod via;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use patterm_gateway::{ServerLimits, Share, ToolPatterns};
use serde::Deserialize;
use toml::{Table, Value};

pub use container::ContainerSettings;
pub use engine::{EngineDefinition, EngineName};
pub use image::{ImageSettings, MountDefinition};
pub use local::LocalSettings;
pub use remote::RemoteSettings;
pub use tool_filter::ToolFilter;

use super::check::Checked;
use super::description::Description;
use super::schema::{COUNT, STRINGS, Schema, SchemaKey, key};
use super::visible::visible;
use settings::{BackendSettings, Kind, Section};

/// The kinds of backends. The first is the default if no kind is selected.
const KINDS: [Kind; 5] = [local::KIND, via::KIND, container::KIND, image::KIND, remote::KIND];

/// Where a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// On this machine.
    Local(LocalSettings),
    /// Inside a running container.
    Container(ContainerSettings),
    /// In a container of its own.
    Image(ImageSettings),
    /// Behind a URL.
    Remote(RemoteSettings),
}

impl Location {
    fn settings(&self) -> &dyn BackendSettings {
        match self {
            Self::Local(settings) => settings,
            Self::Container(settings) => settings,
            Self::Image(settings) => settings,
            Self::Remote(settings) => settings,
        }
    }
}

/// As one line, for lists of servers.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings().fmt(f)
    }
}

/// A shared server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDefinition {
    /// Where it runs.
    pub location: Location,
    /// Additional environment variables.
    pub env: BTreeMap<String, String>,
    /// Which callers share an instance.
    pub share: Share,
    /// Its limits.
    pub limits: ServerLimits,
    /// Which tools each agent sees.
    pub tools: ToolFilter,
}

/// The keys that do not depend on the backend.
const COMMON: &[SchemaKey] = &[
    key(
        "share",
        Schema::Choice(&["all", "caller", "session"]),
        "Who shares a running instance: all callers (the default), or one instance per caller or \
         per session.",
    ),
    key("tools", STRINGS, "The tools to offer; all others are hidden. `*` matches any characters."),
    key("without", STRINGS, "Tools to hide."),
    key(
        "agents",
        Schema::Named(&STRINGS),
        "The tools to offer to an agent, by its name or preset; `others` applies to all other \
         agents.",
    ),
    key("call_seconds", Schema::Seconds, "How long a call may take; 600 by default."),
    key(
        "idle_seconds",
        Schema::Seconds,
        "How long it may be unused before it is stopped; no limit by default.",
    ),
    key("in_flight", COUNT, "The maximum number of unanswered calls; 1024 by default."),
    key("in_flight_of_one", COUNT, "The same for each caller; 128 by default."),
    key(
        "sessions",
        COUNT,
        "The maximum number of instances if it is not shared by all callers; 64 by default.",
    ),
    key("message_bytes", COUNT, "The maximum size of a message in bytes; 64 MiB by default."),
];

/// All keys of a shared server.
pub(super) static SCHEMA: Schema = Schema::Groups(&GROUPS);

const GROUPS: [&[SchemaKey]; KINDS.len() + 2] = {
    let mut groups: [&[SchemaKey]; KINDS.len() + 2] = [&[]; KINDS.len() + 2];
    groups[0] = COMMON;
    groups[1] = engine::KEYS;
    let mut n = 0;
    while n < KINDS.len() {
        groups[n + 2] = KINDS[n].keys;
        n += 1;
    }
    groups
};

/// The values of the common keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawServer {
    env: BTreeMap<String, String>,
    share: RawShare,
    tools: Option<Vec<String>>,
    without: Vec<String>,
    agents: BTreeMap<String, Vec<String>>,
    call_seconds: Option<f64>,
    idle_seconds: Option<f64>,
    in_flight: Option<usize>,
    in_flight_of_one: Option<usize>,
    sessions: Option<usize>,
    message_bytes: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawShare {
    #[default]
    All,
    Caller,
    Session,
}

impl From<RawShare> for Share {
    fn from(share: RawShare) -> Self {
        match share {
            RawShare::All => Self::All,
            RawShare::Caller => Self::Caller,
            RawShare::Session => Self::Session,
        }
    }
}

/// Names that tokens use for patterm's own tools and for the containers of bots.
const RESERVED: [&str; 2] = ["patterm", "bots"];

/// Reads a server whose table matches the schema. Keys that contradict each other are errors.
pub(super) fn read(
    checked: &mut Checked<'_>,
    name: &str,
    table: &Table,
) -> Option<ServerDefinition> {
    let path = &format!("servers.{name}");
    if RESERVED.contains(&name) {
        let message = format!("`{name}` is reserved and cannot be the name of a server");
        checked.fault(path, message, Some("choose another name".into()));
    }
    let mut section = Section { checked, path, table };
    let raw: RawServer = section.read()?;
    for (name, value) in &raw.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            section.fault(&format!("env.{name}"), invalid_variable(name));
        }
    }
    let location = location(&mut section)?;
    Some(ServerDefinition {
        location,
        limits: raw.limits(),
        share: raw.share.into(),
        env: raw.env,
        tools: ToolFilter {
            all: ToolPatterns { only: raw.tools, without: raw.without },
            agents: raw.agents,
        },
    })
}

/// The message about a variable with a forbidden name or value.
pub(super) fn invalid_variable(name: &str) -> String {
    format!("`{name}` is not a valid environment variable: `=` in its name and NUL are not allowed")
}

impl RawServer {
    fn limits(&self) -> ServerLimits {
        let default = ServerLimits::default();
        let seconds =
            |seconds: Option<f64>| seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
        ServerLimits {
            in_flight: self.in_flight.unwrap_or(default.in_flight),
            in_flight_per_caller: self.in_flight_of_one.unwrap_or(default.in_flight_per_caller),
            message_bytes: self.message_bytes.unwrap_or(default.message_bytes),
            instances: self.sessions.unwrap_or(default.instances),
            call_timeout: seconds(self.call_seconds).unwrap_or(default.call_timeout),
            idle_timeout: seconds(self.idle_seconds).filter(|idle| !idle.is_zero()),
        }
    }
}

/// Selects the kind of backend by the keys that are set, and reads its settings.
fn location(section: &mut Section<'_, '_>) -> Option<Location> {
    let [default, others @ ..] = &KINDS;
    let selected: Vec<_> =
        others.iter().filter(|kind| section.table.contains_key(kind.selector)).collect();
    if selected.len() > 1 {
        let selectors: Vec<_> = selected.iter().map(|kind| kind.selector).collect();
        let message = format!("`{}` can run in one place only", section.path);
        let hint = format!("keep one of {}", selectors.join(", "));
        section.checked.fault(section.path, message, Some(hint));
        return None;
    }
    let kind = selected.first().copied().unwrap_or(default);
    for (name, value) in section.table {
        if !is_common(name) && !is_empty(value) && !kind.allows(name) {
            let fitting = KINDS.iter().filter(|kind| kind.allows(name));
            let fitting: Vec<_> = fitting.map(|kind| format!("`{}`", kind.selector)).collect();
            let message = format!(
                "`{name}` can be combined with {}, but not with `{}`",
                fitting.join(" or "),
                kind.selector
            );
            section.fault(name, message);
        }
    }
    (kind.read)(section)
}

fn is_common(name: &str) -> bool {
    COMMON.iter().any(|key| key.name == name)
}

/// Whether a value means the same as a missing key.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(array) => array.is_empty(),
        Value::Table(table) => table.is_empty(),
        _ => false,
    }
}

impl ServerDefinition {
    /// Describes the server to a person who decides whether to trust the file.
    pub(super) fn describe(&self, name: &str, description: &mut Description) {
        description.heading(&format!("shared server {name}, started when it is needed"));
        self.location.settings().describe(description);
        for (variable, value) in &self.env {
            description.line("with", format!("{}={}", visible(variable), visible(value)));
        }
    }
}
