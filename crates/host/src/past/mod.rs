//! Going back in time: where a step leads from a moment, and what processes showed there.

mod found;
mod process;
mod search;
mod timeline;

use patterm_events::EventError;
use patterm_wire::past::{PastRequest, PastResult};

use crate::host::Host;
use timeline::CommonPast;

/// Processes of one request: more than a terminal has room for.
const MOST_PROCESSES: usize = 100;

/// Steps of one request: more than keys that somebody can press before the answer to the request before.
const MOST_STEPS: usize = 100;

/// Why a request cannot be answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PastError {
    /// What it asks for too many of.
    #[error(
        "a request can have at most {MOST_PROCESSES} processes and {MOST_STEPS} steps, but this one has {0}"
    )]
    TooMuch(String),
    /// The events cannot be read.
    #[error(transparent)]
    Events(#[from] EventError),
}

/// Shows processes as they were. It replays output and reads files, so it needs a thread that may block.
pub(crate) fn read(host: &Host, request: &PastRequest) -> Result<PastResult, PastError> {
    let (processes, steps) = (request.processes.len(), request.steps.len());
    if processes > MOST_PROCESSES || steps > MOST_STEPS {
        return Err(PastError::TooMuch(format!("{processes} and {steps}")));
    }
    let timeline = CommonPast::read(host, &request.processes);
    let mut result = PastResult {
        at_ms: request.from_ms.unwrap_or(timeline.now_ms).min(timeline.now_ms),
        now_ms: timeline.now_ms,
        first_ms: timeline.first_ms,
        ..PastResult::default()
    };
    for step in &request.steps {
        (result.found, result.again_ms) = (None, None);
        let next = timeline.step(result.at_ms, step)?;
        result.is_missed = next.is_none();
        if let Some(next) = next {
            // Nobody goes further back than to the beginning, but may already be there with another process.
            let lowest = timeline.first_ms.min(result.at_ms);
            result.at_ms = next.at_ms.clamp(lowest, timeline.now_ms);
            (result.found, result.again_ms) = (next.found, next.again_ms);
        }
    }
    result.screens = timeline.screens(result.at_ms, result.found.as_ref());
    Ok(result)
}
