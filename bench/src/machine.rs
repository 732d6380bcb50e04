//! The machine of a run, the peers' versions, and the load.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Properties of a run that all its families share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) date: String,
    /// patterm's commit, and whether there were uncommitted changes.
    pub(crate) commit: String,
    pub(crate) machine: String,
    /// The peers installed as programs, with their versions. Other peers have the version in their name.
    pub(crate) peers: String,
    /// Whether the long forms were run.
    pub(crate) long: bool,
}

/// Programs and their version flags.
const PEERS: [(&str, &str); 4] =
    [("tmux", "-V"), ("screen", "--version"), ("dtach", "--version"), ("rg", "--version")];

/// Changes of the report itself do not count.
const REPORT: &str = ":!docs/benchmarks*";

impl Run {
    /// The current run.
    pub(crate) fn now() -> Self {
        let commit = output("git", &["rev-parse", "--short", "HEAD"]).unwrap_or("unknown".into());
        let changes = output("git", &["status", "--porcelain", "--", ".", REPORT]);
        let changed = if changes.is_none() { "" } else { " with changes" };
        Self {
            date: output("date", &["-u", "+%Y-%m-%d"]).unwrap_or_default(),
            commit: format!("{commit}{changed}"),
            machine: machine(),
            peers: PEERS.iter().filter_map(version).collect::<Vec<_>>().join(", "),
            long: crate::long(),
        }
    }
}

/// The load average of the last minute.
pub(crate) fn load() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default()
}

/// A file of the last commit.
pub(crate) fn committed(path: &Path) -> Option<String> {
    output("git", &["show", &format!("HEAD:./{}", path.display())])
}

fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: String, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        line.split_once(':').map_or("unknown".into(), |(_, value)| value.trim().to_owned())
    };
    let model = field(read("/proc/cpuinfo"), "model name");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = field(read("/proc/meminfo"), "MemTotal");
    let kib: f64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{cores} cores of {model}, {:.0} GiB, Linux {}", kib / 1048576.0, kernel.trim())
}

/// The version that a program prints.
fn version((program, flag): &(&str, &str)) -> Option<String> {
    let printed = output(program, &[flag])?;
    let words = printed.lines().next()?.split_whitespace();
    let number = words.into_iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let name = if *program == "rg" { "ripgrep" } else { program };
    Some(format!("{name} {number}"))
}

/// A program's output, if it prints anything.
#[expect(clippy::disallowed_methods, reason = "runs git and version flags")]
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let printed = Command::new(program).args(arguments).output().ok()?.stdout;
    let printed = String::from_utf8_lossy(&printed).trim().to_owned();
    (!printed.is_empty()).then_some(printed)
}
