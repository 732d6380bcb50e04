//! The usual request: a `tools/call` without anything that needs special treatment, read in one pass
//! over its text. Everything else is left to the general path, which decides what it is.

use std::ops::Range;

use crate::json_scan::Cursor;

/// The usual request; positions are in its text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) id: Range<usize>,
    pub(crate) params: Range<usize>,
    /// The tool's name, without quotes.
    pub(crate) tool: Range<usize>,
    /// The revision that a stateless request names, without quotes.
    pub(crate) revision: Option<Range<usize>>,
    /// Its progress token.
    pub(crate) token: Option<Range<usize>>,
}

/// Members that were read, of one object: none may appear twice.
#[derive(Default)]
struct Seen(u8);

impl Seen {
    /// A member with a number is read; `None` if it was read before.
    fn once(&mut self, number: u8) -> Option<()> {
        let flag = 1 << number;
        let is_new = self.0 & flag == 0;
        self.0 |= flag;
        is_new.then_some(())
    }

    /// Whether all of these were read.
    fn has(&self, numbers: &[u8]) -> bool {
        numbers.iter().all(|number| self.0 & (1 << number) != 0)
    }
}

impl ToolCall {
    /// Reads a request; `None` unless it is the usual one.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        std::str::from_utf8(text).ok()?;
        let (mut call, mut seen) = (Self::default(), Seen::default());
        let mut cursor = Cursor::new(text);
        cursor.object(|cursor, name| match name {
            b"jsonrpc" => {
                let version = cursor.value()?;
                (&text[version] == b"\"2.0\"").then(|| seen.once(0))?
            }
            b"id" => {
                call.id = cursor.value()?;
                is_scalar(text, &call.id).then(|| seen.once(1))?
            }
            b"method" => {
                let method = cursor.value()?;
                (&text[method] == b"\"tools/call\"").then(|| seen.once(2))?
            }
            b"params" => {
                call.read_params(text, cursor)?;
                seen.once(3)
            }
            _ => None,
        })?;
        cursor.end()?;
        seen.has(&[0, 1, 2, 3]).then_some(call)
    }

    fn read_params<'a>(&mut self, text: &'a [u8], cursor: &mut Cursor<'a>) -> Option<()> {
        let mut seen = Seen::default();
        let start = cursor.position();
        cursor.object(|cursor, name| match name {
            b"name" => {
                self.tool = plain_string(text, cursor.value()?)?;
                seen.once(0)
            }
            b"arguments" => {
                cursor.value()?;
                seen.once(1)
            }
            b"_meta" => {
                self.read_meta(text, cursor)?;
                seen.once(2)
            }
            _ => None,
        })?;
        self.params = start..cursor.position();
        seen.has(&[0]).then_some(())
    }

    /// Reads the metadata. Anything unknown is unusual.
    fn read_meta<'a>(&mut self, text: &'a [u8], cursor: &mut Cursor<'a>) -> Option<()> {
        let mut seen = Seen::default();
        cursor.object(|cursor, name| match name.strip_prefix(b"io.modelcontextprotocol/") {
            Some(b"protocolVersion") => {
                self.revision = Some(plain_string(text, cursor.value()?)?);
                seen.once(0)
            }
            Some(b"clientCapabilities") => {
                cursor.value()?;
                seen.once(1)
            }
            Some(b"clientInfo") => {
                cursor.value()?;
                seen.once(2)
            }
            None if name == b"progressToken" => {
                let token = cursor.value()?;
                let is_scalar = is_scalar(text, &token);
                self.token = Some(token);
                is_scalar.then(|| seen.once(3))?
            }
            _ => None,
        })?;
        // A stateless request has both; without either, it is not one.
        (seen.has(&[0]) == seen.has(&[1])).then_some(())
    }
}

/// Whether a value is a string or a number.
fn is_scalar(text: &[u8], span: &Range<usize>) -> bool {
    text.get(span.start).is_some_and(|first| matches!(first, b'"' | b'-' | b'0'..=b'9'))
}

/// The inside of a string without escapes.
fn plain_string(text: &[u8], span: Range<usize>) -> Option<Range<usize>> {
    let inside = span.start + 1..span.end.checked_sub(1)?;
    let is_plain = text.get(span.start) == Some(&b'"')
        && memchr::memchr(b'\\', text.get(inside.clone())?).is_none();
    is_plain.then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_call_is_read() {
        let text = br#"{"jsonrpc":"2.0", "id": "7","method":"tools/call","params": {"name":"echo","arguments":{"a":[1]}} }"#;
        let call = ToolCall::read(text).unwrap();
        assert_eq!(&text[call.id], b"\"7\"");
        assert_eq!(&text[call.tool], b"echo");
        assert_eq!(&text[call.params], br#"{"name":"echo","arguments":{"a":[1]}}"#);
        assert_eq!(call.revision, None);
        let stateless = br#"{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x","io.modelcontextprotocol/clientCapabilities":{}},"name":"a"},"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;
        assert_eq!(&stateless[ToolCall::read(stateless).unwrap().revision.unwrap()], b"x");
        for unusual in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u0061"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":[]}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1,"progressToken":1}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":01}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}x"#,
        ] {
            assert_eq!(ToolCall::read(unusual.as_bytes()), None, "{unusual}");
        }
    }
}
