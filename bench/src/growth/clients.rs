//! Clients over HTTP, each with a connection and a session.

use anyhow::Context;
use serde_json::json;

use super::{Growth, LINEAR, SAME, cost};
use crate::client::Client;
use crate::proc;
use crate::session::Workspace;

const SIZES: [usize; 3] = [1, 10, 100];

/// Rounds in which each client calls once.
const CALLS: usize = 200;

pub(super) fn measure() -> anyhow::Result<Vec<Growth>> {
    let mut all = Vec::new();
    for path in ["/mcp", "/servers/plain/mcp"] {
        let what = |part: &str| format!("clients of `{path}`, 1, 10, 100: {part}");
        let mut begin = Growth::of(what("opening a session"), SAME);
        let mut call = Growth::of(what("a call"), SAME);
        let mut memory = Growth::new(what("server memory per client"), "KiB", SAME);
        let mut descriptors = Growth::new(what("descriptors of the server"), "", LINEAR);
        for size in SIZES {
            let plain = std::env::current_exe()?.with_file_name("plain-server");
            let settings = format!("[servers.plain]\ncommand = [{plain:?}]\n");
            let workspace = Workspace::serving(&["--http", "127.0.0.1:0"], &settings)?;
            let server = [workspace.server];
            let token = workspace.patterm(&["token", "new", "bench"]).output()?;
            let token = String::from_utf8(token.stdout)?.trim().to_owned();
            let port = workspace.http.context("the endpoint is not open")?.port();
            let (tool, arguments) = match path {
                "/mcp" => ("timer_list", json!({})),
                _ => ("echo", json!({"text": "a word"})),
            };
            // The first starts the server.
            let mut first = Client::connect(port, path, &token)?;
            first.call(tool, &arguments)?;
            let before = proc::memory_mib(workspace.server, "Anonymous:")?;
            let mut clients = Vec::new();
            while clients.len() < size {
                clients.push(Client::connect(port, path, &token)?);
            }
            let mut more = Vec::new();
            begin.push(&cost(&server, 9, |_| {
                more.push(Client::connect(port, path, &token)?);
                Ok(())
            })?);
            more.into_iter().try_for_each(Client::end)?;
            let count = CALLS.max(size * 5);
            call.push(&cost(&server, count, |round| {
                clients[round % size].call(tool, &arguments).map(drop)
            })?);
            let after = proc::memory_mib(workspace.server, "Anonymous:")?;
            memory.costs.push((after - before) * 1024.0 / size as f64);
            descriptors.costs.push(proc::entries(workspace.server, "fd"));
        }
        all.extend([begin, call, memory, descriptors]);
    }
    Ok(all)
}
