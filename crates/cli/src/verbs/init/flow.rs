//! Values of YAML in flow style: `{a: 1, b: [c, "d"]}`.

use super::yaml::Yaml;

/// Values inside each other: more than any file for people has, and far less than the stack allows.
const DEPTH: usize = 32;

/// Whether all brackets of a text are closed, outside of quoted scalars and comments.
pub(super) fn is_complete(text: &str) -> bool {
    let (mut open, mut quote, mut before) = (0_usize, None, ' ');
    let mut characters = text.chars();
    while let Some(mut c) = characters.next() {
        match (quote, c) {
            (Some('"'), '\\') => drop(characters.next()),
            (Some(end), _) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => open += 1,
            (None, ']' | '}') => open = open.saturating_sub(1),
            (None, '#') if before.is_whitespace() => {
                c = characters.by_ref().find(|c| *c == '\n').unwrap_or('\n');
            }
            (None, _) => {}
        }
        before = c;
    }
    open == 0 && quote.is_none()
}

/// The value that a text consists of, except for a comment after it; [`Yaml::Unread`] if it is something else.
pub(super) fn parse(text: &str) -> Yaml {
    let mut rest = text;
    let value = value(&mut rest, DEPTH);
    let rest = rest.trim_start();
    value.filter(|_| rest.is_empty() || rest.starts_with('#')).unwrap_or(Yaml::Unread)
}

/// A text without the spaces and comments that it begins with.
fn without_comments(text: &str) -> &str {
    let mut text = text.trim_start();
    while let Some(comment) = text.strip_prefix('#') {
        text = comment.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    text
}

fn value(rest: &mut &str, depth: usize) -> Option<Yaml> {
    *rest = without_comments(rest);
    let depth = depth.checked_sub(1)?;
    match rest.chars().next()? {
        '[' => list(rest, depth),
        '{' => map(rest, depth),
        _ => scalar(rest).map(Yaml::Scalar),
    }
}

fn list(rest: &mut &str, depth: usize) -> Option<Yaml> {
    let mut items = Vec::new();
    take(rest, "[")?;
    while take(rest, "]").is_none() {
        items.push(value(rest, depth)?);
        separated(rest, "]")?;
    }
    Some(Yaml::List(items))
}

fn map(rest: &mut &str, depth: usize) -> Option<Yaml> {
    let mut members = Vec::new();
    take(rest, "{")?;
    while take(rest, "}").is_none() {
        *rest = without_comments(rest);
        let key = scalar(rest)?;
        take(rest, ":")?;
        let after = without_comments(rest);
        let is_empty = after.starts_with([',', '}']);
        let value = if is_empty { Yaml::Scalar(String::new()) } else { value(rest, depth)? };
        members.push((key, value));
        separated(rest, "}")?;
    }
    Some(Yaml::Map(members))
}

/// Takes a comma, unless the end follows.
fn separated(rest: &mut &str, end: &str) -> Option<()> {
    match without_comments(rest).starts_with(end) {
        true => Some(()),
        false => take(rest, ","),
    }
}

fn take(rest: &mut &str, text: &str) -> Option<()> {
    *rest = without_comments(rest).strip_prefix(text)?;
    Some(())
}

/// A quoted scalar, or a plain one, which ends at a comma, a bracket, or a colon before a space.
fn scalar(rest: &mut &str) -> Option<String> {
    let mut characters = rest.char_indices().peekable();
    let (_, first) = *characters.peek()?;
    if !matches!(first, '"' | '\'') {
        let bytes = rest.as_bytes();
        let is_colon = |at: usize| {
            let next = bytes.get(at + 1);
            bytes[at] == b':' && next.is_none_or(|next| b" ,]}\n".contains(next))
        };
        let ends = |(at, c): &(usize, char)| {
            let is_comment = *c == '#' && rest[..*at].ends_with(char::is_whitespace);
            is_comment || ",[]{}".contains(*c) || is_colon(*at)
        };
        let end = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
        let (text, after) = rest.split_at(end);
        *rest = after;
        let text = text.trim();
        // Anchors, aliases and tags are not understood.
        return (!text.is_empty() && !text.starts_with(['&', '*', '!'])).then(|| text.to_owned());
    }
    characters.next();
    let mut text = String::new();
    while let Some((at, c)) = characters.next() {
        match (first, c, characters.peek().map(|(_, next)| *next)) {
            ('\'', '\'', Some('\'')) => {
                characters.next();
                text.push('\'');
            }
            ('"', '\\', Some(escaped)) => {
                characters.next();
                text.push(if escaped == 'n' { '\n' } else { escaped });
            }
            (_, _, _) if c == first => {
                *rest = &rest[at + 1..];
                return Some(text);
            }
            _ => text.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_values_are_read_or_refused() {
        let value = parse(
            "{db: {condition: process_healthy}, \"a b\": [1, 'it''s', {x: }], url: http://h:1/p} # c",
        );
        assert_eq!(value.text(&["db", "condition"]), Some("process_healthy"));
        assert_eq!(value.text(&["url"]), Some("http://h:1/p"));
        assert_eq!(value.get("a b").unwrap().texts(), ["1", "it's"]);
        for text in ["{a: 1", "{a}", "[a b] c", "{a: *x}", "{a: [}", "", &"[".repeat(10_000)] {
            assert_eq!(parse(text), Yaml::Unread, "{text:.20}");
        }
        assert!(is_complete("{a: '}'}") && !is_complete("{a: '}'") && !is_complete("[ # ]"));
    }
}
