//! Shared MCP servers: what the project file and the user's settings name, run by the gateway on a
//! thread of its own, so that a busy server delays nobody's keys.

mod door;
mod made;
mod spawner;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use patterm_gateway::{Catalogue, Gateway, ServerStatus};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::host::Host;
use crate::project_file::{ServerDefinition, ToolFilter};

pub(crate) use door::Door;

/// The shared servers of a project.
pub(crate) struct Shared {
    gateway: Gateway,
    catalogue: Catalogue,
    runtime: Handle,
    /// Ends the thread.
    end: CancellationToken,
    named: Mutex<Named>,
}

/// What is named.
#[derive(Debug, Default)]
struct Named {
    servers: BTreeMap<String, ServerDefinition>,
    /// Servers that cannot be run as they are written, and why.
    faults: BTreeMap<String, String>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("servers", &self.gateway.names()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Starts the thread; no server runs before one is needed.
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let until = end.clone();
        let body = move || runtime.block_on(until.cancelled());
        std::thread::Builder::new().name("patterm-gateway".into()).spawn(body)?;
        let gateway = Gateway::default();
        let catalogue = Catalogue::new(gateway.clone());
        Ok(Self { gateway, catalogue, runtime: handle, end, named: Mutex::default() })
    }

    /// The gateway itself; what it does, it does on this runtime.
    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Whether there is any.
    pub(crate) fn is_empty(&self) -> bool {
        self.named().servers.is_empty()
    }

    /// Which tools of a server are shown, to whom.
    pub(crate) fn filter(&self, server: &str) -> ToolFilter {
        self.named().servers.get(server).map(|server| server.tools.clone()).unwrap_or_default()
    }

    /// How they stand, those that cannot be run among them.
    pub(crate) fn status(&self) -> Vec<(String, String, ServerStatus)> {
        let mut all = self.gateway.status();
        for (name, fault) in &self.named().faults {
            let mut status = ServerStatus::asleep();
            status.state = "failed";
            status.last_error = Some(fault.clone());
            all.push((name.clone(), String::new(), status));
        }
        all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        all
    }

    /// What is named of a server.
    pub(crate) fn definition(&self, server: &str) -> Option<ServerDefinition> {
        self.named().servers.get(server).cloned()
    }

    /// Ends all of them, and the thread.
    pub(crate) async fn end(&self) {
        let gateway = self.gateway.clone();
        let _ = self.runtime.spawn(async move { gateway.end().await }).await;
        self.end.cancel();
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Host {
    /// Makes the shared servers those that the project file and the user's settings name now. Calls
    /// in flight to those that are gone or changed finish.
    pub(crate) fn configure_shared(self: &Arc<Self>) {
        self.configure_http();
        let mut servers = self.servers_of_the_user();
        if let Some(file) = self.declared.effect() {
            servers.extend(file.servers.clone());
        }
        let shared = &self.shared;
        if shared.named().servers == servers {
            return;
        }
        let (mut wanted, mut faults) = (BTreeMap::new(), BTreeMap::new());
        for (name, server) in &servers {
            match made::wanted(self, name, server) {
                Ok(made) => drop(wanted.insert(name.clone(), made)),
                Err(fault) => {
                    tracing::error!(server = name, fault, "a shared server cannot be run");
                    faults.insert(name.clone(), fault);
                }
            }
        }
        let before = std::mem::replace(&mut *shared.named(), Named { servers, faults });
        let _runtime = shared.runtime.enter();
        shared.gateway.configure(wanted);
        let now = shared.named().servers.clone();
        shared.catalogue.forget(|server| before.servers.get(server) != now.get(server));
    }
}
