//! From what is written of a server to what runs it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use patterm_gateway::backend::Backend;
use patterm_gateway::backend::container::{self, Containers, ExecSpec, Mount, RunSpec};
use patterm_gateway::backend::local::Local;
use patterm_gateway::backend::remote::Remote;
use patterm_gateway::http::BotsConfig;
use patterm_gateway::{ServerLimits, ServerSpec};
use patterm_keeper::{Program, Size};

use super::Shared;
use super::spawner::KeeperSpawner;
use patterm_project::project_file::{
    BotsDefinition, EngineDefinition, Location, ProjectFile, ServerDefinition,
};

/// The folder for what is known of our containers.
const CONTAINERS: &str = "containers";

/// There may be many bots, and most of them say nothing most of the time.
const BOT_IDLE: Duration = Duration::from_secs(600);

/// A terminal that nobody sees: it has pipes.
const SIZE: Size = Size { rows: 24, columns: 80 };

impl Shared {
    /// The containers of ours. From the first time they are asked for, what is left over is swept up.
    fn containers(&self) -> Result<&Containers, String> {
        if self.containers.get().is_none() {
            let spawner =
                Arc::new(KeeperSpawner::new(Arc::downgrade(&self.parts.panes), "containers"));
            let made =
                Containers::new(&self.parts.state.file(CONTAINERS), &self.parts.pipes, spawner);
            let made = made.map_err(|e| format!("containers cannot be kept account of: {e}"))?;
            let sweeping = made.clone().keep_swept(self.end.clone());
            if self.containers.set(made).is_ok() {
                self.runtime.spawn(sweeping);
            }
        }
        self.containers.get().ok_or_else(|| "containers are not there".into())
    }

    /// Sweeps up what an earlier server left in containers.
    pub(crate) fn sweep_containers(&self) {
        if self.parts.state.file(CONTAINERS).exists()
            && let Err(error) = self.containers()
        {
            tracing::error!(error, "containers that are left over stay");
        }
    }

    /// The endpoint for bots' containers, as it is configured.
    pub(crate) fn bots(&self) -> Option<BotsConfig> {
        let written = self.bots_written()?;
        let containers = match self.containers() {
            Ok(containers) => containers.clone(),
            Err(error) => {
                tracing::error!(error, "there is no endpoint for bots' containers");
                return None;
            }
        };
        let mut place = place_of(&written.engine);
        place.fifo_dir = written.fifo_dir;
        Some(BotsConfig {
            containers,
            endpoint: place,
            command: written.command,
            owner_label: written.owner_label,
            allow_unlabelled: written.allow_unlabelled,
            servers: self.bot_sessions.clone(),
            limits: ServerLimits { idle_timeout: Some(BOT_IDLE), ..ServerLimits::default() },
        })
    }

    pub(crate) fn bots_written(&self) -> Option<BotsDefinition> {
        let own = self.parts.declared.effect().and_then(|file| file.bots.clone());
        own.or_else(|| ProjectFile::of_the_user(self.parts.settings.as_deref()?).ok()?.bots)
    }

    /// The servers in the user's own settings; what is wrong with those is said in the log.
    pub(super) fn servers_of_the_user(&self) -> BTreeMap<String, ServerDefinition> {
        let Some(path) = &self.parts.settings else { return BTreeMap::new() };
        match ProjectFile::of_the_user(path) {
            Ok(file) => file.servers,
            Err(faults) => {
                for fault in faults {
                    tracing::error!(fault, "the user's settings name no server that can be run");
                }
                BTreeMap::new()
            }
        }
    }
}

