//! A cache of shared servers in the project's state, across restarts: a server that was probed is not
//! probed at every start, and its last list of tools is available before it has started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use patterm_gateway::{CachedServer, ServerCache};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

use patterm_store::state;

/// The name of the file. It contains lists of tools as the servers wrote them.
pub(super) const FILE: &str = "servers.json";
const VERSION: u32 = 1;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Content {
    servers: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Entry {
    /// The digest of the server's fingerprint, which contains variables with secrets.
    digest: String,
    #[serde(flatten)]
    known: CachedServer,
}

/// The cache of a project's shared servers.
pub(super) struct KnownServers(Arc<Inner>);

struct Inner {
    file: PathBuf,
    content: Mutex<Content>,
    /// The content is not on disk yet, and a write is scheduled.
    is_due: AtomicBool,
    writing: Mutex<()>,
    /// The file is unreadable or of a newer version, and is not overwritten.
    is_foreign: bool,
    runtime: Handle,
}

impl KnownServers {
    /// Reads the cache. If that fails, servers are treated as new.
    pub(super) fn load(file: PathBuf, runtime: Handle) -> Self {
        let read = state::read::<Content>(&file, VERSION);
        let is_foreign = read.is_err();
        let content = read.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the cache of shared servers");
            None
        });
        Self(Arc::new(Inner {
            file,
            content: Mutex::new(content.unwrap_or_default()),
            is_due: AtomicBool::new(false),
            writing: Mutex::default(),
            is_foreign,
            runtime,
        }))
    }

    /// Writes pending changes.
    pub(super) fn flush(&self) {
        self.0.write();
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_soon(&self) {
        if !self.0.is_due.swap(true, Ordering::AcqRel) {
            let inner = self.0.clone();
            self.0.runtime.spawn_blocking(move || inner.write());
        }
    }
}

impl Inner {
    fn write(&self) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_due.swap(false, Ordering::AcqRel) || self.is_foreign {
            return;
        }
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(error) = state::write(&self.file, VERSION, &content) {
            tracing::error!(%error, "cannot write the cache of shared servers");
        }
    }
}

impl ServerCache for KnownServers {
    fn load(&self, server: &str, fingerprint: &str) -> Option<CachedServer> {
        let content = self.content();
        let entry = content.servers.get(server)?;
        (entry.digest == digest(fingerprint)).then(|| entry.known.clone())
    }

    fn update(&self, server: &str, fingerprint: &str, change: &mut dyn FnMut(&mut CachedServer)) {
        let digest = digest(fingerprint);
        let mut content = self.content();
        let before = content.servers.get(server).filter(|entry| entry.digest == digest);
        let before = before.map(|entry| entry.known.clone());
        let mut known = before.clone().unwrap_or_default();
        change(&mut known);
        if before.as_ref() == Some(&known) {
            return;
        }
        content.servers.insert(server.to_owned(), Entry { digest, known });
        drop(content);
        self.write_soon();
    }

    fn retain(&self, servers: &[&str]) {
        let mut content = self.content();
        let before = content.servers.len();
        content.servers.retain(|name, _| servers.contains(&name.as_str()));
        let is_less = content.servers.len() < before;
        drop(content);
        if is_less {
            self.write_soon();
        }
    }
}

impl std::fmt::Debug for KnownServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownServers").field("file", &self.0.file).finish_non_exhaustive()
    }
}

fn digest(fingerprint: &str) -> String {
    Sha256::digest(fingerprint.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[tokio::test]
    async fn the_cache_survives_a_restart_unless_the_server_changes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let file = dir.path().join(FILE);
        let load = || KnownServers::load(file.clone(), Handle::current());
        let known = load();
        known.update("a", "secret=1", &mut |known| known.modern = Some(false));
        known.update("a", "secret=1", &mut |known| known.tools = Some(vec!["{}".into()]));
        known.update("b", "x", &mut |known| known.version = Some("2".into()));
        known.flush();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        let known = load();
        let tools = Some(vec!["{}".to_owned()]);
        let expected = CachedServer { modern: Some(false), tools, ..CachedServer::default() };
        assert_eq!(known.load("a", "secret=1"), Some(expected));
        assert_eq!(known.load("a", "secret=2"), None);
        known.retain(&["a"]);
        known.flush();
        assert_eq!(load().load("b", "x"), None);
        // A file that a newer patterm wrote is neither read nor overwritten.
        std::fs::write(&file, "{\"version\": 2, \"all\": []}").unwrap();
        let known = load();
        known.update("a", "x", &mut |known| known.modern = Some(true));
        known.flush();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"version\": 2, \"all\": []}");
    }
}
