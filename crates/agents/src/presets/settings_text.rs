//! Settings files as text: JSON with comments, and edits that leave everything else as it is,
//! including the order and the comments.

use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The indentation of a text that does not show its own.
const UNIT: &str = "  ";

/// The same JSON with its comments replaced by blanks, byte for byte.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(letter) = rest.chars().next() {
        let (taken, is_comment) = match (in_string, letter) {
            (true, '\\') => (rest.chars().take(2).map(char::len_utf8).sum(), false),
            (_, '"') => {
                in_string = !in_string;
                (1, false)
            }
            (false, '/') if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), true),
            (false, '/') if rest.starts_with("/*") => {
                (rest[2..].find("*/").map_or(rest.len(), |end| end + 4), true)
            }
            _ => (letter.len_utf8(), false),
        };
        match is_comment {
            true => out.extend(rest[..taken].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' })),
            false => out.push_str(&rest[..taken]),
        }
        rest = &rest[taken..];
    }
    out
}

/// The text of settings, edited to have the wanted value; `None` if it is not JSON.
pub(super) fn changed(text: &str, wanted: &Value) -> Option<String> {
    let plain = without_comments(text);
    let root: &RawValue = serde_json::from_str(&plain).ok()?;
    let root = span(&plain, root);
    let mut editor = Editor { text, plain: &plain, unit: UNIT, edits: Vec::new() };
    let first = editor.members(&root).and_then(|members| members.into_iter().next());
    if let Some(unit) = first.and_then(|first| editor.indent_of(first.key.start)) {
        editor.unit = unit;
    }
    editor.edit(root, wanted)?;
    let out = editor.apply();
    let value: Value = serde_json::from_str(&without_comments(&out)).ok()?;
    (value == *wanted).then_some(out)
}

/// The position of a part within a text.
fn span(text: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + part.get().len()
}

/// A member of an object, and its position.
struct Member {
    name: String,
    key: Range<usize>,
    value: Range<usize>,
}

