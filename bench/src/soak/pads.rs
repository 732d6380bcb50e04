//! Several writers of the same scratchpads.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use super::Worker;
use super::harness::Harness;
use crate::session::Tools;

/// A longer scratchpad is truncated.
const LONG: usize = 32 << 10;

/// Its length after truncation.
const SHORT: usize = 1 << 10;

/// Appends to one scratchpad, and increments a counter in another.
pub(super) struct Pads {
    harness: Arc<Harness>,
    tools: Tools,
    number: usize,
}

impl Pads {
    pub(super) fn new(harness: &Arc<Harness>, number: usize) -> anyhow::Result<Self> {
        Ok(Self { harness: harness.clone(), tools: harness.connect()?, number })
    }

    /// Writes a changed content, unless another writer was faster.
    fn change(
        &mut self,
        name: &str,
        change: impl Fn(&str) -> String,
    ) -> anyhow::Result<Option<String>> {
        let read = self.tools.call("scratchpad_read", &json!({"name": name}))?;
        let content = change(read["content"].as_str().context("no content")?);
        let arguments =
            json!({"name": name, "content": content, "expected_revision": read["revision"]});
        match self.tools.call("scratchpad_write", &arguments) {
            Ok(_) => Ok(Some(content)),
            Err(why) if why.to_string().contains("\"conflict\"") => {
                self.harness.journal.did("scratchpad conflicts");
                Ok(None)
            }
            Err(why) => Err(why),
        }
    }
}

impl Worker for Pads {
    const NAME: &str = "pads";
    const PAUSE: Duration = Duration::from_secs(1);

    fn step(&mut self) -> anyhow::Result<()> {
        let name = format!("notes {}", self.number % 2);
        let line = format!("- {} {}\n", self.number, "a note ".repeat(20));
        self.tools.call("scratchpad_append", &json!({"name": name, "content": line}))?;
        let pad = self.tools.call("scratchpad_read", &json!({"name": name}))?;
        let content = pad["content"].as_str().context("no content")?;
        anyhow::ensure!(content.is_ascii() && content.ends_with('\n'), "{pad}");
        if content.len() > LONG {
            self.change(&name, |content| content[content.len() - SHORT..].to_owned())?;
        }
        // Retries until the counter is incremented.
        while self.change("sum", increment)?.is_none() {}
        self.harness.journal.did("counter increments in a scratchpad");
        self.tools.call("scratchpad_list", &json!({}))?;
        self.harness.journal.did("notes added to scratchpads");
        Ok(())
    }
}

/// Creates the scratchpad with the counter.
pub(super) fn begin(harness: &Harness) -> anyhow::Result<()> {
    harness.connect()?.call("scratchpad_write", &json!({"name": "sum", "content": "0"}))?;
    Ok(())
}

/// Checks that no increment was lost.
pub(super) fn check(harness: &Harness) -> anyhow::Result<()> {
    let pad = harness.connect()?.call("scratchpad_read", &json!({"name": "sum"}))?;
    let counts = harness.journal.counts();
    let counted =
        counts.get("counter increments in a scratchpad").copied().unwrap_or(0).to_string();
    anyhow::ensure!(pad["content"] == counted.as_str(), "{pad} is not {counted}");
    Ok(())
}

fn increment(content: &str) -> String {
    (content.parse::<u64>().unwrap_or(0) + 1).to_string()
}
