//! What is known of shared servers from earlier lives, in the project's state: one that was probed is
//! not probed at every start, and its last list of tools answers before it has started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use patterm_gateway::{Memory, Remembered};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

use patterm_store::state;

/// The file. Lists of tools stand in it as their servers wrote them.
pub(super) const FILE: &str = "servers.json";
const VERSION: u32 = 1;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Content {
    servers: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Entry {
    /// Of everything that makes it another server; variables with secrets are among it.
    digest: String,
    #[serde(flatten)]
    known: Remembered,
}

/// The memory of a project's shared servers.
pub(super) struct KnownServers(Arc<Inner>);

struct Inner {
    file: PathBuf,
    held: Mutex<Content>,
    /// What is held is not on the disk, and somebody writes it.
    is_due: AtomicBool,
    writing: Mutex<()>,
    /// A file of a newer version is left alone.
    is_foreign: bool,
    runtime: Handle,
}

impl KnownServers {
    /// Reads what is known. Whatever is wrong with the file, servers are asked as if they were new.
    pub(super) fn load(file: PathBuf, runtime: Handle) -> Self {
        let read = state::read::<Content>(&file, VERSION);
        let is_foreign = read.is_err();
        let held = read.unwrap_or_else(|error| {
            tracing::error!(%error, "what is known of shared servers cannot be read");
            None
        });
        Self(Arc::new(Inner {
            file,
            held: Mutex::new(held.unwrap_or_default()),
            is_due: AtomicBool::new(false),
            writing: Mutex::default(),
            is_foreign,
            runtime,
        }))
    }

    /// Writes what is not on the disk yet.
    pub(super) fn flush(&self) {
        self.0.write();
    }

    fn held(&self) -> MutexGuard<'_, Content> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
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
        let content = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(error) = state::write(&self.file, VERSION, &content) {
            tracing::error!(%error, "what is known of shared servers is not kept");
        }
    }
}

impl Memory for KnownServers {
    fn recall(&self, server: &str, fingerprint: &str) -> Option<Remembered> {
        let held = self.held();
        let entry = held.servers.get(server)?;
        (entry.digest == digest(fingerprint)).then(|| entry.known.clone())
    }

    fn remember(&self, server: &str, fingerprint: &str, change: &mut dyn FnMut(&mut Remembered)) {
        let digest = digest(fingerprint);
        let mut held = self.held();
        let before = held.servers.get(server).filter(|entry| entry.digest == digest);
        let before = before.map(|entry| entry.known.clone());
        let mut known = before.clone().unwrap_or_default();
        change(&mut known);
        if before.as_ref() == Some(&known) {
            return;
        }
        held.servers.insert(server.to_owned(), Entry { digest, known });
        drop(held);
        self.write_soon();
    }

    fn keep_only(&self, servers: &[&str]) {
        let mut held = self.held();
        let before = held.servers.len();
        held.servers.retain(|name, _| servers.contains(&name.as_str()));
        let is_less = held.servers.len() < before;
        drop(held);
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
    async fn what_is_known_is_there_in_the_next_life_unless_it_is_another_server() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let file = dir.path().join(FILE);
        let load = || KnownServers::load(file.clone(), Handle::current());
        let known = load();
        known.remember("a", "secret=1", &mut |known| known.modern = Some(false));
        known.remember("a", "secret=1", &mut |known| known.tools = Some(vec!["{}".into()]));
        known.remember("b", "x", &mut |known| known.version = Some("2".into()));
        known.flush();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        let known = load();
        let tools = Some(vec!["{}".to_owned()]);
        let expected = Remembered { modern: Some(false), tools, ..Remembered::default() };
        assert_eq!(known.recall("a", "secret=1"), Some(expected));
        assert_eq!(known.recall("a", "secret=2"), None);
        known.keep_only(&["a"]);
        known.flush();
        assert_eq!(load().recall("b", "x"), None);
        // One that a newer patterm wrote is neither read nor written.
        std::fs::write(&file, "{\"version\": 2, \"all\": []}").unwrap();
        let known = load();
        known.remember("a", "x", &mut |known| known.modern = Some(true));
        known.flush();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"version\": 2, \"all\": []}");
    }
}
