//! Helpers for verbs that act on several processes.

use serde_json::Value;

use crate::print::{error_chain, print_json, warn};

/// Does something to each process. With several, a failure is reported and the others still follow.
pub(super) fn each(
    ids: &[String],
    mut act: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if let [id] = ids {
        return act(id);
    }
    let mut failed = 0;
    for id in ids {
        if let Err(error) = act(id) {
            warn(&format!("{id}: {}", error_chain(&error)));
            failed += 1;
        }
    }
    anyhow::ensure!(failed == 0, "{failed} of {} failed", ids.len());
    Ok(())
}

/// Prints results as JSON: an object if one process was given, otherwise a list.
pub(super) fn print_results(given: usize, mut results: Vec<Value>) -> anyhow::Result<()> {
    match (given, results.pop()) {
        (1, Some(result)) => print_json(&result),
        (1, None) => Ok(()),
        (_, last) => {
            results.extend(last);
            print_json(&results)
        }
    }
}
