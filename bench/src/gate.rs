//! A gate that programs wait at until all of them are there: two hundred that begin to flood one after
//! the other would be in each other's way.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::session::Place;

/// A pipe: who opens it to read waits until somebody has it open to write.
pub(crate) struct Gate {
    pipe: PathBuf,
    /// Held open, so that those who come late go through, too.
    open: Option<File>,
}

impl Gate {
    pub(crate) fn new(place: &Place) -> anyhow::Result<Self> {
        let pipe = place.folder().join("gate");
        let made = place.command(Path::new("mkfifo")).arg(&pipe).status()?;
        anyhow::ensure!(made.success(), "mkfifo: {made}");
        Ok(Self { pipe, open: None })
    }

    /// What a program's shell does to wait.
    pub(crate) fn wait(&self) -> String {
        format!(": < {}", self.pipe.display())
    }

    /// Lets all through. Opened both ways it waits for nobody itself.
    pub(crate) fn open(&mut self) -> anyhow::Result<()> {
        self.open = Some(OpenOptions::new().read(true).write(true).open(&self.pipe)?);
        Ok(())
    }
}
