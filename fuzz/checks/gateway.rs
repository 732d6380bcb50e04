//! Properties of the output of shared MCP servers for any bytes: lines, events, and a whole session.
//! The fuzz targets and the tests that replay the corpus share them.
#![allow(dead_code, reason = "each fuzz target uses one of them")]

use std::collections::BTreeMap;

use patterm_wire::{Framing, Id, Incoming, Message};
use serde_json::value::RawValue;

use crate::error::{GatewayError, GatewayErrorKind};
use crate::events::EventReader;
use crate::http::head::{self, Parsed};
use crate::http::tool_call::ToolCall;
use crate::json_scan::Cursor;
use crate::lines::{Lines, LongLine};
use crate::raw;
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
            b'j' => self.relay.join(ClientId(caller), &caller.to_string(), true),
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
                self.relay.join(ClientId(caller), &caller.to_string(), true);
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

/// What the scan accepts, serde accepts, with the same members at the same places. What it takes for a
/// usual call, the general path takes for the same call, and no parser reads it differently.
pub(crate) fn json_scan(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut cursor = Cursor::new(data);
    if cursor.value().is_some() && cursor.end().is_some() {
        let read = serde_json::from_str::<serde::de::IgnoredAny>(text);
        assert!(read.is_ok(), "serde refuses {text:?}: {read:?}");
    }
    let mut members = Vec::new();
    let mut cursor = Cursor::new(data);
    let read = cursor.object(|cursor, name| {
        members.push((String::from_utf8_lossy(name).into_owned(), cursor.value()?));
        Some(())
    });
    if read.is_some() && cursor.end().is_some() {
        let read: Vec<_> =
            members.into_iter().map(|(name, span)| (name, text[span].to_owned())).collect();
        assert_eq!(read, Members::of(text).0, "{text}");
    }
    let Some(call) = ToolCall::read(data) else { return };
    assert_eq!(crate::ambiguous::ambiguity(text), None, "{text}");
    let Ok(Incoming::One(Message::Request { id, method, .. })) = Incoming::parse(data) else {
        panic!("no request: {text}");
    };
    assert_eq!((id.as_json(), &*method), (&text[call.id.clone()], "tools/call"), "{text}");
    assert_eq!(raw::id(text), Some(call.id), "{text}");
    let name = raw::at_path(text, &["params", "name"])
        .and_then(|span| serde_json::from_str(&text[span]).ok());
    assert_eq!(name, Some(text[call.tool].to_owned()), "{text}");
    assert_eq!(raw::member(text, "params"), Some(&text[call.params]), "{text}");
    assert_eq!(Era::of(text) == Era::Modern, call.revision.is_some(), "{text}");
    assert_eq!(raw::at_path(text, &["params", "_meta", "progressToken"]), call.token, "{text}");
}

/// A request as a server sees it: its path, headers and body.
type Seen = (String, Vec<(String, Vec<u8>)>, Vec<u8>);

/// What the strict reader takes for a plain POST, hyper takes for the same request.
pub(crate) fn http_head(data: &[u8]) {
    let Parsed::Post(head) = head::parse(data) else { return };
    let whole = head.length + head.body;
    // hyper checks the target once more; the connection is closed if that fails.
    let path = std::str::from_utf8(&data[head.path.clone()]).expect("a path is text");
    if data.len() < whole || path.parse::<hyper::Uri>().is_err() {
        return;
    }
    let mut headers: Vec<_> = head::headers(data)
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec()))
        .collect();
    headers.sort();
    let fields = &head.fields;
    for (name, field) in [
        ("host", &fields.host),
        ("authorization", &fields.authorization),
        ("content-type", &fields.content_type),
        ("mcp-session-id", &fields.session),
        ("mcp-protocol-version", &fields.version),
        ("mcp-method", &fields.method),
        ("mcp-name", &fields.name),
    ] {
        let mut all = headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value);
        let (first, second) = (all.next(), all.next());
        assert!(second.is_none() || fields.unusual, "{name} twice: {}", data.escape_ascii());
        if second.is_none() {
            let found = field.clone().map(|span| &data[span]);
            assert_eq!(found, first.map(Vec::as_slice), "{name}: {}", data.escape_ascii());
        }
    }
    let ours: Seen = (path.to_owned(), headers, data[head.length..whole].to_vec());
    let theirs = seen_by_hyper(&data[..whole]);
    assert_eq!(theirs, [ours], "{}", data.escape_ascii());
}

