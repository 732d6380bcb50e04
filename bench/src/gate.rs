//! A gate at which programs wait until all have started: if two hundred began to flood one after the other,
//! the first would delay the start of the others.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::session::Workspace;

/// A FIFO: opening it to read blocks until it is open for writing.
pub(crate) struct Gate {
    pipe: PathBuf,
    /// Kept open, so that late programs pass too.
    open: Option<File>,
}

impl Gate {
    pub(crate) fn new(workspace: &Workspace) -> anyhow::Result<Self> {
        let pipe = workspace.folder().join("gate");
        let made = workspace.command(Path::new("mkfifo")).arg(&pipe).status()?;
        anyhow::ensure!(made.success(), "mkfifo: {made}");
        Ok(Self { pipe, open: None })
    }

    /// The shell command that waits.
    pub(crate) fn wait(&self) -> String {
        format!(": < {}", self.pipe.display())
    }

    /// Lets all pass. Opening it read-write does not block.
    pub(crate) fn open(&mut self) -> anyhow::Result<()> {
        self.open = Some(OpenOptions::new().read(true).write(true).open(&self.pipe)?);
        Ok(())
    }
}
