//! The logs of all processes, merged, as a view shows them: the lines that are held, which of them are shown, and
//! what is searched for.

use std::collections::{BTreeMap, VecDeque};

use patterm_wire::logs::{self, LogLine, LogLines, LogsRequest};

/// The lines that are held; the oldest are dropped. Older ones are in `patterm logs`.
pub(crate) const HELD_LINES: usize = 10_000;

/// The bytes of their texts.
pub(crate) const HELD_BYTES: usize = 8 << 20;

/// Lines of each process that are shown at first.
const FIRST_LINES: u64 = 500;

/// What is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typing {
    Filter,
    Search,
}

/// The view of the logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LogsView {
    lines: VecDeque<LogLine>,
    /// The number of the first line that is held.
    first: u64,
    bytes: usize,
    /// Where to continue after the server died, by process.
    continue_at: BTreeMap<String, u64>,
    /// The server sends lines.
    pub(crate) live: bool,
    /// All lines so far have come.
    pub(crate) current: bool,
    /// Only lines of this process.
    pub(crate) process: Option<String>,
    /// Only lines with this text.
    pub(crate) filter: String,
    pub(crate) search: String,
    pub(crate) typing: Option<Typing>,
    /// The number of the line at the bottom; `None` follows the newest.
    bottom: Option<u64>,
    /// The number of the line that was found.
    pub(crate) found: Option<u64>,
    /// Columns to the left of the texts.
    pub(crate) left: usize,
}

impl LogsView {
    /// A view without lines, whose connection is about to be opened.
    pub(crate) fn new() -> Self {
        Self { live: true, ..Self::default() }
    }

    /// What to ask the server for.
    pub(crate) fn request(&self) -> LogsRequest {
        LogsRequest {
            version: logs::VERSION,
            tail: Some(FIRST_LINES),
            follow: true,
            continue_at: self.continue_at.clone(),
            ..LogsRequest::default()
        }
    }

    /// Adds lines from the server.
    pub(crate) fn take(&mut self, new: LogLines) {
        for line in new.lines {
            self.continue_at.insert(line.process_id.clone(), line.next_offset);
            self.bytes += line.text.len();
            self.lines.push_back(line);
            while self.lines.len() > HELD_LINES || self.bytes > HELD_BYTES {
                let Some(oldest) = self.lines.pop_front() else { break };
                self.bytes -= oldest.text.len();
                self.first += 1;
            }
        }
        if let Some(offsets) = new.current {
            self.current = true;
            self.continue_at.extend(offsets);
        }
    }

    /// Whether it shows the newest lines as they come.
    pub(crate) fn follows(&self) -> bool {
        self.bottom.is_none()
    }

    /// The lines that pass the filters, with their numbers.
    fn passing(&self) -> impl Iterator<Item = (u64, &LogLine)> {
        let numbers = self.first..self.first + self.lines.len() as u64;
        let numbered = self.lines.iter().zip(numbers).map(|(line, number)| (number, line));
        numbered.filter(|(_, line)| {
            let is_of = self.process.as_ref().is_none_or(|id| *id == line.process_id);
            is_of && (self.filter.is_empty() || !matches(&line.text, &self.filter).is_empty())
        })
    }

    /// The lines of a screen with this many rows.
    pub(crate) fn visible(&self, rows: usize) -> Vec<(u64, &LogLine)> {
        let passing: Vec<_> = self.passing().collect();
        let end = self.end(&passing, rows);
        passing[end.saturating_sub(rows)..end].to_vec()
    }

    /// How many of the lines that pass are above the bottom of the screen, and on it.
    fn end(&self, passing: &[(u64, &LogLine)], rows: usize) -> usize {
        let end = match self.bottom {
            None => passing.len(),
            Some(bottom) => passing.partition_point(|(number, _)| *number <= bottom),
        };
        end.max(rows.min(passing.len()))
    }

    /// Scrolls by rows, on a screen with this many.
    pub(crate) fn scroll(&mut self, by: isize, rows: usize) {
        let passing: Vec<_> = self.passing().collect();
        let end = self.end(&passing, rows).saturating_add_signed(by);
        let end = end.clamp(rows.min(passing.len()), passing.len());
        let bottom = passing[..end].last().map(|(number, _)| *number);
        self.bottom = bottom.filter(|_| end < passing.len());
    }

    /// Goes to the next line with the text that is searched for, towards the end or the beginning.
    pub(crate) fn find(&mut self, forward: bool, rows: usize) -> bool {
        let passing: Vec<_> = self.passing().collect();
        let found = |(_, line): &&(u64, &LogLine)| !matches(&line.text, &self.search).is_empty();
        let from = self.found.map_or_else(
            || self.end(&passing, rows),
            |number| passing.partition_point(|(other, _)| *other < number),
        );
        let next = match forward {
            true => passing.iter().skip(from + 1).find(found),
            false => passing[..from.min(passing.len())].iter().rev().find(found),
        };
        let Some((number, _)) = next else { return false };
        let number = *number;
        let is_visible = self.visible(rows).iter().any(|(shown, _)| *shown == number);
        // A line that is found stays: at its place, or in the middle of the screen.
        let bottom = match is_visible {
            true => self.end(&passing, rows),
            false => passing.partition_point(|(other, _)| *other <= number) + rows / 2,
        };
        let bottom = passing[..bottom.min(passing.len())].last().map(|(number, _)| *number);
        self.bottom = bottom;
        self.found = Some(number);
        true
    }

