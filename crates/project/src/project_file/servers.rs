//! Shared MCP servers and the HTTP endpoint, as a file declares them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use patterm_gateway::{ServerLimits, Share, ToolPatterns, matches_pattern};
use serde::{Deserialize, Serialize};

use super::check::Checked;

/// The entry of `agents` for those that it does not name.
const OTHERS: &str = "others";

/// A shared server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDefinition {
    /// Where it runs.
    pub place: Location,
    /// Variables beyond the usual ones.
    pub env: BTreeMap<String, String>,
    /// Who shares it.
    pub share: Share,
    /// Its bounds.
    pub bounds: ServerLimits,
    /// Which of its tools are shown, to whom.
    pub tools: ToolFilter,
}

/// Where a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// On this machine.
    Here {
        /// The program and its arguments.
        command: Vec<String>,
        /// Where it starts, relative to the project.
        directory: Option<PathBuf>,
    },
    /// Inside a container that runs.
    Inside {
        /// Which engine.
        engine: EngineDefinition,
        /// Which container.
        container: String,
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// In a container of its own.
    Image {
        /// Which engine.
        engine: EngineDefinition,
        /// Which image.
        image: String,
        /// The program and its arguments; the image's own where there are none.
        command: Vec<String>,
        /// Whether it has a network.
        network: bool,
        /// Its memory in MiB.
        memory_mb: Option<u64>,
        /// Its processes.
        processes: Option<u64>,
        /// Folders that it sees: here, there, and whether it may write.
        mounts: Vec<String>,
    },
    /// Somewhere else, by a server's address.
    Remote {
        /// The address.
        url: String,
        /// What is sent to it.
        headers: BTreeMap<String, String>,
    },
}

/// In a line, for lists.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here { command, .. } => f.write_str(&command.join(" ")),
            Self::Inside { engine, container, command } => {
                write!(f, "{} in {} {container}", command.join(" "), engine.name)
            }
            Self::Image { engine, image, .. } => write!(f, "{} image {image}", engine.name),
            Self::Remote { url, .. } => f.write_str(url),
        }
    }
}

/// What runs containers, and where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDefinition {
    /// `docker`, `podman` or `containerd`.
    pub name: String,
    /// Its socket, where it is not the usual one.
    pub socket: Option<PathBuf>,
    /// The namespace of containerd.
    pub namespace: Option<String>,
}

/// Which tools are shown, to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// To anybody at all.
    pub all: ToolPatterns,
    /// By preset or name of an agent, what is left for it: patterns, as there.
    pub agents: BTreeMap<String, Vec<String>>,
}

impl ToolFilter {
    /// Whether a tool is shown to an agent that goes by these names. Where nothing is said of it, nor
    /// of others, it is shown what the nearest agent above it is: an agent does not get around what is
    /// left for it by starting another one.
    pub fn shows_to(&self, tool: &str, agent: &[String], above: &[Vec<String>]) -> bool {
        let named = |names: &[String]| names.iter().find_map(|name| self.agents.get(name));
        let left = named(agent)
            .or_else(|| self.agents.get(OTHERS))
            .or_else(|| above.iter().find_map(|names| named(names)));
        let left =
            left.is_none_or(|left| left.iter().any(|pattern| matches_pattern(pattern, tool)));
        left && self.all.shows(tool)
    }
}

/// The containers of bots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BotsDefinition {
    /// What runs them.
    pub engine: EngineDefinition,
    /// The server inside them.
    pub command: Vec<String>,
    /// The label that names a container's bot.
    pub owner_label: String,
    /// Whether every bot may use containers that do not have that label.
    pub allow_unlabelled: bool,
    /// Where containerd's pipes lie.
    pub fifo_dir: Option<PathBuf>,
}

/// The HTTP endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpDefinition {
    /// Where it listens.
    pub listen: Option<SocketAddr>,
    /// Whether another address than the loopback's is taken.
    #[serde(default)]
    pub allow_remote: bool,
    /// Names under which it is reached.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Sites that may call it.
    #[serde(default)]
    pub origins: Vec<String>,
    /// Whether the audit log holds arguments.
    #[serde(default)]
    pub audit_arguments: bool,
    /// Sessions of all clients.
    pub sessions: Option<usize>,
    /// Sessions of one token.
    pub sessions_per_token: Option<usize>,
    /// Connections at once.
    pub connections: Option<usize>,
    /// Bytes of one request.
    pub body_bytes: Option<usize>,
}

/// A server as serde reads it; its shape is known to be right.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawServer {
    command: Vec<String>,
    env: BTreeMap<String, String>,
    directory: Option<PathBuf>,
    engine: Option<String>,
    container: Option<String>,
    image: Option<String>,
    network: Option<bool>,
    memory_mb: Option<u64>,
    processes: Option<u64>,
    mounts: Vec<String>,
    socket: Option<PathBuf>,
    namespace: Option<String>,
    via: Vec<String>,
    target: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    share: Option<String>,
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

