//! The folder into which git writes traces for one run of a pane. Any program of that pane can write anything into it,
//! as often as it likes, so each pass reads and removes a bounded amount.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use patterm_store::private::{PrivateDir, Refusal};

use crate::trace::{self, Trace, TracedCommand};

/// Files in the folder, after which git itself stops tracing until they are read.
pub const MOST_FILES: usize = 1_000;

/// Files that one pass looks at.
const PASS_FILES: usize = 512;

/// Bytes that one pass reads. A command writes a few kilobytes.
const PASS_BYTES: u64 = 16 << 20;

/// How much is read from the beginning of a file. Its first lines contain the arguments of the command, such as the
/// message of a commit.
const HEAD_BYTES: u64 = 1 << 20;

/// How much is read from the end of a longer file: its last lines say how the command ended.
const TAIL_BYTES: u64 = 16 << 10;

/// Commands that run at the same time. What is beyond has no evidence.
const MOST_OPEN: usize = 256;

/// The file with which git notes that there are too many.
const SENTINEL: &str = "git-trace2-discard";

/// The traces of one run of a pane.
#[derive(Debug)]
pub struct TraceFolder(PrivateDir);

/// What one pass found.
#[derive(Debug, Default)]
pub struct Drained {
    /// Commands that may have made commits, by the time of their end.
    pub commands: Vec<Taken>,
    /// Files that git did not write, or that are beyond the limits. They were removed.
    pub refused: usize,
    /// There may be more.
    pub is_partial: bool,
    /// What fills the folder cannot be removed, so nothing more will be found in it.
    pub is_stuck: bool,
}

/// A command, and the file that names it, which stays until it is removed.
#[derive(Debug)]
pub struct Taken {
    /// The name of the file.
    file: String,
    /// The command.
    pub command: TracedCommand,
}

/// A file in the folder.
enum Found {
    Command(TracedCommand),
    Done,
    Open,
    Refused,
}

impl TraceFolder {
    /// Opens it.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        PrivateDir::open_to_write(path).map(Self)
    }

    /// Reads what commands have written, and removes what is not needed. If the run `is_over`, commands that have not
    /// ended were killed.
    pub fn drain(&self, is_over: bool) -> io::Result<Drained> {
        let mut drained = Drained::default();
        let (mut bytes, mut open, mut removed) = (0, 0, 0);
        let names = self.0.some_names(PASS_FILES)?;
        drained.is_partial = names.len() >= PASS_FILES;
        for name in names {
            let text = name.to_str().filter(|name| trace::is_name(name));
            let found = match text {
                Some(text) if bytes < PASS_BYTES => self.look_at(text, is_over, &mut bytes),
                None if name == SENTINEL => Found::Done,
                _ => Found::Refused,
            };
            match found {
                Found::Command(command) => {
                    let file = text.unwrap_or_default().to_owned();
                    drained.commands.push(Taken { file, command });
                    continue;
                }
                Found::Open if open < MOST_OPEN => {
                    open += 1;
                    continue;
                }
                Found::Open | Found::Refused => drained.refused += 1,
                Found::Done => {}
            }
            // A folder, which git never creates, stays until the run is over.
            removed += usize::from(self.0.remove(&name).is_ok());
        }
        drained.is_stuck = drained.is_partial && removed == 0 && drained.commands.is_empty();
        drained.commands.sort_by_key(|taken| taken.command.end_us);
        Ok(drained)
    }

    /// Removes the trace of a command.
    pub fn remove(&self, taken: &Taken) {
        let _ = self.0.remove(&taken.file);
    }

    fn look_at(&self, name: &str, is_over: bool, bytes: &mut u64) -> Found {
        let Ok(mut file) = self.0.file(name) else { return Found::Refused };
        let Ok((head, tail)) = ends(&mut file) else { return Found::Refused };
        *bytes += (head.len() + tail.len()) as u64;
        match trace::read(name, &head, &tail) {
            Ok(Trace::Command(command)) => Found::Command(command),
            Ok(Trace::Other) => Found::Done,
            Ok(Trace::Open(open)) if is_over => {
                let command = changed_at(&file).and_then(|end_us| open.killed_at(end_us));
                command.map_or(Found::Done, Found::Command)
            }
            Ok(Trace::Open(open)) if open.may_matter() => Found::Open,
            Ok(Trace::Open(_)) => Found::Done,
            Err(_) => Found::Refused,
        }
    }
}

