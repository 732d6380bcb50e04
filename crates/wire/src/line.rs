//! A JSON text as one line. All JSON for peers that read lines (a program's standard input, a socket, an
//! event stream, a log) is written here: a line end inside a text would split it into two messages, the
//! second of which nobody has checked.

/// Separators that JSON allows inside strings, with their escapes. Node's `readline` and Python's
/// `splitlines` break lines at them.
const SEPARATORS: [(&[u8], &[u8]); 3] = [
    ("\u{85}".as_bytes(), b"\\u0085"),
    ("\u{2028}".as_bytes(), b"\\u2028"),
    ("\u{2029}".as_bytes(), b"\\u2029"),
];

/// The first bytes of [`SEPARATORS`].
const LEADS: [u8; 2] = [0xc2, 0xe2];

/// Appends a JSON text as one line with the same meaning: line feeds and carriage returns, which occur only
/// between the tokens of valid JSON, become blanks; separators, which occur only in strings, are escaped.
pub fn append(json: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    out.reserve(json.len() + 1);
    let mut from = 0;
    for at in memchr::memchr2_iter(LEADS[0], LEADS[1], json) {
        let separator = SEPARATORS.iter().find(|(bytes, _)| json[at..].starts_with(bytes));
        let Some((bytes, escape)) = separator else { continue };
        out.extend_from_slice(&json[from..at]);
        out.extend_from_slice(escape);
        from = at + bytes.len();
    }
    out.extend_from_slice(&json[from..]);
    let mut at = begin;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &out[at..]) {
        out[at + found] = b' ';
        at += found + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        let mut line = b"before\n".to_vec();
        append(json.as_bytes(), &mut line);
        assert_eq!(line, format!("before\n{expected}").as_bytes(), "{json:?}");
    }

    #[test]
    fn line_ends_become_blanks_and_separators_are_escaped() {
        check("", "");
        check("{\"a\":\"ä€“\"}", "{\"a\":\"ä€“\"}");
        check("{\r\n\"a\":\n\n[1,\r2]}\n", "{  \"a\":  [1, 2]} ");
        check("{\"a\":\"x\u{2028}y\u{2029}\u{85}\"}", "{\"a\":\"x\\u2028y\\u2029\\u0085\"}");
    }
}
