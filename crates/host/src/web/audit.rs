//! The audit log: one line of JSON per call, with its caller, its time and its outcome. Callers
//! queue their line and continue; a thread writes it.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, UNIX_EPOCH};

use patterm_gateway::http::{AuditLog, AuditRecord, CallOutcome};
use serde_json::value::RawValue;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::log::RotatingFile;
use patterm_store::state::StateDir;

const FILE: &str = "audit.jsonl";

/// The file is rotated at this size: a hundred thousand calls.
const FILE_BYTES: u64 = 16 << 20;

/// Rotated files that are kept.
const KEPT_FILES: u32 = 1;

/// Bytes that may wait to be written. If the disk is too slow, lines are dropped and counted;
/// callers are not delayed.
const WAITING_BYTES: usize = 1 << 20;

/// Bytes of arguments in one line.
const ARGUMENT_BYTES: usize = 16 << 10;

/// The usual length of a line without arguments.
const LINE_BYTES: usize = 256;

/// Lines per second about unauthorized clients, so that they cannot push other lines out of the
/// file.
const UNAUTHORIZED_PER_SECOND: u32 = 20;

/// The pause after a write, to gather lines: one write per line would slow a busy endpoint down.
const GATHER_TIME: Duration = Duration::from_millis(50);

/// The log, and its writer thread, which starts with the first line.
#[derive(Debug)]
pub(crate) struct Audit {
    inner: Arc<Inner>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    held: Mutex<Held>,
    wakeup: Condvar,
    arguments: AtomicBool,
}

#[derive(Debug, Default)]
struct Held {
    lines: Vec<u8>,
    lost: u64,
    over: bool,
    /// Lines about unauthorized clients since `since`.
    unauthorized: u32,
    since: Option<Instant>,
}

impl Held {
    fn is_over_the_rate(&mut self) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now - since >= Duration::from_secs(1)) {
            (self.since, self.unauthorized) = (Some(now), 0);
        }
        self.unauthorized += 1;
        self.unauthorized > UNAUTHORIZED_PER_SECOND
    }
}

impl Audit {
    pub(crate) fn new(state: &StateDir) -> Self {
        let inner = Inner {
            path: state.file(FILE),
            held: Mutex::default(),
            wakeup: Condvar::new(),
            arguments: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner), writer: Mutex::default() }
    }

    /// Whether to record arguments from now on.
    pub(crate) fn keep_arguments(&self, wanted: bool) {
        self.inner.arguments.store(wanted, Ordering::Relaxed);
    }

    /// Writes the pending lines, and ends the thread.
    pub(crate) fn finish(&self) {
        self.inner.held().over = true;
        self.inner.wakeup.notify_all();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let _ = writer.join();
        }
    }

    fn start(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_some() {
            return;
        }
        let inner = self.inner.clone();
        let thread = std::thread::Builder::new().name("patterm-audit".into());
        match thread.spawn(move || inner.write_all()) {
            Ok(thread) => *writer = Some(thread),
            Err(error) => tracing::error!(%error, "cannot start the thread of the audit log"),
        }
    }
}

impl AuditLog for Audit {
    fn wants_arguments(&self) -> bool {
        self.inner.arguments.load(Ordering::Relaxed)
    }

    fn record(&self, record: &AuditRecord<'_>) {
        let mut held = self.inner.held();
        let unwanted = record.who.is_none() && held.is_over_the_rate();
        let before = held.lines.len();
        if !unwanted {
            append_line(&mut held.lines, record);
        }
        if unwanted || held.lines.len() > WAITING_BYTES {
            held.lines.truncate(before);
            held.lost += 1;
            return;
        }
        let first = before == 0;
        drop(held);
        if first {
            self.start();
            self.inner.wakeup.notify_all();
        }
    }
}