#[derive(Debug, Deserialize)]
pub(super) struct RawBots {
    engine: Option<String>,
    socket: Option<PathBuf>,
    namespace: Option<String>,
    command: Vec<String>,
    owner_label: Option<String>,
    #[serde(default)]
    allow_unlabelled: bool,
    fifo_dir: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawHttp {
    listen: Option<String>,
    #[serde(flatten)]
    rest: HttpRest,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HttpRest {
    allow_remote: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
    audit_arguments: bool,
    sessions: Option<usize>,
    sessions_per_token: Option<usize>,
    connections: Option<usize>,
    body_bytes: Option<usize>,
}

/// What tokens call patterm's own tools and the containers of bots: no server may be taken for them.
const RESERVED: [&str; 2] = ["patterm", "bots"];

/// Reads what is written of a server; what does not go together is a fault at its place.
pub(super) fn server(
    checked: &mut Checked<'_>,
    path: &str,
    written: RawServer,
) -> Option<ServerDefinition> {
    let name = path.rsplit('.').next().unwrap_or_default();
    if RESERVED.contains(&name) {
        let message = format!("a server cannot be called `{name}`: tokens know that name already");
        checked.fault(path, message, None);
    }
    let defaults = ServerLimits::default();
    let seconds = |seconds: Option<f64>| seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let bounds = ServerLimits {
        in_flight: written.in_flight.unwrap_or(defaults.in_flight),
        in_flight_per_caller: written.in_flight_of_one.unwrap_or(defaults.in_flight_per_caller),
        message_bytes: written.message_bytes.unwrap_or(defaults.message_bytes),
        instances: written.sessions.unwrap_or(defaults.instances),
        call_timeout: seconds(written.call_seconds).unwrap_or(defaults.call_timeout),
        idle_timeout: seconds(written.idle_seconds).filter(|idle| !idle.is_zero()),
    };
    let share = match written.share.as_deref() {
        Some("caller") => Share::Caller,
        Some("session") => Share::Session,
        _ => Share::All,
    };
    let tools = ToolFilter {
        all: ToolPatterns { only: written.tools.clone(), without: written.without.clone() },
        agents: written.agents.clone(),
    };
    for (name, value) in &written.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let message =
                format!("`{name}` is no environment variable: no `=` and no NUL is taken");
            checked.fault(&format!("{path}.env.{name}"), message, None);
        }
    }
    let env = written.env.clone();
    let place = place(checked, path, written)?;
    Some(ServerDefinition { place, env, share, bounds, tools })
}

fn place(checked: &mut Checked<'_>, path: &str, written: RawServer) -> Option<Location> {
    let ways = [
        ("url", written.url.is_some()),
        ("image", written.image.is_some()),
        ("container", written.container.is_some()),
        ("via", !written.via.is_empty()),
    ];
    let given: Vec<_> = ways.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    if given.len() > 1 {
        let message = format!("`{path}` runs in one place: take one of {}", given.join(", "));
        checked.fault(path, message, None);
        return None;
    }
    let way = given.first().copied().unwrap_or("command");
    let mut misplaced = |name: &str, there: bool, with: &[&str]| {
        if there && !with.contains(&way) {
            let message = format!("`{name}` goes with `{}`, not with `{way}`", with.join("` or `"));
            checked.fault(&format!("{path}.{name}"), message, None);
        }
    };
    misplaced("engine", written.engine.is_some(), &["container", "image"]);
    misplaced("socket", written.socket.is_some(), &["container", "image"]);
    misplaced("namespace", written.namespace.is_some(), &["container", "image"]);
    misplaced("network", written.network.is_some(), &["image"]);
    misplaced("memory_mb", written.memory_mb.is_some(), &["image"]);
    misplaced("processes", written.processes.is_some(), &["image"]);
    misplaced("mounts", !written.mounts.is_empty(), &["image"]);
    misplaced("target", written.target.is_some(), &["via"]);
    misplaced("headers", !written.headers.is_empty(), &["url"]);
    misplaced("directory", written.directory.is_some(), &["command", "via"]);
    misplaced(
        "command",
        !written.command.is_empty() && way == "url",
        &["image", "container", "via"],
    );
    misplaced("env", !written.env.is_empty() && way == "url", &["command", "image", "container"]);
    if written.command.iter().chain(&written.via).any(|word| word.contains('\0')) {
        checked.fault(&format!("{path}.command"), "a command cannot hold a NUL".into(), None);
    }
    let nameless = written.command.first().is_none_or(String::is_empty);
    if nameless && matches!(way, "command" | "container" | "via") {
        let hint = match way {
            "command" => "it takes `command`, `image` or `url`",
            _ => "it takes `command`",
        };
        let hint = hint.to_owned();
        checked.fault(path, format!("`{path}` names no program"), Some(hint));
        return None;
    }
    let engine = EngineDefinition {
        name: written.engine.unwrap_or_else(|| "docker".into()),
        socket: written.socket,
        namespace: written.namespace,
    };
    let command = written.command;
    Some(match way {
        "url" => {
            let url = written.url.unwrap_or_default();
            if !url.starts_with("http://") && !url.starts_with("https://") {
                let message = "it takes an address that begins with https:// or http://".into();
                checked.fault(&format!("{path}.url"), message, None);
            }
            Location::Remote { url, headers: written.headers }
        }
        "image" => {
            for (n, mount) in written.mounts.iter().enumerate() {
                if !is_mount(mount) {
                    let message = format!("`{mount}` is no mount; it looks like `./data:/data:rw`");
                    checked.fault(&format!("{path}.mounts[{n}]"), message, None);
                }
            }
            Location::Image {
                engine,
                image: written.image.unwrap_or_default(),
                command,
                network: written.network.unwrap_or_default(),
                memory_mb: written.memory_mb,
                processes: written.processes,
                mounts: written.mounts,
            }
        }
        "container" => {
            let container = written.container.unwrap_or_default();
            Location::Inside { engine, container, command }
        }
        "via" => {
            let wants = written.via.iter().any(|word| word.contains("{target}"));
            if wants != written.target.is_some() {
                let message = match wants {
                    true => "`via` names `{target}`, and there is no `target`",
                    false => "nothing in `via` takes `{target}`",
                };
                checked.fault(&format!("{path}.via"), message.into(), None);
            }
            let target = written.target.unwrap_or_default();
            // Whole words stay whole words: nothing of it is read by a shell of ours.
            let via = written.via.iter().map(|word| word.replace("{target}", &target));
            let command = via.chain(command).collect();
            Location::Here { command, directory: written.directory }
        }
        _ => Location::Here { command, directory: written.directory },
    })
}

