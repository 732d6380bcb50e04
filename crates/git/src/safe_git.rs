//! Runs git to read a repository that somebody else may have written: nothing that the repository or the user
//! configures is executed or contacted, and time and output are bounded.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use patterm_keeper::{Environment, HelperLimits, HelperOutput, run_helper};

/// How long one run may take; usually it takes a few milliseconds.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Settings that could run a program.
const SETTINGS: [&str; 4] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "log.showSignature=false",
];

/// Variables of the server that git needs: to be found, and to read the user's own settings, such as `safe.directory`.
const KEPT: [&str; 4] = ["HOME", "PATH", "USER", "XDG_CONFIG_HOME"];

/// Variables that keep git from running, contacting, tracing or locking anything.
const VARIABLES: [(&str, &str); 10] = [
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_TRACE2", "0"),
    ("GIT_TRACE2_EVENT", "0"),
    ("GIT_TRACE2_PERF", "0"),
    ("LC_ALL", "C"),
    ("PAGER", "cat"),
];

/// git, as the server runs it.
#[derive(Debug, Clone)]
pub struct Git {
    environment: Environment,
}

impl Git {
    /// The git that a program with this environment finds.
    #[must_use]
    pub fn new(environment: &Environment) -> Self {
        let kept = KEPT.iter().filter_map(|name| Some((*name, environment.get(name)?)));
        let mut environment: Environment =
            kept.map(|(name, value)| (OsString::from(name), value.to_owned())).collect();
        for (name, value) in VARIABLES {
            environment.insert(name, value);
        }
        Self { environment }
    }

    /// Runs it in a working tree; fails unless it exits with code 0.
    pub(crate) fn run(
        &self,
        worktree: &Path,
        arguments: &[&str],
        input: &[u8],
        output_bytes: usize,
    ) -> io::Result<Vec<u8>> {
        // git changes into the folder itself: that may hang, and only git can be killed.
        let mut all: Vec<OsString> = vec!["--no-pager".into(), "-C".into(), worktree.into()];
        for setting in SETTINGS {
            all.extend(["-c".into(), setting.into()]);
        }
        all.extend(arguments.iter().map(OsString::from));
        let output = self.output(&all, input, output_bytes)?;
        match output.code {
            Some(0) => Ok(output.stdout),
            code => {
                let text = String::from_utf8_lossy(&output.stderr);
                let line = text.lines().next().unwrap_or_default();
                let code =
                    code.map_or("by a signal".to_owned(), |code| format!("with code {code}"));
                Err(io::Error::other(format!("git ended {code}: {line}")))
            }
        }
    }

    fn output(
        &self,
        arguments: &[OsString],
        input: &[u8],
        output_bytes: usize,
    ) -> io::Result<HelperOutput> {
        let limits = HelperLimits { output_bytes, timeout: TIMEOUT };
        run_helper(Path::new("git"), arguments, Path::new("/"), &self.environment, input, limits)
    }
}
