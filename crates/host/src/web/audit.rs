//! The audit log: who called what, when, and how it ended, one line of JSON a call. Callers hand their
//! line in and go on; a thread writes.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, UNIX_EPOCH};

use patterm_gateway::http::{Auditor, Outcome, Record};
use patterm_wire::Framing;
use serde::Serialize;
use serde_json::value::RawValue;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::log::RotatingFile;
use patterm_store::state::StateDir;

const FILE: &str = "audit.jsonl";

/// The file is put aside at this size: a hundred thousand calls.
const FILE_BYTES: u64 = 16 << 20;

/// Files kept aside.
const KEPT_FILES: u32 = 1;

/// What may wait to be written. A disk that is slower loses lines, which is said; callers lose nothing.
const WAITING_BYTES: usize = 1 << 20;

/// Bytes of arguments in one line.
const ARGUMENT_BYTES: usize = 16 << 10;

/// Lines a second of those who were not let in: nobody pushes the others' lines out of the file.
const STRANGERS: u32 = 20;

/// After a write, more is gathered for so long: a line each would cost a busy door its time.
const GATHER: Duration = Duration::from_millis(50);

/// The log, and the thread that writes it once there is something to write.
#[derive(Debug)]
pub(crate) struct Audit {
    inner: Arc<Inner>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    held: Mutex<Held>,
    bell: Condvar,
    arguments: AtomicBool,
}

#[derive(Debug, Default)]
struct Held {
    lines: Vec<u8>,
    lost: u64,
    over: bool,
    /// Strangers that were noted since this moment.
    strangers: u32,
    since: Option<Instant>,
}

impl Held {
    fn is_one_too_many(&mut self) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now - since >= Duration::from_secs(1)) {
            (self.since, self.strangers) = (Some(now), 0);
        }
        self.strangers += 1;
        self.strangers > STRANGERS
    }
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<&'a str>,
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    ms: f64,
    bytes_in: usize,
    bytes_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
}

impl Audit {
    pub(crate) fn new(state: &StateDir) -> Self {
        let inner = Inner {
            path: state.file(FILE),
            held: Mutex::default(),
            bell: Condvar::new(),
            arguments: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner), writer: Mutex::default() }
    }

    /// Whether arguments are kept from now on.
    pub(crate) fn keep_arguments(&self, wanted: bool) {
        self.inner.arguments.store(wanted, Ordering::Relaxed);
    }

    /// Writes what waits, and ends.
    pub(crate) fn finish(&self) {
        self.inner.held().over = true;
        self.inner.bell.notify_all();
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
            Err(error) => tracing::error!(%error, "calls are not noted: there is no thread"),
        }
    }
}

impl Auditor for Audit {
    fn wants_arguments(&self) -> bool {
        self.inner.arguments.load(Ordering::Relaxed)
    }

    fn note(&self, record: &Record<'_>) {
        let arguments = record.arguments.filter(|text| text.len() <= ARGUMENT_BYTES);
        let line = Line {
            time: now(),
            who: record.who,
            server: record.server,
            method: record.method,
            tool: record.tool,
            outcome: record.outcome.word(),
            code: match record.outcome {
                Outcome::Error(code) => Some(code),
                _ => None,
            },
            status: record.status,
            ms: (record.duration.as_secs_f64() * 1e6).round() / 1e3,
            bytes_in: record.bytes.0,
            bytes_out: record.bytes.1,
            arguments: arguments.and_then(|text| serde_json::from_str(text).ok()),
        };
        let Ok(line) = serde_json::to_vec(&line) else { return };
        let mut held = self.inner.held();
        let unwanted = record.who.is_none() && held.is_one_too_many();
        if unwanted || held.lines.len() + line.len() > WAITING_BYTES {
            held.lost += 1;
            return;
        }
        let first = held.lines.is_empty();
        // Arguments stand in it as their caller wrote them, line ends among them.
        Framing::Newline.encode(&line, &mut held.lines);
        drop(held);
        if first {
            self.start();
            self.inner.bell.notify_all();
        }
    }
}

