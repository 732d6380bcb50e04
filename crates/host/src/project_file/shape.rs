//! What a project file may hold, as data: what is checked and what editors are told are the same.

use super::agent_shape::{APPROVED, COMPOSER, HOOKS, INJECT, INPUT, PROMPT, RESUME, RULES};
use super::limits::{MOST_RESTARTS, MOST_SECONDS};
use super::server_shape::{BOTS, HTTP, SERVER};
use patterm_store::limits::Limits;

/// What a value must look like.
#[derive(Debug)]
pub(super) enum Shape {
    /// A string.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole { least: i64, most: i64 },
    /// A time, whole or not.
    Seconds,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// An array, of this many at the least.
    List { of: &'static Shape, least: usize },
    /// A table whose keys are names that the file gives.
    Named(&'static Shape),
    /// A table of strings whose keys may be anything.
    Strings,
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table of numbers above 0 with these keys.
    Counts(&'static [&'static str]),
    /// One of the two.
    Either(&'static Shape, &'static Shape),
    /// A regular expression.
    Pattern,
    /// `false`, which takes a table of the preset below away.
    Off,
}

/// One key of a table.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) required: bool,
    /// What it means.
    pub(super) words: &'static str,
}

pub(super) const fn key(name: &'static str, shape: Shape, words: &'static str) -> Key {
    Key { name, shape, required: false, words }
}

/// The words for restart policies.
pub(super) const POLICIES: &[&str] = &["never", "on-failure", "always"];

/// The whole file.
pub(super) static FILE: Shape = Shape::Table(&[
    key("processes", Shape::Named(&PROCESS), "Programs that belong to the project, by name."),
    key(
        "agents",
        Shape::Named(&AGENT),
        "Agent presets, by name: new ones, or changes to those that come with patterm.",
    ),
    key(
        "servers",
        Shape::Named(&SERVER),
        "Shared MCP servers, by name: each runs once for all agents.",
    ),
    key("bots", BOTS, "The servers inside containers that belong to bots, reached over HTTP."),
    key("http", HTTP, "The door over HTTP; closed unless it says where to listen."),
    key(
        "limits",
        Shape::Counts(&Limits::NAMES),
        "The server's limits; they count from its next start.",
    ),
]);

static PROCESS: Shape = Shape::Table(&[
    Key {
        name: "command",
        shape: Shape::Either(&Shape::Text, &Shape::List { of: &Shape::Text, least: 1 }),
        required: true,
        words: "What to run: a command line for `sh -c`, or the program and its arguments.",
    },
    key(
        "directory",
        Shape::Text,
        "Where it starts, relative to the project; the project itself by default.",
    ),
    key("environment", Shape::Strings, "Environment variables beyond the usual ones."),
    key("autostart", Shape::Flag, "Whether it starts with the server; false by default."),
    key(
        "restart",
        Shape::Either(&Shape::Choice(POLICIES), &RESTART),
        "Whether it is started again when it ends by itself; `never` by default.",
    ),
    key(
        "watch",
        Shape::List { of: &Shape::Text, least: 0 },
        "Patterns of files, relative to the project, as in `src/**/*.rs`: it is restarted when one changes.",
    ),
    key(
        "depends_on",
        Shape::List { of: &Shape::Text, least: 0 },
        "Names of processes that are started first and must be ready.",
    ),
    key("ready", READY, "When it counts as ready; by default as soon as it runs."),
]);

static RESTART: Shape = Shape::Table(&[
    Key {
        name: "policy",
        shape: Shape::Choice(POLICIES),
        required: true,
        words: "`never`, `on-failure` (an exit code other than 0, or a signal) or `always`.",
    },
    key(
        "limit",
        Shape::Whole { least: 1, most: MOST_RESTARTS as i64 },
        "How often in a row at the most; 5 by default. A life of ten seconds or more ends the row.",
    ),
    key(
        "delay_seconds",
        Shape::Seconds,
        "The time before the first restart; 1 by default. Each further one waits twice as long.",
    ),
    key("longest_delay_seconds", Shape::Seconds, "The longest of these times; 60 by default."),
]);

const READY: Shape = Shape::Table(&[
    key("pattern", Shape::Text, "A regular expression: ready when a line of its output matches."),
    key(
        "port",
        Shape::Whole { least: 1, most: 65_535 },
        "Ready when it, or something it started, listens on this TCP port.",
    ),
    key("exits", Shape::Flag, "`true`: ready when it ended with exit code 0."),
    key(
        "timeout_seconds",
        Shape::Seconds,
        "How long that may take before those that need it are given up; 60 by default.",
    ),
]);

static AGENT: Shape = Shape::Table(&[
    key("like", Shape::Text, "The preset that this one begins as."),
    key("title", Shape::Text, "What people call it."),
    key("program", Shape::Text, "The program, looked for on PATH where it is no path."),
    key("args", Shape::List { of: &Shape::Text, least: 0 }, "Arguments: a model, a mode."),
    key("env", Shape::Strings, "Environment variables."),
    key("inject", INJECT, "How patterm's tools and the agent's identity are given to it."),
    key("approved", APPROVED, "How patterm's own tools are named where the CLI need not ask."),
    key(
        "tool_name",
        Shape::Text,
        "What its model calls a tool of patterm's; `{{tool}}` is its name.",
    ),
    key("prompt", PROMPT, "How the first prompt is given as an argument."),
    key("resume", RESUME, "How a conversation is taken up again."),
    key("input", INPUT, "How turns are put in."),
    key("composer", COMPOSER, "How to read what stands in its prompt box."),
    key("rules", RULES, "What its screen and title say of its state."),
    key("hooks", HOOKS, "What its hooks say of its state."),
]);

impl Shape {
    /// What is taken, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Text => "a string".into(),
            Self::Flag => "true or false".into(),
            Self::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Self::Seconds => format!("a number of seconds from 0 to {MOST_SECONDS}"),
            Self::Choice(choices) => {
                let choices: Vec<_> =
                    choices.iter().map(|choice| format!("\"{choice}\"")).collect();
                choices.join(", ")
            }
            Self::List { of: Self::Text, .. } => "an array of strings".into(),
            Self::List { .. } => "an array".into(),
            Self::Strings => "a table of strings".into(),
            Self::Named(_) | Self::Table(_) | Self::Counts(_) => "a table".into(),
            Self::Either(one, other) => format!("{} or {}", one.words(), other.words()),
            Self::Pattern => "a regular expression, as a string".into(),
            Self::Off => "false".into(),
        }
    }

    /// Whether a value is at least of the right type.
    pub(super) fn is_for(&self, value: &toml::Value) -> bool {
        match self {
            Self::Text | Self::Choice(_) | Self::Pattern => value.is_str(),
            Self::Flag => value.is_bool(),
            Self::Whole { .. } => value.is_integer(),
            Self::Seconds => value.is_integer() || value.is_float(),
            Self::List { .. } => value.is_array(),
            Self::Named(_) | Self::Strings | Self::Table(_) | Self::Counts(_) => value.is_table(),
            Self::Either(one, other) => one.is_for(value) || other.is_for(value),
            Self::Off => value.as_bool() == Some(false),
        }
    }
}
