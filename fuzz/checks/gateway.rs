//! Properties of the output of shared MCP servers for any bytes: lines, events, and a whole session.
//! The fuzz targets and the tests that replay the corpus share them.
#![allow(dead_code, reason = "each fuzz target uses one of them")]

use std::collections::BTreeMap;

use patterm_wire::{Framing, Id, Incoming, Message};
use serde_json::value::RawValue;

use crate::error::{GatewayError, GatewayErrorKind};
use crate::events::EventReader;
use crate::lines::{Lines, LongLine};
use crate::relay::{ClientId, ClientRequest, Era, Eras, Ids, Output, Relay, RelayConfig};

const LIMIT: usize = 64;

/// The lines of a stream in pieces, what is left of oversized ones, and the unfinished rest.
fn lines_of(stream: &[u8], step: usize) -> (Vec<Vec<u8>>, Vec<LongLine>, Vec<u8>) {
    let mut lines = Lines::new(LIMIT, 8);
    let (mut whole, mut long) = (Vec::new(), Vec::new());
    for piece in stream.chunks(step) {
        lines.take(piece, |line| whole.push(line.to_vec()));
        long.extend(lines.take_long());
    }
    (whole, long, lines.rest())
}

/// The first byte says how the rest is split into reads. The lines do not depend on it, and none
/// exceeds the limit.
pub(crate) fn lines(data: &[u8]) {
    let Some((step, stream)) = data.split_first() else { return };
    let whole = lines_of(stream, stream.len().max(1));
    assert_eq!(whole, lines_of(stream, usize::from(*step).max(1)), "by {step}");
    assert!(whole.0.iter().all(|line| line.len() <= LIMIT && !line.contains(&b'\n')));
}

/// The events of a stream in pieces, its last id, and whether an event was too long.
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

/// The same for a stream of events.
pub(crate) fn events(data: &[u8]) {
    let Some((step, stream)) = data.split_first() else { return };
    let whole = events_of(stream, stream.len().max(1));
    assert_eq!(whole, events_of(stream, usize::from(*step).max(1)), "by {step}");
    assert!(whole.0.iter().all(|event| !event.is_empty() && event.len() <= LIMIT));
    assert!(whole.0.iter().all(|event| !event.contains(&b'\n') && !event.contains(&b'\r')));
}

/// Predictable ids, which a corpus can contain.
fn counting() -> Ids {
    let mut count = 1..;
    Ids::of(move || count.next().unwrap_or_default())
}

/// A session as a script: each line begins with the kind of an action, and a client's number where it
/// matters. No request is answered twice, each under its own id, and at the end none is pending.
pub(crate) fn session(data: &[u8]) {
    let config = RelayConfig { exclusive: data.first() == Some(&b'!'), ..RelayConfig::default() };
    let mut script = Script {
        relay: Relay::new(
            RelayConfig { roots: "[]".into(), ..config },
            Eras::default(),
            counting(),
        ),
        asked: Vec::new(),
        open: BTreeMap::new(),
    };
    for line in data.split(|byte| *byte == b'\n') {
        script.act(line);
        script.look();
    }
    let by_probe = data.last() == Some(&b'!') && script.relay.may_end_by_probe();
    script.relay.close(&GatewayError::new(GatewayErrorKind::Ended, "over"), by_probe);
    script.look();
    let owed: Vec<_> = script.open.values().filter(|ask| ask.1).collect();
    assert!(owed.is_empty(), "never answered: {owed:?}");
    assert_eq!(script.relay.in_flight(), 0);
}

struct Script {
    relay: Relay<usize>,
    /// The client and the id of each request.
    asked: Vec<(u64, Id)>,
    /// Pending requests, and whether they must be answered: a cancelled one may be.
    open: BTreeMap<usize, (Id, bool)>,
}

