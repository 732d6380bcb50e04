//! The pane in which a process runs, according to the kernel: of this project, of another one,
//! or of none. Every init is a fork of its keeper, so its command line names the project.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use patterm_panes::tree;
use patterm_store::private::own_uid;
use patterm_store::project::is_key;

/// The keeper in whose pane a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnclosingKeeper {
    /// The project's key.
    pub key: String,
    /// The keeper's socket, beside which the project's server is registered.
    pub keeper_socket: PathBuf,
}

impl EnclosingKeeper {
    /// The nearest keeper above this process.
    #[must_use]
    pub fn of_this_process() -> Option<Self> {
        let own = i32::try_from(std::process::id()).ok()?;
        Self::all_above(&tree::line_of(own)?).into_iter().next()
    }

    /// All keepers above a process, given with its ancestors, nearest first. A process
    /// chooses its own command line: one that poses as a keeper can only add to its
    /// ancestors' keepers, not hide them.
    pub(crate) fn all_above(line: &[i32]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for keeper in line.iter().skip(1).filter_map(|pid| Self::of_process(*pid)) {
            if !all.contains(&keeper) {
                all.push(keeper);
            }
        }
        all
    }

    /// The keeper that a process is, or whose init it is.
    fn of_process(pid: i32) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let process = PathBuf::from(format!("/proc/{pid}"));
        let ours = process.metadata().is_ok_and(|found| found.uid() == own_uid());
        let line = std::fs::read(process.join("cmdline")).ok().filter(|_| ours)?;
        let mut words = line.split(|byte| *byte == 0).skip(1);
        let named = words.next() == Some(b"keeper") && words.next() == Some(b"--socket");
        let socket = Path::new(std::ffi::OsStr::from_bytes(words.next().filter(|_| named)?));
        let key = socket.file_stem()?.to_str().filter(|key| is_key(key))?;
        Some(Self { key: key.to_owned(), keeper_socket: socket.to_owned() })
    }
}

/// The keeper with this socket, if it is suspended. Its inits have the same command line, but
/// it is their parent.
pub(crate) fn suspended_keeper(socket: &Path) -> Option<i32> {
    let keeps = |pid: i32| {
        EnclosingKeeper::of_process(pid).is_some_and(|keeper| keeper.keeper_socket == socket)
    };
    let pids = std::fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| keeps(*pid)).find(|pid| {
        let parent = tree::line_of(*pid).and_then(|line| line.get(1).copied());
        !parent.is_some_and(keeps) && is_suspended(*pid)
    })
}

/// Whether a process is stopped by a signal or by a tracer.
fn is_suspended(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before the state is in parentheses and may contain anything.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('T' | 't'))
}
