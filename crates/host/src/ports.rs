//! Addresses with a port that a process printed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

use patterm_keeper::log::Reader;
use patterm_screen::Stripper;
use regex::Regex;

use patterm_store::sync::lock;

/// Addresses kept for one process: more is a log of connections, not a list of servers.
const MOST_SEEN: usize = 100;

/// Bytes looked at in one go.
const PIECE_BYTES: usize = 256 << 10;

/// Output that is looked at without a request: a server prints its address when it starts, and the first
/// request should find it.
const FIRST_BYTES: u64 = 64 << 10;

/// How much of a line that is not ended yet is kept for the next look.
const LINE_BYTES: usize = 16 << 10;

/// The byte that begins an escape sequence.
const ESCAPE: u8 = 0x1b;

/// An address that was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) url: String,
    pub(crate) port: u16,
    /// Where in the output the line begins in which it was printed first.
    pub(crate) offset: u64,
}

/// The addresses in what one process prints. Its output is looked at in pieces: its beginning always, the
/// rest once a caller has asked for the addresses. What was found is read without waiting for a look.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    scan: Mutex<Scan>,
    found: Mutex<Vec<Seen>>,
    /// A caller has asked for the addresses.
    asked: AtomicBool,
    /// The offset up to which the output was looked at.
    looked: AtomicU64,
}

/// How far the output was looked at.
#[derive(Debug, Default)]
struct Scan {
    looked: u64,
    stripper: Stripper,
    /// The line that is not ended yet, and where it began.
    line: String,
    begin: u64,
    /// The addresses in lines that are ended.
    seen: Vec<Seen>,
}

static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let scheme = r"(?:https?|wss?|tcp|postgres(?:ql)?|redis|mysql|mongodb)://(?:[^\s/@]+@)?";
    let host =
        r"(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\]|\d{1,3}(?:\.\d{1,3}){3}|[\w.-]+)";
    let bare = r"(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\]|\*)";
    let path = r#"(?:/[^\s"'<>)\]]*)?"#;
    Regex::new(&format!(r"{scheme}{host}:(\d{{2,5}})\b{path}|{bare}:(\d{{2,5}})\b{path}")).ok()
});

impl Ports {
    /// The addresses found so far, in the order in which they were printed.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.found).clone()
    }

    /// Notes that a caller asks for the addresses: from now on all output is looked at.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether output before this offset is still to be looked at.
    pub(crate) fn wants(&self, end: u64) -> bool {
        let looked = self.looked.load(Ordering::Acquire);
        looked < end && (looked < FIRST_BYTES || self.asked.load(Ordering::Acquire))
    }

    /// Looks at one more piece of the output; `true` once everything before `end` was looked at.
    pub(crate) fn look(&self, log: &Reader, end: u64) -> bool {
        let mut scan = lock(&self.scan);
        let began = scan.looked;
        let is_done = scan.look(log, end);
        self.looked
            .store(if is_done { scan.looked.max(end) } else { scan.looked }, Ordering::Release);
        log.release(began, scan.looked);
        // What the line holds that is not ended yet is among them, but not kept: the rest of a port
        // may still come.
        let mut found = scan.seen.clone();
        add(&mut found, &scan.line, scan.begin);
        *lock(&self.found) = found;
        is_done
    }
}

impl Scan {
    fn look(&mut self, log: &Reader, end: u64) -> bool {
        let ahead = usize::try_from(end.saturating_sub(self.looked)).unwrap_or(usize::MAX);
        let copied = log.copy(self.looked, ahead.min(PIECE_BYTES));
        if copied.offset > self.looked && self.looked > 0 {
            // What was between is gone: a line that was begun before does not go on here.
            self.stripper = Stripper::default();
            self.line.clear();
        }
        self.looked = copied.offset;
        for piece in copied.bytes.split_inclusive(|byte| *byte == b'\n') {
            self.take_piece(piece);
        }
        copied.bytes.is_empty() || self.looked >= end
    }

    /// Takes a line, or the part of one that was printed so far.
    fn take_piece(&mut self, piece: &[u8]) {
        let begin = self.looked;
        self.looked += piece.len() as u64;
        let is_ended = piece.ends_with(b"\n");
        let is_new = self.line.is_empty() && self.stripper.is_ground();
        if is_new && is_ended && memchr::memchr2(b':', ESCAPE, piece).is_none() {
            return; // Most lines: no port, and nothing that the next line would have to know of.
        }
        if self.line.is_empty() {
            self.begin = begin;
        }
        let text = self.stripper.feed(piece);
        self.line.push_str(&text);
        if is_ended || self.line.len() > LINE_BYTES {
            let line = std::mem::take(&mut self.line);
            add(&mut self.seen, &line, self.begin);
        }
    }
}

/// Adds the addresses of a line that are new.
fn add(seen: &mut Vec<Seen>, line: &str, offset: u64) {
    let Some(address) = &*ADDRESS else { return };
    for found in address.captures_iter(line) {
        let port = found.get(1).or_else(|| found.get(2)).and_then(|p| p.as_str().parse().ok());
        let Some(port) = port.filter(|port| *port > 0) else { continue };
        let url = found.get(0).map_or("", |url| url.as_str()).trim_end_matches(['.', ',', ';']);
        if seen.len() < MOST_SEEN && !seen.iter().any(|seen| seen.url == url) {
            seen.push(Seen { url: url.to_owned(), port, offset });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[(&str, u16)]) {
        let mut seen = Vec::new();
        add(&mut seen, line, 0);
        let seen: Vec<_> = seen.iter().map(|seen| (seen.url.as_str(), seen.port)).collect();
        assert_eq!(seen, expected, "{line}");
    }

    #[test]
    fn addresses_as_servers_print_them() {
        check("  Local:   http://localhost:5173/", &[("http://localhost:5173/", 5173)]);
        check("Listening on 0.0.0.0:8080.", &[("0.0.0.0:8080", 8080)]);
        check("ready on [::1]:3000, go", &[("[::1]:3000", 3000)]);
        check(
            "Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...",
            &[("http://0.0.0.0:8000/", 8000)],
        );
        check(
            "a http://127.0.0.1:1234/x?y=1 b https://example.org:8443",
            &[("http://127.0.0.1:1234/x?y=1", 1234), ("https://example.org:8443", 8443)],
        );
        check("at 12:30:45 in file.rs:123:4", &[]);
        check("localhost:99999 localhost:0 localhost:5", &[]);
    }
}
