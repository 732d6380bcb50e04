//! Servers: in this process, where a test can access their state, or the real binary, which can be
//! killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use patterm_agents::identity::Token;

use patterm_host::{Host, Server, Settings};
use patterm_panes::process::{Kind, Process, ProcessId};
use patterm_wire::requests::ServerEntry;
use rustix::process::Signal;
use tokio_util::sync::CancellationToken;

use super::peer::{Peer, Transport};
use super::place::Place;
use super::running::Running;

/// A server on a thread of this process.
pub(crate) struct Serving {
    host: Arc<Host>,
    shutdown: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub(super) fn start(settings: Settings) -> Self {
        // The real server does the same.
        patterm_keeper::memory::return_large_blocks();
        let server = Server::start(settings).unwrap();
        let (host, shutdown) = (server.host().clone(), server.shutdown());
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(server.run()).unwrap();
        });
        Self { host, shutdown, thread: Some(thread) }
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.host.socket
    }

    /// A client of this server; its proxy has the same message limit as the server.
    pub(crate) fn connect(&self, transport: Transport) -> Peer {
        let limit = format!("--max-message-bytes={}", self.host.limits.message_bytes);
        Peer::connect_with(transport, self.socket(), &[limit])
    }

    /// Adds an agent with a token.
    pub(crate) fn agent(&self, name: &str, parent: Option<&ProcessId>) -> (Process, Token) {
        let process = self.host.panes.processes.add(name, Kind::Agent, parent.cloned()).unwrap();
        let token = self.host.identities.issue(&process.id).unwrap();
        (process, token)
    }

    /// Requests the server's shutdown; it finishes calls in flight first.
    pub(crate) fn begin_stop(&self) {
        self.shutdown.cancel();
    }

    /// Shuts the server down and waits for it.
    pub(crate) fn stop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic on that thread has been printed already; a second one here would hide it.
            let _ = thread.join();
        }
    }
}

/// The real server in the background.
pub(crate) struct Spawned {
    pub(crate) entry: ServerEntry,
}

impl Spawned {
    pub(super) fn start(place: &Place) -> Self {
        let output = place.run(&["serve", "--json"]);
        Self { entry: serde_json::from_str(&output).unwrap() }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.entry.socket.clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.entry.pid
    }

    /// `kill -9`, and waits until the process is gone.
    pub(crate) fn kill(&self) {
        self.end_with(Signal::KILL);
    }

    /// Sends a signal and waits until the process is gone.
    pub(crate) fn end_with(&self, signal: Signal) {
        let process = self.process();
        process.signal(signal);
        process.wait();
    }

    /// The server's process, which must be alive.
    pub(crate) fn process(&self) -> Running {
        Running::of(self.entry.pid)
    }

    /// A client of this server.
    pub(crate) fn connect(&self, transport: Transport) -> Peer {
        Peer::connect(transport, &self.entry.socket)
    }
}