/// Appends the line of a call. Written by hand: it is a large part of what a call costs.
fn append_line(line: &mut Vec<u8>, record: &AuditRecord<'_>) {
    line.reserve(LINE_BYTES);
    line.extend_from_slice(b"{\"time\":\"");
    append_now(line);
    line.push(b'"');
    append_text(line, "who", record.who);
    append_text(line, "server", Some(record.server));
    append_text(line, "method", record.method);
    append_text(line, "tool", record.tool);
    append_text(line, "outcome", Some(record.outcome.as_str()));
    if let CallOutcome::Error(code) = record.outcome {
        line.extend_from_slice(format!(",\"code\":{code}").as_bytes());
    }
    if let Some(status) = record.status {
        append_number(line, "status", u64::from(status));
    }
    let nanos = u64::from(record.duration.subsec_nanos()) + 500;
    let micros = record.duration.as_secs().saturating_mul(1_000_000).saturating_add(nanos / 1_000);
    append_number(line, "ms", micros / 1_000);
    line.push(b'.');
    append_digits(line, micros % 1_000, 3);
    append_number(line, "bytes_in", record.request_bytes as u64);
    append_number(line, "bytes_out", record.response_bytes as u64);
    let arguments = record.arguments.filter(|text| text.len() <= ARGUMENT_BYTES);
    let arguments = arguments.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    if let Some(arguments) = arguments {
        line.extend_from_slice(b",\"arguments\":");
        // As their caller wrote them, possibly with line breaks.
        patterm_wire::line::append(arguments.get().as_bytes(), line);
    }
    line.extend_from_slice(b"}\n");
}

fn append_name(line: &mut Vec<u8>, name: &str) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b"\":");
}

fn append_text(line: &mut Vec<u8>, name: &str, text: Option<&str>) {
    let Some(text) = text else { return };
    append_name(line, name);
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        line.push(b'"');
        line.extend_from_slice(text.as_bytes());
        line.push(b'"');
    } else {
        patterm_wire::line::append(serde_json::Value::from(text).to_string().as_bytes(), line);
    }
}

fn append_number(line: &mut Vec<u8>, name: &str, number: u64) {
    append_name(line, name);
    append_digits(line, number, 1);
}

