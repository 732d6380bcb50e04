//! The screens of random moments of a full log.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::row::{Row, Target, quantile};
use crate::session::Workspace;
use crate::{Measured, proc, text};

/// The default size of a log.
const LOG_BYTES: usize = 64 << 20;

/// Moments that are looked at, spread over the log by a step that has no common divisor with their number.
const MOMENTS: u64 = 200;
const STEP: u64 = 83;

/// How much of the log may be gone: the oldest of its segments.
const GONE: u64 = 16 << 20;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let workspace = Workspace::with_log_bytes(LOG_BYTES as u64)?;
    let file = workspace.folder().join("text");
    text::write(&file, LOG_BYTES)?;
    let mut tools = workspace.connect()?;
    let line = format!("stty -onlcr; cat {}; exec cat", file.display());
    let id = tools.spawn(&["sh", "-c", &line])?;
    let end = std::fs::metadata(&file)?.len();
    while tools.output_offset(&id)? < end {
        proc::pause(Duration::from_millis(50));
    }
    let mut times = Vec::new();
    for number in 0..MOMENTS {
        let at = GONE + (end - GONE) * (number * STEP % MOMENTS) / MOMENTS;
        let start = Instant::now();
        tools.call("get_process_output", &json!({"process_id": id, "at": at}))?;
        times.push(start.elapsed());
    }
    let what = |part: &str| format!("a screen at a moment of a log of 64 MiB: {part}");
    let millis = |part| quantile(times.clone(), part).as_secs_f64() * 1e3;
    let target = Target::AtMost(100.0);
    Ok(vec![
        Row::number(what("median"), millis(0.5), "ms", target),
        Row::number(what("maximum"), millis(1.0), "ms", target),
    ]
    .into())
}
