//! What must hold of what shared MCP servers say, for any bytes: their lines, their events, and a whole
//! session. The fuzz targets and the tests that replay the corpus share it.
#![allow(dead_code, reason = "each fuzz target uses one of them")]

use std::collections::BTreeMap;

use patterm_wire::{Framing, Id, Incoming, Message};
use serde_json::value::RawValue;

use crate::events::EventReader;
use crate::lines::{Lines, LongLine};
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::{Ask, Era, Eras, Ids, Output, Relay, Terms};

const LIMIT: usize = 64;

/// Lines that come in pieces, what was left of long ones, and what had no end.
fn lines_of(stream: &[u8], step: usize) -> (Vec<Vec<u8>>, Vec<LongLine>, Vec<u8>) {
    let mut lines = Lines::new(LIMIT, 8);
    let (mut whole, mut long) = (Vec::new(), Vec::new());
    for piece in stream.chunks(step) {
        lines.take(piece, |line| whole.push(line.to_vec()));
        long.extend(lines.take_long());
    }
    (whole, long, lines.rest())
}

/// The first byte says how the rest is cut into reads. However that is, the lines are the same, and
/// none is longer than the limit.
pub(crate) fn lines(data: &[u8]) {
    let Some((step, stream)) = data.split_first() else { return };
    let whole = lines_of(stream, stream.len().max(1));
    assert_eq!(whole, lines_of(stream, usize::from(*step).max(1)), "by {step}");
    assert!(whole.0.iter().all(|line| line.len() <= LIMIT && !line.contains(&b'\n')));
}

/// The events of a stream that comes in pieces, its ids, and whether one was too long.
fn events_of(stream: &[u8], step: usize) -> (Vec<Vec<u8>>, Option<Vec<u8>>, bool) {
    let mut reader = EventReader::new(LIMIT);
    let (mut events, mut id) = (Vec::new(), None);
    for mut piece in stream.chunks(step) {
        loop {
            let next = reader.next(&mut piece);
            id = reader.take_id().or(id);
            match next {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(_) => return (events, id, true),
            }
        }
    }
    (events, id, false)
}

/// The same of a stream of events.
pub(crate) fn events(data: &[u8]) {
    let Some((step, stream)) = data.split_first() else { return };
    let whole = events_of(stream, stream.len().max(1));
    assert_eq!(whole, events_of(stream, usize::from(*step).max(1)), "by {step}");
    assert!(whole.0.iter().all(|event| !event.is_empty() && event.len() <= LIMIT));
    assert!(whole.0.iter().all(|event| !event.contains(&b'\n') && !event.contains(&b'\r')));
}

/// Ids that a corpus can know.
fn counting() -> Ids {
    let mut count = 1..;
    Ids::of(move || count.next().unwrap_or_default())
}

/// A session as a play: each line begins with who does something, and the number of a caller where it
/// matters. Nobody is answered twice, everybody under his own id, and at the end nobody waits.
pub(crate) fn session(data: &[u8]) {
    let terms = Terms { exclusive: data.first() == Some(&b'!'), ..Terms::default() };
    let mut play = Play {
        relay: Relay::new(Terms { roots: "[]".into(), ..terms }, Eras::default(), counting()),
        asked: Vec::new(),
        open: BTreeMap::new(),
    };
    for line in data.split(|byte| *byte == b'\n') {
        play.act(line);
        play.look();
    }
    let of_probe = data.last() == Some(&b'!') && play.relay.dies_of_probe();
    play.relay.close(&Refusal::new(RefusalKind::Ended, "over"), of_probe);
    play.look();
    let owed: Vec<_> = play.open.values().filter(|ask| ask.1).collect();
    assert!(owed.is_empty(), "never answered: {owed:?}");
    assert_eq!(play.relay.in_flight(), 0);
}

struct Play {
    relay: Relay<usize>,
    /// By the number of an ask: whose it was.
    asked: Vec<(u64, Id)>,
    /// Those that are not answered, and whether they must be: who cancels may be answered or not.
    open: BTreeMap<usize, (Id, bool)>,
}