/// What runs a server; the error is why it cannot be run as it is written.
pub(super) fn wanted(
    shared: &Shared,
    name: &str,
    server: &ServerDefinition,
) -> Result<ServerSpec, String> {
    let known = &shared.parts.panes.environment;
    let mut env = BTreeMap::new();
    for (variable, value) in &server.env {
        env.insert(variable.clone(), expanded(value, known)?);
    }
    let backend: Arc<dyn Backend> = match &server.place {
        Location::Here { command, directory } => {
            let mut whole = known.clone();
            whole.extend(env.clone());
            let argv =
                command.iter().map(|word| expanded(word, known)).collect::<Result<_, _>>()?;
            let root = shared.parts.project.root();
            let working_dir = directory.as_ref().map_or_else(|| root.to_owned(), |d| root.join(d));
            let program = Program { argv, env: whole, working_dir, size: SIZE };
            let spawner = Arc::new(KeeperSpawner::new(Arc::downgrade(&shared.parts.panes), name));
            Arc::new(Local { program, spawner })
        }
        Location::Remote { url, headers } => {
            let mut sent = BTreeMap::new();
            for (header, value) in headers {
                sent.insert(header.clone(), expanded(value, known)?);
            }
            Arc::new(Remote { url: expanded(url, known)?, headers: sent })
        }
        Location::Inside { engine, container, command } => {
            let place = place_of(engine);
            let (container, command) = (container.clone(), command.clone());
            shared.containers()?.exec(ExecSpec {
                endpoint: place,
                container,
                command,
                env: env.clone(),
            })
        }
        Location::Image { engine, image, command, network, memory_mb, processes, mounts } => {
            let mut own = RunSpec::with_defaults(place_of(engine), image);
            own.command = command.clone();
            own.env = env.clone();
            own.network = *network;
            own.memory_bytes = memory_mb.map_or(own.memory_bytes, |mb| mb.saturating_mul(1 << 20));
            let most = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
            own.processes = processes.map_or(own.processes, most);
            own.mounts =
                mounts.iter().map(|mount| mount_of(mount, shared.parts.project.root())).collect();
            shared.containers()?.own(own)
        }
    };
    Ok(ServerSpec {
        backend,
        // All that makes it another server, its values from the environment included.
        fingerprint: format!("{:?} {env:?} {:?} {:?}", server.place, server.share, server.bounds),
        share: server.share,
        limits: server.bounds,
        roots: roots(shared.parts.project.root()),
        tools: server.tools.all.clone(),
    })
}

/// Where containers of an engine are.
fn place_of(engine: &EngineDefinition) -> container::EngineEndpoint {
    let kind = match engine.name.as_str() {
        "podman" => container::ContainerEngine::Podman,
        "containerd" => container::ContainerEngine::Containerd,
        _ => container::ContainerEngine::Docker,
    };
    container::EngineEndpoint {
        socket: engine.socket.clone(),
        namespace: engine.namespace.clone(),
        ..container::EngineEndpoint::default_of(kind)
    }
}

/// `here:there`, with `:rw` where it may be written; `here` is relative to the project.
fn mount_of(text: &str, root: &Path) -> Mount {
    let mut parts = text.split(':');
    let (here, there) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let source = root.join(here.strip_prefix("./").unwrap_or(here));
    Mount { source, target: there.into(), writable: parts.next() == Some("rw") }
}

/// The project's folder, as servers hear of it.
fn roots(root: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in root.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    let name = root.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    serde_json::json!([{ "uri": uri, "name": name }]).to_string()
}

/// A text with variables in it, as `${NAME}` or, with what it is where it is not set,
/// `${NAME:-other}`.
fn expanded(text: &str, known: &BTreeMap<String, String>) -> Result<String, String> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        whole.push_str(before);
        let Some((inside, later)) = after.split_once('}') else {
            return Err(format!("`{text}` has a `${{` without its end"));
        };
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        match (known.get(name).filter(|value| !value.is_empty()), otherwise) {
            (Some(value), _) => whole.push_str(value),
            (None, Some(otherwise)) => whole.push_str(otherwise),
            (None, None) => {
                return Err(format!(
                    "the variable `{name}` is not set where patterm's server was started"
                ));
            }
        }
        rest = later;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_stand_for_what_they_hold() {
        let known = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("E".into(), String::new())]);
        let expand = |text| expanded(text, &known);
        assert_eq!(expand("x${A}y$A"), Ok("x1y$A".into()));
        assert_eq!(expand("${B:-two} ${E:-e}"), Ok("two e".into()));
        assert!(expand("${B}").unwrap_err().contains("`B`"));
        assert!(expand("${A").is_err());
    }

    #[test]
    fn folders_as_addresses() {
        let text = roots(Path::new("/a b/ä"));
        assert_eq!(text, r#"[{"name":"ä","uri":"file:///a%20b/%C3%A4"}]"#);
    }
}
