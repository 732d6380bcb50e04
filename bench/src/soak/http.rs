//! HTTP clients, a shared server that is killed and stopped, and proxies.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Worker;
use super::agents::until;
use super::harness::Harness;
use crate::client::Client;
use crate::proc;
use crate::session::Session;

/// A client of patterm's own tools, and clients that make a single call.
pub(super) struct Own {
    harness: Arc<Harness>,
    client: Client,
    steps: usize,
}

const OWN: &str = "/mcp";
const SHARED: &str = "/servers/plain/mcp";

impl Own {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        let client = Client::connect(harness.port, OWN, &harness.token)?;
        Ok(Self { harness: harness.clone(), client, steps: 0 })
    }
}

impl Worker for Own {
    const NAME: &str = "HTTP, our tools";
    const PAUSE: Duration = Duration::from_secs(1);

    fn step(&mut self) -> anyhow::Result<()> {
        self.steps += 1;
        let id = &self.harness.drawings[self.steps % self.harness.drawings.len()];
        self.client.call("get_process_output", &json!({"process_id": id}))?;
        self.client.call("list_processes", &json!({}))?;
        self.harness.journal.add("HTTP calls of patterm's tools", 2);
        if self.steps.is_multiple_of(5) {
            let path = [OWN, SHARED][self.steps / 5 % 2];
            let mut client = Client::connect(self.harness.port, path, &self.harness.token)?;
            if path == OWN {
                client.call("whoami", &json!({}))?;
            }
            client.end()?;
            self.harness.journal.did("HTTP sessions opened and closed");
        }
        Ok(())
    }
}

/// A client of the shared server, which is sometimes killed and sometimes stopped for being idle.
pub(super) struct Shared {
    harness: Arc<Harness>,
    client: Client,
    steps: usize,
}

impl Shared {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        let client = Client::connect(harness.port, SHARED, &harness.token)?;
        Ok(Self { harness: harness.clone(), client, steps: 0 })
    }

    fn call(&mut self) -> anyhow::Result<()> {
        let words = format!("words {}", self.steps);
        let said = self.client.call("echo", &json!({"text": words}))?;
        anyhow::ensure!(said["content"][0]["text"] == words.as_str(), "{said}");
        Ok(())
    }
}

impl Worker for Shared {
    const NAME: &str = "HTTP, the shared server";
    const PAUSE: Duration = Duration::from_secs(1);

    fn step(&mut self) -> anyhow::Result<()> {
        self.steps += 1;
        self.call()?;
        self.harness.journal.did("HTTP calls of the shared server");
        if self.steps.is_multiple_of(40) {
            let folder = self.harness.workspace.folder();
            let is_server = |pid: &u32| {
                proc::link(*pid, "exe").is_some_and(|exe| exe.ends_with("plain-server"))
            };
            for pid in proc::processes_in(folder).into_iter().filter(is_server) {
                let mut kill = self.harness.workspace.command(Path::new("kill"));
                kill.args(["-9", &pid.to_string()]).status()?;
            }
            // Calls at that moment fail; the server is restarted after a while.
            until("the shared server is back", || Ok(self.call().map_err(|why| why.to_string())))?;
            self.harness.journal.did("shared server killed and restarted");
        }
        // Long enough for it to be stopped, and started again.
        if self.steps.is_multiple_of(97) {
            self.harness.journal.rest(Duration::from_secs(25));
        }
        Ok(())
    }
}

/// Stdio clients that start, make a call, and are killed.
pub(super) struct Proxies {
    harness: Arc<Harness>,
}

impl Proxies {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        Ok(Self { harness: harness.clone() })
    }
}

impl Worker for Proxies {
    const NAME: &str = "proxies";
    const PAUSE: Duration = Duration::from_secs(5);

    fn step(&mut self) -> anyhow::Result<()> {
        let mut proxy = Session::start(&mut self.harness.workspace.patterm(&["mcp-stdio"]))?;
        proxy.handshake()?;
        proxy.send(
            "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\
             \"name\":\"whoami\",\"arguments\":{}}}\n",
        )?;
        // Notifications may arrive before the response.
        loop {
            let line = proxy.receive()?;
            if line.contains("\"id\":3") {
                anyhow::ensure!(line.contains("external"), "{line}");
                break;
            }
        }
        self.harness.journal.did("proxies started and killed");
        Ok(())
    }
}
