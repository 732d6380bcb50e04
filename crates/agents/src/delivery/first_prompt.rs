//! First prompts that were given as arguments: nothing is typed, and it is seen whether they were
//! taken.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::deliverer::Deliverer;
use super::evidence::told;
use super::receipt::{Receipt, ReceiptState};
use super::record::{Delivery, DeliveryStage, Pending};
use crate::activity::ActivityState;
use patterm_panes::process::ProcessId;

/// A CLI may take this long to start and to begin with its first turn.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a screen is looked at meanwhile.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// And the files that a CLI has open, which takes more.
const FILES_PAUSE: Duration = Duration::from_secs(1);

/// Waits until the agent has taken its first prompt.
pub(super) async fn verify(deliverer: Arc<Deliverer>, delivery: Delivery) {
    let receipt = watch(&deliverer, &delivery).await;
    if let Some(receipt) = receipt {
        // Its prompt is another one now.
        deliverer.activities.signals(&delivery.to).warm_up_again();
        deliverer.deliveries.finish(delivery.id, receipt);
        // It may have come to rest already, and print nothing more.
        deliverer.activities.signals(&delivery.to).notify();
    }
}

async fn watch(deliverer: &Arc<Deliverer>, delivery: &Delivery) -> Option<Receipt> {
    let signals = deliverer.activities.signals(&delivery.to);
    let delivered = |evidence: String| Some(Receipt::new(ReceiptState::Delivered, evidence));
    let stalled = |why: &str| Some(Receipt::new(ReceiptState::Stalled, why));
    let mut deadline = Instant::now() + PATIENCE;
    let mut looked = Instant::now();
    loop {
        tokio::time::sleep(LOOK_PAUSE).await;
        let known = deliverer.deliveries.get(delivery.id)?;
        if known.stage == DeliveryStage::Done {
            return None;
        }
        if let Some(evidence) = signals.taken().iter().find_map(|turn| told(turn, &delivery.text)) {
            return delivered(evidence);
        }
        let by_file = signals.preset().is_some_and(|preset| preset.has_conversation_file());
        if by_file && looked.elapsed() >= FILES_PAUSE {
            look_for_conversation(deliverer, &delivery.to).await;
            looked = Instant::now();
        }
        let process = deliverer.panes.processes.get(&delivery.to)?;
        let has_spoken = process.agent.as_ref().is_some_and(|agent| agent.spoken);
        let worked = signals.worked().map(|(_, why)| why);
        if let Some(evidence) = first_turn(by_file, has_spoken, worked) {
            return delivered(evidence);
        }
        if !process.status.is_alive() {
            return stalled("the CLI ended before it was seen to take its first instructions");
        }
        let status = deliverer.activities.get(&delivery.to);
        if status.activity.state == ActivityState::Blocked {
            // A person is asked whether to trust a folder, to log in: however long that takes.
            deadline = Instant::now() + PATIENCE;
            let why = format!("it waits for a person ({})", status.activity.reason);
            deliverer.deliveries.explain(delivery.id, Pending::Person, &why);
        }
        if Instant::now() >= deadline {
            return stalled("it was given as an argument, and nothing shows that it was taken");
        }
    }
}

/// What shows that a first turn was taken. A CLI with a file of its conversation may show work before,
/// while it connects its servers.
fn first_turn(by_file: bool, has_spoken: bool, worked: Option<String>) -> Option<String> {
    match by_file {
        true => has_spoken.then(|| "it has the file of its conversation open".to_owned()),
        false => worked.map(|why| format!("it went to work ({why})")),
    }
}

async fn look_for_conversation(deliverer: &Arc<Deliverer>, id: &ProcessId) {
    if let Some(run) = deliverer.panes.run_of(id) {
        let _ = deliverer.conversations.find(&run).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// codex shows work while it connects its MCP servers, before it takes its first turn.
    #[test]
    fn work_while_it_starts_does_not_show_that_first_instructions_were_taken() {
        let works = || Some("title-turn: title `⠋ project`".to_owned());
        assert_eq!(first_turn(true, false, works()), None);
        assert!(first_turn(true, true, None).unwrap().contains("file of its conversation"));
        assert!(first_turn(false, false, works()).unwrap().contains("went to work (title-turn"));
        assert_eq!(first_turn(false, false, None), None);
    }
}
