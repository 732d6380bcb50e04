//! Records every request: counts for `/metrics`, and entries for the audit log.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::StatusCode;

use super::context::HttpContext;
use crate::error::{GatewayError, GatewayErrorKind, REQUEST_CANCELLED};
use crate::raw;

/// The audit log.
pub trait AuditLog: Send + Sync {
    /// Whether arguments are recorded as well.
    fn wants_arguments(&self) -> bool;

    /// Records a call, without waiting for the disk.
    fn record(&self, record: &AuditRecord<'_>);
}

/// A call in the audit log.
#[derive(Debug, Clone)]
pub struct AuditRecord<'a> {
    /// The token or the agent; `None` for requests without a valid token.
    pub who: Option<&'a str>,
    /// The server, or `patterm`.
    pub server: &'a str,
    /// The method of JSON-RPC, or of HTTP if there is no other.
    pub method: Option<&'a str>,
    /// The tool that was called.
    pub tool: Option<&'a str>,
    /// The call's parameters, if they are recorded.
    pub arguments: Option<&'a str>,
    /// How it ended.
    pub outcome: CallOutcome,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// How long it took.
    pub duration: Duration,
    /// Bytes of the request.
    pub request_bytes: usize,
    /// Bytes of the response.
    pub response_bytes: usize,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// With a result.
    Ok,
    /// With a result in which the tool reports an error.
    ToolError,
    /// With an error of this code.
    Error(i64),
    /// It was cancelled.
    Cancelled,
    /// It timed out.
    Timeout,
    /// It reached no server.
    Refused,
}

impl CallOutcome {
    /// The outcome of a response.
    pub fn of(answer: &[u8]) -> Self {
        // The end of both `"error"` and `"isError"`.
        if !raw::contains(answer, b"rror\"") {
            return Self::Ok;
        }
        let Ok(text) = std::str::from_utf8(answer) else { return Self::Ok };
        if let Some(span) = raw::at_path(text, &["error"]) {
            let code = raw::member(&text[span], "code").and_then(|code| code.parse().ok());
            return match code.unwrap_or_default() {
                REQUEST_CANCELLED => Self::Cancelled,
                code => Self::Error(code),
            };
        }
        let failed = raw::at_path(text, &["result", "isError"]);
        match failed.is_some_and(|span| &text[span] == "true") {
            true => Self::ToolError,
            false => Self::Ok,
        }
    }

    /// The outcome of an error.
    pub fn of_error(error: &GatewayError) -> Self {
        match error.kind {
            GatewayErrorKind::Timeout => Self::Timeout,
            GatewayErrorKind::Cancelled => Self::Cancelled,
            GatewayErrorKind::Limit | GatewayErrorKind::Unknown => Self::Refused,
            GatewayErrorKind::Unavailable | GatewayErrorKind::Ended => Self::Error(-32000),
        }
    }

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Error(_) => "error",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Refused => "refused",
        }
    }
}

/// Status codes that are counted separately.
const REFUSALS: [u16; 6] = [401, 403, 404, 413, 415, 429];

/// Counts of all requests since the endpoint was opened.
#[derive(Default)]
pub(super) struct RequestCounts {
    classes: [AtomicU64; 6],
    refusals: [AtomicU64; REFUSALS.len()],
    cancelled: AtomicU64,
    micros: AtomicU64,
}

