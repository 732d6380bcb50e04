//! `patterm events`: prints what happened in the project.

use clap::{Args, Subcommand};
use patterm_store::clock::Clock;
use patterm_wire::events::{
    EventPage, EventQuery, EventRecord, ExportEvents, LogVerdict, VerifyEvents, check_type,
    parse_time,
};
use patterm_wire::method::Empty;
use patterm_wire::tools::{GetEvents, NextEvents, WaitForEvent, WaitForEventArgs};
use serde_json::Value;

use crate::client::Client;
use crate::print::{one_line, print, print_bytes, print_json, print_json_text, warn};
use crate::since::{Since, local_time};

/// How long one request of `--follow` waits: shorter than the time after which a server counts as hung.
const FOLLOW_SECONDS: f64 = 5.0;

/// Events of one request.
const PAGE: usize = 1_000;

/// Print what happened, and who caused it
///
/// Without --since, prints the newest 100 events. An event has a number, a local time, a type, the process it is about,
/// and an actor.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EventsVerb {
    #[command(subcommand)]
    action: Option<EventsAction>,
    /// Only events about this process
    #[arg(value_name = "ID")]
    process: Option<String>,
    /// Only events since this time (2h, 14:30, an RFC 3339 time), or from the event with this number on
    #[arg(long, value_name = "TIME|SEQ")]
    since: Option<EventsSince>,
    /// Only events of these types, such as agent.blocked; agent.* selects all types about agents
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',', value_parser = event_type)]
    types: Vec<String>,
    /// Print new events as they happen
    #[arg(short, long)]
    follow: bool,
    /// Print JSON; with --follow, one event per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum EventsAction {
    /// Check that no event is damaged or missing
    ///
    /// Each event contains the hash of the previous one, and the newest event is also recorded in a file of its own.
    /// This detects damage, for example by a failing disk, and files or lines that are gone. It does not detect
    /// tampering by somebody who can write your files, because that person can compute the hashes, too, nor that the
    /// whole folder of events was removed while no server was running. Exits with code 1 if the log is damaged.
    Verify {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print all events as JSON lines, as they are stored
    Export,
}

/// A type of events, or a group of them.
fn event_type(text: &str) -> Result<String, String> {
    check_type(text).map(|()| text.to_owned())
}

/// A time or the number of an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum EventsSince {
    Seq(u64),
    Time(Since),
}

impl std::str::FromStr for EventsSince {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        match given.parse() {
            Ok(seq) => Ok(Self::Seq(seq)),
            Err(_) => given.parse().map(Self::Time),
        }
    }
}

impl EventsVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.action {
            Some(EventsAction::Verify { json }) => verify(json),
            Some(EventsAction::Export) => export(),
            None => self.show(),
        }
    }

    fn show(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let process_id = match &self.process {
            Some(given) => Some(process_of_events(&mut client, given)?),
            None => None,
        };
        let since = match self.since {
            None => None,
            Some(EventsSince::Seq(seq)) => Some(seq),
            Some(EventsSince::Time(since)) => Some(first_since(&mut client, since)?),
        };
        let limit = since.map(|_| PAGE);
        let mut query = EventQuery { since, types: self.types, process_id, limit };
        let mut all: Vec<Value> = Vec::new();
        let mut next;
        loop {
            let reply = client.query::<GetEvents>(&query)?;
            let page = reply.read_as::<EventPage<Value>>()?;
            (next, query.since) = (page.next, Some(page.next));
            if page.dropped > 0 {
                warn(&format!("{} events are no longer kept", page.dropped));
            }
            let is_last = since.is_none() || page.events.is_empty();
            match self.json && !self.follow {
                true => all.extend(page.events),
                false => drop(show_page(page.events, self.json)?),
            }
            if is_last {
                break;
            }
        }
        if self.json && !self.follow {
            return print_json(&all);
        }
        if self.follow && !client.is_on_disk() {
            follow(&mut client, query, next, self.json)
        } else {
            Ok(())
        }
    }
}

/// The id of the process that the user means. Events of a closed process are still there.
fn process_of_events(client: &mut Client, given: &str) -> anyhow::Result<String> {
    let unknown = match client.resolve(given) {
        Ok(id) => return Ok(id),
        Err(unknown) => unknown,
    };
    let process_id = Some(given.to_owned());
    let query = EventQuery { process_id, limit: Some(1), ..EventQuery::default() };
    match client.query::<GetEvents>(&query)?.result.events.is_empty() {
        true => Err(unknown),
        false => Ok(given.to_owned()),
    }
}

/// Prints events as they happen, until the client is interrupted or nobody reads.
fn follow(client: &mut Client, query: EventQuery, mut next: u64, json: bool) -> anyhow::Result<()> {
    let EventQuery { types, process_id, .. } = query;
    loop {
        let wait = WaitForEventArgs {
            types: types.clone(),
            process_id: process_id.clone(),
            since: Some(next),
            timeout_seconds: Some(if client.is_on_disk() { 0.0 } else { FOLLOW_SECONDS }),
        };
        let events = client.query::<WaitForEvent>(&wait)?.read_as::<NextEvents<Value>>()?;
        next = events.next;
        let is_last = client.is_on_disk() && events.events.is_empty();
        if !show_page(events.events, json)? {
            return Ok(());
        }
        if is_last {
            warn("the server has ended, so nothing new happens");
            return Ok(());
        }
    }
}

