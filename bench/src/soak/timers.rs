//! Timers that are set again whenever they fire.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::Worker;
use super::harness::Harness;
use crate::session::Tools;

/// Sets timers of all kinds, one after the other, for panes that echo what is typed.
pub(super) struct Timers {
    harness: Arc<Harness>,
    tools: Tools,
    set: usize,
    fired: Vec<(String, String)>,
}

impl Timers {
    pub(super) fn new(harness: &Arc<Harness>) -> anyhow::Result<Self> {
        Ok(Self { harness: harness.clone(), tools: harness.connect()?, set: 0, fired: Vec::new() })
    }

    /// Sets a timer and waits until its text arrives.
    fn fire(&mut self, tool: &str, mut arguments: Value) -> anyhow::Result<()> {
        self.set += 1;
        let owner = &self.harness.cats[self.set % self.harness.cats.len()];
        let body = format!("timer-{}-fired", self.set);
        arguments["owner_process_id"] = owner.as_str().into();
        arguments["body"] = body.as_str().into();
        let timer = self.tools.call(tool, &arguments)?;
        let wait = json!({"process_id": owner, "pattern": body, "timeout_seconds": 45,
            "scope": "scrollback"});
        let waited = self.tools.call("wait_for_pattern", &wait)?;
        anyhow::ensure!(waited["matched"] == true, "{timer} did not fire: {waited}");
        self.fired.push((owner.clone(), body));
        self.harness.journal.did("timers fired");
        Ok(())
    }
}

impl Worker for Timers {
    const NAME: &str = "timers";
    const PAUSE: Duration = Duration::from_secs(1);

    fn step(&mut self) -> anyhow::Result<()> {
        self.fire("timer_set", json!({"seconds": 2.0}))?;
        let brief = self.harness.brief[self.set % self.harness.brief.len()].clone();
        let watched = json!({"watched": [brief], "max_wait_seconds": 20.0});
        self.fire("timer_fire_when_idle_all", watched.clone())?;
        self.fire("timer_fire_when_idle_any", watched)?;
        let owner = &self.harness.cats[0];
        let never = json!({"seconds": 100_000.0, "body": "never", "owner_process_id": owner});
        let timer = self.tools.call("timer_set", &never)?["timer_id"].take();
        let timer = json!({"timer_id": timer});
        for tool in ["timer_pause", "timer_resume"] {
            self.tools.call(tool, &timer)?;
        }
        let listed = self.tools.call("timer_list", &json!({}))?["timers"].take();
        anyhow::ensure!(listed.as_array().map(Vec::len) == Some(1), "{listed}");
        self.tools.call("timer_cancel", &timer)?;
        self.harness.journal.did("timers paused, resumed and cancelled");
        Ok(())
    }

    /// Each text was typed once: it appears as typed, and as echoed.
    fn finish(&mut self) -> anyhow::Result<()> {
        for (owner, body) in &self.fired {
            let arguments = json!({"process_id": owner, "pattern": body, "kind": "raw"});
            let found = self.tools.call("search_output", &arguments)?;
            let total = found["total"].as_u64().context("no total")?;
            anyhow::ensure!(total == 2, "{body} stands there {total} times: {found}");
        }
        Ok(())
    }
}
