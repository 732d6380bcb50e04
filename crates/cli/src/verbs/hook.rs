//! `patterm hook EVENT`: the command that hooks of agents' CLIs run. It passes the event on and never disturbs
//! the CLI: it prints nothing, always succeeds, and gives up soon.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_store::clock::Clock;
use patterm_wire::requests::{Hook, HookEvent};
use patterm_wire::{Framing, Id, Method, reply};
use serde_json::Value;

use crate::identity::Identity;
use crate::start;

/// Longer data is malicious.
const DATA_BYTES: u64 = 4 << 20;

/// Long enough for a server that is being replaced; a CLI must not wait longer for its hook.
const PATIENCE: Duration = Duration::from_secs(4);

/// Pass an event from a hook of an agent's CLI on to the server
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct HookVerb {
    /// The event's name
    event: String,
    /// The event's data as JSON, if it does not come on standard input
    data: Option<String>,
}

impl HookVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let now_ms = Clock::system().wall_ms();
        // Without a server there is nothing to do, and an error would disturb the CLI.
        let _ = send(self, now_ms);
        Ok(())
    }
}

fn send(hook: HookVerb, now_ms: u64) -> anyhow::Result<()> {
    let mut text = String::new();
    std::io::stdin().lock().take(DATA_BYTES).read_to_string(&mut text)?;
    // Some CLIs pass it as the last argument instead.
    let text = hook.data.as_deref().unwrap_or(&text);
    let data: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let key = std::env::var("PATTERM_PROJECT_KEY").ok();
    let Ok(Some(greeting)) = Identity::find(None).greeting(key.as_deref()) else {
        return Ok(());
    };
    let Some(mut stream) = connect(key.as_deref()) else { return Ok(()) };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // A CLI that queues its reports says when each of them happened.
    let at_ms = data.get("at_ms").and_then(Value::as_u64).unwrap_or(now_ms);
    let params = serde_json::to_string(&HookEvent { event: hook.event, data, at_ms: Some(at_ms) })?;
    let request = reply::request(&Id::from_number(1), Hook::NAME, Some(&params));
    let mut lines = format!("{greeting}\n").into_bytes();
    Framing::Newline.encode(&request, &mut lines);
    stream.write_all(&lines)?;
    // The server has it, or is gone.
    let _ = stream.read(&mut [0; 256])?;
    Ok(())
}

/// Connects to the server that the environment names, or to the project's current one.
fn connect(key: Option<&str>) -> Option<UnixStream> {
    let named = std::env::var_os("PATTERM_SOCKET").map(PathBuf::from)?;
    if let Ok(Some(stream)) = start::connect(&named) {
        return Some(stream);
    }
    let current = registry::find(key?, &RuntimeDir::candidates(Some(&named)), None);
    current.iter().find_map(|entry| start::connect(&entry.socket).ok().flatten())
}
