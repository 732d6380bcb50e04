//! JSON-RPC messages, parsed only as far as their envelope: ids and parameters keep their bytes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{ErrorObject, INVALID_REQUEST};
use crate::id::Id;
use crate::nesting;

/// The content of a frame.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// One message.
    One(Message<'a>),
    /// A batch, never empty; [`Message::from_raw`] parses its elements. Whether batches are allowed depends
    /// on the negotiated revision.
    Batch(Vec<&'a RawValue>),
}

/// A request, a notification, or a response.
#[derive(Debug)]
pub enum Message<'a> {
    /// A request, to be answered.
    Request {
        /// Its id.
        id: Id,
        /// The method.
        method: Cow<'a, str>,
        /// The parameters; `null` counts as absent.
        params: Option<&'a RawValue>,
    },
    /// A notification, never answered.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The parameters; `null` counts as absent.
        params: Option<&'a RawValue>,
    },
    /// The response to one of our requests.
    Response {
        /// The id of that request; `None` if the peer could not read it.
        id: Option<Id>,
        /// The `result`, or the `error` as `Err`.
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

/// Why input is not a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed {
    /// The id, if one could be read.
    pub id: Option<Id>,
    /// `-32700` or `-32600`, with the reason.
    pub error: ErrorObject,
}

impl Malformed {
    pub(crate) fn new(code: i64, id: Option<Id>, why: impl Into<String>) -> Self {
        Self { id, error: ErrorObject::new(code, why) }
    }

    fn not_json(id: Option<Id>, why: impl Into<String>) -> Self {
        Self { id, error: ErrorObject::parse_error(why) }
    }
}

impl<'a> Incoming<'a> {
    /// Parses the body of one frame.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let not_json = |why: String| Malformed::not_json(None, why);
        let text = std::str::from_utf8(body)
            .map_err(|e| not_json(format!("not UTF-8 from byte {} on", e.valid_up_to())))?;
        if nesting::too_deep(body) {
            let why = format!("nested deeper than {} levels", nesting::MAX_DEPTH);
            return Err(Malformed::not_json(nesting::id_in_prefix(body), why));
        }
        if text.trim_ascii_start().starts_with('[') {
            let elements: Vec<&RawValue> =
                serde_json::from_str(text).map_err(|e| not_json(format!("not JSON: {e}")))?;
            if elements.is_empty() {
                return Err(Malformed::new(INVALID_REQUEST, None, "the batch is empty"));
            }
            return Ok(Self::Batch(elements));
        }
        match serde_json::from_str::<Envelope<'a>>(text) {
            Ok(envelope) => envelope.into_message().map(Self::One),
            // The envelope rejects more than bad syntax, but only bad syntax is a parse error.
            Err(e) => match serde_json::from_str::<IgnoredAny>(text) {
                Ok(_) => Err(Malformed::new(INVALID_REQUEST, None, format!("not a request: {e}"))),
                Err(e) => Err(not_json(format!("not JSON: {e}"))),
            },
        }
    }
}

impl<'a> Message<'a> {
    /// Parses one element of a batch.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, Malformed> {
        serde_json::from_str::<Envelope<'a>>(raw.get())
            .map_err(|e| Malformed::new(INVALID_REQUEST, None, format!("not a request: {e}")))?
            .into_message()
    }
}

/// The members of a message that JSON-RPC defines, unparsed.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    fn into_message(self) -> Result<Message<'a>, Malformed> {
        let id = self.id.and_then(Id::from_raw);
        let refuse = |id: Option<Id>, why: &str| Err(Malformed::new(INVALID_REQUEST, id, why));
        if self.jsonrpc.is_none_or(|v| v.get() != "\"2.0\"") {
            return refuse(id, "`jsonrpc` must be \"2.0\"");
        }
        let Some(method) = self.method else {
            return match (self.result, self.error) {
                (Some(result), None) => Ok(Message::Response { id, outcome: Ok(result) }),
                (_, Some(error)) => Ok(Message::Response { id, outcome: Err(error) }),
                (None, None) => refuse(id, "neither `method` nor `result` nor `error`"),
            };
        };
        let Ok(BorrowedStr(method)) = serde_json::from_str(method.get()) else {
            return refuse(id, "`method` must be a string");
        };
        let params = self.params.filter(|params| params.get() != "null");
        match (self.id, id) {
            (None, _) => Ok(Message::Notification { method, params }),
            (Some(_), Some(id)) => Ok(Message::Request { id, method, params }),
            (Some(_), None) => refuse(None, "`id` must be a string or a number"),
        }
    }
}

