//! Timers that are not due soon.

use serde_json::{Value, json};

use super::{Growth, LINEAR, SAME, cost};
use crate::proc;
use crate::session::{Tools, Workspace};

const SIZES: [usize; 3] = [10, 100, 1_000];

/// An owner may have up to a hundred, including those that are measured.
const OWNERS: usize = 12;

/// Timers that are set, fired and cancelled to measure it; they reach the project's limit.
const MORE: usize = 9;

const BOOK: &str = "the whole file of timers is written; the limit is 1,000";

/// A realistic text.
const BODY: &str = "Check whether the build is done, and tell the others the result.";

pub(super) fn measure() -> anyhow::Result<Vec<Growth>> {
    let what = |part: &str| format!("timers, 10, 100, 1,000: {part}");
    let mut set = Growth::of(what("setting one"), LINEAR).because(BOOK);
    let mut cancel = Growth::of(what("cancelling one"), LINEAR).because(BOOK);
    let mut fire = Growth::of(what("firing one, until its text arrives"), LINEAR).because(BOOK);
    let mut list = Growth::of(what("timer_list"), LINEAR);
    let mut memory = Growth::new(what("server memory without files"), "MiB", SAME);
    let workspace = Workspace::new()?;
    let mut tools = workspace.connect()?;
    let server = [workspace.server];
    let owners: Vec<String> =
        (0..OWNERS).map(|_| tools.spawn(&["cat"])).collect::<Result<_, _>>()?;
    let mut count = 0;
    let mut fired = 0;
    for size in SIZES {
        while count < size - MORE {
            timer(&mut tools, &owners[count % (OWNERS - 1)], 1e6, BODY)?;
            count += 1;
        }
        let owner = &owners[OWNERS - 1];
        let mut ids = Vec::new();
        set.push(&cost(&server, MORE, |_| {
            ids.push(timer(&mut tools, owner, 1e6, BODY)?);
            Ok(())
        })?);
        list.push(&cost(&server, 20, |_| tools.call("timer_list", &json!({})).map(drop))?);
        cancel.push(&cost(&server, MORE, |round| {
            tools.call("timer_cancel", &json!({"timer_id": ids[round]})).map(drop)
        })?);
        fire.push(&cost(&server, MORE, |_| {
            fired += 1;
            let body = format!("fired-{fired}-now");
            timer(&mut tools, owner, 0.0, &body)?;
            let wait = json!({"process_id": owner, "pattern": body, "scope": "scrollback"});
            let waited = tools.call("wait_for_pattern", &wait)?;
            anyhow::ensure!(waited["matched"] == true, "{waited}");
            Ok(())
        })?);
        memory.costs.push(proc::memory_mib(workspace.server, "Anonymous:")?);
    }
    Ok(vec![set, cancel, fire, list, memory])
}

/// Sets a timer; returns its id.
fn timer(tools: &mut Tools, owner: &str, seconds: f64, body: &str) -> anyhow::Result<Value> {
    let arguments = json!({"seconds": seconds, "body": body, "owner_process_id": owner});
    Ok(tools.call("timer_set", &arguments)?["timer_id"].take())
}
