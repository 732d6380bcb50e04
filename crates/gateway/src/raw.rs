//! Edits JSON text in place: finds members by position and replaces only what must change. Key
//! order, numbers beyond 64 bits and unknown members are preserved.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::lines::LongLine;

/// The position of a value in a text.
pub type Span = Range<usize>;

/// The values of these members of an object, in this order; `None` if the text is not an object. Of
/// a duplicate member, the first counts.
pub fn members<const N: usize>(text: &str, names: [&str; N]) -> Option<[Option<Span>; N]> {
    Some(members_and_duplicates(text, names)?.0)
}

/// The same, and whether one of them appears twice.
fn members_and_duplicates<const N: usize>(
    text: &str,
    names: [&str; N],
) -> Option<([Option<Span>; N], bool)> {
    let (mut found, mut duplicate) = ([const { None }; N], false);
    let seed = Members { text, names, found: &mut found, duplicate: &mut duplicate };
    let mut reader = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some((found, duplicate))
}

/// Whether a member on a path of names appears twice: parsers differ in which one they use.
pub(crate) fn is_ambiguous(text: &str, path: &[&str]) -> bool {
    let mut text = text;
    for name in path {
        let Some(([inner], duplicate)) = members_and_duplicates(text, [name]) else { return false };
        if duplicate {
            return true;
        }
        let Some(inner) = inner.and_then(|inner| text.get(inner)) else { return false };
        text = inner;
    }
    false
}

/// The value of one member.
pub fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let [span] = members(text, [name])?;
    text.get(span?)
}

/// The position of the value at a path of member names.
pub fn at_path(text: &str, path: &[&str]) -> Option<Span> {
    // Most messages do not contain the name: this is seen without parsing them.
    if path.last().is_some_and(|name| !may_contain(text, name)) {
        return None;
    }
    let mut span = 0..text.len();
    for name in path {
        let [inner] = members(text.get(span.clone())?, [name])?;
        let inner = inner?;
        span = span.start + inner.start..span.start + inner.end;
    }
    Some(span)
}

/// Whether a name may appear somewhere in a text. Only escapes can hide it.
fn may_contain(text: &str, name: &str) -> bool {
    let bytes = text.as_bytes();
    contains(bytes, name.as_bytes()) || memchr::memchr(b'\\', bytes).is_some()
}

/// Texts up to this length are searched byte by byte: preparing the search that is fast in long
/// texts takes as long as that.
const SHORT: usize = 4 << 10;

/// Whether `bytes` contains `needle`.
pub(crate) fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    let Some(first) = needle.first().filter(|_| bytes.len() <= SHORT) else {
        return memchr::memmem::find(bytes, needle).is_some();
    };
    memchr::memchr_iter(*first, bytes).any(|at| bytes[at..].starts_with(needle))
}