struct Editor<'a> {
    text: &'a str,
    /// The same without comments.
    plain: &'a str,
    /// How a level is indented.
    unit: &'a str,
    /// Replaced ranges, with their replacements.
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Editor<'a> {
    /// Edits the value at a position to be the wanted one.
    fn edit(&mut self, at: Range<usize>, wanted: &Value) -> Option<()> {
        let own: Value = serde_json::from_str(&self.plain[at.clone()]).ok()?;
        match (&own, wanted) {
            _ if own == *wanted => {}
            (Value::Object(_), Value::Object(wanted)) => self.edit_object(&at, wanted)?,
            _ => {
                let indent = self.line_indent(at.start);
                let text = self.written(wanted, Some(indent));
                self.edits.push((at, text));
            }
        }
        Some(())
    }

    fn edit_object(&mut self, at: &Range<usize>, wanted: &Map<String, Value>) -> Option<()> {
        let members = self.members(at)?;
        let is_there = |name: &String| members.iter().any(|member| member.name == *name);
        let new: Vec<_> = wanted.iter().filter(|(name, _)| !is_there(name)).collect();
        let last = members.iter().rposition(|member| wanted.contains_key(&member.name));
        for (number, member) in members.iter().enumerate() {
            let after = members.get(number + 1).map(|next| member.value.end..next.key.start);
            let comma = after.and_then(|gap| Some(gap.start + self.plain[gap].find(',')?));
            let comma = comma.map(|at| at..at + 1);
            match wanted.get(&member.name) {
                None => self.remove(member, comma),
                Some(value) => {
                    self.edit(member.value.clone(), value)?;
                    match comma {
                        // It is the last member now.
                        Some(comma) if last == Some(number) && new.is_empty() => {
                            self.edits.push((comma, String::new()));
                        }
                        None if !new.is_empty() => {
                            self.edits.push((member.value.end..member.value.end, ",".into()));
                        }
                        _ => {}
                    }
                }
            }
        }
        if !new.is_empty() {
            self.insert(at, members.first(), last.is_some(), &new);
        }
        Some(())
    }

    /// Removes a member, and its line if there is nothing else on it.
    fn remove(&mut self, member: &Member, comma: Option<Range<usize>>) {
        let end = comma.as_ref().map_or(member.value.end, |comma| comma.end);
        let rest = self.text[end..].split('\n').next().unwrap_or_default();
        let mut start = member.key.start;
        if rest.trim().is_empty() && self.indent_of(start).is_some() {
            start = self.text[..start].rfind('\n').unwrap_or(start);
        }
        self.edits.push((start..member.value.end, String::new()));
        self.edits.extend(comma.map(|comma| (comma, String::new())));
    }

    /// Adds members at the end of an object, after a comma if there are others.
    fn insert(
        &mut self,
        at: &Range<usize>,
        first: Option<&Member>,
        follows: bool,
        new: &[(&String, &Value)],
    ) {
        let close = at.end - 1;
        let end = at.start + self.text[at.start..close].trim_end().len();
        let on_one_line = first.is_some() && !self.text[at.clone()].contains('\n');
        let outer = self.line_indent(at.start);
        let own = first.and_then(|first| self.indent_of(first.key.start));
        let inner = own.map_or_else(|| format!("{outer}{}", self.unit), str::to_owned);
        let mut text = String::new();
        for (number, (name, value)) in new.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            let name = Value::String((*name).clone());
            match on_one_line {
                true => {
                    let gap = if number > 0 || follows { " " } else { "" };
                    text += &format!("{gap}{name}: {}", self.written(value, None));
                }
                false => {
                    let value = self.written(value, Some(&inner));
                    text += &format!("\n{inner}{name}: {value}");
                }
            }
        }
        let ends_line = on_one_line || self.text[end..close].contains('\n');
        if !ends_line {
            text += &format!("\n{outer}");
        }
        self.edits.push((end..if ends_line { end } else { close }, text));
    }

    fn members(&self, at: &Range<usize>) -> Option<Vec<Member>> {
        let Members(members) = serde_json::from_str(&self.plain[at.clone()]).ok()?;
        let member = |(key, value): (&RawValue, &RawValue)| {
            let name = serde_json::from_str(key.get()).ok()?;
            Some(Member { name, key: span(self.plain, key), value: span(self.plain, value) })
        };
        members.into_iter().map(member).collect()
    }

    /// The blanks before a position, if there is nothing else before it on its line.
    fn indent_of(&self, at: usize) -> Option<&'a str> {
        let start = self.text[..at].rfind('\n')? + 1;
        let before = &self.text[start..at];
        before.trim().is_empty().then_some(before)
    }

    /// The indentation of the line at a position.
    fn line_indent(&self, at: usize) -> &'a str {
        let start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = &self.text[start..at];
        &line[..line.len() - line.trim_start().len()]
    }

    /// A value as text: in lines with this indentation, or on one line.
    fn written(&self, value: &Value, indent: Option<&str>) -> String {
        let Some(indent) = indent else { return value.to_string() };
        // Line breaks and indentation occur only between values.
        let lines = format!("{value:#}");
        let mut out = String::new();
        for (number, line) in lines.split('\n').enumerate() {
            let text = line.trim_start_matches(' ');
            if number > 0 {
                let depth = (line.len() - text.len()) / UNIT.len();
                out += &format!("\n{indent}{}", self.unit.repeat(depth));
            }
            out += text;
        }
        out
    }

    fn apply(mut self) -> String {
        self.edits.sort_by_key(|(at, _)| at.start);
        let mut out = String::new();
        let mut end = 0;
        for (at, text) in self.edits {
            out.push_str(&self.text[end..at.start]);
            out.push_str(&text);
            end = at.end;
        }
        out + &self.text[end..]
    }
}

