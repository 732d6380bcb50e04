//! Callers that wait for patterns that a flooding pane never prints.

use serde_json::json;

use super::{Cost, Growth, LINEAR, SAME, milliseconds};
use crate::cat::Cat;
use crate::peers::Multiplexer;
use crate::row::middle;
use crate::session::{Tools, Workspace};

const SIZES: [usize; 3] = [10, 100, 1_000];

/// Bytes printed while they wait.
const BYTES: usize = 20_000_000;

const ROUNDS: usize = 3;

pub(super) fn measure() -> anyhow::Result<Vec<Growth>> {
    let what = |part: &str| format!("waiters on a flood of 20 MB, 10, 100, 1,000: {part}");
    let mut printed = Growth::of(what("until it is printed"), LINEAR);
    let mut begun = Growth::new(what("starting to wait, per waiter"), "ms", SAME);
    let workspace = Workspace::new()?;
    let cat = Cat::new(&workspace, BYTES)?;
    for size in SIZES {
        let (mut times, mut spent, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut tools = workspace.connect()?;
            let (rate, cpu) = cat.once(Multiplexer::Patterm, |_, id| {
                let start = std::time::Instant::now();
                wait(&mut tools, id, size)?;
                asked.push(milliseconds(start.elapsed()) / size as f64);
                Ok(())
            })?;
            times.push(BYTES as f64 / 1e3 / rate);
            spent.push(milliseconds(cpu));
        }
        printed.push(&Cost { wall: middle(times), cpu: middle(spent) });
        begun.costs.push(middle(asked));
    }
    Ok(vec![printed, begun])
}

/// Starts to wait for this many different patterns.
fn wait(tools: &mut Tools, id: &str, count: usize) -> anyhow::Result<()> {
    for number in 0..count {
        let pattern = format!("ready on port {number}[0-9]+ .*done");
        let arguments = json!({"process_id": id, "pattern": pattern, "timeout_seconds": 600});
        tools.ask("wait_for_pattern", &arguments)?;
    }
    // Answered after the other requests were accepted.
    tools.output_offset(id).map(drop)
}
