//! Delivers the texts of timers like all other texts.

use std::sync::Arc;

use patterm_agents::delivery::{Deliveries, NewDelivery, Source};
use patterm_panes::process::ProcessId;
use patterm_timers::{Deliver, TimerId};
use tokio::sync::watch;

/// Queues the texts of timers.
#[derive(Debug)]
pub(crate) struct TimerTexts(pub(crate) Arc<Deliveries>);

impl Deliver for TimerTexts {
    fn deliver(&self, to: &ProcessId, timer: &TimerId, text: String) -> Result<(), String> {
        let source = Source::Timer { timer_id: timer.to_string() };
        let key = Some(format!("timer {timer}"));
        let new = NewDelivery { to: to.clone(), source, key, text };
        self.0.enqueue(new).map(drop).map_err(|error| error.to_string())
    }

    fn delivered(&self) -> Vec<TimerId> {
        let timer = |source: &Source| match source {
            Source::Timer { timer_id } => Some(TimerId::named(timer_id)),
            Source::FirstPrompt { .. } | Source::Message { .. } => None,
        };
        self.0.all().iter().filter_map(|delivery| timer(&delivery.source)).collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }
}