/// Appends a number with at least this many digits.
fn append_digits(line: &mut Vec<u8>, number: u64, least: usize) {
    let mut digits = [b'0'; 20];
    let mut rest = number;
    let mut from = digits.len();
    while rest > 0 || digits.len() - from < least {
        from -= 1;
        digits[from] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    line.extend_from_slice(&digits[from..]);
}

/// A call of a shared tool through an agent's connection. If it is dropped before it is
/// answered, it was cancelled.
pub(crate) struct CallAudit {
    audit: Arc<Audit>,
    who: String,
    server: String,
    tool: String,
    arguments: Option<String>,
    request_bytes: usize,
    began: Instant,
    ended: (CallOutcome, usize),
}

impl CallAudit {
    pub(super) fn begin(
        audit: &Arc<Audit>,
        who: &str,
        server: &str,
        tool: &str,
        params: &str,
    ) -> Self {
        Self {
            audit: audit.clone(),
            who: who.to_owned(),
            server: server.to_owned(),
            tool: tool.to_owned(),
            arguments: audit.wants_arguments().then(|| params.to_owned()),
            request_bytes: params.len(),
            began: Instant::now(),
            ended: (CallOutcome::Cancelled, 0),
        }
    }

    /// The call was answered.
    pub(crate) fn answered(mut self, outcome: CallOutcome, bytes: usize) {
        self.ended = (outcome, bytes);
    }
}

impl Drop for CallAudit {
    fn drop(&mut self) {
        let (outcome, response_bytes) = self.ended;
        self.audit.record(&AuditRecord {
            who: Some(&self.who),
            server: &self.server,
            method: Some("tools/call"),
            tool: Some(&self.tool),
            arguments: self.arguments.as_deref(),
            outcome,
            status: None,
            duration: self.began.elapsed(),
            request_bytes: self.request_bytes,
            response_bytes,
        });
    }
}

impl Inner {
    fn write_all(&self) {
        let mut file = match RotatingFile::open(&self.path, FILE_BYTES, KEPT_FILES) {
            Ok(file) => file,
            Err(error) => {
                tracing::error!(%error, path = %self.path.display(), "cannot open the audit log");
                return;
            }
        };
        loop {
            let mut held = self.held();
            while held.lines.is_empty() && held.lost == 0 && !held.over {
                held = self.wakeup.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
            let mut lines = std::mem::take(&mut held.lines);
            let (lost, over) = (std::mem::take(&mut held.lost), held.over);
            drop(held);
            if lost > 0 {
                lines.extend_from_slice(b"{\"time\":\"");
                append_now(&mut lines);
                lines.extend_from_slice(format!("\",\"lost_lines\":{lost}}}\n").as_bytes());
            }
            if let Err(error) = std::io::Write::write_all(&mut file, &lines) {
                tracing::error!(%error, "cannot write to the audit log");
            }
            let held = self.held();
            if over && held.lines.is_empty() {
                return;
            }
            // The end is signalled; a new line need not be.
            let gathered = self.wakeup.wait_timeout_while(held, GATHER_TIME, |held| !held.over);
            drop(gathered.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    /// The last formatted second, and its text: a busy endpoint has thousands of calls in one.
    static SECOND: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
}

/// Appends the current time, in the format of the logs.
fn append_now(line: &mut Vec<u8>) {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SECOND.with_borrow_mut(|(second, text)| {
        if *second != since.as_secs() {
            text.clear();
            let _ = SystemTime.format_time(&mut Writer::new(text));
            text.truncate(text.find('.').unwrap_or(text.len()));
            *second = since.as_secs();
        }
        line.extend_from_slice(text.as_bytes());
        line.push(b'.');
        append_digits(line, u64::from(since.subsec_micros()), 6);
        line.push(b'Z');
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record<'a>(tool: &'a str, arguments: &'a str) -> AuditRecord<'a> {
        AuditRecord {
            who: Some("ci"),
            server: "search",
            method: Some("tools/call"),
            tool: Some(tool),
            arguments: Some(arguments),
            outcome: CallOutcome::Error(-32602),
            status: Some(200),
            duration: Duration::from_micros(1500),
            request_bytes: 10,
            response_bytes: 20,
        }
    }

    #[test]
    fn a_line_says_what_was_recorded() {
        let hostile = "a\"b\\c\n\u{7f}é\u{2028}";
        for (who, status, micros, outcome) in [
            (Some("ci"), Some(200), 1_500, CallOutcome::Ok),
            (None, None, 0, CallOutcome::Cancelled),
            (Some(hostile), Some(401), 7, CallOutcome::Error(i64::MIN)),
            (Some(""), Some(65_535), 3_600_000_999, CallOutcome::ToolError),
        ] {
            let duration = Duration::from_micros(micros);
            let record =
                AuditRecord { who, status, outcome, duration, ..record(hostile, "{\"a\": [1]}") };
            let mut line = Vec::new();
            append_line(&mut line, &record);
            assert!(line.ends_with(b"}\n") && line.iter().filter(|b| **b == b'\n').count() == 1);
            let read: serde_json::Value = serde_json::from_slice(&line).unwrap();
            let mut expected = serde_json::json!({
                "time": read["time"], "server": "search", "method": "tools/call", "tool": hostile,
                "outcome": outcome.as_str(), "ms": micros as f64 / 1e3, "bytes_in": 10,
                "bytes_out": 20, "arguments": {"a": [1]},
            });
            if let Some(who) = who {
                expected["who"] = who.into();
            }
            if let Some(status) = status {
                expected["status"] = status.into();
            }
            if let CallOutcome::Error(code) = outcome {
                expected["code"] = code.into();
            }
            assert_eq!(read, expected);
            let time = read["time"].as_str().unwrap();
            assert!(time.len() == 27 && time.ends_with('Z'), "{time}");
        }
    }

    #[test]
    fn one_line_per_call_readable_by_the_owner_only_and_lost_lines_are_counted() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let audit = Audit::new(&state);
        audit.record(&record("find\n", "{\n\"q\":1,\"x\":\n{\"time\":\"forged\"}\n}"));
        let unauthorized = AuditRecord { who: None, ..record("x", "{}") };
        {
            // The current second does not end during the test.
            let mut held = audit.inner.held();
            (held.since, held.unauthorized) =
                (Instant::now().checked_add(Duration::from_secs(3600)), 20);
        }
        (0..3).for_each(|_| audit.record(&unauthorized));
        audit.finish();
        let path = state.file(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let lost = lines.iter().filter_map(|line| line["lost_lines"].as_u64()).sum::<u64>();
        assert_eq!(lost, 3, "{text}");
        assert_eq!((&lines[0]["tool"], &lines[0]["code"]), (&"find\n".into(), &(-32602).into()));
        assert_eq!((&lines[0]["ms"], &lines[0]["arguments"]["q"]), (&1.5.into(), &1.into()));
        assert!(lines[0]["time"].as_str().unwrap().ends_with('Z'));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    }
}
