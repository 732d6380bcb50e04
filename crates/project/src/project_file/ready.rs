//! When a process is ready, and when it is healthy afterwards.

use std::time::Duration;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::check::{Checked, last_line};
use super::limits::{FAILURES, HEALTHY_EVERY, MOST_FAILURES, READY as READY_TIMEOUT};
use super::probe::{PROBE_KEYS, Probe, RawProbe, no_effect, probe_seconds};
use super::schema::{Schema, SchemaKey, key};

/// The maximum size of a compiled pattern in bytes, as for patterns that callers wait for.
const PATTERN_BYTES: usize = 1 << 20;

/// The keys of `ready` beside those of its probe.
const READY_KEYS: &[SchemaKey] = &[
    key("pattern", Schema::Text, "A regular expression: ready when a line of its output matches."),
    key("exits", Schema::Flag, "`true`: ready when it has exited with code 0."),
    key("delay_seconds", Schema::Seconds, "Ready when it has been running for this long."),
    key(
        "timeout_seconds",
        Schema::Seconds,
        "How long it may take to become ready before its dependents are cancelled; 60 by default.",
    ),
    key(
        "every_seconds",
        Schema::Seconds,
        "How long to wait between two tries; by default 0.05 at first, and up to 1 later.",
    ),
];

/// The keys of `healthy` beside those of its probe.
const HEALTHY_KEYS: &[SchemaKey] = &[
    key("every_seconds", Schema::Seconds, "How long to wait between two checks; 10 by default."),
    key(
        "failures",
        Schema::Whole { least: 1, most: MOST_FAILURES as i64 },
        "How many consecutive checks must fail before it is unhealthy; 3 by default.",
    ),
];

/// `ready`.
pub(super) const READY: Schema = Schema::Groups(&[PROBE_KEYS, READY_KEYS]);

/// `healthy`.
pub(super) const HEALTHY: Schema = Schema::Groups(&[PROBE_KEYS, HEALTHY_KEYS]);

/// When a process is ready, and how long that may take.
#[derive(Debug, Clone)]
pub struct Ready {
    /// The sign that it is ready.
    pub when: ReadyWhen,
    /// After this time, processes that depend on it are cancelled.
    pub timeout: Duration,
    /// The pause between two tries of a probe; `None` for one that grows.
    pub every: Option<Duration>,
    /// How long one try may take.
    pub try_timeout: Duration,
}

/// The sign that a process is ready.
#[derive(Debug, Clone)]
pub enum ReadyWhen {
    /// A line of its output matches.
    Pattern(Regex),
    /// A probe succeeds.
    Succeeds(Probe),
    /// It has exited with code 0.
    Exits,
    /// It has been running for this long.
    Delay(Duration),
}

/// How the health of a process that is ready is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Healthy {
    /// It is healthy if this succeeds.
    pub probe: Probe,
    /// The pause between two checks.
    pub every: Duration,
    /// How long one check may take.
    pub try_timeout: Duration,
    /// It is unhealthy after this many consecutive failures.
    pub failures: u32,
}

#[derive(Deserialize)]
pub(super) struct RawReady {
    #[serde(flatten)]
    probe: RawProbe,
    pattern: Option<String>,
    exits: Option<bool>,
    delay_seconds: Option<f64>,
    timeout_seconds: Option<f64>,
    every_seconds: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct RawHealthy {
    #[serde(flatten)]
    probe: RawProbe,
    every_seconds: Option<f64>,
    failures: Option<u32>,
}

/// Reads `ready` of the process at `path`.
pub(super) fn ready(checked: &mut Checked<'_>, path: &str, raw: RawReady) -> Option<Ready> {
    let path = format!("{path}.ready");
    let mut given = raw.probe.given();
    let others = [
        ("pattern", raw.pattern.is_some()),
        ("exits", raw.exits == Some(true)),
        ("delay_seconds", raw.delay_seconds.is_some()),
    ];
    given.extend(others.iter().filter(|(_, given)| *given).map(|(key, _)| *key));
    let all = "`http`, `command`, `port`, `pattern`, `exits = true` and `delay_seconds`";
    let condition = only(checked, &path, &given, all)?;
    let is_probe = matches!(condition, "http" | "command" | "port");
    if raw.every_seconds.is_some() && !is_probe {
        no_effect(checked, &path, "every_seconds", condition);
    }
    if raw.timeout_seconds.is_some() && condition == "delay_seconds" {
        no_effect(checked, &path, "timeout_seconds", condition);
    }
    let every = probe_seconds(checked, &format!("{path}.every_seconds"), raw.every_seconds);
    let (probe, try_timeout) = raw.probe.read(checked, &path, condition);
    let when = match (raw.pattern, raw.delay_seconds) {
        (Some(text), _) => ReadyWhen::Pattern(pattern(checked, &path, &text)?),
        (None, Some(delay)) => ReadyWhen::Delay(seconds(delay)?),
        (None, None) if condition == "exits" => ReadyWhen::Exits,
        (None, None) => ReadyWhen::Succeeds(probe?),
    };
    let timeout = raw.timeout_seconds.and_then(seconds).unwrap_or(READY_TIMEOUT);
    Some(Ready { when, timeout, every, try_timeout })
}

/// Reads `healthy` of the process at `path`.
pub(super) fn healthy(checked: &mut Checked<'_>, path: &str, raw: RawHealthy) -> Option<Healthy> {
    let path = format!("{path}.healthy");
    let condition = only(checked, &path, &raw.probe.given(), "`http`, `command` and `port`")?;
    let every = probe_seconds(checked, &format!("{path}.every_seconds"), raw.every_seconds);
    let (probe, try_timeout) = raw.probe.read(checked, &path, condition);
    let (every, failures) = (every.unwrap_or(HEALTHY_EVERY), raw.failures.unwrap_or(FAILURES));
    Some(Healthy { probe: probe?, every, try_timeout, failures })
}

/// The only condition of a table.
fn only(
    checked: &mut Checked<'_>,
    path: &str,
    given: &[&'static str],
    all: &str,
) -> Option<&'static str> {
    if let [condition] = given {
        return Some(condition);
    }
    let has = match given {
        [] => String::new(),
        several => {
            let several: Vec<_> = several.iter().map(|key| format!("`{key}`")).collect();
            format!(", not {}", several.join(" and "))
        }
    };
    let message = format!("`{path}` must have exactly one of {all}{has}");
    checked.fault(path, message, None);
    None
}

fn pattern(checked: &mut Checked<'_>, path: &str, text: &str) -> Option<Regex> {
    let compiled = RegexBuilder::new(text).size_limit(PATTERN_BYTES).build();
    compiled
        .map_err(|error| {
            let why = last_line(&error.to_string());
            let message = format!("the pattern does not compile: {why}");
            checked.fault(&format!("{path}.pattern"), message, None);
        })
        .ok()
}

/// A time that the schema has checked.
fn seconds(raw: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(raw).ok()
}

impl Ready {
    /// When it is ready, for a person who decides about trust.
    pub(super) fn words(&self) -> String {
        match &self.when {
            ReadyWhen::Pattern(pattern) => {
                format!("it prints {}", super::visible::visible(pattern.as_str()))
            }
            ReadyWhen::Succeeds(probe) => probe.words(),
            ReadyWhen::Exits => "it has exited with code 0".to_owned(),
            ReadyWhen::Delay(delay) => format!("it has been running for {} s", delay.as_secs_f64()),
        }
    }
}
