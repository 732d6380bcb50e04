//! Thousands of generated malformed frames between pings: each is answered once and in order, and
//! every ping is answered.

use patterm_store::limits::Limits;
use patterm_wire::Framing;

use super::scaled;
use crate::support::{Place, Rng, Transport, account};

/// Small, so that there can be many messages over it.
const LIMIT: usize = 16 << 10;

/// How many frames are sent before the first response is read: several in one read of the server,
/// and few enough for the socket's buffers.
const AT_ONCE: usize = 25;

/// A malformed frame and its only response.
struct Wrong {
    bytes: Vec<u8>,
    answer: String,
}

type Kind = (&'static str, fn(&mut Rng, Framing) -> Wrong);

const NOT_JSON: &str = "null -32700";
const NO_REQUEST: &str = "null -32600";

/// Kinds of malformed bodies, for both framings.
const BODIES: [Kind; 16] = [
    ("random bytes", |rng, framing| {
        let length = rng.within(0..200);
        let noise = (0..length).map(|_| rng.next() as u8).filter(|b| !b"\r\n".contains(b));
        body(framing, [b"x".to_vec(), noise.collect()].concat(), NOT_JSON)
    }),
    ("a request that breaks off", |rng, framing| {
        let mut request = request(rng).1.into_bytes();
        request.truncate(rng.within(1..request.len()));
        body(framing, request, NOT_JSON)
    }),
    ("something behind a request", |rng, framing| {
        let behind = *rng.pick(&["}", "]", ",", "{}", "x", "\"", "1"]);
        body(framing, request(rng).1 + behind, NOT_JSON)
    }),
    ("bytes that are not UTF-8", |rng, framing| {
        let invalid = *rng.pick(&[&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\xf8\x88", b"\x80"]);
        let (_, request) = request(rng);
        let at = request.find("ping").unwrap();
        let bytes = [&request.as_bytes()[..at], invalid, &request.as_bytes()[at..]].concat();
        body(framing, bytes, NOT_JSON)
    }),
    ("a NUL byte", |rng, framing| {
        let mut request = request(rng).1.into_bytes();
        request.insert(rng.within(0..request.len() + 1), 0);
        body(framing, request, NOT_JSON)
    }),
    ("a control byte in a string", |rng, framing| {
        let control = *rng.pick(&['\u{1}', '\u{8}', '\t', '\u{1b}', '\u{1f}']);
        body(framing, request(rng).1.replace("ping", &format!("p{control}ing")), NOT_JSON)
    }),
    ("brackets without an end", |rng, framing| {
        let bracket = *rng.pick(&["[", "{\"a\":", "[{\"a\":["]);
        body(framing, bracket.repeat(rng.within(1..2000)), NOT_JSON)
    }),
    ("nesting too deep, under an id", |rng, framing| {
        let (id, request) = request(rng);
        let depth = rng.within(128..7000);
        let deep = format!(",\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        body(framing, request.trim_end_matches('}').to_owned() + &deep, &format!("{id} -32700"))
    }),
    ("words that JavaScript knows", |rng, framing| {
        let word = *rng.pick(&["NaN", "undefined", "-Infinity", "nul", "'x'", "{a:1}", "01"]);
        body(framing, word, NOT_JSON)
    }),
    ("a message over the limit", |rng, framing| {
        let (id, request) = request(rng);
        let filler = format!(",\"x\":\"{}\"}}", "x".repeat(LIMIT + rng.within(0..1000)));
        let long = request.trim_end_matches('}').to_owned() + &filler;
        match framing {
            Framing::Newline => body(framing, long, &format!("{id} -32700")),
            // The length alone is refused.
            Framing::Headers => body(framing, long, NOT_JSON),
        }
    }),
    ("JSON that is no object", |rng, framing| {
        let json = *rng.pick(&["1", "-1.5e3", "null", "true", "\"ping\"", "\"\"", "[]"]);
        body(framing, json, NO_REQUEST)
    }),
    ("a wrong version", |rng, framing| {
        let (id, request) = request(rng);
        let version = *rng.pick(&["\"1.0\"", "2.0", "2", "null", "\"2.0 \"", "[]"]);
        body(framing, request.replace("\"2.0\"", version), &format!("{id} -32600"))
    }),
    ("no method", |rng, framing| {
        let (id, request) = request(rng);
        body(framing, request.replace("method", "methode"), &format!("{id} -32600"))
    }),
    ("a method that is no string", |rng, framing| {
        let (id, request) = request(rng);
        let method = *rng.pick(&["1", "null", "{}", "[\"ping\"]", "false"]);
        body(framing, request.replace("\"ping\"", method), &format!("{id} -32600"))
    }),
    ("an id that is none", |rng, framing| {
        let id = *rng.pick(&["null", "true", "{}", "[1]", "{\"id\":1}"]);
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        body(framing, request, NO_REQUEST)
    }),
    ("a batch, which this revision has not", |rng, framing| {
        let requests: Vec<_> = (0..rng.within(1..5)).map(|_| request(rng).1).collect();
        body(framing, format!("[{}]", requests.join(",")), NO_REQUEST)
    }),
];

/// Kinds of malformed header blocks.
const HEADERS: [Kind; 5] = [
    ("a length that is no number", |rng, _| {
        let length = *rng.pick(&["x", "", "-1", "1e3", "0x10", "12 34", "99999999999999999999"]);
        headers(format!("Content-Length: {length}\r\n\r\n{}", request(rng).1))
    }),
    ("a block without a length", |rng, _| {
        let header = *rng.pick(&["Content-Type: application/json", "X: y", "Length: 5"]);
        headers(format!("{header}\r\n\r\n{}", request(rng).1))
    }),
    ("a length over the limit", |rng, _| {
        let length = LIMIT + 1 + rng.within(0..usize::MAX / 2);
        headers(format!("Content-Length: {length}\r\n\r\n{}", request(rng).1))
    }),
    ("a header line without an end", |rng, _| {
        let line = "7".repeat(rng.within(8 << 10..20 << 10));
        headers(format!("Content-Length: {line}"))
    }),
    ("what is no header", |rng, _| {
        let line = *rng.pick(&["{", "GET / HTTP/1.1", "junk", "\u{0}", "ä: b", ": 5"]);
        headers(format!("{line}\r\n{}\r\n\r\n", request(rng).1))
    }),
];

/// Kinds of lines that are wrong only as lines.
const LINES: [Kind; 2] = [
    ("a header among lines", |rng, framing| {
        body(framing, format!("Content-Length: {}", rng.within(0..99)), NOT_JSON)
    }),
    ("a byte order mark among lines", |rng, framing| {
        body(framing, "\u{feff}".to_owned() + &request(rng).1, NOT_JSON)
    }),
];

/// A valid request, and the text of its id.
fn request(rng: &mut Rng) -> (String, String) {
    let number = rng.within(0..1_000_000);
    let id = match rng.within(0..3) {
        0 => format!("{number}"),
        1 => format!("\"{number}\""),
        _ => format!("{number}.0"),
    };
    let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    (id, request)
}

fn body(framing: Framing, body: impl AsRef<[u8]>, answer: &str) -> Wrong {
    let mut bytes = Vec::new();
    framing.encode(body.as_ref(), &mut bytes);
    Wrong { bytes, answer: answer.to_owned() }
}

fn headers(bytes: String) -> Wrong {
    Wrong { bytes: bytes.into_bytes(), answer: NOT_JSON.to_owned() }
}

/// Runs all cases of one framing.
fn kinds(framing: Framing) -> Vec<Kind> {
    let own: &[Kind] = match framing {
        Framing::Newline => &LINES,
        Framing::Headers => &HEADERS,
    };
    [&BODIES, own].concat()
}

#[track_caller]
fn check(transport: Transport, seed: u64) {
    let place = Place::new();
    let server = place.serve_with(Limits { message_bytes: LIMIT, ..Limits::default() });
    let mut peer = server.connect(transport);
    let mut rng = Rng::new(seed);
    let kinds = kinds(transport.framing());
    let frames = scaled(10_000, 200_000);
    let mut sent = 0;
    super::ping(&mut peer, 0);
    while sent < frames {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..AT_ONCE {
            // Each kind in turn, so that none depends on chance.
            let (name, make) = kinds[sent % kinds.len()];
            let wrong = make(&mut rng, transport.framing());
            bytes.extend_from_slice(&wrong.bytes);
            expected.push((name, wrong.bytes, wrong.answer));
            sent += 1;
            let ping = format!(r#"{{"jsonrpc":"2.0","id":"ping {sent}","method":"ping"}}"#);
            transport.framing().encode(ping.as_bytes(), &mut bytes);
            expected.push(("a ping", Vec::new(), format!("\"ping {sent}\" {{}}")));
        }
        peer.send(&bytes);
        for (name, wrong, answer) in expected {
            let heard = peer.try_receive_raw().map(|body| account(&body));
            let shown = wrong[..wrong.len().min(200)].escape_ascii();
            assert_eq!(
                heard.as_deref(),
                Some(&*answer),
                "{transport:?}, seed {seed}, of the {AT_ONCE} up to frame {sent}, {name}: {shown}"
            );
        }
    }
    assert_eq!(peer.finish(), [serde_json::Value::Null; 0], "{transport:?}, seed {seed}");
}

#[test]
fn on_the_socket_in_lines() {
    check(Transport::Socket(Framing::Newline), 1);
}

#[test]
fn on_the_socket_with_headers() {
    check(Transport::Socket(Framing::Headers), 2);
}

#[test]
fn through_the_proxy_in_lines() {
    check(Transport::Proxy(Framing::Newline), 3);
}

#[test]
fn through_the_proxy_with_headers() {
    check(Transport::Proxy(Framing::Headers), 4);
}
