//! The server's log: lines in the state folder, in files of limited size.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::OFlags;
use rustix::io::Errno;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// A log file is rotated at this size: hours of a busy server, and quick to open in an editor.
const FILE_BYTES: u64 = 4 << 20;

/// Rotated files that are kept.
const KEPT_FILES: u32 = 3;

/// The environment variable that sets the level, for example `debug`.
const LEVEL_VARIABLE: &str = "PATTERM_LOG";

/// Writes this process's log to `path`. A second call in one process has no effect.
pub fn to_file(path: &Path) -> io::Result<()> {
    let file = RotatingFile::open(path, FILE_BYTES, KEPT_FILES)?;
    init(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Mutex::new(file)));
    Ok(())
}

/// Writes this process's log to standard error.
pub fn to_stderr() {
    init(tracing_subscriber::fmt::layer().with_writer(io::stderr));
}

fn init<W>(
    layer: tracing_subscriber::fmt::Layer<
        tracing_subscriber::layer::Layered<Targets, tracing_subscriber::Registry>,
        tracing_subscriber::fmt::format::DefaultFields,
        tracing_subscriber::fmt::format::Format,
        W,
    >,
) where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let level = std::env::var(LEVEL_VARIABLE)
        .ok()
        .and_then(|level| level.parse().ok())
        .unwrap_or(tracing::Level::INFO);
    // rmcp logs whole messages at info and debug: what agents write must stay out of the log.
    let levels = Targets::new().with_default(level).with_target("rmcp", tracing::Level::ERROR);
    let _ = tracing_subscriber::registry().with(levels).with(layer).try_init();
}

/// A file that is renamed to `name.1`, `name.2`, … when it reaches its limit.
#[derive(Debug)]
pub(crate) struct RotatingFile {
    path: PathBuf,
    limit: u64,
    /// How many rotated files are kept.
    kept: u32,
    file: File,
    size: u64,
}

impl RotatingFile {
    pub(crate) fn open(path: &Path, limit: u64, kept: u32) -> io::Result<Self> {
        let file = append_to(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), limit, kept, file, size })
    }

    fn rotate(&mut self) -> io::Result<()> {
        let aside = |n: u32| PathBuf::from(format!("{}.{n}", self.path.display()));
        for n in (1..self.kept).rev() {
            let _ = std::fs::rename(aside(n), aside(n + 1));
        }
        std::fs::rename(&self.path, aside(1))?;
        self.file = append_to(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

impl Write for RotatingFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.size > 0 && self.size + line.len() as u64 > self.limit {
            // If the log cannot be rotated, keep writing to the old file.
            let _ = self.rotate();
        }
        let written = self.file.write(line)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens a log for appending, without following a link; creates it, for its owner only, if it
/// does not exist. Does not block on a pipe with its name.
pub fn append_to(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    let opened = options.create(true).append(true).mode(0o600).custom_flags(flags).open(path);
    let is_file = match &opened {
        Ok(file) => file.metadata()?.is_file(),
        // A pipe without a reader, or a socket.
        Err(error) => error.raw_os_error() != Some(Errno::NXIO.raw_os_error()),
    };
    match is_file {
        true => opened,
        false => Err(io::Error::other("it is not a regular file; remove it")),
    }
}

/// Logs panics like everything else, with their location.
pub fn panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let what = info.payload_as_str().unwrap_or("a panic without a message");
        tracing::error!(place, "panic: {what}");
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_place_of_the_log_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.log");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, 0o600.into(), 0).unwrap();
        let refusal = append_to(&path).unwrap_err().to_string();
        assert_eq!(refusal, "it is not a regular file; remove it");
        // With a reader, opening it succeeds.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let _reader = OpenOptions::new().read(true).custom_flags(flags).open(&path).unwrap();
        assert_eq!(append_to(&path).unwrap_err().to_string(), refusal);
    }

    #[test]
    fn the_log_is_rotated_at_its_limit_and_the_oldest_file_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.log");
        let mut log = RotatingFile::open(&path, 10, KEPT_FILES).unwrap();
        for line in ["one111\n", "two222\n", "three3\n", "four44\n", "five55\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        let text = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(text("server.log"), "five55\n");
        assert_eq!(text("server.log.1"), "four44\n");
        assert_eq!(text("server.log.3"), "two222\n");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4);
        drop(log);
        let again = RotatingFile::open(&path, 10, KEPT_FILES).unwrap();
        assert_eq!(again.size, 7);
    }
}
