//! A flooding pane with a thousand waiting callers, compared with the same pane without waiters.

use serde_json::json;

use crate::Measured;
use crate::cat::Cat;
use crate::peers::Multiplexer;
use crate::row::{Row, Target, middle};
use crate::session::{Tools, Workspace};

const WAITERS: usize = 1_000;

const ROUNDS: usize = 5;

/// Bytes printed in a turn.
const BYTES: usize = 50_000_000;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let workspace = Workspace::new()?;
    let cat = Cat::new(&workspace, BYTES)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let (mut time_with, mut time_without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut connection = workspace.connect()?;
        let (rate, cpu) = cat.once(Multiplexer::Patterm, |_, id| wait(&mut connection, id))?;
        with.push(rate);
        time_with.push(cpu.as_secs_f64());
        let (rate, cpu) = cat.once(Multiplexer::Patterm, |_, _| Ok(()))?;
        without.push(rate);
        time_without.push(cpu.as_secs_f64());
    }
    let (with, without) = (middle(with), middle(without));
    let (time_with, time_without) = (middle(time_with), middle(time_without));
    let row = |what: &str, ours: f64, peer: f64, unit: &str, target| {
        Row::ratio(what, ours, ("no waiters", peer), unit, target)
    };
    // The third thread shares two cores with `cat`, the reader and the parser.
    let target = Target::AtLeast(0.8);
    Ok(vec![
        row("a flood with 1,000 waiters: throughput", with, without, "MB/s", target),
        row("the same: CPU time of the server", time_with, time_without, "s", Target::Less),
    ]
    .into())
}

/// Starts to wait for a thousand different patterns that never match.
fn wait(tools: &mut Tools, id: &str) -> anyhow::Result<()> {
    for number in 0..WAITERS {
        let pattern = format!("ready on port {number}[0-9]+ .*done");
        let arguments = json!({"process_id": id, "pattern": pattern, "timeout_seconds": 600});
        tools.ask("wait_for_pattern", &arguments)?;
    }
    // Answered after the other requests were accepted.
    let seen = tools.output_offset(id)?;
    anyhow::ensure!(seen < 1 << 20, "the flood has already begun");
    Ok(())
}
