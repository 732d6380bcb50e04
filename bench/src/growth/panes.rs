//! Panes that do nothing.

use std::time::Duration;

use serde_json::json;

use super::{Growth, LINEAR, SAME, cost};
use crate::proc;
use crate::session::Place;

const SIZES: [usize; 3] = [5, 50, 500];

/// Started beyond that to take the time, and closed again.
const MORE: usize = 9;

const TABLE: &str =
    "the table of all is written whole twice, 0.4 kB of each; there are up to 1,000";

/// Long enough for what a start leaves behind to be done.
const SETTLE: Duration = Duration::from_secs(12);

pub(super) fn measure() -> anyhow::Result<Vec<Growth>> {
    let what = |part: &str| format!("panes, 5, 50, 500: {part}");
    let mut spawn = Growth::of(what("one more"), LINEAR).because(TABLE);
    let mut close = Growth::of(what("closing one"), LINEAR).because(TABLE);
    let mut memory = Growth::new(what("server memory without files, for each"), "MiB", SAME);
    let mut screen = Growth::of(what("a look at one screen"), SAME);
    let mut status = Growth::of(what("the status of one"), SAME);
    let mut list = Growth::of(what("list_processes"), LINEAR);
    let mut verb = Growth::of(what("`patterm ps`"), LINEAR);
    let place = Place::new()?;
    let mut tools = place.connect()?;
    // The first brings the keeper, and what there is only once.
    let mut ids = vec![tools.spawn(&["sleep", "1000000"])?];
    let server = [place.server, proc::keeper(place.folder())?];
    proc::pause(SETTLE);
    let one = proc::memory_mib(place.server, "Anonymous:")?;
    for size in SIZES {
        while ids.len() < size {
            ids.push(tools.spawn(&["sleep", "1000000"])?);
        }
        proc::pause(SETTLE);
        let full = proc::memory_mib(place.server, "Anonymous:")?;
        memory.costs.push((full - one) / (size - 1) as f64);
        let some = json!({"process_id": ids[size / 2]});
        screen.push(&cost(&server, 100, |_| tools.call("get_process_output", &some).map(drop))?);
        status.push(&cost(&server, 100, |_| tools.call("get_process_status", &some).map(drop))?);
        list.push(&cost(&server, 20, |_| tools.call("list_processes", &json!({})).map(drop))?);
        verb.push(&cost(&server, 9, |_| {
            let listed = place.patterm(&["ps"]).output()?;
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
