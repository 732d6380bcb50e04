//! `patterm digest`: prints what happened while nobody looked.

use clap::Args;
use patterm_store::clock::Clock;
use patterm_wire::digest::{
    Digest, DigestRequest, LineKind, LookedRequest, NoteLooked, ReadDigest, Viewer, duration_text,
};
use patterm_wire::events::parse_time;

use super::events::EventsSince;
use crate::client::Client;
use crate::print::{one_line, print, print_json};
use crate::since::{Since, local_time};

/// Print what happened since you last looked, what needs you first
///
/// Without --since, begins where the last `patterm digest` without --since ended. It is built from recorded events
/// alone, which `patterm events` prints. Times are local.
#[derive(Debug, Args)]
pub(crate) struct DigestVerb {
    /// Begin at a time (2h, 14:30, an RFC 3339 time), or at the event with this number
    #[arg(long, value_name = "TIME|SEQ")]
    since: Option<EventsSince>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DigestVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let nothing = DigestRequest::default();
        let request = match self.since {
            None => DigestRequest { viewer: Some(Viewer::Cli), ..nothing },
            Some(EventsSince::Seq(seq)) => DigestRequest { since: Some(seq), ..nothing },
            Some(EventsSince::Time(since)) => {
                let since_ms = since.wall_ms(&Since::now(Clock::system().wall_ms()));
                DigestRequest { since_ms: Some(since_ms), ..nothing }
            }
        };
        let reply = client.query::<ReadDigest>(&request)?;
        let digest = reply.result;
        match self.json {
            true => print_json(&reply.json)?,
            false => print(&text(&digest)),
        }
        if self.since.is_none() && !client.is_on_disk() {
            let shown = Some((digest.next, digest.until));
            // An agent that looks moves nothing: the server refuses it, and what was asked for is printed.
            let _ = client.call::<NoteLooked>(&LookedRequest { viewer: Viewer::Cli, shown });
        }
        Ok(())
    }
}

/// A digest, with its sections apart.
fn text(digest: &Digest) -> String {
    let from = digest.from.as_deref().and_then(parse_time);
    let since = from.map_or_else(
        || match digest.since {
            0 | 1 => "Since the first event".to_owned(),
            since => format!("Since event {since}"),
        },
        |from| local_time(from).format("Since %Y-%m-%d %H:%M").to_string(),
    );
    let covers = digest.covers_ms().map(|ms| format!(" ({})", duration_text(ms)));
    let mut lines = vec![since + &covers.unwrap_or_default()];
    let mut below_agent = false;
    for line in digest.lines() {
        let time = line.at_ms.map(|at| local_time(at).format("%m-%d %H:%M  ").to_string());
        let line_text = format!("{}{}", time.unwrap_or_default(), one_line(&line.text));
        below_agent = match line.kind {
            LineKind::Heading => {
                lines.push(String::new());
                false
            }
            LineKind::Agent => true,
            LineKind::Note => {
                lines.push(String::new());
                false
            }
            LineKind::Urgent | LineKind::Entry => below_agent,
        };
        let indent = match line.kind {
            LineKind::Heading | LineKind::Note => "",
            LineKind::Entry if below_agent => "    ",
            LineKind::Agent | LineKind::Urgent | LineKind::Entry => "  ",
        };
        lines.push(format!("{indent}{line_text}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use patterm_wire::digest::{AgentDigest, DigestEntry};

    use super::*;

    #[test]
    fn sections_are_apart_and_nothing_controls_the_terminal() {
        let entry = |text: &str| DigestEntry {
            process_id: Some("p1".into()),
            text: text.into(),
            ..DigestEntry::default()
        };
        let agent = AgentDigest {
            process_id: "p1".into(),
            name: "lead".into(),
            entries: vec![entry("evil\u{1b}[2J")],
            ..AgentDigest::default()
        };
        let digest = Digest {
            needs_you: vec![entry("lead is blocked: Go?")],
            agents: vec![agent],
            ports: vec![entry("dev: port 3000: opened")],
            ..Digest::default()
        };
        let expected = "Since the first event\n\nNeeds you\n  lead is blocked: Go?\n\nAgents\n  lead (p1): 0 turns\n    \
            evil\\u{1b}[2J\n\nPorts\n  dev: port 3000: opened";
        assert_eq!(text(&digest), expected);
        assert_eq!(text(&Digest::default()), "Since the first event\n\nnothing happened");
    }
}
