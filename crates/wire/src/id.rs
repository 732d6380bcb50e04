//! Request ids, byte for byte as the peer wrote them.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

/// A request id: a JSON number or string, as the exact text the peer sent. `1`, `1.0`, `"1"`
/// and numbers beyond 64 bits are all different ids and all come back unchanged.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Arc<str>);

impl Id {
    /// An id from a raw JSON value; `None` if it is neither a number nor a string.
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        Self::from_json(raw.get())
    }

    /// An id from a number of our own.
    pub fn from_number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// An id from a string of our own.
    pub fn from_text(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string().into())
    }

    /// The id's JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// `text` must be one valid JSON value.
    pub fn from_json(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let first = *text.as_bytes().first()?;
        (first == b'"' || first == b'-' || first.is_ascii_digit()).then(|| Self(text.into()))
    }
}

/// Prints the JSON text, so that `92` and `"92"` can be told apart in a log.
impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
