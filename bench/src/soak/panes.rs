//! Workers that read panes, restart them, and wait for output.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::Worker;
use super::harness::Harness;
use crate::session::Tools;

/// How far a counter was read: the next offset, an incomplete line, and the last number.
#[derive(Default)]
struct Reading {
    offset: u64,
    held: String,
    last: u64,
}

/// Reads the counters: no number may be missing or appear twice.
pub(super) struct Counters {
    harness: Arc<Harness>,
    tools: Tools,
    readings: Vec<Reading>,
    next: usize,
}

impl Counters {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        let readings = harness.counters.iter().map(|_| Reading::default()).collect();
        Ok(Self { harness: harness.clone(), tools: harness.connect()?, readings, next: 0 })
    }

    fn read(&mut self, at: usize) -> anyhow::Result<()> {
        let (id, reading) = (&self.harness.counters[at], &mut self.readings[at]);
        loop {
            let arguments = json!({"process_id": id, "since_offset": reading.offset});
            let read = self.tools.call("get_process_raw_output", &arguments)?;
            anyhow::ensure!(read["dropped"].is_null(), "{id} lost bytes: {read}");
            let text = read["text"].as_str().context("no text")?;
            if text.is_empty() {
                return Ok(());
            }
            reading.offset = read["next_offset"].as_u64().context("no offset")?;
            self.harness.journal.add("counter bytes checked", text.len() as u64);
            reading.held += text;
            while let Some((line, rest)) = reading.held.split_once("\r\n") {
                let number = line.split(' ').nth(1).and_then(|number| number.parse().ok());
                anyhow::ensure!(number == Some(reading.last + 1), "{id}: {line}");
                reading.last += 1;
                reading.held = rest.to_owned();
            }
        }
    }
}

impl Worker for Counters {
    const NAME: &str = "counters";
    const PAUSE: Duration = Duration::from_secs(1);

    fn step(&mut self) -> anyhow::Result<()> {
        self.next = (self.next + 1) % self.readings.len();
        self.read(self.next)
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        (0..self.readings.len()).try_for_each(|at| self.read(at))
    }
}

/// Restarts ended processes, and starts others that are closed at once.
pub(super) struct Lives {
    harness: Arc<Harness>,
    tools: Tools,
    steps: usize,
}

impl Lives {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        Ok(Self { harness: harness.clone(), tools: harness.connect()?, steps: 0 })
    }
}

impl Worker for Lives {
    const NAME: &str = "lives";
    const PAUSE: Duration = Duration::from_secs(2);

    fn step(&mut self) -> anyhow::Result<()> {
        self.steps += 1;
        for id in &self.harness.brief {
            let arguments = json!({"process_id": id});
            let status = self.tools.call("get_process_status", &arguments)?;
            if status["status"] == "exited" {
                anyhow::ensure!(status["exit"]["code"] == 0, "{id}: {}", status["exit"]);
                self.tools.call("start_process", &arguments)?;
                self.harness.journal.did("processes restarted");
            }
        }
        // The first shells belong to the user.
        let shell = &self.harness.shells[4 + self.steps % (self.harness.shells.len() - 4)];
        if self.steps.is_multiple_of(10) {
            self.tools.call("restart_process", &json!({"process_id": shell, "signal": 1}))?;
            self.harness.journal.did("shells restarted");
        }
        let id = self.tools.spawn(&["sh", "-c", "echo here; exit 3"])?;
        let arguments = json!({"process_id": id, "pattern": "never", "timeout_seconds": 30});
        let waited = self.tools.call("wait_for_pattern", &arguments)?;
        anyhow::ensure!(waited["exited"] == true, "{id}: {waited}");
        let arguments = json!({"process_id": id});
        let status = self.tools.call("get_process_status", &arguments)?;
        anyhow::ensure!(status["exit"]["code"] == 3, "{id}: {status}");
        let screen = self.tools.call("get_process_output", &arguments)?;
        anyhow::ensure!(screen["rows"][0] == "here", "{id}: {screen}");
        self.tools.call("close_process", &arguments)?;
        self.harness.journal.did("processes started and closed");
        Ok(())
    }
}

/// Waits for numbers, and searches.
pub(super) struct Waits {
    harness: Arc<Harness>,
    tools: Tools,
    steps: usize,
}

impl Waits {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        Ok(Self { harness: harness.clone(), tools: harness.connect()?, steps: 0 })
    }
}

impl Worker for Waits {
    const NAME: &str = "waits";
    const PAUSE: Duration = Duration::from_secs(2);

    fn step(&mut self) -> anyhow::Result<()> {
        self.steps += 1;
        let id = &self.harness.counters[self.steps % self.harness.counters.len()];
        let screen = self.tools.call("get_process_output", &json!({"process_id": id}))?;
        let rows = screen["rows"].as_array().context("no rows")?;
        let numbers = rows.iter().filter_map(|row| row.as_str()?.split(' ').nth(1)?.parse().ok());
        let last: u64 = numbers.max().unwrap_or(0);
        let pattern = format!("count {} ", last + 5);
        let arguments = json!({"process_id": id, "pattern": pattern});
        let waited = self.tools.call("wait_for_pattern", &arguments)?;
        anyhow::ensure!(waited["matched"] == true, "{id}, {pattern}: {waited}");
        self.harness.journal.did("waits fulfilled");
        let arguments = json!({"process_id": id, "pattern": pattern, "kind": "raw"});
        let found = self.tools.call("search_output", &arguments)?;
        anyhow::ensure!(found["total"] == 1, "{id}, {pattern}: {found}");
        let id = &self.harness.bursts[self.steps % self.harness.bursts.len()];
        for kind in ["raw", "rendered"] {
            let arguments =
                json!({"process_id": id, "pattern": "INFO.*panicked", "kind": kind, "limit": 5});
            let found = self.tools.call("search_output", &arguments)?;
            anyhow::ensure!(found["total"].as_u64() > Some(0), "{id}, {kind}: {found}");
        }
        self.harness.journal.add("searches", 3);
        Ok(())
    }
}

/// Many callers that wait for patterns that never match.
pub(super) struct InVain {
    harness: Arc<Harness>,
    tools: Tools,
}

/// Concurrent waiting calls.
const WAITING: u64 = 20;

impl InVain {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        Ok(Self { harness: harness.clone(), tools: harness.connect()? })
    }
}

impl Worker for InVain {
    const NAME: &str = "waits in vain";
    const PAUSE: Duration = Duration::from_secs(3);

    fn step(&mut self) -> anyhow::Result<()> {
        for number in 0..WAITING {
            let id = &self.harness.bursts[number as usize % self.harness.bursts.len()];
            let pattern = format!("never {number}[0-9]+ .*done");
            let arguments = json!({"process_id": id, "pattern": pattern, "timeout_seconds": 10});
            self.tools.ask("wait_for_pattern", &arguments)?;
        }
        for _ in 0..WAITING {
            let answer = self.tools.answer()?;
            anyhow::ensure!(answer["result"]["timed_out"] == true, "{answer}");
        }
        self.harness.journal.add("waits in vain", WAITING);
        Ok(())
    }
}
