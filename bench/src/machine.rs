//! What a run was made on, with what, and how busy it was there.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// A run, as far as it is the same for all of its families.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) date: String,
    /// Of patterm, and whether there were changes that are in no commit.
    pub(crate) commit: String,
    pub(crate) machine: String,
    /// The peers that are installed as programs, with their versions. Others have theirs in their
    /// names.
    pub(crate) peers: String,
    /// Whether the long forms were taken.
    pub(crate) long: bool,
}

/// Programs that say their version, and how they are asked.
const PEERS: [(&str, &str); 4] =
    [("tmux", "-V"), ("screen", "--version"), ("dtach", "--version"), ("rg", "--version")];

/// What is no change of the program: the report itself.
const REPORT: &str = ":!docs/benchmarks*";

impl Run {
    /// This one.
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

/// How many programs wanted a processor in the last minute, on average.
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

/// The first line in which a program says its version, where it is not itself the program's name.
fn version((program, flag): &(&str, &str)) -> Option<String> {
    let said = output(program, &[flag])?;
    let words = said.lines().next()?.split_whitespace();
    let number = words.into_iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let name = if *program == "rg" { "ripgrep" } else { program };
    Some(format!("{name} {number}"))
}

/// What a program says, if it says something.
#[expect(clippy::disallowed_methods, reason = "the tools of the trade know")]
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let said = Command::new(program).args(arguments).output().ok()?.stdout;
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    (!said.is_empty()).then_some(said)
}
