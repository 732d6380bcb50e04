//! Hooks: what they are, how they are doing, and how a person tests one.

use serde::{Deserialize, Serialize};

use crate::method::{Empty, Method};

/// `patterm hooks`: lists the hooks.
#[derive(Debug)]
pub enum ListHooks {}

impl Method for ListHooks {
    const NAME: &'static str = "patterm/hooks";
    type Params = Empty;
    type Result = HookList;
}

/// `patterm hooks test`: runs a hook with a sample event.
#[derive(Debug)]
pub enum TestHook {}

impl Method for TestHook {
    const NAME: &'static str = "patterm/test-hook";
    const PERSON_ONLY: Option<&'static str> = Some("test a hook");
    type Params = HookTest;
    type Result = HookTested;
}

/// Which hook to test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookTest {
    /// Its name. The settings and the project file may each have a hook of this name; both are tested then.
    pub name: String,
}

/// How a test went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookTested {
    /// Each hook with that name.
    pub tested: Vec<HookOutcome>,
}

/// How the test of a hook went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookOutcome {
    /// Its name.
    pub name: String,
    /// The file that declares it.
    pub file: HookFile,
    /// Why it failed; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The file that declares a hook.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookFile {
    /// The user's own settings.
    #[default]
    #[serde(rename = "config.toml")]
    Settings,
    /// The project file.
    #[serde(rename = "patterm.toml")]
    Project,
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

impl HookFile {
    /// The name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Settings => "config.toml",
            Self::Project => "patterm.toml",
            Self::Other(name) => name,
        }
    }
}

/// The hooks that are in effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookList<H = HookInfo> {
    /// Those of the user's settings first.
    pub hooks: Vec<H>,
}

/// A hook, and what it has done since it was added or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookInfo {
    /// Its name.
    pub name: String,
    /// The file that declares it.
    pub file: HookFile,
    /// The types of events.
    pub on: Vec<String>,
    /// The program and its arguments, if it runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Vec<String>>,
    /// The host that it sends requests to, if it sends any. The rest of the URL may be a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its last command or request failed.
    pub failing: bool,
    /// How often it succeeded.
    pub fired: u64,
    /// When it last succeeded, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fired: Option<u64>,
    /// How many events it failed for.
    pub failures: u64,
    /// Why it failed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// How many events it was not started for, because of `at_most` or `unless_viewed`.
    pub suppressed: u64,
    /// How many events were dropped: they waited too long, too many waited, or the log no longer has them.
    pub dropped: u64,
    /// How many events wait for it.
    pub waiting: u64,
}
