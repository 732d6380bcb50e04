//! A digest as lines of text, for people: the CLI prints them, and the TUI lets a person choose one.

use super::{AgentDigest, Digest, DigestEntry, MessageCounts, StateTimes};
use crate::events::parse_time;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// The name of a section.
    Heading,
    /// Something that needs the person.
    Urgent,
    /// An agent with its times and counts.
    Agent,
    /// Something that happened.
    Entry,
    /// What the digest cannot tell, and why.
    Note,
}

/// Where a line belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTarget {
    /// The process.
    pub process_id: String,
    /// Its run.
    pub run: Option<u64>,
    /// The place in its output.
    pub offset: Option<u64>,
}

/// A line of a digest. Its text may contain anything that programs print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestLine {
    /// What it is.
    pub kind: LineKind,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// What it says.
    pub text: String,
    /// The process to which it leads.
    pub target: Option<LineTarget>,
}

impl Digest {
    /// All of it, most urgent first.
    #[must_use]
    pub fn lines(&self) -> Vec<DigestLine> {
        let mut lines = Vec::new();
        section(&mut lines, "Needs you", &self.needs_you, LineKind::Urgent);
        if !self.agents.is_empty() {
            lines.push(plain(LineKind::Heading, "Agents".to_owned()));
        }
        for agent in &self.agents {
            lines.push(agent.line());
            lines.extend(agent.entries.iter().map(|entry| entry.line(LineKind::Entry)));
        }
        let sections = [
            ("Processes", &self.processes),
            ("Ports", &self.ports),
            ("Scratchpads", &self.scratchpads),
            ("Shared servers", &self.servers),
            ("Project", &self.project),
        ];
        for (name, entries) in sections {
            section(&mut lines, name, entries, LineKind::Entry);
        }
        if self.is_empty() {
            lines.push(plain(LineKind::Note, "nothing happened".to_owned()));
        }
        lines.extend(self.notes().into_iter().map(|note| plain(LineKind::Note, note)));
        lines
    }

    /// How long the time is that it covers, in milliseconds.
    #[must_use]
    pub fn covers_ms(&self) -> Option<u64> {
        let from = self.from.as_deref().and_then(parse_time)?;
        Some(parse_time(&self.until)?.saturating_sub(from))
    }

    /// What it cannot tell.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.missing > 0 {
            let events = count(self.missing, "event");
            notes.push(format!(
                "up to {events} of this time missing: the log has a limited size, or is damaged"
            ));
        }
        if self.lost > 0 {
            let events = count(self.lost, "event");
            notes.push(format!(
                "up to {events} were lost when the machine stopped or its disk was full"
            ));
        }
        if self.agents.iter().any(|agent| agent.time.unknown_ms > 0) {
            notes.push("where a time is unknown, no event says what the agent did".to_owned());
        }
        if self.left_out > 0 {
            let entries = count(self.left_out, "entry");
            notes.push(format!("{entries} had no room; `patterm events` has all events"));
        }
        notes
    }
}

fn plain(kind: LineKind, text: String) -> DigestLine {
    DigestLine { kind, at_ms: None, text, target: None }
}

fn section(lines: &mut Vec<DigestLine>, name: &str, entries: &[DigestEntry], kind: LineKind) {
    if !entries.is_empty() {
        lines.push(plain(LineKind::Heading, name.to_owned()));
    }
    lines.extend(entries.iter().map(|entry| entry.line(kind)));
}

impl DigestEntry {
    fn line(&self, kind: LineKind) -> DigestLine {
        let lasted = self.ms.map(|ms| format!(" ({})", duration_text(ms)));
        let target = self.process_id.clone().map(|process_id| LineTarget {
            process_id,
            run: self.run,
            offset: self.offset,
        });
        let text = format!("{}{}", self.text, lasted.unwrap_or_default());
        DigestLine { kind, at_ms: parse_time(&self.time), text, target }
    }
}

impl AgentDigest {
    fn line(&self) -> DigestLine {
        let mut parts = vec![count(self.turns, "turn")];
        parts.extend(self.time.text());
        parts.extend(self.messages.text());
        if self.sent > 0 {
            parts.push(format!("sent {}", self.sent));
        }
        if self.commits > 0 {
            let files = count(self.files_changed, "file");
            parts.push(format!("{} with {files}", count(self.commits, "commit")));
        }
        let target = LineTarget { process_id: self.process_id.clone(), run: None, offset: None };
        let text = format!("{} ({}): {}", self.name, self.process_id, parts.join("; "));
        DigestLine { kind: LineKind::Agent, at_ms: None, text, target: Some(target) }
    }
}

