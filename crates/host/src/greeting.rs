//! The first line of a connection that says who its caller is.

use patterm_wire::ErrorObject;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::caller::Caller;
use crate::host::Host;
use crate::identity::Token;

/// The code of the error that refuses a greeting; the connection ends after it.
pub const GREETING_REFUSED: i64 = -32000;

/// `{"patterm_identity":"<token>","project_key":"<key>"}`
#[derive(Serialize, Deserialize)]
pub struct Greeting {
    /// The token, as text.
    pub patterm_identity: String,
    /// The key of the project the caller means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_key: Option<String>,
}

/// What the first line of a connection turned out to be.
#[derive(Debug, PartialEq)]
pub(crate) enum FirstLine {
    /// A greeting that holds: its caller.
    From(Caller),
    /// A greeting that does not.
    Refused(ErrorObject),
    /// An ordinary message of an external caller.
    Message,
}

/// The one member that makes a line a greeting, whatever its type.
#[derive(Deserialize)]
struct Mark {
    #[serde(rename = "patterm_identity")]
    _identity: serde::de::IgnoredAny,
}

fn is_greeting(line: &[u8]) -> bool {
    // A list of one would do for serde as well, and is a batch.
    line.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<Mark>(line).is_ok()
}

/// Looks at the first line of a connection.
pub(crate) fn read(line: &[u8], host: &Host) -> FirstLine {
    if !is_greeting(line) {
        return FirstLine::Message;
    }
    let refuse = |reason: &str, message: &str| {
        let message = format!("greeting refused: {message}");
        let data = json!({ "reason": reason });
        FirstLine::Refused(ErrorObject::new(GREETING_REFUSED, message).with_data(data))
    };
    let Ok(greeting) = serde_json::from_slice::<Greeting>(line) else {
        return refuse("malformed", "`patterm_identity` and `project_key` take strings");
    };
    if greeting.project_key.is_some_and(|key| key != host.project.key()) {
        return refuse("other_project", "this server serves another project");
    }
    let process = Token::parse(&greeting.patterm_identity)
        .and_then(|token| host.identities.process_of(&token))
        .map(Caller::Process)
        .filter(|caller| caller.is_known(host));
    match process {
        Some(caller) => FirstLine::From(caller),
        None => refuse(
            "unknown_token",
            "the identity token is unknown or revoked; only a process that patterm started has \
             one, and only until it is closed",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_with_the_mark_is_a_greeting() {
        for (line, expected) in [
            (r#"{"patterm_identity":"x"}"#, true),
            (r#" {"a":1,"patterm_identity":5}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, false),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, false),
            ("[1]", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_greeting(line.as_bytes()), expected, "{line}");
        }
    }
}