impl RequestCounts {
    pub(super) fn count(&self, status: Option<u16>, took: Duration) {
        let one = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        match status {
            Some(status) => {
                self.classes.get(usize::from(status / 100)).map(one);
                let which = REFUSALS.iter().position(|error| *error == status);
                which.and_then(|which| self.refusals.get(which)).map(one);
            }
            None => drop(one(&self.cancelled)),
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Writes them in Prometheus format.
    pub(super) fn write(&self, text: &mut String) {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut all = now(&self.cancelled);
        let _ = writeln!(text, "# TYPE patterm_http_requests_total counter");
        for (class, counter) in self.classes.iter().enumerate().skip(2) {
            all += now(counter);
            let count = now(counter);
            let _ = writeln!(text, "patterm_http_requests_total{{status=\"{class}xx\"}} {count}");
        }
        let _ = writeln!(text, "# TYPE patterm_http_refused_total counter");
        for (status, counter) in REFUSALS.iter().zip(&self.refusals) {
            let count = now(counter);
            let _ = writeln!(text, "patterm_http_refused_total{{status=\"{status}\"}} {count}");
        }
        let _ = writeln!(text, "# TYPE patterm_http_cancelled_total counter");
        let _ = writeln!(text, "patterm_http_cancelled_total {}", now(&self.cancelled));
        let micros = now(&self.micros);
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        let _ = writeln!(text, "# TYPE patterm_http_request_seconds summary");
        let _ = writeln!(text, "patterm_http_request_seconds_sum {seconds}.{rest:06}");
        let _ = writeln!(text, "patterm_http_request_seconds_count {all}");
    }
}

/// The record of a request in progress. If it is dropped before the end, the request was cancelled.
pub(super) struct AuditEntry(Option<Box<EntryData>>);

struct EntryData {
    context: HttpContext,
    started: Instant,
    who: Option<String>,
    server: String,
    method: Option<String>,
    tool: Option<String>,
    arguments: Option<String>,
    request_bytes: usize,
    ended: Option<(CallOutcome, StatusCode, usize)>,
}

impl AuditEntry {
    /// Begins a record.
    pub(super) fn start(context: &HttpContext, server: &str) -> Self {
        Self(Some(Box::new(EntryData {
            context: context.clone(),
            started: Instant::now(),
            who: None,
            server: server.to_owned(),
            method: None,
            tool: None,
            arguments: None,
            request_bytes: 0,
            ended: None,
        })))
    }

    /// Moves the rest of the record to another owner.
    pub(super) fn take(&mut self) -> Self {
        Self(self.0.take())
    }

    /// Drops the record: others stand for the request.
    pub(super) fn discard(&mut self) {
        self.0 = None;
    }

    /// Sets the server, if it is known later.
    pub(super) fn set_server(&mut self, server: String) {
        if let Some(data) = &mut self.0 {
            data.server = server;
        }
    }

    /// Sets the caller.
    pub(super) fn set_caller(&mut self, who: &str) {
        if let Some(data) = &mut self.0 {
            data.who = Some(who.to_owned());
        }
    }

    /// Sets the method and what the audit log wants of the message.
    pub(super) fn set_message(&mut self, method: &str, text: &str) {
        let Some(data) = &mut self.0 else { return };
        data.request_bytes = text.len();
        data.method = Some(method.to_owned());
        let Some(audit) = &data.context.config().audit else { return };
        if method == "tools/call" {
            let name = raw::at_path(text, &["params", "name"]);
            data.tool = name.and_then(|span| serde_json::from_str(&text[span]).ok());
        }
        if audit.wants_arguments() {
            data.arguments = raw::member(text, "params").map(str::to_owned);
        }
    }

    /// Sets the outcome.
    pub(super) fn answered(&mut self, outcome: CallOutcome, status: StatusCode, bytes: usize) {
        if let Some(data) = &mut self.0 {
            data.ended = Some((outcome, status, bytes));
        }
    }
}

impl Drop for AuditEntry {
    fn drop(&mut self) {
        let Some(data) = self.0.take() else { return };
        let duration = data.started.elapsed();
        let status = data.ended.map(|(_, status, _)| status.as_u16());
        data.context.counts().count(status, duration);
        let Some(audit) = &data.context.config().audit else { return };
        let (outcome, _, response_bytes) =
            data.ended.unwrap_or((CallOutcome::Cancelled, StatusCode::default(), 0));
        audit.record(&AuditRecord {
            who: data.who.as_deref(),
            server: &data.server,
            method: data.method.as_deref(),
            tool: data.tool.as_deref(),
            arguments: data.arguments.as_deref(),
            outcome,
            status,
            duration,
            request_bytes: data.request_bytes,
            response_bytes,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_of_responses() {
        for (answer, outcome) in [
            (r#"{"id":1,"result":{"content":[]}}"#, CallOutcome::Ok),
            (r#"{"id":1,"result":{"error":"a word","isError":false}}"#, CallOutcome::Ok),
            (r#"{"id":1,"result":{"isError":true}}"#, CallOutcome::ToolError),
            (r#"{"id":1,"error":{"code":-32800,"message":"x"}}"#, CallOutcome::Cancelled),
            (r#"{"id":1,"error":{"code":-32602,"message":"x"}}"#, CallOutcome::Error(-32602)),
        ] {
            assert_eq!(CallOutcome::of(answer.as_bytes()), outcome, "{answer}");
        }
    }
}
