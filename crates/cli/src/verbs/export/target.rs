//! Where an export goes: standard output, or a file that is complete or not there.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use anyhow::Context;

use crate::print::{print_content, printable_path};

/// What is being written.
pub(super) enum Target {
    Stdout,
    File(NewFile),
}

/// A file that is removed unless it is finished.
pub(super) struct NewFile {
    path: PathBuf,
    /// Where it is until it is complete, if it replaces another one.
    temporary: Option<PathBuf>,
    file: BufWriter<File>,
    is_finished: bool,
}

impl Target {
    pub(super) fn open(path: Option<PathBuf>, force: bool) -> anyhow::Result<Self> {
        path.map_or(Ok(Self::Stdout), |path| NewFile::create(path, force).map(Self::File))
    }

    /// Writes. Returns `false` once the reader has closed the pipe.
    pub(super) fn write(&mut self, text: &str) -> anyhow::Result<bool> {
        match self {
            Self::Stdout => Ok(print_content(text)),
            Self::File(new) => {
                let written = new.file.write_all(text.as_bytes());
                written.with_context(|| format!("cannot write {}", printable_path(&new.path)))?;
                Ok(true)
            }
        }
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(new) => new.finish(),
        }
    }
}

impl NewFile {
    fn create(path: PathBuf, force: bool) -> anyhow::Result<Self> {
        let shown = printable_path(&path);
        let (exists, is_file) = match fs::symlink_metadata(&path) {
            Ok(found) => (true, found.is_file()),
            Err(_) => (false, false),
        };
        anyhow::ensure!(!exists || force, "{shown} exists already; --force replaces it");
        anyhow::ensure!(
            !exists || is_file,
            "{shown} is not a regular file; without --output, patterm writes to standard output"
        );
        let temporary = exists.then(|| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.with_file_name(format!(".{name}.patterm-{}", std::process::id()))
        });
        let at = temporary.as_ref().unwrap_or(&path);
        let file = OpenOptions::new().write(true).create_new(true).open(at);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => anyhow::anyhow!("{} exists already", printable_path(at)),
            _ => anyhow::Error::new(error).context(format!("cannot write {shown}")),
        })?;
        Ok(Self { path, temporary, file: BufWriter::new(file), is_finished: false })
    }

    fn finish(mut self) -> anyhow::Result<()> {
        let failed = || format!("cannot write {}", printable_path(&self.path));
        self.file.flush().with_context(failed)?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path).with_context(failed)?;
        }
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_file(self.temporary.as_ref().unwrap_or(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_complete_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.txt");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let open = |force| Target::open(Some(path.clone()), force);
        let mut target = open(false).unwrap();
        assert!(target.write("half").unwrap());
        drop(target);
        assert_eq!(names(), 0);
        for (force, text) in [(false, "first"), (true, "second")] {
            let mut target = open(force).unwrap();
            target.write(text).unwrap();
            target.finish().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let mut target = open(true).unwrap();
        target.write("half").unwrap();
        drop(target);
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("second", 1));
        let error = open(false).err().unwrap().to_string();
        assert!(error.ends_with("x.txt exists already; --force replaces it"), "{error}");
        let error = Target::open(Some(folder.path().into()), true).err().unwrap().to_string();
        assert!(error.contains("is not a regular file"), "{error}");
    }
}
