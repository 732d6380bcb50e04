//! How deep a JSON text nests, and the id of one that is incomplete.

use crate::id::Id;

/// Deeper texts are refused: recursive parsers stop near here (serde_json at 128), and no MCP message comes
/// close.
pub(crate) const MAX_DEPTH: usize = 127;

/// Whether brackets outside strings nest deeper than [`MAX_DEPTH`].
pub(crate) fn too_deep(text: &[u8]) -> bool {
    // A text of fewer bytes than brackets needed cannot be too deep.
    if text.len() <= MAX_DEPTH {
        return false;
    }
    let mut depth = 0usize;
    let mut tokens = Tokens { text, at: 0 };
    while let Some(token) = tokens.next() {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::String(_) | Token::Other(_) => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// The top-level `id` of a JSON object, given only its beginning.
pub fn id_in_prefix(prefix: &[u8]) -> Option<Id> {
    let mut depth = 0usize;
    let mut key: Option<&[u8]> = None;
    let mut tokens = Tokens { text: prefix, at: 0 };
    while let Some(token) = tokens.next() {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.checked_sub(1)?,
            Token::String(text) if depth == 1 && key == Some(b"\"id\"") => {
                return std::str::from_utf8(text).ok().and_then(Id::from_json);
            }
            Token::String(text) if depth == 1 => key = Some(text),
            Token::Other(b":") => continue,
            Token::Other(b",") => key = None,
            Token::Other(text) if depth == 1 && key == Some(b"\"id\"") => {
                // A number at the end of the prefix may be incomplete.
                let whole = tokens.at < prefix.len();
                let number = std::str::from_utf8(text).ok().filter(|_| whole)?;
                serde_json::from_str::<serde_json::Number>(number).ok()?;
                return Id::from_json(number);
            }
            Token::String(_) | Token::Other(_) => {}
        }
    }
    None
}

enum Token<'a> {
    Open,
    Close,
    /// A complete string with its quotes.
    String(&'a [u8]),
    /// A colon, a comma, or a run of anything else.
    Other(&'a [u8]),
}

/// Coarse tokens of a text that may not be JSON.
struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        while self.text.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        let start = self.at;
        self.at += 1;
        match self.text[start] {
            b'{' | b'[' => Some(Token::Open),
            b'}' | b']' => Some(Token::Close),
            b'"' => {
                self.at = end_of_string(self.text, self.at)?;
                Some(Token::String(&self.text[start..self.at]))
            }
            b':' | b',' => Some(Token::Other(&self.text[start..self.at])),
            _ => {
                let rest = &self.text[self.at..];
                let ends = |b: &u8| b.is_ascii_whitespace() || b"{}[]\":,".contains(b);
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
                Some(Token::Other(&self.text[start..self.at]))
            }
        }
    }
}

/// The position after the quote that ends the string whose content starts at `at`.
fn end_of_string(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_brackets_outside_strings_count() {
        let nested = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        assert!(!too_deep(&nested(MAX_DEPTH)));
        assert!(too_deep(&nested(MAX_DEPTH + 1)));
        assert!(too_deep(&nested(10_000)));
        assert!(!too_deep(format!(r#"{{"a":"{}"}}"#, "[".repeat(10_000)).as_bytes()));
        assert!(!too_deep(format!(r#"{{"a":"\"{}"}}"#, "[".repeat(10_000)).as_bytes()));
        assert!(!too_deep("[],".repeat(10_000).as_bytes()));
    }

    #[test]
    fn only_a_complete_id_at_the_top_level_is_found() {
        let check = |prefix: &str, id: Option<&str>| {
            let found = id_in_prefix(prefix.as_bytes());
            assert_eq!(found.as_ref().map(Id::as_json), id, "{prefix}");
        };
        check(r#"{"jsonrpc":"2.0","id":7,"params":{"a":"xxxx"#, Some("7"));
        check(r#"{"jsonrpc":"2.0","id":"a\"b","params":{"a":"xxxx"#, Some(r#""a\"b""#));
        check(r#"{"params":{"id":3},"id": 1.0 ,"x"#, Some("1.0"));
        check(r#"{"params":{"id":3,"x":"#, None);
        check(r#"{"id":12"#, None);
        check(r#"{"id":"12"#, None);
        check(r#"{"id":true,"#, None);
        check(r#"{"x":"id","y":5,"#, None);
        check("}}}", None);
        check("", None);
    }
}
