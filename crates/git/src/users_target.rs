//! Whether a user has git write traces somewhere already. Then git writes none for patterm: there is one target only.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use patterm_keeper::{Environment, HelperLimits, run_helper};
use patterm_store::sync::lock;

/// The variable that says where git writes traces.
pub const TARGET_VARIABLE: &str = "GIT_TRACE2_EVENT";

/// The setting that says so; git reads it from the system's and the user's files only.
const TARGET_SETTING: &str = "trace2.eventTarget";

/// The variables by which git finds those files, and by which git is found.
const DECIDING: [&str; 7] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "HOME",
    "LD_LIBRARY_PATH",
    "PATH",
    "XDG_CONFIG_HOME",
];

/// How long git may take to read its settings; a start waits for it.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The longest value that is read.
const OUTPUT_BYTES: usize = 64 << 10;

/// Different environments that are remembered at the same time.
const MOST_ANSWERS: usize = 16;

/// Whether users have a target, as git said a moment ago.
#[derive(Debug, Clone)]
pub struct UsersTargets {
    holds: Duration,
    answers: Arc<Mutex<Vec<TargetAnswer>>>,
}

#[derive(Debug)]
struct TargetAnswer {
    deciding: Environment,
    at: Instant,
    has_target: bool,
}

impl UsersTargets {
    /// Remembers answers for so long.
    #[must_use]
    pub fn new(holds: Duration) -> Self {
        Self { holds, answers: Arc::default() }
    }

    /// Whether a program with this environment has a target of the user's, or a git that cannot be asked. This runs
    /// git, so it needs a thread that may block.
    #[must_use]
    pub fn has_target(&self, environment: &Environment, now: Instant) -> bool {
        if environment.get(TARGET_VARIABLE).is_some() {
            return true;
        }
        let mut deciding = environment.clone();
        deciding.retain(|name| DECIDING.iter().any(|known| name == *known));
        // Locked while git runs, so that many starts at the same time ask once.
        let mut answers = lock(&self.answers);
        answers.retain(|answer| now.saturating_duration_since(answer.at) < self.holds);
        if let Some(known) = answers.iter().find(|answer| answer.deciding == deciding) {
            return known.has_target;
        }
        // Without git, or with one that does not work, there is nothing to trace.
        let has_target = is_set(&deciding).unwrap_or(true);
        let excess = (answers.len() + 1).saturating_sub(MOST_ANSWERS);
        answers.drain(..excess);
        answers.push(TargetAnswer { deciding, at: now, has_target });
        has_target
    }
}

fn is_set(deciding: &Environment) -> io::Result<bool> {
    let mut asking = deciding.clone();
    // No repository's settings, and no trace of this command.
    for (name, value) in [("GIT_DIR", "/nonexistent"), ("GIT_TRACE2", "0"), (TARGET_VARIABLE, "0")]
    {
        asking.insert(name, value);
    }
    let arguments = ["config", "--get-all", TARGET_SETTING].map(OsString::from);
    let limits = HelperLimits { output_bytes: OUTPUT_BYTES, timeout: TIMEOUT };
    let output = run_helper(Path::new("git"), &arguments, Path::new("/"), &asking, &[], limits)?;
    match output.code {
        Some(0) => Ok(true),
        // It is not set.
        Some(1) => Ok(false),
        code => Err(io::Error::other(format!("git config exited with {code:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_of_the_user_is_found_wherever_it_is_set() {
        let home = tempfile::tempdir().unwrap();
        let path = std::env::var("PATH").unwrap();
        let environment = |more: &[(&str, &str)]| {
            let mut environment = Environment::from([
                ("HOME", home.path().to_str().unwrap()),
                ("PATH", &path),
                ("GIT_CONFIG_NOSYSTEM", "1"),
            ]);
            more.iter().for_each(|(name, value)| environment.insert(*name, *value));
            environment
        };
        let of = |more: &[(&str, &str)]| {
            UsersTargets::new(Duration::ZERO).has_target(&environment(more), Instant::now())
        };
        assert!(!of(&[]));
        assert!(of(&[(TARGET_VARIABLE, "0")]), "it is set, even if to nothing");
        assert!(!of(&[("GIT_TRACE2_PERF", "1")]), "this is another target");
        assert!(of(&[("PATH", "/nonexistent")]), "there is no git");
        let (known, now) = (UsersTargets::new(Duration::from_secs(5)), Instant::now());
        assert!(!known.has_target(&environment(&[]), now));
        std::fs::write(home.path().join(".gitconfig"), "[include]\npath = more").unwrap();
        std::fs::write(home.path().join("more"), "[trace2]\neventTarget = /x").unwrap();
        assert!(of(&[]));
        assert!(!of(&[("GIT_CONFIG_GLOBAL", "/dev/null")]));
        assert!(!known.has_target(&environment(&[]), now), "the answer holds for a moment");
        assert!(known.has_target(&environment(&[]), now + Duration::from_secs(5)));
    }
}
