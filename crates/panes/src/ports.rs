//! Addresses with a port in the output of a process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};

use patterm_keeper::log::Reader;
use patterm_screen::Stripper;
use regex::Regex;

use crate::offset::{AtomicOffset, Offset};
use patterm_store::sync::lock;

/// The limit on addresses of one process: more would be a log of connections, not a list of servers.
const MOST_SEEN: usize = 100;

/// Bytes searched at once.
const PIECE_BYTES: usize = 256 << 10;

/// Output that is searched without a request: a server prints its address when it starts, and the first request
/// should find it.
const FIRST_BYTES: u64 = 64 << 10;

/// How much of an unfinished line is kept for the next search.
const LINE_BYTES: usize = 16 << 10;

/// The byte that begins an escape sequence.
const ESCAPE: u8 = 0x1b;

/// An address that was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedAddress {
    /// The address as it was printed.
    pub url: String,
    /// Its port.
    pub port: u16,
    /// The beginning of the line in which it was printed first.
    pub offset: Offset,
}

/// The addresses in the output of one run. The output is searched in pieces: its beginning always, the rest once a
/// caller has asked for addresses. Reading the results never waits for a search.
#[derive(Debug, Default)]
pub struct Ports {
    /// Where the run begins; earlier runs may have listened elsewhere.
    begin: Offset,
    scan: Mutex<Scan>,
    found: Mutex<Vec<PrintedAddress>>,
    /// A caller has asked for addresses. Never cleared.
    asked: AtomicBool,
    /// The output before this offset was searched. Written while `scan` is locked, with `Release`; it decides only
    /// whether another search is worthwhile.
    searched: AtomicOffset,
}

/// The state of the search.
#[derive(Debug, Default)]
struct Scan {
    searched: Offset,
    stripper: Stripper,
    /// The line that has not ended yet.
    line: String,
    /// Where that line begins.
    begin: Offset,
    /// The addresses in complete lines.
    seen: Vec<PrintedAddress>,
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
    /// The addresses of a run whose output begins here.
    pub fn since(begin: Offset) -> Self {
        let scan = Mutex::new(Scan { searched: begin, ..Scan::default() });
        Self { begin, scan, searched: AtomicOffset::new(begin), ..Self::default() }
    }

    /// The addresses found so far, in the order in which they were printed.
    pub fn seen(&self) -> Vec<PrintedAddress> {
        lock(&self.found).clone()
    }

    /// Records that a caller wants addresses: from now on all output is searched.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether output before `end` is still to be searched.
    pub fn wants(&self, end: Offset) -> bool {
        let searched = self.searched.load(Ordering::Acquire);
        searched < end
            && (searched < self.begin.plus(FIRST_BYTES) || self.asked.load(Ordering::Acquire))
    }

    /// Searches one more piece of the output; `true` once everything before `end` was searched.
    pub fn look(&self, log: &Reader, end: Offset) -> bool {
        let mut scan = lock(&self.scan);
        let began = scan.searched;
        let is_done = scan.look(log, end);
        let searched = if is_done { scan.searched.max(end) } else { scan.searched };
        self.searched.store(searched, Ordering::Release);
        log.release(began.get(), scan.searched.get());
        // Addresses in the unfinished line are reported but not kept: the rest of a port may still follow.
        let mut found = scan.seen.clone();
        add(&mut found, &scan.line, scan.begin);
        *lock(&self.found) = found;
        is_done
    }
}

impl Scan {
    fn look(&mut self, log: &Reader, end: Offset) -> bool {
        let ahead = usize::try_from(end.bytes_since(self.searched)).unwrap_or(usize::MAX);
        let copied = log.copy(self.searched.get(), ahead.min(PIECE_BYTES));
        let found = Offset::new(copied.offset);
        if found > self.searched && self.searched > Offset::START {
            // Output between the two was dropped, so the unfinished line does not continue here.
            self.stripper = Stripper::default();
            self.line.clear();
        }
        self.searched = found;
        for piece in copied.bytes.split_inclusive(|byte| *byte == b'\n') {
            self.take_piece(piece);
        }
        copied.bytes.is_empty() || self.searched >= end
    }

    /// Searches a line, or the part of it that was printed so far.
    fn take_piece(&mut self, piece: &[u8]) {
        let begin = self.searched;
        self.searched = begin.plus(piece.len() as u64);
        let is_ended = piece.ends_with(b"\n");
        let is_new = self.line.is_empty() && self.stripper.is_ground();
        if is_new && is_ended && memchr::memchr2(b':', ESCAPE, piece).is_none() {
            return; // Most lines have no port, and no sequence that would affect the next line.
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

/// Adds the new addresses of a line.
fn add(seen: &mut Vec<PrintedAddress>, line: &str, offset: Offset) {
    let Some(address) = &*ADDRESS else { return };
    for found in address.captures_iter(line) {
        let port = found.get(1).or_else(|| found.get(2)).and_then(|p| p.as_str().parse().ok());
        let Some(port) = port.filter(|port| *port > 0) else { continue };
        let url = found.get(0).map_or("", |url| url.as_str()).trim_end_matches(['.', ',', ';']);
        if seen.len() < MOST_SEEN && !seen.iter().any(|seen| seen.url == url) {
            seen.push(PrintedAddress { url: url.to_owned(), port, offset });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[(&str, u16)]) {
        let mut seen = Vec::new();
        add(&mut seen, line, Offset::START);
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
