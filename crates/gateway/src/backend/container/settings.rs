//! What a project says of servers in containers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a server of this kind needs is little; one that leaks is ended before the machine suffers.
const MEMORY: u64 = 1 << 30;

/// Threads count too: a runtime starts one for each core.
const PROCESSES: u32 = 256;

/// Container engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Docker, by its API.
    Docker,
    /// Podman, by the same.
    Podman,
    /// containerd, through its tool `ctr`.
    Containerd,
}

impl Engine {
    /// As a project file says it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Containerd => "containerd",
        }
    }
}

/// An engine, and where it is reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Which one.
    pub engine: Engine,
    /// Its socket, where it is not the usual one.
    pub socket: Option<PathBuf>,
    /// containerd's namespace, where it is not `default`.
    pub namespace: Option<String>,
    /// Where containerd's FIFOs are made, where it is not a folder of ours.
    pub fifo_dir: Option<PathBuf>,
}

impl Place {
    /// An engine in its usual place.
    pub fn usual(engine: Engine) -> Self {
        Self { engine, socket: None, namespace: None, fifo_dir: None }
    }

    /// Its socket.
    pub(super) fn socket(&self) -> PathBuf {
        if let Some(socket) = &self.socket {
            return socket.clone();
        }
        let usual = match self.engine {
            Engine::Docker => "/var/run/docker.sock",
            Engine::Podman => "/run/podman/podman.sock",
            Engine::Containerd => "/run/containerd/containerd.sock",
        };
        // Podman of a user who is not root has its own.
        let own = std::env::var_os("XDG_RUNTIME_DIR")
            .map(|folder| PathBuf::from(folder).join("podman/podman.sock"))
            .filter(|socket| self.engine == Engine::Podman && socket.exists());
        // Docker's own tools look there first.
        let named = std::env::var("DOCKER_HOST").ok().filter(|_| self.engine == Engine::Docker);
        let named = named.and_then(|host| host.strip_prefix("unix://").map(PathBuf::from));
        named.or(own).unwrap_or_else(|| usual.into())
    }

    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

/// A server in a container that runs already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// The engine.
    pub place: Place,
    /// The container's name or id.
    pub container: String,
    /// The program in it, with its arguments.
    pub command: Vec<String>,
    /// Variables beside the container's own.
    pub env: BTreeMap<String, String>,
}

/// A server in a container of its own: without network, new privileges or capabilities, its root
/// not to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The engine.
    pub place: Place,
    /// The image.
    pub image: String,
    /// The program in it, with its arguments; the image's own where it is empty.
    pub command: Vec<String>,
    /// Variables beside the image's own.
    pub env: BTreeMap<String, String>,
    /// Whether it reaches the network.
    pub network: bool,
    /// Bytes of memory.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u32,
    /// Folders and files of this machine that it sees.
    pub mounts: Vec<Mount>,
}

impl Own {
    /// An image as it is, with what is usual.
    pub fn usual(place: Place, image: impl Into<String>) -> Self {
        Self {
            place,
            image: image.into(),
            command: Vec::new(),
            env: BTreeMap::new(),
            network: false,
            memory: MEMORY,
            processes: PROCESSES,
            mounts: Vec::new(),
        }
    }
}

/// A folder or file of this machine inside a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Here.
    pub source: PathBuf,
    /// There.
    pub target: PathBuf,
    /// Whether it may be written.
    pub writable: bool,
}