/// The beginning of a file, and the end of a longer one.
fn ends(file: &mut File) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    let length = file.metadata()?.len();
    if length > HEAD_BYTES {
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES).max(HEAD_BYTES)))?;
        file.take(TAIL_BYTES).read_to_end(&mut tail)?;
        // The head may end within a line.
        let end = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        head.truncate(end);
    }
    Ok((head, tail))
}

/// When a file was written last, in microseconds since 1970.
fn changed_at(file: &File) -> Option<u64> {
    let meta = file.metadata().ok()?;
    let (seconds, nanos) = (meta.mtime(), meta.mtime_nsec());
    Some(u64::try_from(seconds).ok()? * 1_000_000 + u64::try_from(nanos).ok()? / 1_000)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn name(number: usize) -> String {
        format!("20261119T201217.{number:06}Z-H0a7c9cdf-P00005194")
    }

    fn content(number: usize, ending: &str) -> String {
        let sid = name(number);
        format!(
            "{{\"event\":\"version\",\"sid\":\"{sid}\"}}\n{{\"event\":\"def_repo\",\"sid\":\"{sid}\",\
            \"worktree\":\"/r\"}}\n{{\"event\":\"cmd_name\",\"sid\":\"{sid}\",\"hierarchy\":\"commit\"}}\n{ending}"
        )
    }

    fn ended(number: usize) -> String {
        let sid = name(number);
        content(
            number,
            &format!("{{\"event\":\"atexit\",\"sid\":\"{sid}\",\"t_abs\":0.5,\"code\":0}}\n"),
        )
    }

    #[test]
    fn commands_are_returned_in_order_and_stay_until_they_are_removed() {
        let top = tempfile::tempdir().unwrap();
        let folder = TraceFolder::open(top.path()).unwrap();
        for number in [3, 1, 2] {
            std::fs::write(top.path().join(name(number)), ended(number)).unwrap();
        }
        std::fs::write(top.path().join(SENTINEL), "").unwrap();
        for _ in 0..2 {
            let drained = folder.drain(false).unwrap();
            let micros = drained.commands.iter().map(|taken| taken.command.start_us % 1_000_000);
            assert_eq!(micros.collect::<Vec<_>>(), [1, 2, 3]);
            assert_eq!((drained.refused, drained.is_partial), (0, false));
        }
        for taken in folder.drain(false).unwrap().commands {
            folder.remove(&taken);
        }
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_emptied_is_given_up() {
        let top = tempfile::tempdir().unwrap();
        let folder = TraceFolder::open(top.path()).unwrap();
        for number in 0..PASS_FILES {
            std::fs::create_dir(top.path().join(name(number))).unwrap();
        }
        assert!(folder.drain(false).unwrap().is_stuck);
    }

    #[test]
    fn a_hostile_folder_costs_a_bounded_amount_and_is_empty_in_the_end() {
        let top = tempfile::tempdir().unwrap();
        let folder = TraceFolder::open(top.path()).unwrap();
        let secret = top.path().join("secret");
        std::fs::write(&secret, ended(1)).unwrap();
        symlink(&secret, top.path().join(name(1))).unwrap();
        std::fs::create_dir_all(top.path().join(name(2)).join("deep")).unwrap();
        let pipe = top.path().join(name(3));
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let huge = File::create(top.path().join(name(4))).unwrap();
        huge.set_len(1 << 40).unwrap();
        for number in 5..2_000 {
            let text = if number % 2 == 0 { "garbage\n".to_owned() } else { content(number, "") };
            std::fs::write(top.path().join(name(number)), text).unwrap();
        }
        let mut passes = 0;
        loop {
            let drained = folder.drain(false).unwrap();
            assert!(drained.commands.is_empty());
            passes += 1;
            if !drained.is_partial {
                break;
            }
            assert!(passes < 20, "each pass removes files");
        }
        let left = std::fs::read_dir(top.path()).unwrap().count() - 1;
        assert!(left <= MOST_OPEN, "{left}");
        assert!(top.path().join(name(2)).join("deep").is_dir());
        // Those that did not end were killed; each is returned once.
        let drained = folder.drain(true).unwrap();
        assert_eq!(drained.commands.len(), left);
    }
}
