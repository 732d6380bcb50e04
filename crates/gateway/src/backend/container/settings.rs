//! Settings of servers in containers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Servers need little; one that leaks is ended before the machine suffers.
const MEMORY_BYTES: u64 = 1 << 30;

/// Threads count too: a runtime starts one per core.
const PROCESSES: u32 = 256;

/// Container engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContainerEngine {
    /// Docker, through its API.
    Docker,
    /// Podman, through the same API.
    Podman,
    /// containerd, through its tool `ctr`.
    Containerd,
}

impl ContainerEngine {
    /// As in a project file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Containerd => "containerd",
        }
    }
}

/// An engine, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EngineEndpoint {
    /// The engine.
    pub engine: ContainerEngine,
    /// Its socket, if it is not the default.
    pub socket: Option<PathBuf>,
    /// containerd's namespace, if it is not `default`.
    pub namespace: Option<String>,
    /// The folder for containerd's FIFOs, if it is not ours.
    pub fifo_dir: Option<PathBuf>,
}

impl EngineEndpoint {
    /// An engine at its default address.
    pub fn default_of(engine: ContainerEngine) -> Self {
        Self { engine, socket: None, namespace: None, fifo_dir: None }
    }

    /// Its socket.
    pub(super) fn socket(&self) -> PathBuf {
        if let Some(socket) = &self.socket {
            return socket.clone();
        }
        let default = match self.engine {
            ContainerEngine::Docker => "/var/run/docker.sock",
            ContainerEngine::Podman => "/run/podman/podman.sock",
            ContainerEngine::Containerd => "/run/containerd/containerd.sock",
        };
        // Rootless Podman has its own socket.
        let own = std::env::var_os("XDG_RUNTIME_DIR")
            .map(|folder| PathBuf::from(folder).join("podman/podman.sock"))
            .filter(|socket| self.engine == ContainerEngine::Podman && socket.exists());
        // Docker's own tools read this first.
        let from_env =
            std::env::var("DOCKER_HOST").ok().filter(|_| self.engine == ContainerEngine::Docker);
        let from_env = from_env.and_then(|host| host.strip_prefix("unix://").map(PathBuf::from));
        from_env.or(own).unwrap_or_else(|| default.into())
    }

    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

/// A server in a running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSpec {
    /// The engine.
    pub endpoint: EngineEndpoint,
    /// The container's name or id.
    pub container: String,
    /// The program in it, with its arguments.
    pub command: Vec<String>,
    /// Variables in addition to the container's own.
    pub env: BTreeMap<String, String>,
}

/// A server in a container of its own: without network, capabilities or new privileges, and with a
/// read-only root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSpec {
    /// The engine.
    pub endpoint: EngineEndpoint,
    /// The image.
    pub image: String,
    /// The program in it, with its arguments; the image's default if empty.
    pub command: Vec<String>,
    /// Variables in addition to the image's own.
    pub env: BTreeMap<String, String>,
    /// Whether it has network access.
    pub network: bool,
    /// Its memory limit in bytes.
    pub memory_bytes: u64,
    /// Its limit of processes and threads.
    pub processes: u32,
    /// Folders and files of this machine that are mounted.
    pub mounts: Vec<Mount>,
}

impl RunSpec {
    /// An image with default settings.
    pub fn with_defaults(endpoint: EngineEndpoint, image: impl Into<String>) -> Self {
        Self {
            endpoint,
            image: image.into(),
            command: Vec::new(),
            env: BTreeMap::new(),
            network: false,
            memory_bytes: MEMORY_BYTES,
            processes: PROCESSES,
            mounts: Vec::new(),
        }
    }
}

/// A folder or file of this machine inside a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The path on this machine.
    pub source: PathBuf,
    /// The path in the container.
    pub target: PathBuf,
    /// Whether it is writable.
    pub writable: bool,
}
