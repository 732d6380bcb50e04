//! The head of an HTTP/1.1 request, read strictly. Only a plain POST with one length is served
//! without hyper; what is ambiguous is refused, and everything else is left to hyper.

use std::ops::Range;

use httparse::{ParserConfig, Request, Status};

/// Headers that are accepted; hyper accepts as many.
const MOST_HEADERS: usize = 100;

/// The longest head, as bytes: what Node accepts as well. It is read before anybody is admitted.
pub(crate) const MOST_BYTES: usize = 16 << 10;

/// What the bytes of a connection begin with.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time on the stack of a connection; a box costs an allocation per call"
)]
pub(crate) enum Parsed {
    /// A part of a head.
    Partial,
    /// A plain POST.
    Post(Head),
    /// Something that hyper decides.
    Unusual,
    /// A request whose end two parsers could find at different places.
    Ambiguous,
    /// A head with too many bytes or headers. hyper must not see it: nothing is known about it.
    TooLong,
}

/// The head of a plain POST, as positions: the bytes may move before it is used.
#[derive(Debug)]
pub(crate) struct Head {
    /// Its length, with the empty line.
    pub(crate) length: usize,
    /// The length of the body that follows.
    pub(crate) body: usize,
    pub(crate) path: Range<usize>,
    pub(crate) fields: Fields,
    /// The client wants the connection to be closed after the response.
    pub(crate) closes: bool,
}

/// The headers that matter to a usual call.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) host: Option<Range<usize>>,
    pub(crate) authorization: Option<Range<usize>>,
    pub(crate) content_type: Option<Range<usize>>,
    pub(crate) session: Option<Range<usize>>,
    pub(crate) version: Option<Range<usize>>,
    pub(crate) method: Option<Range<usize>>,
    pub(crate) name: Option<Range<usize>>,
    /// One of them appears twice, or a browser sent the request.
    pub(crate) unusual: bool,
}

impl Fields {
    /// The field of a header, if it matters.
    fn of(&mut self, name: &str) -> Option<&mut Option<Range<usize>>> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            4 if is("host") => Some(&mut self.host),
            6 if is("origin") => {
                self.unusual = true;
                None
            }
            8 if is("mcp-name") => Some(&mut self.name),
            10 if is("mcp-method") => Some(&mut self.method),
            12 if is("content-type") => Some(&mut self.content_type),
            13 if is("authorization") => Some(&mut self.authorization),
            14 if is("mcp-session-id") => Some(&mut self.session),
            20 if is("mcp-protocol-version") => Some(&mut self.version),
            _ => None,
        }
    }
}

/// All headers of a complete head, in their order.
pub(crate) fn headers(bytes: &[u8]) -> Vec<(&str, &[u8])> {
    let mut room = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut room);
    match request.parse(bytes) {
        Ok(Status::Complete(_)) => request.headers.iter().map(|h| (h.name, h.value)).collect(),
        _ => Vec::new(),
    }
}

/// Reads a head.
pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    // The position of a part of `bytes`.
    let position = |part: &[u8]| {
        let start = part.as_ptr().addr() - bytes.as_ptr().addr();
        start..start + part.len()
    };
    let mut room = [const { std::mem::MaybeUninit::uninit() }; MOST_HEADERS];
    let mut request = Request::new(&mut []);
    let parsed =
        ParserConfig::default().parse_request_with_uninit_headers(&mut request, bytes, &mut room);
    let length = match parsed {
        Ok(Status::Complete(length)) if length <= MOST_BYTES => length,
        Ok(Status::Partial) if bytes.len() < MOST_BYTES => return Parsed::Partial,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Parsed::TooLong,
        // Malformed: hyper uses the same parser, and says so.
        Err(_) => return Parsed::Unusual,
    };
    let mut fields = Fields::default();
    let (mut lengths, mut encodings, mut body) = (0, 0, None);
    let (mut unusual, mut closes) = (false, false);
    for header in request.headers.iter() {
        let (name, value) = (header.name, header.value);
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            6 if is("expect") => unusual = true,
            7 if is("upgrade") => unusual = true,
            10 if is("connection") => {
                closes |= value.eq_ignore_ascii_case(b"close");
                unusual |= !closes && !value.eq_ignore_ascii_case(b"keep-alive");
            }
            14 if is("content-length") => {
                lengths += 1;
                body = decimal(value);
            }
            17 if is("transfer-encoding") => encodings += 1,
            _ => {
                let is_twice = fields
                    .of(name)
                    .is_some_and(|field| field.replace(position(value.trim_ascii())).is_some());
                fields.unusual |= is_twice;
            }
        }
    }
    if lengths > 1 || (lengths == 1 && (encodings > 0 || body.is_none())) || encodings > 1 {
        return Parsed::Ambiguous;
    }
    let path = request.path.filter(|path| path.starts_with('/') && !path.contains(['?', '#']));
    let is_post = request.method == Some("POST") && request.version == Some(1);
    match (path, body) {
        (Some(path), Some(body)) if is_post && !unusual => {
            let path = position(path.as_bytes());
            Parsed::Post(Head { length, body, path, fields, closes })
        }
        _ => Parsed::Unusual,
    }
}