impl Play {
    fn act(&mut self, line: &[u8]) {
        let (Some(who), rest) = (line.first(), line.get(1..).unwrap_or_default()) else { return };
        let caller = u64::from(rest.first().copied().unwrap_or_default() & 3);
        let said = rest.get(1..).unwrap_or_default();
        match who {
            b's' => self.relay.hear(rest),
            b'x' => {
                let (head, tail) = rest.split_at(rest.len() / 2);
                let line = LongLine { head: head.to_vec(), tail: tail.to_vec() };
                self.relay.hear_too_long(&line, 1);
            }
            b'c' => self.say(caller, said),
            b'j' => self.relay.join(caller, &caller.to_string()),
            b'l' => {
                self.relay.leave(caller);
                let gone = |number: &usize| self.asked[*number].0 == caller;
                self.open.retain(|number, _| !gone(number));
            }
            b'w' => self.relay.initialized_written(caller != 0),
            b'p' | b't' => {
                let Some((own, _)) = self.relay.greeting() else { return };
                if *who == b'p' {
                    self.relay.probe_is_over(own);
                } else {
                    self.relay.greeting_is_late(own);
                }
            }
            _ => {}
        }
    }

    /// A caller says something, as it comes from a door.
    fn say(&mut self, caller: u64, said: &[u8]) {
        let (Ok(text), Ok(Incoming::One(message))) =
            (std::str::from_utf8(said), Incoming::parse(said))
        else {
            return;
        };
        match message {
            Message::Request { id, method, .. } => {
                let number = self.asked.len();
                self.asked.push((caller, id.clone()));
                self.open.insert(number, (id.clone(), true));
                self.relay.join(caller, &caller.to_string());
                let (method, text) = (method.to_string(), text.to_owned());
                let era = Era::of(&text);
                self.relay.ask(Ask { line: caller, id, method, text, era, reply: number });
            }
            Message::Notification { method, .. } => {
                if method == "notifications/cancelled" {
                    let mine = self.open.iter_mut().filter(|ask| self.asked[*ask.0].0 == caller);
                    mine.for_each(|(_, ask)| ask.1 = false);
                }
                self.relay.tell(caller, &method, text);
            }
            Message::Response { id: Some(id), .. } => self.relay.respond(caller, &id, text),
            Message::Response { .. } => {}
        }
    }

    fn look(&mut self) {
        let mut out = Vec::new();
        self.relay.move_output(&mut out);
        for output in out {
            match output {
                Output::Write(text) | Output::WriteInitialized(text) => {
                    assert!(!text.contains('\n'), "one line: {text}");
                    assert!(Incoming::parse(text.as_bytes()).is_ok(), "{text}");
                }
                Output::Answer(number, body) => {
                    let id = self.open.remove(&number);
                    let (id, _) =
                        id.unwrap_or_else(|| panic!("answered again: {:?}", self.asked[number]));
                    let Ok(Incoming::One(Message::Response { id: Some(of), .. })) =
                        Incoming::parse(&body)
                    else {
                        panic!("no answer: {}", body.escape_ascii());
                    };
                    assert_eq!(of, id);
                }
                Output::GiveBack(number, text) => {
                    let id = self.open.remove(&number).map(|(id, _)| id);
                    let Ok(Incoming::One(Message::Request { id: of, .. })) =
                        Incoming::parse(text.as_bytes())
                    else {
                        panic!("no request: {text}");
                    };
                    assert_eq!(Some(of), id);
                }
                Output::Tell { text, .. } => assert!(Incoming::parse(text.as_bytes()).is_ok()),
            }
        }
    }
}