/// The requests that hyper finds in these bytes.
fn seen_by_hyper(bytes: &[u8]) -> Vec<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let seen = std::rc::Rc::<std::cell::RefCell<Vec<Seen>>>::default();
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(bytes.len() + 1024);
        tokio::io::AsyncWriteExt::write_all(&mut client, bytes).await.unwrap();
        tokio::io::AsyncWriteExt::shutdown(&mut client).await.unwrap();
        let service =
            hyper::service::service_fn(|request: hyper::Request<hyper::body::Incoming>| {
                let seen = seen.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    assert_eq!(parts.method, hyper::Method::POST);
                    let body = http_body_util::BodyExt::collect(body).await?.to_bytes().to_vec();
                    let mut headers: Vec<_> = parts
                        .headers
                        .iter()
                        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
                        .collect();
                    headers.sort();
                    seen.borrow_mut().push((parts.uri.path().to_owned(), headers, body));
                    let empty = http_body_util::Full::<hyper::body::Bytes>::default();
                    Ok::<_, hyper::Error>(hyper::Response::new(empty))
                }
            });
        let io = hyper_util::rt::TokioIo::new(server);
        let mut http = hyper::server::conn::http1::Builder::new();
        // The bytes end before the response is written.
        let _ = http.half_close(true).serve_connection(io, service).await;
    });
    seen.take()
}

#[cfg(test)]
mod tests {
    use crate::replay::replay;

    /// How long arbitrary input is tried; with `PATTERM_LONG=1` for minutes.
    fn budget() -> std::time::Duration {
        let is_long = std::env::var_os("PATTERM_LONG").is_some_and(|value| value == "1");
        std::time::Duration::from_millis(if is_long { 120_000 } else { 300 })
    }

    /// Parts in any order, with a few bytes replaced.
    fn composed(
        u: &mut arbtest::arbitrary::Unstructured<'_>,
        parts: &[&str],
    ) -> arbtest::arbitrary::Result<Vec<u8>> {
        let mut text = Vec::new();
        for _ in 0..u.int_in_range(1..=24)? {
            text.extend_from_slice(u.choose(parts)?.as_bytes());
        }
        for _ in 0..u.int_in_range(0..=2)? {
            let at = u.choose_index(text.len())?;
            text[at] = u.arbitrary()?;
        }
        Ok(text)
    }

    #[test]
    fn arbitrary_json_is_read_as_serde_reads_it() {
        const PARTS: [&str; 30] = [
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            " ",
            "\n",
            "1",
            "-0.5e+7",
            "01",
            "true",
            "null",
            "\"a\"",
            "\"\"",
            "\"\\u00e9\\n\"",
            "\"\\ud800\"",
            "\"é\u{2028}\"",
            "\"0123456789abcdef\"",
            "\"a\":",
            "\"id\":7,",
            "\"jsonrpc\":\"2.0\",",
            "\"method\":\"tools/call\",",
            "\"params\":",
            "{\"name\":\"x\"}",
            "{\"name\":\"x\",\"arguments\":{\"a\":[1]},",
            "\"_meta\":{}",
            "\"io.modelcontextprotocol/protocolVersion\":\"x\",",
            "\"io.modelcontextprotocol/clientCapabilities\":{}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}",
        ];
        let test = |u: &mut arbtest::arbitrary::Unstructured<'_>| {
            super::json_scan(&composed(u, &PARTS)?);
            Ok(())
        };
        arbtest::arbtest(test).budget(budget());
    }

    #[test]
    fn arbitrary_heads_are_read_as_hyper_reads_them() {
        const PARTS: [&str; 26] = [
            "Host: a\r\n",
            "content-length: 0\r\n",
            "Content-Length: 3\r\n",
            "Content-Length:3\n",
            "Content-Length: 03 \r\n",
            "Content-Length: 3,3\r\n",
            "Content-Length: -3\r\n",
            "Content-Length\t: 3\r\n",
            " Content-Length: 3\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Transfer-Encoding: identity\r\n",
            "Connection: close\r\n",
            "Connection: keep-alive\r\n",
            "Connection: upgrade\r\n",
            "Upgrade: x\r\n",
            "Expect: 100-continue\r\n",
            "X: \u{e9}\r\n",
            "X:\r\n",
            "X: a\r\n b\r\n",
            "\r\n",
            "\n",
            "\r",
            "abc",
            "\r\nabc",
            "\r\nabcPOST / HTTP/1.1\r\n",
            "A: b\r\n",
        ];
        const LINES: [&str; 6] = [
            "POST /mcp HTTP/1.1\r\n",
            "POST /servers/a%20b/mcp HTTP/1.1\r\n",
            "\r\nPOST /mcp HTTP/1.1\n",
            "POST /mcp HTTP/1.0\r\n",
            "POST //a/../b HTTP/1.1\r\n",
            "POST /a\"b HTTP/1.1\r\n",
        ];
        let test = |u: &mut arbtest::arbitrary::Unstructured<'_>| {
            let mut head = u.choose(&LINES)?.as_bytes().to_vec();
            head.extend(composed(u, &PARTS)?);
            super::http_head(&head);
            Ok(())
        };
        arbtest::arbtest(test).budget(budget());
    }

    #[test]
    fn json_scan() {
        replay("json_scan", super::json_scan);
    }

    #[test]
    fn http_head() {
        replay("http_head", super::http_head);
    }

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
