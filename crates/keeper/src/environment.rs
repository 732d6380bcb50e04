//! The variables of a program. Names and values are bytes, as the kernel has them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

/// The environment of a program. Its `Debug` output has the names only: values may be secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EnvironmentForm", into = "EnvironmentForm")]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The value of a variable.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// The value of a variable, if it is UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.to_str()
    }

    /// Sets a variable.
    pub fn insert(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.0.insert(name.into(), value.into());
    }

    /// Removes a variable.
    pub fn remove(&mut self, name: impl AsRef<OsStr>) {
        self.0.remove(name.as_ref());
    }

    /// Keeps the variables for whose names `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(&OsStr) -> bool) {
        self.0.retain(|name, _| keep(name));
    }

    /// The variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.keys().map(OsString::as_os_str)
    }

    /// Whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As one block in the kernel's form: `NAME=VALUE`, each with a terminating zero.
    pub fn to_block(&self) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in &self.0 {
            block.extend_from_slice(name.as_bytes());
            block.push(b'=');
            block.extend_from_slice(value.as_bytes());
            block.push(0);
        }
        block
    }

    /// Reads such a block. Strings without `=` are skipped.
    pub fn from_block(block: &[u8]) -> Self {
        let variable = |text: &[u8]| {
            let at = text.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
            let bytes = |part: &[u8]| OsString::from_vec(part.to_owned());
            Some((bytes(&text[..at]), bytes(&text[at + 1..])))
        };
        block.split(|byte| *byte == 0).filter_map(variable).collect()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let mut environment = Self::default();
        environment.extend(variables);
        environment
    }
}

impl<N: Into<OsString>, V: Into<OsString>> Extend<(N, V)> for Environment {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, variables: I) {
        self.0.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
}

impl<N: Into<OsString>, V: Into<OsString>, const S: usize> From<[(N, V); S]> for Environment {
    fn from(variables: [(N, V); S]) -> Self {
        variables.into_iter().collect()
    }
}

impl IntoIterator for Environment {
    type Item = (OsString, OsString);
    type IntoIter = std::collections::btree_map::IntoIter<OsString, OsString>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The form in messages to the keeper. Variables that are not UTF-8 have their own list, which a 0.1
/// keeper ignores: its programs start without them.
#[derive(Clone, Serialize, Deserialize)]
struct EnvironmentForm {
    env: BTreeMap<String, String>,
    /// Each character represents the byte with its code point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    env_bytes: Vec<(String, String)>,
}

impl From<Environment> for EnvironmentForm {
    fn from(environment: Environment) -> Self {
        let mut form = Self { env: BTreeMap::new(), env_bytes: Vec::new() };
        let as_chars = |text: &OsStr| text.as_bytes().iter().copied().map(char::from).collect();
        for (name, value) in environment {
            match (name.to_str(), value.to_str()) {
                (Some(name), Some(value)) => {
                    form.env.insert(name.to_owned(), value.to_owned());
                }
                _ => form.env_bytes.push((as_chars(&name), as_chars(&value))),
            }
        }
        form
    }
}

impl From<EnvironmentForm> for Environment {
    fn from(form: EnvironmentForm) -> Self {
        let as_bytes = |text: &str| -> Option<OsString> {
            let bytes = text.chars().map(u8::try_from).collect::<Result<_, _>>().ok()?;
            Some(OsString::from_vec(bytes))
        };
        let mut environment: Self = form.env.into_iter().collect();
        let bytes = form.env_bytes.iter();
        environment.extend(bytes.filter_map(|(name, value)| as_bytes(name).zip(as_bytes(value))));
        environment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Environment {
        let mut environment = Environment::from([("HOME", "/h"), ("LINES", "a\nb=c")]);
        environment.insert("RAW", OsStr::from_bytes(b"\xff\x01\xfe"));
        environment.insert(OsStr::from_bytes(b"N\xe9"), "plain");
        environment
    }

    #[test]
    fn bytes_that_are_not_utf_8_pass_through_messages_and_blocks() {
        let json = serde_json::to_string(&sample()).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&json).unwrap(), sample());
        assert_eq!(Environment::from_block(&sample().to_block()), sample());
        assert!(Environment::from_block(b"no equals sign\0=x\0").is_empty());
    }

    #[test]
    fn messages_are_compatible_with_version_0_1_0() {
        let plain = Environment::from([("A", "b")]);
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"env":{"A":"b"}}"#);
        assert_eq!(serde_json::from_str::<Environment>(r#"{"env":{"A":"b"}}"#).unwrap(), plain);
    }

    #[test]
    fn debug_output_has_no_values() {
        let shown = format!("{:?}", Environment::from([("TOKEN", "secret")]));
        assert_eq!(shown, r#"{"TOKEN"}"#);
    }
}