impl StateTimes {
    /// The states that it was in.
    fn text(&self) -> Option<String> {
        let Self { working_ms, idle_ms, blocked_ms, limited_ms, unknown_ms } = *self;
        let times = [
            ("working", working_ms),
            ("idle", idle_ms),
            ("blocked", blocked_ms),
            ("limited", limited_ms),
            ("unknown", unknown_ms),
        ];
        let times = times.iter().filter(|(_, ms)| *ms > 0);
        let times: Vec<_> =
            times.map(|(state, ms)| format!("{state} {}", duration_text(*ms))).collect();
        (!times.is_empty()).then(|| times.join(", "))
    }
}

impl MessageCounts {
    fn text(&self) -> Option<String> {
        let Self { delivered, waiting, stalled, dropped } = *self;
        if self.total() == 0 {
            return None;
        }
        let parts = [
            (delivered, "delivered"),
            (waiting, "waiting"),
            (stalled, "stalled"),
            (dropped, "dropped"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let parts: Vec<_> = parts.map(|(number, what)| format!("{number} {what}")).collect();
        Some(format!("{}: {}", count(self.total(), "message"), parts.join(", ")))
    }
}

/// A number of things.
fn count(number: u64, what: &str) -> String {
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        _ => format!("{number} {what}s"),
    }
}

/// A duration in its two largest units.
#[must_use]
pub fn duration_text(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes, seconds) {
        (0, 0, 0, 0) => "under 1 s".to_owned(),
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, _) => format!("{minutes} min"),
        (0, hours, 0, _) => format!("{hours} h"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, 0, ..) => format!("{days} d"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        let texts = [0, 999, 59_999, 60_000, 3_599_999, 3_600_000, 5_400_000, 90_000_000]
            .map(duration_text);
        let expected =
            ["under 1 s", "under 1 s", "59 s", "1 min", "59 min", "1 h", "1 h 30 min", "1 d 1 h"];
        assert_eq!(texts, expected);
    }

    #[test]
    fn lines_say_what_is_urgent_first_and_what_is_unknown_last() {
        let entry = |text: &str, seq| DigestEntry {
            seq,
            time: "2026-11-16T09:12:03.118Z".into(),
            kind: "agent.blocked".into(),
            process_id: Some("p3".into()),
            run: Some(2),
            offset: Some(81),
            text: text.into(),
            ms: Some(720_000),
        };
        let agent = AgentDigest {
            process_id: "p3".into(),
            name: "tests".into(),
            turns: 1,
            time: StateTimes { working_ms: 60_000, unknown_ms: 1_000, ..StateTimes::default() },
            messages: MessageCounts { delivered: 1, stalled: 1, ..MessageCounts::default() },
            sent: 2,
            commits: 1,
            files_changed: 3,
            entries: vec![entry("blocked: Allow git push?", 7)],
            ..AgentDigest::default()
        };
        let digest = Digest {
            missing: 1,
            left_out: 2,
            needs_you: vec![entry("tests is blocked: Allow git push?", 7)],
            agents: vec![agent],
            ..Digest::default()
        };
        let lines = digest.lines();
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        let expected = [
            "Needs you",
            "tests is blocked: Allow git push? (12 min)",
            "Agents",
            "tests (p3): 1 turn; working 1 min, unknown 1 s; 2 messages: 1 delivered, 1 stalled; sent 2; 1 commit with 3 files",
            "blocked: Allow git push? (12 min)",
            "up to 1 event of this time missing: the log has a limited size, or is damaged",
            "where a time is unknown, no event says what the agent did",
            "2 entries had no room; `patterm events` has all events",
        ];
        assert_eq!(texts, expected);
        let target = LineTarget { process_id: "p3".into(), run: Some(2), offset: Some(81) };
        assert_eq!(lines[1].target, Some(target));
        assert_eq!(lines[1].at_ms, Some(1_794_820_323_118));
        assert_eq!(Digest::default().lines()[0].text, "nothing happened");
    }
}