/// The position of a message's `id`. The text is known to be one JSON object, so values are skipped
/// without parsing them; some servers put a large result first.
pub(crate) fn id(text: &str) -> Option<Span> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let end = string_end(bytes, at)?;
                if depth == 1 && &bytes[at..end] == b"\"id\"" {
                    let colon = after_space(bytes, end);
                    // Otherwise it is a value.
                    if bytes.get(colon) == Some(&b':') {
                        return scalar(bytes, after_space(bytes, colon + 1));
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    // Its name may be written with escapes.
    at_path(text, &["id"])
}

/// The end of the string that starts here.
fn string_end(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

fn after_space(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The string or number that starts here.
fn scalar(bytes: &[u8], begin: usize) -> Option<Span> {
    if bytes.get(begin) == Some(&b'"') {
        return Some(begin..string_end(bytes, begin)?);
    }
    let ends = |byte: &u8| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace();
    let length = bytes.get(begin..)?.iter().position(ends)?;
    Some(begin..begin + length)
}

/// The text with some parts replaced; an empty span inserts.
pub fn edited(text: &str, mut edits: Vec<(Span, String)>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let mut done = String::with_capacity(text.len() + 32 * edits.len());
    let mut from = 0;
    for (span, by) in edits {
        done.push_str(&text[from..span.start]);
        done.push_str(&by);
        from = span.end;
    }
    done.push_str(&text[from..]);
    done
}

/// Where members can be inserted into an object, and what must follow them.
pub fn opening(text: &str, object: &Span) -> Option<(Span, &'static str)> {
    let inside = text.get(object.clone())?.strip_prefix('{')?;
    let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
    let at = object.start + 1;
    Some((at..at, comma))
}

/// Whether a response is a result rather than an error.
pub fn is_result(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok_and(|text| member(text, "result").is_some())
}

/// The id of a response of which only both ends are known. All servers seen so far put it first or
/// last.
pub(crate) fn id_at_ends(line: &LongLine) -> Option<u64> {
    let number = |text: &[u8]| std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok();
    let after = |text: &[u8], at: usize| {
        let value = text[at..].trim_ascii_start().strip_prefix(b":")?;
        let end = value.iter().position(|byte| matches!(byte, b',' | b'}'))?;
        number(&value[..end])
    };
    if let Some(key) =
        outer_keys(&line.head).into_iter().find(|key| &line.head[key.clone()] == b"id")
    {
        return after(&line.head, key.end + 1);
    }
    // The last member of the outermost object: only one brace follows it.
    let tail = line.tail.trim_ascii_end().strip_suffix(b"}")?;
    let key = memchr::memmem::rfind(tail, b"\"id\"")?;
    let value = tail[key + 4..].trim_ascii_start().strip_prefix(b":")?;
    number(value)
}

/// The positions of the outermost object's member names, as far as the text goes.
fn outer_keys(text: &[u8]) -> Vec<Span> {
    let (mut depth, mut begin, mut escaped) = (0, None, false);
    let mut names = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match (begin, byte) {
            (Some(_), _) if std::mem::take(&mut escaped) => {}
            (Some(_), b'\\') => escaped = true,
            (Some(from), b'"') => {
                begin = None;
                let is_key = text[at + 1..].trim_ascii_start().starts_with(b":");
                if depth == 1 && is_key {
                    names.push(from..at);
                }
            }
            (None, b'"') => begin = Some(at + 1),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth -= 1,
            _ => {}
        }
    }
    names
}

/// A text as a JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct Members<'a, 'f, const N: usize> {
    text: &'a str,
    names: [&'a str; N],
    found: &'f mut [Option<Span>; N],
    duplicate: &'f mut bool,
}

impl<'de: 'a, 'a, const N: usize> DeserializeSeed<'de> for Members<'a, '_, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de: 'a, 'a, const N: usize> Visitor<'de> for Members<'a, '_, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(which) = map.next_key_seed(Name(&self.names))? {
            let again = which.is_some_and(|which| self.found[which].is_some());
            *self.duplicate |= again;
            let Some(which) = which.filter(|_| !again) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value: &RawValue = map.next_value()?;
            let begin = (value.get().as_ptr() as usize).checked_sub(self.text.as_ptr() as usize);
            let begin = begin.ok_or_else(|| A::Error::custom("the value is outside the text"))?;
            self.found[which] = Some(begin..begin + value.get().len());
        }
        Ok(())
    }
}

/// The index of a key among the names.
struct Name<'a, 'b>(&'b [&'a str]);

