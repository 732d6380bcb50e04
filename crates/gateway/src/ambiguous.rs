//! Refuses messages that two JSON parsers could read differently. Permissions are checked on a
//! message before its server parses it, so both must see the same: a member that appears twice, or
//! whose name differs from a known one only in case (some JSON libraries ignore case), is refused.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Members that decide what a message is, whom it is for and what it does, by object.
const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
const PARAMS: &[&str] = &[
    "name",
    "arguments",
    "uri",
    "_meta",
    "cursor",
    "requestId",
    "protocolVersion",
    "capabilities",
    "notifications",
    "level",
    "task",
    "taskId",
];
const META: &[&str] = &[
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
];

/// At least the length of the longest of these lists.
const MOST_NAMES: usize = 16;

const _: () =
    assert!(ENVELOPE.len() <= MOST_NAMES && PARAMS.len() <= MOST_NAMES && META.len() <= MOST_NAMES);

/// Why a message is ambiguous, if it is.
pub fn ambiguity(text: &str) -> Option<String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = Object::Envelope.deserialize(&mut reader).and_then(|()| reader.end());
    read.err().map(|error| error.to_string())
}

/// An object whose members are checked.
#[derive(Clone, Copy)]
enum Object {
    Envelope,
    Params,
    Meta,
}

impl Object {
    fn known(self) -> &'static [&'static str] {
        match self {
            Self::Envelope => ENVELOPE,
            Self::Params => PARAMS,
            Self::Meta => META,
        }
    }

    /// The object under a member, if that is checked too.
    fn inner(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Envelope, "params") => Some(Self::Params),
            (Self::Params, "_meta") => Some(Self::Meta),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Envelope => "the message",
            Self::Params => "`params`",
            Self::Meta => "`_meta`",
        }
    }
}

impl<'de> DeserializeSeed<'de> for Object {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Object {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object as {}", self.name())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = [false; MOST_NAMES];
        while let Some(key) = map.next_key_seed(Key)? {
            let known = self.known().iter().position(|known| folds_to(&key, known));
            if let Some(at) = known {
                let name = self.known()[at];
                if key != name {
                    let why = format!("member `{key}` of {} looks like `{name}`", self.name());
                    return Err(A::Error::custom(why));
                }
                if std::mem::replace(&mut seen[at], true) {
                    let why = format!("member `{name}` of {} appears twice", self.name());
                    return Err(A::Error::custom(why));
                }
            }
            match self.inner(&key) {
                Some(inner) => map.next_value_seed(inner)?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    // A value that is not an object has no duplicate members.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Whether a parser that ignores case takes a name for a known one. Known names are ASCII;
/// characters of other scripts that fold to ASCII (`ſ`, `K`, `ı`) count as well.
pub(crate) fn folds_to(name: &str, known: &str) -> bool {
    if name.is_ascii() {
        return name.eq_ignore_ascii_case(known);
    }
    let folded = name.chars().map(|letter| {
        let upper = letter.to_uppercase().next().unwrap_or(letter);
        upper.to_lowercase().next().unwrap_or(upper)
    });
    folded.eq(known.chars().map(|letter| letter.to_ascii_lowercase()))
}

/// A member's name, borrowed unless it contains escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unambiguous_messages_pass() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"name":1,"Name":2,"name":3}}}"#,
            r#"{"m\u0065thod":"x","params":{"_meta":{"progressToken":1,"x":2,"x":3}}}"#,
            r#"{"method":"x","params":null}"#,
            r#"{"method":"x","params":[{"name":1,"name":2}]}"#,
            r#"{"method":"x","params":"name"}"#,
            r#"{"method":"x","params":1.5,"extra":{},"Extra":{},"extra":{}}"#,
        ] {
            assert_eq!(ambiguity(text), None, "{text}");
        }
    }

    #[test]
    fn ambiguous_messages_are_refused() {
        for (text, why) in [
            (r#"{"method":"a","method":"b"}"#, "`method` of the message appears twice"),
            (r#"{"method":"a","m\u0065thod":"b"}"#, "`method` of the message appears twice"),
            (r#"{"method":"a","Method":"b"}"#, "`Method` of the message looks like `method`"),
            (r#"{"id":1,"ID":2}"#, "`ID` of the message looks like `id`"),
            (r#"{"params":{},"paramſ":{}}"#, "looks like `params`"),
            (r#"{"params":{"name":"a","name":"b"}}"#, "`name` of `params` appears twice"),
            (r#"{"params":{"n\u0061me":"a","name":"b"}}"#, "`name` of `params` appears twice"),
            (r#"{"params":{"name":"a","NAME":"b"}}"#, "`NAME` of `params` looks like `name`"),
            (r#"{"params":{"urı":"a"}}"#, "looks like `uri`"),
            (r#"{"params":{"_META":{}}}"#, "looks like `_meta`"),
            (r#"{"params":{"_meta":{"progressToken":1,"progresstoken":2}}}"#, "of `_meta`"),
            (r#"{"params":{"_meta":{},"_meta":{}}}"#, "`_meta` of `params` appears twice"),
        ] {
            let message = ambiguity(text).unwrap_or_default();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
