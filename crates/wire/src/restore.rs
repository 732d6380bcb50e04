//! Restoring the processes that ran when the server was ended or the machine was rebooted: the offer, the
//! request and the result.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::method::Method;

/// `patterm restore`: restores processes, or declines to. The name on the wire is that of 0.1.0.
#[derive(Debug)]
pub enum Restore {}

impl Method for Restore {
    const NAME: &'static str = "patterm/bring_back";
    const PERSON_ONLY: Option<&'static str> = Some("restore processes");
    type Params = RestoreRequest;
    type Result = RestoreResult;
}

/// A process that can be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreOffer {
    /// Its id, which it keeps.
    pub id: String,
    /// How it would be restored.
    pub how: RestoreMode,
    /// Why it would start a new conversation, or could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What ended it, together with everything else.
    pub cause: EndCause,
    /// When, in milliseconds since 1970, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// How a process is restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreMode {
    /// Its program is started again.
    #[default]
    Again,
    /// An agent resumes its conversation.
    Resumed,
    /// An agent starts a new conversation.
    #[serde(rename = "anew")]
    NewConversation,
    /// Not at all.
    Not,
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

/// What ended everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndCause {
    /// `patterm kill`.
    Kill,
    /// A signal to the server.
    Signal,
    /// A reboot.
    Reboot,
    /// Server and keeper were killed.
    #[default]
    Lost,
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

/// Which of the offered processes to restore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    /// The ids of the processes; all that are offered if it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// Do not restore them, and withdraw the offer.
    #[serde(default)]
    pub decline: bool,
}

/// The result of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreResult<P = RestoredProcess> {
    /// In the order of the restarts: a parent before its children.
    pub processes: Vec<P>,
}

/// A process that was restored, or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredProcess {
    /// Its id.
    pub process_id: String,
    /// Its label.
    pub name: String,
    /// How it was restored.
    pub how: RestoreMode,
    /// Why it started a new conversation, waits, or was not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl fmt::Display for RestoredProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match &self.how {
            RestoreMode::Again => "started again",
            RestoreMode::Resumed => "resumed its conversation",
            RestoreMode::NewConversation => "started with a new conversation",
            RestoreMode::Not => "not started",
            RestoreMode::Other(how) => how,
        };
        write!(f, "{} {how}", self.name)?;
        self.reason.iter().try_for_each(|reason| write!(f, ": {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_process_is_described() {
        let check = |how, reason: Option<&str>, expected: &str| {
            let (process_id, name) = ("p1".to_owned(), "lead".to_owned());
            let reason = reason.map(str::to_owned);
            assert_eq!(RestoredProcess { process_id, name, how, reason }.to_string(), expected);
        };
        check(RestoreMode::Again, None, "lead started again");
        check(RestoreMode::Resumed, None, "lead resumed its conversation");
        check(RestoreMode::NewConversation, Some("so"), "lead started with a new conversation: so");
        check(RestoreMode::Not, Some("so"), "lead not started: so");
        let newer = serde_json::from_str("\"frozen\"").unwrap();
        check(newer, None, "lead frozen");
    }
}
