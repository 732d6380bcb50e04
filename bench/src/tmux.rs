//! A tmux server with a client on a terminal, for comparison.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::session::Workspace;

/// A server that ends when this is dropped.
pub(crate) struct Tmux<'a> {
    workspace: &'a Workspace,
    socket: PathBuf,
}

impl<'a> Tmux<'a> {
    pub(crate) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, socket: workspace.folder().join("tmux") }
    }

    /// The command line of a client that starts the server with one program in it.
    pub(crate) fn client(&self, line: &str) -> String {
        format!("tmux -u -S {} -f /dev/null new-session '{line}'", self.socket.display())
    }

    pub(crate) fn run(&self, words: &[&str]) -> anyhow::Result<()> {
        let done = self.command(words).status()?;
        anyhow::ensure!(done.success(), "tmux {words:?}: {done}");
        Ok(())
    }

    /// The server's process.
    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        let output = self.command(&["display-message", "-p", "#{pid}"]).output()?;
        let pid = String::from_utf8_lossy(&output.stdout).trim().parse();
        pid.with_context(|| format!("tmux: {output:?}"))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut tmux = self.workspace.command("tmux".as_ref());
        tmux.arg("-S").arg(&self.socket).args(words).stderr(Stdio::null());
        tmux
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).status();
    }
}