/// Whether an empty line, which ends a head, may end in the bytes after the first `known`. A head that
/// arrives in small pieces is not parsed again for each.
pub(crate) fn may_end(bytes: &[u8], known: usize) -> bool {
    memchr::memchr_iter(b'\n', &bytes[known..]).any(|at| {
        let line = &bytes[..known + at];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line.last().is_none_or(|byte| *byte == b'\n')
    })
}

/// A length: digits only, and no more than any body has.
fn decimal(value: &[u8]) -> Option<usize> {
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_post_is_served_here() {
        let kind = |lines: &str| {
            let text = format!("{}\r\n\r\n", lines.replace('|', "\r\n"));
            match parse(text.as_bytes()) {
                Parsed::Partial => "partial",
                Parsed::Post(head) => {
                    assert_eq!(head.length, text.len());
                    if head.closes { "post, then closed" } else { "post" }
                }
                Parsed::Unusual => "unusual",
                Parsed::Ambiguous => "ambiguous",
                Parsed::TooLong => "too long",
            }
        };
        for (head, expected) in [
            ("POST /mcp HTTP/1.1|Host: a|Content-Length: 5", "post"),
            ("POST /mcp HTTP/1.1|Content-Length: 0|connection: Keep-Alive", "post"),
            ("POST /mcp HTTP/1.1|Content-Length: 5|Connection: close", "post, then closed"),
            ("POST /mcp HTTP/1.1|Host: a", "unusual"),
            ("POST /mcp HTTP/1.0|Content-Length: 5", "unusual"),
            ("GET /mcp HTTP/1.1|Host: a", "unusual"),
            ("POST http://a/mcp HTTP/1.1|Content-Length: 5", "unusual"),
            ("POST /mcp?a HTTP/1.1|Content-Length: 5", "unusual"),
            ("POST /mcp HTTP/1.1|Content-Length: 5|Expect: 100-continue", "unusual"),
            ("POST /mcp HTTP/1.1|Content-Length: 5|Connection: upgrade", "unusual"),
            ("POST /mcp HTTP/1.1|Transfer-Encoding: chunked", "unusual"),
            ("POST /mcp HTTP/1.1|Transfer-Encoding: chunked|Content-Length: 5", "ambiguous"),
            ("GET /mcp HTTP/1.1|Content-Length: 5|Transfer-Encoding: chunked", "ambiguous"),
            ("POST /mcp HTTP/1.1|Transfer-Encoding: x|Transfer-Encoding: chunked", "ambiguous"),
            ("POST /mcp HTTP/1.1|Content-Length: 5|Content-Length: 5", "ambiguous"),
            ("POST /mcp HTTP/1.1|Content-Length: 5, 5", "ambiguous"),
            ("POST /mcp HTTP/1.1|Content-Length: +5", "ambiguous"),
            ("POST /mcp HTTP/1.1|Content-Length:", "ambiguous"),
            ("POST /mcp HTTP/1.1|Content-Length: 99999999999999999999", "ambiguous"),
            ("nonsense", "unusual"),
        ] {
            assert_eq!(kind(head), expected, "{head}");
        }
        assert!(matches!(parse(b"POST /mcp HTTP/1.1\r\nHost"), Parsed::Partial));
        assert!(matches!(parse(&b"A".repeat(MOST_BYTES)), Parsed::TooLong));
    }

    /// Otherwise hyper would be the first to read them, and it drops a length beside an encoding.
    #[test]
    fn a_long_head_is_not_left_to_hyper() {
        let lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
        for (count, expected) in [(98, "ambiguous"), (99, "too long")] {
            let many = format!("POST / HTTP/1.1\r\n{}{lengths}\r\n", "A: b\r\n".repeat(count));
            let found = match parse(many.as_bytes()) {
                Parsed::Ambiguous => "ambiguous",
                Parsed::TooLong => "too long",
                other => panic!("{other:?}"),
            };
            assert_eq!(found, expected);
        }
        for length in [MOST_BYTES - 100, MOST_BYTES] {
            let long = format!("POST / HTTP/1.1\r\nA: {}\r\n{lengths}\r\n", "b".repeat(length));
            let is_short = length < MOST_BYTES;
            assert_eq!(matches!(parse(long.as_bytes()), Parsed::Ambiguous), is_short);
            assert_eq!(matches!(parse(long.as_bytes()), Parsed::TooLong), !is_short);
        }
    }

    #[test]
    fn a_head_in_pieces_is_parsed_when_it_may_be_complete() {
        for (text, ends) in [("a\r\nb: c\r\n\r\n", true), ("a\nb\n\n", true), ("a\r\n\n", true)] {
            let bytes = text.as_bytes();
            for cut in 0..bytes.len() {
                assert_eq!(may_end(bytes, cut), ends, "{text:?} {cut}");
                let is_line_end = matches!(&bytes[..cut], [] | [.., b'\n']);
                assert!(is_line_end || !may_end(&bytes[..cut], 0) || cut == 0, "{text:?} {cut}");
            }
        }
        assert!(may_end(b"\r\nPOST", 0) && may_end(b"\n", 0));
        assert!(!may_end(b"POST / HTTP/1.1\r\nA: b\r", 0) && !may_end(b"\r\r\r", 0));
    }
}
