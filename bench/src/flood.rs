//! 200 panes that all print as fast as they can: how long a look at a screen takes, whether each
//! pane gets its share, and what the server's memory comes to.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::proc;
use crate::row::{Bar, Row, quantile};
use crate::session::Place;
use crate::{Measured, long, text};

const PANES: usize = 200;

/// The flood, in the short form and the long one.
const SECONDS: [u64; 2] = [8, 60];

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Output of each pane kept on disk: the disk is not what is measured.
const LOG_BYTES: u64 = 4 << 20;

/// Bytes printed over and over: enough that a screen never looks the same.
const TEXT_BYTES: usize = 1 << 20;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let place = Place::with_log_bytes(LOG_BYTES)?;
    let file = place.folder().join("text");
    text::write(&file, TEXT_BYTES)?;
    let line = format!("while :; do cat {}; done", file.display());
    let mut tools = place.connect()?;
    let ids: Vec<String> =
        (0..PANES).map(|_| tools.spawn(&["sh", "-c", &line])).collect::<Result<_, _>>()?;
    let before = offsets(&mut tools, &ids)?;
    let flood = Duration::from_secs(SECONDS[usize::from(long())]);
    let start = Instant::now();
    let (mut times, mut most) = (Vec::new(), 0.0_f64);
    for id in ids.iter().cycle() {
        if start.elapsed() > flood {
            break;
        }
        let began = Instant::now();
        let screen = tools.call("get_process_output", &json!({"process_id": id}))?;
        times.push(began.elapsed());
        anyhow::ensure!(screen["rows"].is_array(), "{screen}");
        if times.len() % 100 == 0 {
            most = most.max(proc::memory_mib(place.server, "Rss:")?);
        }
        proc::pause(PAUSE);
    }
    let after = offsets(&mut tools, &ids)?;
    let rates: Vec<f64> =
        after.iter().zip(&before).map(|(after, before)| (after - before) as f64).collect();
    let mean = rates.iter().sum::<f64>() / PANES as f64;
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let seconds = start.elapsed().as_secs_f64();
    let what = format!("{PANES} floods for {} s", flood.as_secs());
    let ms = |part: f64| quantile(times.clone(), part).as_secs_f64() * 1e3;
    let looks = format!("{} looks", times.len());
    let rate = format!("{:.1} MB/s in all", mean * PANES as f64 / seconds / 1e6);
    let anonymous = proc::memory_mib(place.server, "Anonymous:")?;
    let without = format!("{anonymous:.0} MiB without files");
    let row = |part: &str, value: f64, unit: &str, bar| {
        Row::number(format!("{what}: {part}"), value, unit, bar)
    };
    Ok(vec![
        row("screen read, median", ms(0.5), "ms", Bar::Less),
        row("screen read, p99", ms(0.99), "ms", Bar::AtMost(25.0)).saying(looks),
        row("screen read, longest", ms(1.0), "ms", Bar::AtMost(150.0)),
        row("slowest pane to mean", least / mean, "×", Bar::AtLeast(0.25)).saying(rate),
        row("server memory, most (Rss)", most, "MiB", Bar::AtMost(300.0)).saying(without),
    ]
    .into())
}

fn offsets(tools: &mut crate::session::Tools, ids: &[String]) -> anyhow::Result<Vec<u64>> {
    ids.iter().map(|id| tools.output_offset(id)).collect()
}
