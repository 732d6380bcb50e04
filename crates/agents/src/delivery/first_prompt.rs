//! Verifies that agents accept the first prompts that were passed as arguments; nothing is typed.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::deliverer::Deliverer;
use super::evidence::match_report;
use super::receipt::{Receipt, ReceiptState};
use super::record::{Delivery, DeliveryStage, Pending};
use crate::activity::ActivityState;
use patterm_panes::process::ProcessId;

/// How long a CLI may take to start and to begin its first turn.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How often the evidence is checked during that time.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How often the files that a CLI has open are searched, which costs more.
const FILES_INTERVAL: Duration = Duration::from_secs(1);

/// Waits until the agent has accepted its first prompt.
pub(super) async fn verify(deliverer: Arc<Deliverer>, delivery: Delivery) {
    let receipt = watch(&deliverer, &delivery).await;
    if let Some(receipt) = receipt {
        let preset = deliverer.activities.signals(&delivery.to).preset();
        let by_file = preset.is_some_and(|preset| preset.has_conversation_file());
        if counts_as_turn(&receipt, by_file) {
            deliverer.conversations.note_turn(&delivery.to);
        }
        // The CLI redraws its prompt now.
        deliverer.activities.signals(&delivery.to).warm_up_again();
        deliverer.deliveries.finish(delivery.id, receipt);
        // It may already be idle and print nothing more.
        deliverer.activities.signals(&delivery.to).notify();
    }
}

async fn watch(deliverer: &Arc<Deliverer>, delivery: &Delivery) -> Option<Receipt> {
    let signals = deliverer.activities.signals(&delivery.to);
    let delivered = |evidence: String| Some(Receipt::new(ReceiptState::Delivered, evidence));
    let stalled = |why: &str| Some(Receipt::new(ReceiptState::Stalled, why));
    let mut deadline = Instant::now() + TIMEOUT;
    let mut looked = Instant::now();
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let known = deliverer.deliveries.get(delivery.id)?;
        if known.stage == DeliveryStage::Done {
            return None;
        }
        if let Some(evidence) =
            signals.turns().iter().find_map(|turn| match_report(turn, &delivery.text))
        {
            return delivered(evidence);
        }
        let by_file = signals.preset().is_some_and(|preset| preset.has_conversation_file());
        if by_file && looked.elapsed() >= FILES_INTERVAL {
            find_conversation(deliverer, &delivery.to).await;
            looked = Instant::now();
        }
        let process = deliverer.panes.processes.get(&delivery.to)?;
        let had_turn = process.agent.as_ref().is_some_and(|agent| agent.had_turn);
        let worked = signals.worked().map(|(_, why)| why);
        if let Some(evidence) = first_turn(by_file, had_turn, worked) {
            return delivered(evidence);
        }
        if !process.status.is_alive() {
            return stalled(
                "the CLI exited, and there is no evidence that it accepted its first instructions",
            );
        }
        let status = deliverer.activities.get(&delivery.to);
        if status.activity.state == ActivityState::Blocked {
            // A person is asked to trust a folder or to log in, however long that takes.
            deadline = Instant::now() + TIMEOUT;
            let why = format!("it is waiting for a person ({})", status.activity.reason);
            deliverer.deliveries.explain(delivery.id, Pending::Person, &why);
        }
        if Instant::now() >= deadline {
            return stalled(
                "it was passed as an argument, but there is no evidence that the CLI accepted it",
            );
        }
    }
}

/// The evidence that the first turn was accepted. A CLI whose conversation is found by its file may
/// show work before that, while it connects its servers.
fn first_turn(by_file: bool, had_turn: bool, worked: Option<String>) -> Option<String> {
    match by_file {
        true => had_turn.then(|| "it has the file of its conversation open".to_owned()),
        false => worked.map(|why| format!("it started working ({why})")),
    }
}

/// Whether its conversation can be resumed from now on. The observer counts no work before it has seen a prompt, and
/// a CLI may show none during its first turn. Where a file contains the conversation, only the file counts.
fn counts_as_turn(receipt: &Receipt, by_file: bool) -> bool {
    receipt.state == ReceiptState::Delivered && !by_file
}

async fn find_conversation(deliverer: &Arc<Deliverer>, id: &ProcessId) {
    if let Some(run) = deliverer.panes.run_of(id) {
        let _ = deliverer.conversations.find(&run).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivered_first_instructions_are_a_turn_to_resume() {
        let receipt = |state| Receipt::new(state, "seen");
        assert!(counts_as_turn(&receipt(ReceiptState::Delivered), false));
        assert!(!counts_as_turn(&receipt(ReceiptState::Stalled), false));
        assert!(!counts_as_turn(&receipt(ReceiptState::Delivered), true), "its file decides");
    }

    /// codex shows work while it connects its MCP servers, before its first turn.
    #[test]
    fn work_during_the_start_is_not_evidence_that_the_first_instructions_were_accepted() {
        let works = || Some("title-turn: title `⠋ project`".to_owned());
        assert_eq!(first_turn(true, false, works()), None);
        assert!(first_turn(true, true, None).unwrap().contains("file of its conversation"));
        assert!(first_turn(false, false, works()).unwrap().contains("started working (title-turn"));
        assert_eq!(first_turn(false, false, None), None);
    }
}
