//! Output of one pane.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Cost, Growth, LINEAR, SAME, cost, milliseconds, settle};
use crate::row::median;
use crate::session::{Tools, Workspace};
use crate::{proc, text};

const SIZES: [usize; 3] = [1_000_000, 10_000_000, 100_000_000];

/// Room for all of it.
const LOG_BYTES: u64 = 256 << 20;

/// Repetitions; the median counts.
const ROUNDS: [usize; 3] = [7, 5, 3];

pub(super) fn measure() -> anyhow::Result<Vec<Growth>> {
    let what = |part: &str| format!("output, 1, 10, 100 MB in a pane: {part}");
    let mut printed = Growth::of(what("until all of it is stored"), LINEAR);
    let mut memory = Growth::new(what("server memory without files"), "MiB", LINEAR);
    let mut screen = Growth::of(what("reading the screen"), SAME);
    let mut tail = Growth::of(what("reading the last 64 kB"), SAME);
    let mut search = Growth::of(what("a raw search"), LINEAR);
    let mut rendered = Growth::of(what("a search in the history"), LINEAR);
    for (bytes, rounds) in SIZES.into_iter().zip(ROUNDS) {
        let workspace = Workspace::with_log_bytes(LOG_BYTES)?;
        let server = [workspace.server];
        let mut tools = workspace.connect()?;
        let (mut walls, mut spent) = (Vec::new(), Vec::new());
        let mut last = String::new();
        for _ in 0..rounds {
            let before = proc::cpu_precisely(workspace.server);
            let (id, wall) = print(&workspace, &mut tools, bytes)?;
            walls.push(wall);
            spent.push(proc::cpu_precisely(workspace.server) - before);
            if !last.is_empty() {
                tools.call("close_process", &json!({"process_id": last}))?;
            }
            last = id;
        }
        settle(workspace.server);
        let [wall, cpu] = [walls, spent].map(|times| milliseconds(median(times)));
        printed.push(&Cost { wall, cpu });
        memory.costs.push(proc::memory_mib(workspace.server, "Anonymous:")?);
        let id = json!({"process_id": last});
        screen.push(&cost(&server, 50, |_| tools.call("get_process_output", &id).map(drop))?);
        let since = tools.output_offset(&last)?.saturating_sub(64 << 10);
        let raw = json!({"process_id": last, "since_offset": since});
        tail.push(&cost(&server, 20, |_| tools.call("get_process_raw_output", &raw).map(drop))?);
        for (kind, growth) in [("raw", &mut search), ("rendered", &mut rendered)] {
            let arguments = json!({"process_id": last, "pattern": "connection r", "kind": kind});
            growth.push(&cost(&server, 7, |_| tools.call("search_output", &arguments).map(drop))?);
        }
    }
    Ok(vec![printed, memory, screen, tail, search, rendered])
}

/// Prints a file in a pane; returns the pane, and how long it took.
fn print(
    workspace: &Workspace,
    tools: &mut Tools,
    bytes: usize,
) -> anyhow::Result<(String, Duration)> {
    let file = workspace.folder().join("text");
    if !file.exists() {
        text::write(&file, bytes)?;
    }
    let length = std::fs::metadata(&file)?.len();
    // Without carriage returns, the log is identical to the file.
    let line = format!("stty -onlcr; echo ready; read x; exec cat {}", file.display());
    let id = tools.spawn(&["sh", "-c", &line])?;
    tools.call("wait_for_pattern", &json!({"process_id": id, "pattern": "ready"}))?;
    let arguments = json!({"process_id": id, "kind": "key", "key": "enter"});
    let start = Instant::now();
    tools.call("send_input", &arguments)?;
    let ended = json!({"process_id": id, "pattern": "never so", "timeout_seconds": 120});
    let ended = tools.call("wait_for_pattern", &ended)?;
    anyhow::ensure!(ended["exited"] == true, "{ended}");
    anyhow::ensure!(tools.output_offset(&id)? >= length, "not all of it is there");
    Ok((id, start.elapsed()))
}