    /// Shows only the lines of the next process, or of all again.
    pub(crate) fn next_process(&mut self, ids: &[String], forward: bool) {
        let at = self.process.as_ref().and_then(|id| ids.iter().position(|other| other == id));
        let next = match (at, forward) {
            (None, true) => Some(0),
            (None, false) => ids.len().checked_sub(1),
            (Some(at), true) => Some(at + 1),
            (Some(at), false) => at.checked_sub(1),
        };
        self.process = next.and_then(|at| ids.get(at)).cloned();
        self.bottom = None;
    }

    /// Changes the text that is being typed.
    pub(crate) fn typed(&mut self) -> Option<&mut String> {
        match self.typing? {
            Typing::Filter => {
                self.bottom = None;
                Some(&mut self.filter)
            }
            Typing::Search => Some(&mut self.search),
        }
    }
}

/// Where a text is in a line. Capital letters only matter if the text has some.
pub(crate) fn matches(line: &str, text: &str) -> Vec<std::ops::Range<usize>> {
    if text.is_empty() {
        return Vec::new();
    }
    let is_exact = text.bytes().any(|byte| byte.is_ascii_uppercase());
    // The same length, so the places are the same.
    let line = if is_exact { line.to_owned() } else { line.to_ascii_lowercase() };
    line.match_indices(text).map(|(at, found)| at..at + found.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(lines: u64) -> LogsView {
        let mut view = LogsView::default();
        view.take(LogLines { lines: (0..lines).map(line).collect(), ..LogLines::default() });
        view
    }

    fn line(n: u64) -> LogLine {
        let process_id = format!("p{}", n % 2 + 1);
        LogLine { process_id, text: format!("Line {n}"), next_offset: n, ..LogLine::default() }
    }

    fn shown(view: &LogsView, rows: usize) -> Vec<u64> {
        view.visible(rows).iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn the_newest_lines_are_held_within_both_limits() {
        let mut view = view(HELD_LINES as u64 + 5);
        assert_eq!((view.lines.len(), view.first), (HELD_LINES, 5));
        let long = LogLine { text: "x".repeat(HELD_BYTES - 10), ..line(1) };
        view.take(LogLines { lines: vec![long, line(2)], ..LogLines::default() });
        assert_eq!((view.lines.len(), shown(&view, 1)), (2, [HELD_LINES as u64 + 6].to_vec()));
    }

    #[test]
    fn scrolling_stays_at_its_lines_while_new_ones_come() {
        let mut view = view(10);
        assert_eq!(shown(&view, 3), [7, 8, 9]);
        view.scroll(-2, 3);
        assert_eq!((shown(&view, 3), view.follows()), (vec![5, 6, 7], false));
        view.take(LogLines { lines: vec![line(10)], ..LogLines::default() });
        assert_eq!(shown(&view, 3), [5, 6, 7]);
        view.scroll(isize::MIN, 3);
        assert_eq!(shown(&view, 3), [0, 1, 2]);
        view.scroll(99, 3);
        assert_eq!((shown(&view, 3), view.follows()), (vec![8, 9, 10], true));
    }

    #[test]
    fn lines_are_filtered_by_process_and_text() {
        let mut view = view(20);
        view.next_process(&["p1".to_owned(), "p2".to_owned()], true);
        view.filter = "line 1".to_owned();
        assert_eq!(shown(&view, 99), [10, 12, 14, 16, 18]);
        view.filter = "LINE".to_owned();
        assert_eq!(shown(&view, 99), [0; 0]);
        view.scroll(-1, 5);
        assert!(!view.find(true, 5) && !view.find(false, 5));
    }

    #[test]
    fn a_search_goes_from_match_to_match() {
        let mut view = view(100);
        view.search = "5".to_owned();
        assert!(view.find(false, 10));
        assert_eq!(view.found, Some(95));
        assert!(view.find(false, 10));
        assert_eq!((view.found, shown(&view, 10).contains(&85)), (Some(85), true));
        assert!(view.find(true, 10) && view.found == Some(95));
        assert!(!view.find(true, 10) && view.found == Some(95));
        assert_eq!(matches("Ready, READY", "ready"), [0..5, 7..12]);
        assert_eq!(matches("Ready, READY", "READY"), vec![7..12]);
    }

    #[test]
    fn it_continues_where_it_was() {
        let mut view = view(4);
        let current = Some(BTreeMap::from([("p3".to_owned(), 7)]));
        view.take(LogLines { current, ..LogLines::default() });
        let expected = [("p1", 2), ("p2", 3), ("p3", 7)].map(|(id, at)| (id.to_owned(), at));
        assert_eq!(view.request().continue_at, BTreeMap::from(expected));
    }
}