/// Prints events, one on each line; `false` once nobody reads.
fn show_page(events: Vec<Value>, json: bool) -> anyhow::Result<bool> {
    for event in events {
        let is_read = match json {
            true => print_json_text(&event.to_string()),
            false => print_bytes(format!("{}\n", line(&serde_json::from_value(event)?)).as_bytes()),
        };
        if !is_read {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The number of the first event at or after a time, by binary search.
fn first_since(client: &mut Client, since: Since) -> anyhow::Result<u64> {
    let wanted = since.wall_ms(&Since::now(Clock::system().wall_ms()));
    let newest = EventQuery { limit: Some(1), ..EventQuery::default() };
    let (mut low, mut high) = (1, 1);
    if let Some(last) = client.query::<GetEvents>(&newest)?.result.events.pop() {
        high = last.seq + 1;
    }
    let mut event_at = |seq: u64| -> anyhow::Result<Option<EventRecord>> {
        let query = EventQuery { since: Some(seq), limit: Some(1), ..EventQuery::default() };
        Ok(client.query::<GetEvents>(&query)?.result.events.pop())
    };
    while low < high {
        let middle = low + (high - low) / 2;
        match event_at(middle)? {
            Some(event) if parse_time(&event.time).is_some_and(|at| at < wanted) => {
                low = event.seq + 1;
            }
            _ => high = middle,
        }
    }
    Ok(low)
}

/// An event on one line.
fn line(event: &EventRecord) -> String {
    let EventRecord { seq, kind, process_id, actor, data, recovered, .. } = event;
    let time = parse_time(&event.time).map_or_else(
        || event.time.clone(),
        |ms| local_time(ms).format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
    );
    let process = process_id.as_deref().unwrap_or("-");
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let data: Vec<_> =
        data.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
    let recovered = if *recovered { " (recorded after a crash)" } else { "" };
    let shown =
        format!("{seq}  {time}  {kind}  {process}  by {actor}  {}{recovered}", data.join(", "));
    one_line(shown.trim_end())
}

fn verify(json: bool) -> anyhow::Result<()> {
    let reply = Client::connect_to_read()?.query::<VerifyEvents>(&Empty {})?;
    let verdict = reply.result.clone();
    match json {
        true => print_json(&reply.json)?,
        false => print(&verdict_text(&verdict)),
    }
    match verdict.first_break {
        Some(_) => anyhow::bail!("the log of events is damaged"),
        None => Ok(()),
    }
}

fn verdict_text(verdict: &LogVerdict) -> String {
    let LogVerdict { events, dropped, lost, missing, first, last, first_break } = verdict;
    let mut text = match first.zip(*last) {
        Some((first, last)) => format!("{events} events, {first} to {last}"),
        None => "no events".to_owned(),
    };
    if *dropped > 0 {
        text.push_str(&format!(
            "; {dropped} older ones were dropped, because the log has a limited size"
        ));
    }
    if *lost > 0 {
        text.push_str(&format!("; up to {lost} were lost when the machine stopped"));
    }
    if *missing > 0 {
        text.push_str(&format!("; {missing} are damaged or missing, and were not dropped"));
    }
    match first_break {
        None => text.push_str("; nothing is damaged"),
        Some(found) => text.push_str(&format!(
            "; damaged from event {} on: {}",
            found.seq,
            one_line(&found.what)
        )),
    }
    text
}

fn export() -> anyhow::Result<()> {
    let mut client = Client::connect_to_read()?;
    let mut query = EventQuery { since: Some(1), limit: Some(PAGE), ..EventQuery::default() };
    loop {
        let page = client.query::<ExportEvents>(&query)?.result;
        if !page.lines.iter().all(|line| print_json_text(line)) || !page.more {
            return Ok(());
        }
        query.since = Some(page.next);
    }
}

#[cfg(test)]
mod tests {
    use patterm_wire::events::{Actor, LogBreak};
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_line_without_control_characters() {
        let Value::Object(data) = json!({ "reason": "evil\u{1b}[2J\nline", "ms": 7 }) else {
            return;
        };
        let event = EventRecord {
            seq: 9,
            time: "soon".into(),
            kind: "agent.idle".into(),
            process_id: Some("p1".into()),
            actor: Actor::agent("p2"),
            data,
            recovered: true,
            ..EventRecord::default()
        };
        let expected = "9  soon  agent.idle  p1  by p2  ms: 7, reason: evil\\u{1b}[2J\\nline (recorded after a crash)";
        assert_eq!(line(&event).replace("\\u{a}", "\\n"), expected);
    }

    #[test]
    fn a_verdict_says_what_is_missing_and_why() {
        let whole = LogVerdict {
            events: 3,
            first: Some(5),
            last: Some(7),
            dropped: 4,
            ..LogVerdict::default()
        };
        let expected = "3 events, 5 to 7; 4 older ones were dropped, because the log has a limited size; nothing is damaged";
        assert_eq!(verdict_text(&whole), expected);
        let first_break = Some(LogBreak { seq: 6, what: "an event is missing".into() });
        let broken = LogVerdict { lost: 2, missing: 1, first_break, ..whole };
        assert!(verdict_text(&broken).ends_with(
            "; up to 2 were lost when the machine stopped; 1 are damaged or missing, and were not dropped; damaged from event 6 on: an event is missing"
        ));
    }

    #[test]
    fn since_takes_a_number_or_a_time() {
        assert!(matches!("17".parse(), Ok(EventsSince::Seq(17))));
        assert!(matches!("2h".parse(), Ok(EventsSince::Time(Since::Ago(7_200_000)))));
        assert!("soon".parse::<EventsSince>().is_err());
    }
}
