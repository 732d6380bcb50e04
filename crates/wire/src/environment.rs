//! The environment that a caller passes to the programs it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::base64;
use crate::method::{Empty, Method};

/// Passes the caller's environment and folder. They apply to everything that this connection starts from then on. A
/// 0.1 server does not know the method, and starts programs with its own environment.
#[derive(Debug)]
pub enum PassEnvironment {}

impl Method for PassEnvironment {
    const NAME: &'static str = "patterm/environment";
    type Params = CallerEnvironment;
    type Result = Empty;
}

/// A caller's environment and folder. Its `Debug` output has no values: they may be secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerEnvironment {
    /// The variables that are UTF-8.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Those that are not: name and value, both in base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base64: Vec<(String, String)>,
    /// The variables that were asked for by name, such as with `--env`: the program gets them even if they describe the
    /// caller's terminal, and keeps them when it gets another environment.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub set: BTreeSet<String>,
    /// The caller's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<PathBuf>,
    /// Processes that this connection restarts get this environment too, instead of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    /// A terminal attaches: some of its variables also apply to programs that others start later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attaches: bool,
}

impl CallerEnvironment {
    /// The environment with these variables.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut new = Self::default();
        let encode = |text: &OsStr| base64::encode(text.as_bytes());
        for (name, value) in variables {
            match (name.to_str(), value.to_str()) {
                (Some(name), Some(value)) => {
                    new.variables.insert(name.to_owned(), value.to_owned());
                }
                _ => new.base64.push((encode(&name), encode(&value))),
            }
        }
        new
    }

    /// Sets a variable that was asked for by name, or removes it.
    pub fn set(&mut self, name: &OsStr, value: Option<&OsStr>) {
        let encode = |text: &OsStr| base64::encode(text.as_bytes());
        let encoded = encode(name);
        self.variables.retain(|known, _| name != known.as_str());
        self.base64.retain(|(known, _)| *known != encoded);
        match (name.to_str(), value.map(|value| (value, value.to_str()))) {
            (_, None) => {}
            (Some(name), Some((_, Some(value)))) => {
                self.variables.insert(name.to_owned(), value.to_owned());
            }
            (_, Some((value, _))) => self.base64.push((encoded, encode(value))),
        }
        self.set.extend(name.to_str().filter(|_| value.is_some()).map(str::to_owned));
    }

    /// All variables.
    pub fn into_variables(self) -> impl Iterator<Item = (OsString, OsString)> {
        let decode = |text: &str| OsString::from_vec(base64::decode(text));
        let text = self.variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        let bytes = self.base64.into_iter();
        text.chain(bytes.map(move |(name, value)| (decode(&name), decode(&value))))
    }
}

impl fmt::Debug for CallerEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variables, base64, set, working_dir, restarts, attaches } = self;
        f.debug_struct("CallerEnvironment")
            .field("variables", &(variables.len() + base64.len()))
            .field("set", &set.len())
            .field("working_dir", working_dir)
            .field("restarts", restarts)
            .field("attaches", attaches)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_are_not_utf_8_survive_the_wire() {
        let raw = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let all = vec![
            (raw(b"HOME"), raw(b"/h")),
            (raw(b"RAW"), raw(b"\xff\n\x00x")),
            (raw(b"\xe9"), raw(b"v")),
        ];
        let json = serde_json::to_string(&CallerEnvironment::new(all.clone())).unwrap();
        assert!(json.contains(r#"{"HOME":"/h"}"#), "{json}");
        let read: CallerEnvironment = serde_json::from_str(&json).unwrap();
        assert_eq!(read.into_variables().collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_variable_that_is_asked_for_replaces_the_callers() {
        let raw = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let own = [("TERM".into(), "screen".into()), ("RAW".into(), raw(b"\xff"))];
        let mut environment = CallerEnvironment::new(own);
        environment.set("TERM".as_ref(), Some(&raw(b"\xfe")));
        environment.set("RAW".as_ref(), Some("plain".as_ref()));
        environment.set("GONE".as_ref(), None);
        assert_eq!(environment.set, ["RAW", "TERM"].map(str::to_owned).into());
        let all: Vec<_> = environment.into_variables().collect();
        assert_eq!(all, [("RAW".into(), "plain".into()), ("TERM".into(), raw(b"\xfe"))]);
    }

    #[test]
    fn debug_output_has_no_values() {
        let shown = format!("{:?}", CallerEnvironment::new([("TOKEN".into(), "secret".into())]));
        assert!(!shown.contains("secret") && !shown.contains("TOKEN"), "{shown}");
    }
}