/// A caller's message on its way to a server. What is written is one line; it says what the caller
/// said, but for its id and its token; and whoever reads it, with whichever JSON library, finds the
/// same method and the same tool in it.
pub(crate) fn relayed(data: &[u8]) {
    let (Ok(text), Ok(Incoming::One(message))) = (std::str::from_utf8(data), Incoming::parse(data))
    else {
        return;
    };
    for exclusive in [false, true] {
        let mut relay = greeted(exclusive);
        match &message {
            Message::Request { id, method, .. } => {
                let (id, method, text) = (id.clone(), method.to_string(), text.to_owned());
                let era = Era::of(&text);
                relay.ask(Ask { line: 1, id, method, text, era, reply: 0 });
            }
            Message::Notification { method, .. } => relay.tell(1, method, text),
            Message::Response { id: Some(id), .. } => relay.respond(1, id, text),
            Message::Response { .. } => {}
        }
        let mut out = Vec::new();
        relay.move_output(&mut out);
        for output in out {
            let Output::Write(written) = output else { continue };
            let mut line = Vec::new();
            Framing::Newline.encode(written.as_bytes(), &mut line);
            let line = std::str::from_utf8(&line).unwrap();
            assert_eq!(line.lines().count(), 1, "{line:?}");
            assert!(line.ends_with('\n') && !line.contains('\r'), "{line:?}");
            let said = Members::of(text);
            let read = Members::of(line);
            let method = read.by_all("method");
            assert!(method.is_some() || said.by_all("method").is_none(), "{line}");
            if matches!(message, Message::Request { .. }) {
                assert_eq!(method, said.by_all("method"), "{line}");
                let tool =
                    |members: &Members| Members::of(&members.by_all("params")?).by_all("name");
                assert_eq!(tool(&read), tool(&said), "{line}");
                assert_eq!(without_ids(line), without_ids(text), "{line}");
            }
        }
    }
}

/// A session with a server of the older era that has answered the handshake.
fn greeted(exclusive: bool) -> Relay<usize> {
    let terms = Terms { exclusive, roots: "[]".into(), ..Terms::default() };
    let eras = Eras { modern: Some(false), legacy: Some(true) };
    let mut relay = Relay::new(terms, eras, counting());
    let (method, text) = ("ping".to_owned(), PING.to_owned());
    relay.ask(Ask { line: 1, id: Id::from_number(0), method, text, era: Era::Legacy, reply: 0 });
    relay.hear(br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
    relay.initialized_written(true);
    relay.hear(br#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    relay.hear(br#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}"#);
    relay.move_output(&mut Vec::new());
    relay
}

const PING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// The members of an object, as often as they stand.
#[derive(Debug)]
struct Members(Vec<(String, String)>);

impl Members {
    fn of(text: &str) -> Self {
        let read = serde_json::from_str::<Self>(text);
        read.unwrap_or(Self(Vec::new()))
    }

    /// What a member says, if every reader agrees on that: one that takes the first of several, one
    /// that takes the last, and those that do not care for case.
    fn by_all(&self, name: &str) -> Option<String> {
        let exact: Vec<_> = self.0.iter().filter(|(key, _)| key == name).collect();
        let folded: Vec<_> =
            self.0.iter().filter(|(key, _)| key.to_lowercase() == name.to_lowercase()).collect();
        let views = [exact.first(), exact.last(), folded.first(), folded.last()];
        let views = views.map(|view| view.map(|(_, value)| value.clone()));
        assert!(views.iter().all(|view| *view == views[0]), "{name} is read in two ways: {self:?}");
        views[0].clone()
    }
}

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> serde::de::Visitor<'de> for All {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Members, A::Error> {
                let mut all = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    all.push((key, value.get().to_owned()));
                }
                Ok(Members(all))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// A message as a value without what is the relay's own; `None` where no value can hold it.
fn without_ids(text: &str) -> Option<serde_json::Value> {
    let mut value: serde_json::Value = serde_json::from_str(text).ok()?;
    let message = value.as_object_mut()?;
    message.remove("id");
    if let Some(meta) = message.get_mut("params").and_then(|params| params.get_mut("_meta"))
        && let Some(meta) = meta.as_object_mut()
    {
        meta.remove("progressToken");
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use crate::replay::replay;

    #[test]
    fn lines() {
        replay("lines", super::lines);
    }

    #[test]
    fn events() {
        replay("events", super::events);
    }

    #[test]
    fn session() {
        replay("session", super::session);
    }

    #[test]
    fn relayed() {
        replay("relayed", super::relayed);
    }
}