impl Script {
    fn act(&mut self, line: &[u8]) {
        let (Some(who), rest) = (line.first(), line.get(1..).unwrap_or_default()) else { return };
        let caller = u64::from(rest.first().copied().unwrap_or_default() & 3);
        let said = rest.get(1..).unwrap_or_default();
        match who {
            b's' => self.relay.receive_line(rest),
            b'x' => {
                let (head, tail) = rest.split_at(rest.len() / 2);
                let line = LongLine { head: head.to_vec(), tail: tail.to_vec() };
                self.relay.receive_oversized(&line, 1);
            }
            b'c' => self.say(caller, said),
            b'j' => self.relay.join(ClientId(caller), &caller.to_string()),
            b'l' => {
                self.relay.leave(ClientId(caller));
                let gone = |number: &usize| self.asked[*number].0 == caller;
                self.open.retain(|number, _| !gone(number));
            }
            b'w' => self.relay.initialized_written(caller != 0),
            b'p' | b't' => {
                let Some((own, _)) = self.relay.pending_handshake() else { return };
                if *who == b'p' {
                    self.relay.probe_timed_out(own);
                } else {
                    self.relay.initialize_timed_out(own);
                }
            }
            _ => {}
        }
    }

    /// A client sends a message.
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
                self.relay.join(ClientId(caller), &caller.to_string());
                let (method, text) = (method.to_string(), text.to_owned());
                let era = Era::of(&text);
                self.relay.request(ClientRequest {
                    client: ClientId(caller),
                    id,
                    method,
                    text,
                    era,
                    reply: number,
                });
            }
            Message::Notification { method, .. } => {
                if method == "notifications/cancelled" {
                    let mine = self.open.iter_mut().filter(|ask| self.asked[*ask.0].0 == caller);
                    mine.for_each(|(_, ask)| ask.1 = false);
                }
                self.relay.notify(ClientId(caller), &method, text);
            }
            Message::Response { id: Some(id), .. } => {
                self.relay.respond(ClientId(caller), &id, text)
            }
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
                Output::Return(number, text) => {
                    let id = self.open.remove(&number).map(|(id, _)| id);
                    let Ok(Incoming::One(Message::Request { id: of, .. })) =
                        Incoming::parse(text.as_bytes())
                    else {
                        panic!("no request: {text}");
                    };
                    assert_eq!(Some(of), id);
                }
                Output::Notify { text, .. } => assert!(Incoming::parse(text.as_bytes()).is_ok()),
            }
        }
    }
}

/// A client's message to a server. What is written is one line, equal to the client's message except
/// for the id and the progress token; every JSON library finds the same method and tool in it.
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
                relay.request(ClientRequest {
                    client: ClientId(1),
                    id,
                    method,
                    text,
                    era,
                    reply: 0,
                });
            }
            Message::Notification { method, .. } => relay.notify(ClientId(1), method, text),
            Message::Response { id: Some(id), .. } => relay.respond(ClientId(1), id, text),
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

/// A session with a server of the older era, after the handshake.
fn greeted(exclusive: bool) -> Relay<usize> {
    let config = RelayConfig { exclusive, roots: "[]".into(), ..RelayConfig::default() };
    let eras = Eras { modern: Some(false), legacy: Some(true) };
    let mut relay = Relay::new(config, eras, counting());
    let (method, text) = ("ping".to_owned(), PING.to_owned());
    relay.request(ClientRequest {
        client: ClientId(1),
        id: Id::from_number(0),
        method,
        text,
        era: Era::Legacy,
        reply: 0,
    });
    relay.receive_line(br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
    relay.initialized_written(true);
    relay.receive_line(br#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    relay.receive_line(br#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}"#);
    relay.move_output(&mut Vec::new());
    relay
}

const PING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// The members of an object, with duplicates.
#[derive(Debug)]
struct Members(Vec<(String, String)>);

impl Members {
    fn of(text: &str) -> Self {
        let read = serde_json::from_str::<Self>(text);
        read.unwrap_or(Self(Vec::new()))
    }

    /// The value of a member, if every parser agrees on it: one that uses the first of several, one
    /// that uses the last, and those that ignore case.
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

/// A message without the parts that the relay replaces; `None` if it cannot be represented.
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