/// A call of a shared tool by an agent's own connection. Dropped before it is answered, it was
/// cancelled.
pub(crate) struct Noting {
    audit: Arc<Audit>,
    who: String,
    server: String,
    tool: String,
    arguments: Option<String>,
    taken: usize,
    began: Instant,
    ended: (Outcome, usize),
}

impl Noting {
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
            taken: params.len(),
            began: Instant::now(),
            ended: (Outcome::Cancelled, 0),
        }
    }

    /// It was answered.
    pub(crate) fn answered(mut self, outcome: Outcome, bytes: usize) {
        self.ended = (outcome, bytes);
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        let (outcome, given) = self.ended;
        self.audit.note(&Record {
            who: Some(&self.who),
            server: &self.server,
            method: Some("tools/call"),
            tool: Some(&self.tool),
            arguments: self.arguments.as_deref(),
            outcome,
            status: None,
            duration: self.began.elapsed(),
            bytes: (self.taken, given),
        });
    }
}

impl Inner {
    fn write_all(&self) {
        let mut file = match RotatingFile::open(&self.path, FILE_BYTES, KEPT_FILES) {
            Ok(file) => file,
            Err(error) => {
                tracing::error!(%error, path = %self.path.display(), "calls cannot be noted");
                return;
            }
        };
        loop {
            let mut held = self.held();
            while held.lines.is_empty() && held.lost == 0 && !held.over {
                held = self.bell.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
            let mut lines = std::mem::take(&mut held.lines);
            let (lost, over) = (std::mem::take(&mut held.lost), held.over);
            drop(held);
            if lost > 0 {
                let said = format!("{{\"time\":\"{}\",\"lost_lines\":{lost}}}\n", now());
                lines.extend_from_slice(said.as_bytes());
            }
            if let Err(error) = std::io::Write::write_all(&mut file, &lines) {
                tracing::error!(%error, "calls cannot be noted");
            }
            let held = self.held();
            if over && held.lines.is_empty() {
                return;
            }
            // Who ends it rings; whoever adds a line need not.
            let gathered = self.bell.wait_timeout_while(held, GATHER, |held| !held.over);
            drop(gathered.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    /// The second that was written last, and its text: a busy door notes thousands in one.
    static SECOND: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
}

/// The time, as logs write it.
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SECOND.with_borrow_mut(|(second, text)| {
        if *second != since.as_secs() {
            text.clear();
            let _ = SystemTime.format_time(&mut Writer::new(text));
            text.truncate(text.find('.').unwrap_or(text.len()));
            *second = since.as_secs();
        }
        format!("{text}.{:06}Z", since.subsec_micros())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record<'a>(tool: &'a str, arguments: &'a str) -> Record<'a> {
        Record {
            who: Some("ci"),
            server: "search",
            method: Some("tools/call"),
            tool: Some(tool),
            arguments: Some(arguments),
            outcome: Outcome::Error(-32602),
            status: Some(200),
            duration: Duration::from_micros(1500),
            bytes: (10, 20),
        }
    }

    #[test]
    fn a_line_a_call_for_the_owner_only_and_what_is_lost_is_said() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let audit = Audit::new(&state);
        audit.note(&record("find\n", "{\n\"q\":1,\"x\":\n{\"time\":\"forged\"}\n}"));
        let stranger = Record { who: None, ..record("x", "{}") };
        {
            // This second has an hour.
            let mut held = audit.inner.held();
            (held.since, held.strangers) =
                (Instant::now().checked_add(Duration::from_secs(3600)), 20);
        }
        (0..3).for_each(|_| audit.note(&stranger));
        audit.finish();
        let path = state.file(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let said = lines.iter().filter_map(|line| line["lost_lines"].as_u64()).sum::<u64>();
        assert_eq!(said, 3, "{text}");
        assert_eq!((&lines[0]["tool"], &lines[0]["code"]), (&"find\n".into(), &(-32602).into()));
        assert_eq!((&lines[0]["ms"], &lines[0]["arguments"]["q"]), (&1.5.into(), &1.into()));
        assert!(lines[0]["time"].as_str().unwrap().ends_with('Z'));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    }
}
