//! Idle panes.

use std::time::Duration;

use serde_json::json;

use super::{Growth, LINEAR, SAME, cost};
use crate::proc;
use crate::session::Workspace;

const SIZES: [usize; 3] = [5, 50, 500];

/// Additional panes that are started and closed to measure it.
const MORE: usize = 9;

const TABLE: &str = "the whole table is written twice, 0.4 kB per process; the limit is 1,000";

/// Long enough for startup work to finish.
const SETTLE: Duration = Duration::from_secs(12);

pub(super) fn measure() -> anyhow::Result<Vec<Growth>> {
    let what = |part: &str| format!("panes, 5, 50, 500: {part}");
    let mut spawn = Growth::of(what("one more"), LINEAR).because(TABLE);
    let mut close = Growth::of(what("closing one"), LINEAR).because(TABLE);
    let mut memory = Growth::new(what("server memory without files, per pane"), "MiB", SAME);
    let mut screen = Growth::of(what("reading one screen"), SAME);
    let mut status = Growth::of(what("the status of one"), SAME);
    let mut list = Growth::of(what("list_processes"), LINEAR);
    let mut verb = Growth::of(what("`patterm ps`"), LINEAR);
    let workspace = Workspace::new()?;
    let mut tools = workspace.connect()?;
    // The first also starts the keeper and everything that exists once.
    let mut ids = vec![tools.spawn(&["sleep", "1000000"])?];
    let server = [workspace.server, proc::keeper(workspace.folder())?];
    proc::pause(SETTLE);
    let one = proc::memory_mib(workspace.server, "Anonymous:")?;
    for size in SIZES {
        while ids.len() < size {
            ids.push(tools.spawn(&["sleep", "1000000"])?);
        }
        proc::pause(SETTLE);
        let full = proc::memory_mib(workspace.server, "Anonymous:")?;
        memory.costs.push((full - one) / (size - 1) as f64);
        let some = json!({"process_id": ids[size / 2]});
        screen.push(&cost(&server, 100, |_| tools.call("get_process_output", &some).map(drop))?);
        status.push(&cost(&server, 100, |_| tools.call("get_process_status", &some).map(drop))?);
        list.push(&cost(&server, 20, |_| tools.call("list_processes", &json!({})).map(drop))?);
        verb.push(&cost(&server, 9, |_| {
            let listed = workspace.patterm(&["ps"]).output()?;
            anyhow::ensure!(listed.status.success(), "{listed:?}");
            Ok(())
        })?);
        let mut more = Vec::new();
        spawn.push(&cost(&server, MORE, |_| {
            more.push(tools.spawn(&["sleep", "1000000"])?);
            Ok(())
        })?);
        close.push(&cost(&server, MORE, |round| {
            tools.call("close_process", &json!({"process_id": more[round]})).map(drop)
        })?);
    }
    Ok(vec![spawn, close, memory, screen, status, list, verb])
}