fn is_mount(mount: &str) -> bool {
    let mut parts = mount.split(':');
    let (here, there) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mode = parts.next();
    !here.is_empty()
        && there.starts_with('/')
        && mode.is_none_or(|mode| mode == "rw" || mode == "ro")
        && parts.next().is_none()
}

pub(super) fn bots(written: RawBots) -> BotsDefinition {
    BotsDefinition {
        engine: EngineDefinition {
            name: written.engine.unwrap_or_else(|| "docker".into()),
            socket: written.socket,
            namespace: written.namespace,
        },
        command: written.command,
        owner_label: written.owner_label.unwrap_or_else(|| "patterm.bot".into()),
        allow_unlabelled: written.allow_unlabelled,
        fifo_dir: written.fifo_dir,
    }
}

pub(super) fn http(checked: &mut Checked<'_>, written: RawHttp) -> HttpDefinition {
    let listen = written.listen.and_then(|text| match text.parse::<SocketAddr>() {
        Ok(address) => Some(address),
        Err(_) => {
            let message = format!("`{text}` is no address and port");
            let hint = Some("write it as in \"127.0.0.1:7711\"".to_owned());
            checked.fault("http.listen", message, hint);
            None
        }
    });
    let rest = written.rest;
    if let Some(address) = listen
        && !address.ip().is_loopback()
        && !rest.allow_remote
    {
        let message = format!("{address} can be reached from other machines");
        let hint = Some("say `allow_remote = true` if that is what you want".to_owned());
        checked.fault("http.listen", message, hint);
    }
    HttpDefinition {
        listen,
        allow_remote: rest.allow_remote,
        hosts: rest.hosts,
        origins: rest.origins,
        audit_arguments: rest.audit_arguments,
        sessions: rest.sessions,
        sessions_per_token: rest.sessions_per_token,
        connections: rest.connections,
        body_bytes: rest.body_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_for_an_agent() {
        let filter = ToolFilter {
            all: ToolPatterns {
                only: Some(vec!["read_*".into(), "write_*".into()]),
                without: vec!["write_secret".into()],
            },
            agents: [("reviewer".to_owned(), vec!["read_*".to_owned()]), (OTHERS.into(), vec![])]
                .into(),
        };
        assert!(filter.all.shows("write_file") && !filter.all.shows("write_secret"));
        let names = |name: &str| vec![name.to_owned(), "claude".to_owned()];
        assert!(filter.shows_to("read_file", &names("reviewer"), &[]));
        assert!(!filter.shows_to("write_file", &names("reviewer"), &[]));
        assert!(!filter.shows_to("read_file", &names("builder"), &[]));
        assert!(!filter.shows_to("read_file", &names("builder"), &[names("reviewer")]));
        assert!(ToolFilter::default().shows_to("anything", &names("x"), &[]));
    }

    #[test]
    fn what_an_agent_starts_is_left_no_more_than_the_agent_where_nothing_is_said_of_it() {
        let names = |name: &str| vec![name.to_owned()];
        let agents = [("intern", "read"), ("lead", "write")];
        let agents = agents.map(|(name, tool)| (name.to_owned(), vec![tool.to_owned()])).into();
        let filter = ToolFilter { all: ToolPatterns::default(), agents };
        assert!(filter.shows_to("write", &names("helper"), &[]), "nothing is said of it");
        let above = [names("helper"), names("intern"), names("lead")];
        assert!(filter.shows_to("read", &names("helper-2"), &above));
        assert!(!filter.shows_to("write", &names("helper-2"), &above));
        assert!(filter.shows_to("write", &names("lead"), &above), "it has a place of its own");
    }
}