/// A string that is borrowed if it has no escapes. (`Cow` alone always copies.)
struct BorrowedStr<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for BorrowedStr<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrVisitor;
        impl<'de> Visitor<'de> for StrVisitor {
            type Value = BorrowedStr<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, s: &'de str) -> Result<Self::Value, E> {
                Ok(BorrowedStr(Cow::Borrowed(s)))
            }
            fn visit_str<E>(self, s: &str) -> Result<Self::Value, E> {
                Ok(BorrowedStr(Cow::Owned(s.to_owned())))
            }
        }
        deserializer.deserialize_str(StrVisitor)
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnvelopeVisitor;
        impl<'de> Visitor<'de> for EnvelopeVisitor {
            type Value = Envelope<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut envelope = Envelope::default();
                while let Some(BorrowedStr(key)) = map.next_key()? {
                    let member = match &*key {
                        "jsonrpc" => &mut envelope.jsonrpc,
                        "id" => &mut envelope.id,
                        "method" => &mut envelope.method,
                        "params" => &mut envelope.params,
                        "result" => &mut envelope.result,
                        "error" => &mut envelope.error,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    if member.replace(map.next_value()?).is_some() {
                        let why = format!("duplicate member `{key}`");
                        return Err(serde::de::Error::custom(why));
                    }
                }
                Ok(envelope)
            }
        }
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body was parsed as, in one line.
    fn summary(body: &[u8]) -> String {
        let text = |params: Option<&RawValue>| params.map_or("-", RawValue::get).to_owned();
        match Incoming::parse(body) {
            Ok(Incoming::One(Message::Request { id, method, params })) => {
                format!("request {id} {method} {}", text(params))
            }
            Ok(Incoming::One(Message::Notification { method, params })) => {
                format!("notification {method} {}", text(params))
            }
            Ok(Incoming::One(Message::Response { id, outcome })) => {
                format!("response {id:?} {}", outcome.map_or_else(RawValue::get, RawValue::get))
            }
            Ok(Incoming::Batch(elements)) => format!("batch of {}", elements.len()),
            Err(Malformed { id, error }) => format!("{} {id:?}", error.code),
        }
    }

    #[track_caller]
    fn check(body: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(summary(body.as_ref()), expected, "{:?}", body.as_ref().escape_ascii());
    }

    #[test]
    fn messages() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping -");
        check(r#"{"method":"a\u0062","id":"x","jsonrpc":"2.0"}"#, "request \"x\" ab -");
        check(r#" {"jsonrpc":"2.0","id":1,"method":"m","params":null} "#, "request 1 m -");
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a": 1}}"#,
            "request 1 m {\"a\": 1}",
        );
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","extra":[1]}"#, "request 1 m -");
        check(r#"{"jsonrpc":"2.0","method":"m","params":5}"#, "notification m 5");
        check(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, "response Some(3) {}");
        check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#, "response None {\"code\":1}");
        check(r#"[{"jsonrpc":"2.0"},2]"#, "batch of 2");
    }

    #[test]
    fn ids_keep_their_bytes() {
        for id in ["1", "1.0", "\"1\"", "9223372036854775808", "-0", "1e3", "\"\\u0041\"", "\"\""] {
            let body = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"m"}}"#);
            check(&body, &format!("request {id} m -"));
        }
    }

    #[test]
    fn input_that_is_not_json() {
        for body in
            ["", "nonsense", "{", "{\"a\":1}}", "{\"a\":\"\u{0}\"}", "[1,", "{'a':1}", "NaN"]
        {
            check(body, "-32700 None");
        }
        check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "-32700 None");
        check(b"{\"jsonrpc\":\"2.0\",\"x\":\"\xff\",\"id\":1,\"method\":\"m\"}", "-32700 None");
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        check(&deep, "-32700 None");
        check(
            format!(r#"{{"jsonrpc":"2.0","id":8,"method":"m","params":{deep}}}"#),
            "-32700 Some(8)",
        );
    }

    #[test]
    fn json_that_is_not_a_request() {
        for body in ["[]", "1", "null", "\"x\"", "true", "{}", r#"{"jsonrpc":"2.0"}"#] {
            check(body, "-32600 None");
        }
        check(r#"{"jsonrpc":"1.0","id":4,"method":"m"}"#, "-32600 Some(4)");
        check(r#"{"jsonrpc":2.0,"id":"q","method":"m"}"#, "-32600 Some(\"q\")");
        check(r#"{"id":4,"method":"m"}"#, "-32600 Some(4)");
        check(r#"{"jsonrpc":"2.0","id":4}"#, "-32600 Some(4)");
        check(r#"{"jsonrpc":"2.0","id":4,"method":5}"#, "-32600 Some(4)");
        check(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "-32600 None");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "-32600 None");
        check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, "-32600 None");
    }
}
