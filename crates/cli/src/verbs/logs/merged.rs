//! The lines of several processes, merged by their times.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal};

use patterm_store::clock::Clock;
use patterm_wire::logs::{self, LogLine, LogLines, LogsRequest, ReadLogs};
use patterm_wire::printable;
use patterm_wire::{Incoming, Message, follow};
use serde::Serialize;

use crate::client::Client;
use crate::connect::{TRIES, is_lost};
use crate::print::{one_line, print_bytes, print_json_text, warn};
use crate::since::{self, Since};
use crate::{find, start};

/// The colours of names on a terminal: those that are readable on dark and on light ones.
const COLOURS: [u8; 6] = [36, 33, 32, 35, 34, 31];

/// Names are padded to at most this many columns.
const NAME_COLUMNS: usize = 24;

/// Which lines to print, and how.
#[derive(Debug)]
pub(super) struct MergedLogs {
    /// The ids of the processes; all if there are none.
    pub(super) processes: Vec<String>,
    pub(super) tail: Option<u64>,
    pub(super) since: Option<Since>,
    pub(super) follow: bool,
    pub(super) times: bool,
    pub(super) json: bool,
    /// Each line begins with the name of its process.
    pub(super) names: bool,
}

/// What `--json` prints for each line.
#[derive(Debug, Serialize)]
struct JsonLine<'a> {
    process_id: &'a str,
    name: &'a str,
    /// RFC 3339, in UTC; null if it is unknown.
    time: Option<String>,
    text: &'a str,
    next_offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
}

/// How a part of the stream ended.
enum Ended {
    /// There are no more lines, or nobody reads them.
    Done,
    /// The server died, or another one takes over.
    Lost,
}

impl MergedLogs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let now = Clock::system().wall_ms();
        let mut request = LogsRequest {
            version: logs::VERSION,
            processes: self.processes.clone(),
            tail: self.tail,
            since_ms: self.since.map(|since| since.wall_ms(&Since::now(now))),
            follow: self.follow,
            continue_at: BTreeMap::new(),
        };
        let mut printer = Printer::new(&self);
        let mut tries = TRIES;
        loop {
            let client = Client::connect_to_read()?;
            if client.is_on_disk() && std::mem::take(&mut request.follow) {
                warn("no server is running, so no process prints anything new");
            }
            let server = client.server();
            match client.upgrade::<ReadLogs>(&request) {
                Err(error) if tries > 1 && is_lost(&error) => tries -= 1,
                upgraded => {
                    let (stream, copy) = upgraded?;
                    tries = TRIES;
                    let ended = read(stream, &mut request.continue_at, &mut printer)?;
                    drop(copy);
                    if matches!(ended, Ended::Done) {
                        return Ok(());
                    }
                }
            }
            find::wait_for_successor(&start::project_here()?, server)?;
        }
    }
}

/// Prints lines until the stream ends, and notes where to continue.
fn read(
    mut stream: impl BufRead,
    continue_at: &mut BTreeMap<String, u64>,
    printer: &mut Printer,
) -> anyhow::Result<Ended> {
    let mut line = Vec::new();
    loop {
        line.clear();
        match stream.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(Ended::Lost),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(Ended::Lost),
            Err(e) => return Err(e.into()),
            Ok(_) if !line.ends_with(b"\n") => return Ok(Ended::Lost),
            Ok(_) => {}
        }
        let Ok(Incoming::One(Message::Notification { method, params })) =
            Incoming::parse(line.trim_ascii_end())
        else {
            continue;
        };
        if method == follow::ENDED {
            return Ok(Ended::Done);
        }
        let Some(params) = params.filter(|_| method == logs::LINES) else { continue };
        let LogLines { lines, current, done } = serde_json::from_str(params.get())?;
        let is_read = lines.is_empty() || printer.print(&lines);
        for line in lines {
            continue_at.insert(line.process_id, line.next_offset);
        }
        continue_at.extend(current.unwrap_or_default());
        if done || !is_read {
            return Ok(Ended::Done);
        }
    }
}

/// Prints lines.
struct Printer {
    times: bool,
    json: bool,
    names: bool,
    is_terminal: bool,
    is_coloured: bool,
    /// The width of the longest name so far.
    width: usize,
}

impl Printer {
    fn new(logs: &MergedLogs) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            times: logs.times,
            json: logs.json,
            names: logs.names,
            is_terminal,
            is_coloured: is_terminal && !plain,
            width: 0,
        }
    }

    /// Prints some lines; false once the reader is gone.
    fn print(&mut self, lines: &[LogLine]) -> bool {
        let longest = lines.iter().map(|line| one_line(&line.name).chars().count()).max();
        self.width = self.width.max(longest.unwrap_or(0).min(NAME_COLUMNS));
        for line in lines.iter().filter(|line| line.lost > 0 && !self.json) {
            let (lost, name) = (line.lost, one_line(&line.name));
            warn(&format!(
                "{lost} bytes of output of {name} are lost: the log was full, or could not be stored"
            ));
        }
        if self.json {
            // One write each: a reader of a pipe sees whole lines.
            return lines.iter().all(|line| self.print_json(line));
        }
        let text: String = lines.iter().map(|line| self.line(line)).collect();
        print_bytes(text.as_bytes())
    }

    fn print_json(&self, line: &LogLine) -> bool {
        let LogLine { process_id, name, time_ms, text, next_offset, lost } = line;
        let time = time_ms.map(|ms| since::local_time(ms).to_utc());
        let time = time.map(|time| time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
        let (next_offset, dropped) = (*next_offset, (*lost > 0).then_some(*lost));
        let line = JsonLine { process_id, name, time, text, next_offset, dropped };
        match serde_json::to_string(&line) {
            Ok(text) => print_json_text(&text),
            Err(_) => false,
        }
    }

    fn line(&self, line: &LogLine) -> String {
        let mut printed = String::new();
        if self.names {
            let name = format!("{:<1$} |", one_line(&line.name), self.width);
            printed += &match self.is_coloured {
                true => format!("\x1b[{}m{name}\x1b[0m ", colour_of(&line.process_id)),
                false => format!("{name} "),
            };
        }
        if self.times {
            let time = line.time_ms.map(since::local_time);
            let time = time.map(|time| time.format("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string());
            printed += &format!("{:<29} ", time.as_deref().unwrap_or("-"));
        }
        printed += &match self.is_terminal {
            true => printable::lines(&line.text),
            false => line.text.clone(),
        };
        printed.push('\n');
        printed
    }
}

/// The colour of a process: neighbours differ, and it stays the same.
fn colour_of(id: &str) -> u8 {
    let number = id.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>();
    COLOURS[number.unwrap_or(0) % COLOURS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_aligned_and_coloured() {
        let line = |id: &str, name: &str, text: &str| LogLine {
            process_id: id.into(),
            name: name.into(),
            text: text.into(),
            ..LogLine::default()
        };
        let mut printer = Printer {
            times: false,
            json: false,
            names: true,
            is_terminal: false,
            is_coloured: false,
            width: 3,
        };
        assert_eq!(printer.line(&line("p1", "db", "up\t1")), "db  | up\t1\n");
        printer.times = true;
        assert!(printer.line(&line("p1", "db", "x")).starts_with("db  | -    "));
        printer = Printer { times: false, is_terminal: true, is_coloured: true, ..printer };
        let hostile = printer.line(&line("p7", "a\x1b", "\u{9b}2J"));
        assert_eq!(hostile, "\x1b[33ma\\u{1b} |\x1b[0m \\u{9b}2J\n");
    }
}
