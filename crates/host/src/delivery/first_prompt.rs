//! First prompts that were given as arguments: nothing is typed, and it is seen whether they were
//! taken.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::evidence::told;
use super::receipt::{Receipt, ReceiptState};
use super::record::{Delivery, Stage};
use crate::activity::State;
use crate::host::Host;

/// A CLI may take this long to start and to begin with its first turn.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a screen is looked at meanwhile.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Waits until the agent has taken its first prompt.
pub(super) async fn verify(host: Arc<Host>, delivery: Delivery) {
    let receipt = watch(&host, &delivery).await;
    if let Some(receipt) = receipt {
        // Its prompt is another one now.
        host.activities.facts(&delivery.to).warm_up_again();
        host.deliveries.finish(delivery.id, receipt);
        // It may have come to rest already, and print nothing more.
        host.activities.facts(&delivery.to).ring();
    }
}

async fn watch(host: &Arc<Host>, delivery: &Delivery) -> Option<Receipt> {
    let facts = host.activities.facts(&delivery.to);
    let delivered = |evidence: String| Some(Receipt::new(ReceiptState::Delivered, evidence));
    let stalled = |why: &str| Some(Receipt::new(ReceiptState::Stalled, why));
    let mut deadline = Instant::now() + PATIENCE;
    loop {
        tokio::time::sleep(LOOK_PAUSE).await;
        let known = host.deliveries.get(delivery.id)?;
        if known.stage == Stage::Done {
            return None;
        }
        if let Some(evidence) = facts.taken().iter().find_map(|turn| told(turn, &delivery.text)) {
            return delivered(evidence);
        }
        if let Some((_, why)) = facts.worked() {
            return delivered(format!("it went to work ({why})"));
        }
        let process = host.processes.get(&delivery.to)?;
        if !process.status.is_alive() {
            return stalled("the CLI ended before it was seen to take its first instructions");
        }
        let standing = host.activities.get(&delivery.to);
        if standing.verdict.state == State::Blocked {
            // A person is asked whether to trust a folder, to log in: however long that takes.
            deadline = Instant::now() + PATIENCE;
            host.deliveries.explain(
                delivery.id,
                &format!("it waits for a person ({})", standing.verdict.reason),
            );
        }
        if Instant::now() >= deadline {
            return stalled("it was given as an argument, and nothing shows that it was taken");
        }
    }
}
