//! Bringing back what ran when everything was ended: what is offered, what is asked for, and what
//! came of it. Only people may ask.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The request; its parameters are a [`Wish`], its answer is an [`Answer`].
pub const METHOD: &str = "patterm/bring_back";

/// A process that can be brought back. What else is known of it is told with all processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its id, which it keeps.
    pub id: String,
    /// How it would be brought back.
    pub how: How,
    /// Why it would begin anew, or could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What ended it, together with everything else.
    pub cause: EndCause,
    /// When, in milliseconds since 1970, where somebody was there to see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// How a process is brought back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Its program is started again.
    #[default]
    Again,
    /// An agent goes on with its conversation.
    Resumed,
    /// An agent begins a new conversation.
    Anew,
    /// Not at all.
    Not,
}

/// What ended everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndCause {
    /// `patterm kill`.
    Kill,
    /// A signal that told the server to end.
    Signal,
    /// The machine was started again.
    Reboot,
    /// Server and keeper were killed.
    #[default]
    Lost,
}

/// What is to be done with what is offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// With which; without, with all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// It is not brought back, and not offered any more.
    #[serde(default)]
    pub decline: bool,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// One after the other, whoever started another before it.
    pub processes: Vec<Back>,
}

/// What became of one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Back {
    /// Its id.
    pub process_id: String,
    /// Its label.
    pub name: String,
    /// How it was brought back.
    pub how: How,
    /// Why it began anew, waits, or was not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl fmt::Display for Back {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            How::Again => "started again",
            How::Resumed => "goes on with its conversation",
            How::Anew => "started with a new conversation",
            How::Not => "not started",
        };
        write!(f, "{} {how}", self.name)?;
        self.reason.iter().try_for_each(|reason| write!(f, ": {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_one_in_words() {
        let check = |how, reason: Option<&str>, expected: &str| {
            let (process_id, name) = ("p1".to_owned(), "lead".to_owned());
            let reason = reason.map(str::to_owned);
            assert_eq!(Back { process_id, name, how, reason }.to_string(), expected);
        };
        check(How::Again, None, "lead started again");
        check(How::Resumed, None, "lead goes on with its conversation");
        check(How::Anew, Some("so"), "lead started with a new conversation: so");
        check(How::Not, Some("so"), "lead not started: so");
    }
}
