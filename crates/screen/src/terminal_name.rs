//! What the terminal calls itself (XTVERSION).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Characters of a name. Longer ones would be cut off by programs that have a fixed amount of room for it.
const MAX_LENGTH: usize = 64;

/// The name and version of a terminal, such as `patterm 0.1.1`. The default is the truth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TerminalName(Cow<'static, str>);

/// Why a text cannot be the name of a terminal: it would end the reply, or type into the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of a terminal has 1 to {MAX_LENGTH} printable ASCII characters, unlike {0:?}")]
pub struct BadTerminalName(String);

impl TerminalName {
    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for TerminalName {
    fn default() -> Self {
        Self(Cow::Borrowed(concat!("patterm ", env!("CARGO_PKG_VERSION"))))
    }
}

impl TryFrom<String> for TerminalName {
    type Error = BadTerminalName;

    fn try_from(text: String) -> Result<Self, BadTerminalName> {
        let is_printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        match is_printable && (1..=MAX_LENGTH).contains(&text.len()) {
            true => Ok(Self(Cow::Owned(text))),
            false => Err(BadTerminalName(text)),
        }
    }
}

impl From<TerminalName> for String {
    fn from(name: TerminalName) -> Self {
        name.0.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_printable_and_short() {
        for good in ["xterm(370)", "tmux 3.5a", &"x".repeat(64)] {
            assert_eq!(TerminalName::try_from(good.to_owned()).unwrap().as_str(), good);
        }
        for bad in ["", "a\x1b\\ls\r", "a\n", "a\u{9c}", "caf\u{e9}", &"x".repeat(65)] {
            let error = TerminalName::try_from(bad.to_owned()).unwrap_err().to_string();
            assert!(error.contains("printable") && !error.contains(['\x1b', '\n']), "{error}");
        }
    }
}
