//! The greeting: the first line of a connection, which identifies its caller.

use std::borrow::Cow;
use std::fmt;

use patterm_wire::ErrorObject;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::caller::Caller;
use crate::host::Host;
use patterm_agents::identity::Token;
use patterm_panes::process::ProcessId;

/// The code of the error that refuses a greeting; the connection ends after it.
pub const GREETING_REFUSED: i64 = -32000;

/// `{"patterm_identity":"<token>","project_key":"<key>"}`
#[derive(Serialize, Deserialize)]
pub struct Greeting {
    /// The token, as text.
    pub patterm_identity: String,
    /// The key of the project that the caller expects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_key: Option<String>,
}

/// The meaning of the first line of a connection.
#[derive(Debug, PartialEq)]
pub(crate) enum FirstLine {
    /// A valid greeting, and its caller.
    From(Caller),
    /// An invalid greeting.
    Refused(ErrorObject),
    /// An ordinary message of an external caller.
    Message,
}

/// The member that makes a line a greeting.
const MARK: &str = "patterm_identity";

/// The greeting of the TUI and the verbs. Any caller without an identity may send it; its only
/// effect is that messages are labelled as a person's.
pub const PERSON: &str = r#"{"patterm_person":true}"#;

/// Whether an object has that member, of any type and any number of times.
struct Marked(bool);

impl<'de> Deserialize<'de> for Marked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Marked;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Marked, A::Error> {
                let mut marked = false;
                while let Some(name) = members.next_key::<Cow<'_, str>>()? {
                    marked |= name == MARK;
                    members.next_value::<IgnoredAny>()?;
                }
                Ok(Marked(marked))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Whether a line claims an identity, even if it is malformed. Such a sender must not continue
/// without one.
fn is_greeting(line: &[u8]) -> bool {
    match serde_json::from_slice(line) {
        Ok(Marked(marked)) => marked,
        Err(error) if error.is_data() => false,
        // Not valid JSON: truncated, or followed by something else.
        Err(_) => memchr::memmem::find(line, format!("\"{MARK}\"").as_bytes()).is_some(),
    }
}

/// Reads the first line of a connection.
pub(crate) fn read(line: &[u8], host: &Host) -> FirstLine {
    if line.trim_ascii() == PERSON.as_bytes() {
        return FirstLine::From(Caller::Person);
    }
    if !is_greeting(line) {
        return FirstLine::Message;
    }
    let refuse = |reason: &str, message: &str| FirstLine::Refused(refusal(reason, message));
    let Ok(greeting) = serde_json::from_slice::<Greeting>(line) else {
        return refuse(
            "malformed",
            "it must be one object with one `patterm_identity` and at most one `project_key`, both \
             strings",
        );
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

/// The error for a process in one agent's pane that greets with another agent's token.
pub(crate) fn wrong_token(token: &ProcessId, pane: &ProcessId) -> ErrorObject {
    let message = format!(
        "the identity token belongs to {token}, but this connection comes from a pane of {pane}; greet \
         with the token of {pane}, or without a token"
    );
    refusal("other_process", &message)
}

fn refusal(reason: &str, message: &str) -> ErrorObject {
    let data = json!({ "reason": reason });
    ErrorObject::new(GREETING_REFUSED, format!("greeting refused: {message}")).with_data(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_greetings_and_lines_that_are_not() {
        for line in [
            r#"{"patterm_identity":"t"}"#,
            r#"{"a":[{}],"patterm_identity":1}"#,
            r#"{"patterm_identity":"t","patterm_identity":"t"}"#,
            r#"{"patterm\u005fidentity":null}"#,
            r#"{"patterm_identity":"t""#,
            r#"{"patterm_identity":"t"},"#,
        ] {
            assert!(is_greeting(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "nonsense",
            "[1]",
            r#"["t","k"]"#,
            r#""patterm_identity""#,
            r#"{"project_key":"k"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"patterm_identity":1}}"#,
            r#"{"text":"{\"patterm_identity\":1}""#,
        ] {
            assert!(!is_greeting(line.as_bytes()), "{line}");
        }
    }
}
