//! What happened, as a short sentence.

use std::time::Duration;

use patterm_wire::events::{EventRecord, Fact};
use serde_json::Value;

/// A sentence about an event; `name` is the process or the project.
pub(crate) fn summary(event: &EventRecord, name: &str) -> String {
    match event.fact().and_then(|fact| sentence(&fact)) {
        Some(sentence) => format!("{name} {sentence}"),
        None => plain(event, name),
    }
}

/// The rest of the sentence about what people usually want to know.
fn sentence(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::AgentBlocked { question: Some(question), .. } => format!("asks: {question}"),
        Fact::AgentBlocked { reason, .. } => format!("is blocked: {reason}"),
        Fact::AgentLimited { until: Some(until), .. } => format!("reached a limit until {until}"),
        Fact::AgentLimited { reason, .. } => format!("reached a limit: {reason}"),
        Fact::AgentFailed { reason } => format!("failed: {reason}"),
        Fact::AgentReady { .. } => "is ready".into(),
        Fact::AgentIdle { .. } => "is idle".into(),
        Fact::AgentWorking { .. } => "is working".into(),
        Fact::AgentResumed { .. } => "continues".into(),
        Fact::AgentTurnEnded { ms, .. } => {
            format!("ended a turn after {} s", Duration::from_millis(*ms).as_secs())
        }
        Fact::AttentionRaised { reason } => format!("needs attention: {reason}"),
        Fact::ProcessStarted {} => "was started".into(),
        Fact::ProcessRestarted { reason: Some(reason) } => format!("was restarted: {reason}"),
        Fact::ProcessRestarted { reason: None } => "was restarted".into(),
        Fact::ProcessExited { error: Some(error), .. } => format!("could not be started: {error}"),
        Fact::ProcessExited { code: Some(code), .. } => format!("exited with code {code}"),
        Fact::ProcessExited { signal: Some(signal), .. } => {
            format!("was killed by signal {signal}")
        }
        Fact::ProcessExited { .. } => "exited".into(),
        Fact::ProcessStopped { .. } => "was stopped".into(),
        Fact::ProcessClosed {} => "was closed".into(),
        Fact::ProcessLost {} => "was lost".into(),
        Fact::GitCommit { subject: Some(subject), .. } => format!("committed: {subject}"),
        Fact::PortOpened { port } => format!("listens on port {port}"),
        Fact::PortClosed { port } => format!("no longer listens on port {port}"),
        Fact::ServerStarted { server, .. } => format!("started the shared server {server}"),
        Fact::ServerStopped { server, .. } => format!("stopped the shared server {server}"),
        Fact::ServerFailed { server, error, .. } => {
            format!("has a shared server that failed: {server}: {error}")
        }
        _ => return None,
    })
}

/// The type and the data of any event.
fn plain(event: &EventRecord, name: &str) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let data: Vec<_> =
        event.data.iter().map(|(key, value)| format!("{key} {}", text(value))).collect();
    let summary = format!("{name}: {} {}", event.kind, data.join(", "));
    summary.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: &str, data: Value, expected: &str) {
        let Value::Object(data) = data else { panic!("{data}") };
        let event = EventRecord { kind: kind.into(), data, ..EventRecord::default() };
        assert_eq!(summary(&event, "api"), expected);
    }

    #[test]
    fn what_happened_is_a_sentence() {
        check("agent.blocked", json!({"reason": "r", "question": "Push?"}), "api asks: Push?");
        check("agent.blocked", json!({"reason": "a dialog"}), "api is blocked: a dialog");
        check("process.exited", json!({"code": 3}), "api exited with code 3");
        check("process.exited", json!({"signal": 9}), "api was killed by signal 9");
        check("agent.turn_ended", json!({"ms": 61_500}), "api ended a turn after 61 s");
        check(
            "pad.written",
            json!({"name": "plan", "revision": 2}),
            "api: pad.written name plan, revision 2",
        );
        check("moon.risen", json!({}), "api: moon.risen");
    }
}
