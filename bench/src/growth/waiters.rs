//! Callers that wait for something a flooding pane never prints.

use serde_json::json;

use super::{Cost, Growth, LINEAR, SAME, milliseconds};
use crate::cat::Cat;
use crate::peers::Keeper;
use crate::row::middle;
use crate::session::{Place, Tools};

const SIZES: [usize; 3] = [10, 100, 1_000];

/// Bytes printed while they wait.
const BYTES: usize = 20_000_000;

const ROUNDS: usize = 3;

pub(super) fn measure() -> anyhow::Result<Vec<Growth>> {
    let what = |part: &str| format!("waiters on a flood of 20 MB, 10, 100, 1,000: {part}");
    let mut printed = Growth::of(what("until it is printed"), LINEAR);
    let mut begun = Growth::new(what("beginning to wait, for each"), "ms", SAME);
    let place = Place::new()?;
    let cat = Cat::new(&place, BYTES)?;
    for size in SIZES {
        let (mut times, mut spent, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut tools = place.connect()?;
            let (rate, cpu) = cat.once(Keeper::Patterm, |_, id| {
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

/// Begins to wait for so many different things.
fn wait(tools: &mut Tools, id: &str, count: usize) -> anyhow::Result<()> {
    for number in 0..count {
        let pattern = format!("ready on port {number}[0-9]+ .*done");
        let arguments = json!({"process_id": id, "pattern": pattern, "timeout_seconds": 600});
        tools.ask("wait_for_pattern", &arguments)?;
    }
    // Answered after the others were taken.
    tools.output_offset(id).map(drop)
}