impl<'de> DeserializeSeed<'de> for Name<'_, '_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_, '_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|name| *name == key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_in_short_and_long_texts() {
        for length in [0, 3, SHORT - 4, SHORT + 10] {
            let text = format!("{}isError", "is".repeat(length / 2));
            assert!(contains(text.as_bytes(), b"isError"), "{length}");
            assert!(!contains(&text.as_bytes()[..text.len() - 1], b"isError"), "{length}");
        }
    }

    #[test]
    fn members_are_found_by_position() {
        let text = r#" {"a": [1, {"b": 2}], "\u0062" : 9007199254740993 ,"c":"x"} "#;
        let [b, c, d] = members(text, ["b", "c", "d"]).unwrap();
        assert_eq!(&text[b.clone().unwrap()], "9007199254740993");
        assert_eq!((&text[c.unwrap()], d), ("\"x\"", None));
        assert_eq!(
            edited(text, vec![(b.unwrap(), "1.0".into())]),
            r#" {"a": [1, {"b": 2}], "\u0062" : 1.0 ,"c":"x"} "#
        );
    }

    #[test]
    fn the_id_of_a_truncated_response_is_found() {
        for (head, tail, id) in [
            (r#"{"jsonrpc":"2.0", "id" : 7 ,"result":{"id":8,"te"#, r#"xt"}}"#, Some(7)),
            (r#"{"result":{"id":8,"text":"\"id\":9"#, r#"x"},"jsonrpc":"2.0","id": 7 } "#, Some(7)),
            (r#"{"result":{"a":[{"id":8},"#, r#"{"id":9}]}}"#, None),
            (r#"{"result":{"a":""#, r#""},"id":"x"}"#, None),
            ("not json at all", "to its end", None),
        ] {
            let line = LongLine { head: head.into(), tail: tail.into() };
            assert_eq!(id_at_ends(&line), id, "{head}…{tail}");
        }
    }

    #[test]
    fn only_objects_have_members() {
        for text in ["[]", "1", "", "{", "{}x", "{\"a\":}", "nonsense"] {
            assert_eq!(members(text, ["a"]), None, "{text}");
        }
        assert_eq!(member("{}", "a"), None);
    }

    #[test]
    fn the_first_of_two_members_counts() {
        let text = r#"{"a":1,"\u0061":{"b":2},"c":{"b":1}}"#;
        assert_eq!(member(text, "a"), Some("1"));
        assert!(is_ambiguous(text, &["a", "b"]) && !is_ambiguous(text, &["c", "b"]));
    }

    #[test]
    fn a_path_leads_into_objects() {
        let text = r#"{"_meta": {"x": {"y": "here"}}, "y": 0}"#;
        assert_eq!(&text[at_path(text, &["_meta", "x", "y"]).unwrap()], "\"here\"");
        assert_eq!(at_path(text, &["_meta", "y"]), None);
        assert_eq!(at_path(text, &["y", "x"]), None);
    }

    #[test]
    fn escaped_names_are_found() {
        let text = r#"{"par\u0061ms": {"x\/y": 1}, "z": 2}"#;
        assert_eq!(&text[at_path(text, &["params", "x/y"]).unwrap()], "1");
        assert_eq!(at_path(text, &["params", "z"]), None);
        assert_eq!(at_path(r#"{"params": {}}"#, &["params", "z"]), None);
    }

    #[test]
    fn the_id_of_a_message_is_found() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#, Some("7")),
            (r#" { "id" : "a\"}b" , "x":1}"#, Some(r#""a\"}b""#)),
            (r#"{"result":{"id":1,"a":["}","\\"]},"jsonrpc":"2.0","id":-1.5e3}"#, Some("-1.5e3")),
            (
                r#"{"method":"id","params":[{"id":3}],"id":9007199254740993 }"#,
                Some("9007199254740993"),
            ),
            (r#"{"\u0069d":4}"#, Some("4")),
            (r#"{"method":"id","params":{"id":3}}"#, None),
            ("{}", None),
        ] {
            assert_eq!(id(text).map(|span| &text[span]), expected, "{text}");
        }
    }

    #[test]
    fn inserted_members_leave_others_unchanged() {
        let put = |text: &str| {
            let (at, comma) = opening(text, &(0..text.len())).unwrap();
            edited(text, vec![(at, format!("\"a\":1{comma}"))])
        };
        assert_eq!(put("{}"), "{\"a\":1}");
        assert_eq!(put("{ }"), "{\"a\":1 }");
        assert_eq!(put("{ \"b\": 2}"), "{\"a\":1, \"b\": 2}");
        assert_eq!(opening("[]", &(0..2)), None);
    }
}