/// The members of an object in order, each as its original text.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        from.deserialize_map(Read).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, wanted: &Value, expected: &str) {
        assert_eq!(changed(text, wanted).unwrap(), expected);
    }

    #[test]
    fn only_differences_are_rewritten() {
        let text = "{\n    \"z\": 1.0, // the last letter\n    \"a\": {\"y\": [1,2], \"b\": \"ü\"},\n\
             \x20   /* old */ \"gone\": 5,\n    \"m\": {\n        \"k\": true\n    }\n}\n";
        let same = json!({"z": 1.0, "a": {"y": [1, 2], "b": "ü"}, "gone": 5, "m": {"k": true}});
        check(text, &same, text);
        let wanted = json!({"z": 1.0, "a": {"y": [1, 2], "b": "o", "c": {"d": 1}},
            "m": {"k": true, "l": {"n": [1]}}, "new": {}});
        let expected = "{\n    \"z\": 1.0, // the last letter\n    \"a\": {\"y\": [1,2], \"b\": \"o\", \
             \"c\": {\"d\":1}},\n    /* old */ \n    \"m\": {\n        \"k\": true,\n        \"l\": {\n\
             \x20           \"n\": [\n                1\n            ]\n        }\n    },\n    \
             \"new\": {}\n}\n";
        check(text, &wanted, expected);
    }

    #[test]
    fn commas_stay_correct() {
        let text = "{\n  \"a\": 1, // one\n  \"b\": 2 // two\n}";
        check(text, &json!({"a": 1}), "{\n  \"a\": 1 // one\n   // two\n}");
        check(text, &json!({"b": 2}), "{\n   // one\n  \"b\": 2 // two\n}");
        check(text, &json!({}), "{\n   // one\n   // two\n}");
        check(
            text,
            &json!({"a": 1, "b": 2, "c": 3}),
            "{\n  \"a\": 1, // one\n  \"b\": 2, // two\n  \"c\": 3\n}",
        );
        check(text, &json!({"a": 1, "c": 3}), "{\n  \"a\": 1, // one\n   // two\n  \"c\": 3\n}");
        check("{\"a\": 1}", &json!({"a": 1, "b": 2, "c": 3}), "{\"a\": 1, \"b\": 2, \"c\": 3}");
        check("{\"a\": 1, \"b\": 2}", &json!({"c": 3}), "{ \"c\": 3}");
        check("{}", &json!({"a": {"b": 1}}), "{\n  \"a\": {\n    \"b\": 1\n  }\n}");
        check("// mine\n{ }\n", &json!({"a": 1}), "// mine\n{\n  \"a\": 1\n}\n");
    }

    #[test]
    fn every_edited_text_has_the_wanted_value() {
        let texts = [
            "{}",
            "{\n}",
            "{ // x\n}",
            "{\"a\":1}",
            "{\"a\": {}, \"b\": []}",
            "{\n\t\"a\": 1,\n\t\"b\": {\"c\": 2, \"d\": 3}\n}\n",
            "{\"a\": 1, // x\n\"b\": 2, \"c\": {\"d\": /* , */ 1}}",
            "{\"a\": 1, \"a\": 2, \"q\\\"//\": \"/* no */\"}",
        ];
        let values = [
            json!({}),
            json!({"a": 2}),
            json!({"b": {"c": 5, "e": {}}, "q\"//": 1}),
            json!({"a": {"d": [1, {"x": null}]}, "c": {"d": "line\nend  "}}),
            json!([1]),
        ];
        for text in texts {
            for wanted in &values {
                let out = changed(text, wanted).unwrap_or_else(|| panic!("{text} {wanted}"));
                let value: Value = serde_json::from_str(&without_comments(&out)).unwrap();
                assert_eq!(value, *wanted, "{text} {out}");
            }
        }
        assert_eq!(changed("{\"a\": 1,}", &json!({})), None);
        assert_eq!(changed("", &json!({})), None);
    }

    #[test]
    fn only_comments_are_replaced_by_blanks() {
        let text = "{ // mine\n \"a\": \"// b \\\" /* ü */\", /* x\n y */ \"c\": 1 } // ü";
        let plain = without_comments(text);
        assert_eq!(plain.len(), text.len());
        assert_eq!(
            serde_json::from_str::<Value>(&plain).unwrap(),
            json!({"a": "// b \" /* ü */", "c": 1})
        );
        assert_eq!(without_comments("/*/ x"), "     ");
    }
}
