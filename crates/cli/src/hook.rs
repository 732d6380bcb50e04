//! `patterm hook EVENT`: what the hooks of agents' CLIs run. It passes on what it is given and never
//! disturbs the CLI: it prints nothing, always succeeds, and gives up soon.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use patterm_host::HOOK_METHOD;
use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_wire::{Framing, Id, reply};
use serde_json::{Value, json};

use crate::args::Hook;
use crate::identity::Identity;
use crate::start;

/// What a hook is given is longer only where somebody means harm.
const GIVEN_BYTES: u64 = 4 << 20;

/// A server that is being replaced answers again by then; the CLI waits no longer for its hook.
const PATIENCE: Duration = Duration::from_secs(4);

pub(crate) fn run(options: &Hook) {
    // Without a server to tell there is nothing to do, and nobody to say it to.
    let _ = tell(options);
}

fn tell(options: &Hook) -> anyhow::Result<()> {
    let mut text = String::new();
    std::io::stdin().lock().take(GIVEN_BYTES).read_to_string(&mut text)?;
    // Some CLIs give it as the last argument instead.
    let text = options.given.as_deref().unwrap_or(&text);
    let given: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let key = std::env::var("PATTERM_PROJECT_KEY").ok();
    let Ok(Some(greeting)) = Identity::find(None).greeting(key.as_deref()) else {
        return Ok(());
    };
    let Some(mut stream) = connect(key.as_deref()) else { return Ok(()) };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let params = json!({"event": options.event, "given": given}).to_string();
    let request = reply::request(&Id::from_number(1), HOOK_METHOD, Some(&params));
    let mut lines = format!("{greeting}\n").into_bytes();
    Framing::Newline.encode(&request, &mut lines);
    stream.write_all(&lines)?;
    // Heard, or the server is gone.
    let _ = stream.read(&mut [0; 256])?;
    Ok(())
}

/// The server: where the environment says, or where the project's present one is.
fn connect(key: Option<&str>) -> Option<UnixStream> {
    let named = std::env::var_os("PATTERM_SOCKET").map(PathBuf::from)?;
    if let Ok(Some(stream)) = start::connect(&named) {
        return Some(stream);
    }
    let present = registry::find(key?, &RuntimeDir::candidates(Some(&named)), None);
    present.iter().find_map(|entry| start::connect(&entry.socket).ok().flatten())
}
