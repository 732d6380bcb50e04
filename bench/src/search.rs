//! `search_output` over the raw bytes of a long log, against ripgrep on the same bytes.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::Measured;
use crate::cat::BYTES;
use crate::peers::is_installed;
use crate::proc;
use crate::row::{Row, Target, median};
use crate::session::Workspace;
use crate::text;

const ROUNDS: usize = 7;

/// Room for the file and the last segment of a log.
const LOG_BYTES: u64 = 256 << 20;

/// A rare word, a pattern with a few matches, and one that is in every eighth line.
const PATTERNS: [&str; 3] =
    ["connection refused", r"refused by \d+\.\d+\.\d+\.\d+:5432", "INFO.*panicked"];

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let target = Target::AtMost(1.0);
    let what = |pattern: &str| format!("raw search over 100 MB: `{pattern}`");
    if !is_installed("rg") {
        let rows = PATTERNS.map(|pattern| Row::missing(what(pattern), "ripgrep", target));
        return Ok(rows.to_vec().into());
    }
    let workspace = Workspace::with_log_bytes(LOG_BYTES)?;
    let file = workspace.folder().join("text");
    text::write(&file, BYTES)?;
    let mut tools = workspace.connect()?;
    // Without carriage returns, the log is identical to the file.
    let line = format!("stty -onlcr; cat {}", file.display());
    let id = tools.spawn(&["sh", "-c", &line])?;
    let length = std::fs::metadata(&file)?.len();
    while tools.output_offset(&id)? < length {
        proc::pause(std::time::Duration::from_millis(50));
    }
    let mut rows = Vec::new();
    for pattern in PATTERNS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let arguments = json!({"process_id": id, "pattern": pattern, "kind": "raw"});
            let start = Instant::now();
            let found = tools.call("search_output", &arguments)?;
            ours.push(start.elapsed());
            let mut rg = workspace.command(Path::new("rg"));
            rg.args(["--no-config", "-c", pattern]).arg(&file);
            let start = Instant::now();
            let counted = rg.output()?;
            theirs.push(start.elapsed());
            let counted = String::from_utf8_lossy(&counted.stdout).trim().parse::<u64>().ok();
            anyhow::ensure!(found["total"].as_u64() == counted, "{found} is not {counted:?}");
        }
        rows.push(Row::times(what(pattern), median(ours), ("ripgrep", median(theirs)), target));
    }
    Ok(rows.into())
}
