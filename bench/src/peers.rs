//! Multiplexers to compare with: each is started with one command, and knows the process whose CPU time
//! counts.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::Context;

use crate::session::{Tools, Workspace};

/// A multiplexer that runs the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Multiplexer {
    Patterm,
    Tmux,
    Screen,
    Dtach,
    /// Has no server: the client runs the command.
    Mprocs,
}

/// A command running in a multiplexer.
pub(crate) struct Running {
    /// The process whose CPU time counts beside the client's.
    pub(crate) server: Option<u32>,
    /// What to end afterwards.
    child: Option<Child>,
    tmux: Option<PathBuf>,
    pane: Option<(Tools, String)>,
    mprocs: Option<String>,
}

impl Multiplexer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Patterm => "patterm",
            Self::Tmux => "tmux",
            Self::Screen => "screen",
            Self::Dtach => "dtach",
            Self::Mprocs => "mprocs 0.9.6",
        }
    }

    pub(crate) fn is_installed(self) -> bool {
        match self {
            Self::Patterm => true,
            Self::Mprocs => !is_alone() && mprocs().is_some(),
            Self::Tmux | Self::Screen | Self::Dtach => is_installed(self.name()),
        }
    }

    /// Starts a command line in a detached terminal, or prepares the client that runs it.
    pub(crate) fn run(self, workspace: &Workspace, line: &str) -> anyhow::Result<Running> {
        let mut running =
            Running { server: None, child: None, tmux: None, pane: None, mprocs: None };
        let at = |name: &str| workspace.folder().join(name);
        let mut command = match self {
            Self::Patterm => {
                let mut tools = workspace.connect()?;
                let id = tools.spawn(&["sh", "-c", line])?;
                running.server = Some(workspace.server);
                running.pane = Some((tools, id));
                return Ok(running);
            }
            Self::Tmux => {
                let socket = at("tmux");
                let mut tmux = workspace.command(Path::new("tmux"));
                tmux.arg("-S").arg(&socket).args(["-f", "/dev/null", "new-session", "-d"]);
                tmux.args(["-x", "80", "-y", "24", "-P", "-F", "#{pid}", line]);
                let output = tmux.output()?;
                let pid = String::from_utf8_lossy(&output.stdout).trim().parse();
                running.server = Some(pid.with_context(|| format!("tmux: {output:?}"))?);
                running.tmux = Some(socket);
                return Ok(running);
            }
            Self::Screen => {
                let mut screen = workspace.command(Path::new("screen"));
                screen.args(["-c", "/dev/null", "-D", "-m", "sh", "-c", line]);
                screen.env("SCREENDIR", screen_folder(workspace)?);
                screen
            }
            Self::Dtach => {
                // A killed dtach leaves its socket behind, which keeps the next from starting.
                let _ = std::fs::remove_file(at("dtach"));
                let mut dtach = workspace.command(Path::new("dtach"));
                dtach.arg("-N").arg(at("dtach")).args(["sh", "-c", line]);
                dtach
            }
            Self::Mprocs => {
                let (program, script) = (mprocs().context("not installed")?, at("mprocs.sh"));
                std::fs::write(&script, line)?;
                running.mprocs = Some(format!("{} 'sh {}'", program.display(), script.display()));
                return Ok(running);
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        running.server = Some(child.id());
        running.child = Some(child);
        Ok(running)
    }
}

impl Running {
    /// The connection and the process id, for patterm.
    pub(crate) fn pane(&mut self) -> Option<&mut (Tools, String)> {
        self.pane.as_mut()
    }

    /// The command line of a client that shows it; `None` if there is none to compare.
    pub(crate) fn client(&self, workspace: &Workspace) -> Option<String> {
        match (&self.pane, &self.tmux) {
            (Some((_, id)), _) => {
                let patterm = workspace.patterm(&[]);
                Some(format!("{} attach {id}", patterm.get_program().to_string_lossy()))
            }
            (None, Some(socket)) => Some(format!("tmux -u -S {} attach", socket.display())),
            (None, None) => self.mprocs.clone(),
        }
    }

    /// Ends it.
    pub(crate) fn end(mut self, workspace: &Workspace) -> anyhow::Result<()> {
        if let Some(socket) = &self.tmux {
            let mut tmux = workspace.command(Path::new("tmux"));
            tmux.arg("-S").arg(socket).arg("kill-server").stderr(Stdio::null()).status()?;
        }
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            child.wait()?;
        }
        if let Some((tools, id)) = &mut self.pane {
            tools.call("close_process", &serde_json::json!({"process_id": id}))?;
        }
        Ok(())
    }
}

/// screen requires a folder that only its owner can access.
fn screen_folder(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let folder = workspace.folder().join("screen");
    std::fs::create_dir_all(&folder)?;
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700))?;
    Ok(folder)
}

/// The program itself, not the package's start script.
fn mprocs() -> Option<PathBuf> {
    let folder = format!("mprocs-0.9.6-linux-{}-musl", std::env::consts::ARCH);
    let program = installed()?.join("node_modules/mprocs").join(folder).join("mprocs");
    program.exists().then_some(program)
}

/// The folder in which `scripts/bench` installed the peers that Debian does not have.
pub(crate) fn installed() -> Option<PathBuf> {
    std::env::var_os("PATTERM_BENCH_PEERS").map(PathBuf::from)
}

/// Whether only patterm is measured: `scripts/compare` compares two versions of it, and needs no peers.
pub(crate) fn is_alone() -> bool {
    std::env::var_os("PATTERM_BENCH_ALONE").is_some_and(|value| value == "1")
}

/// Rounds of a measurement: one if only patterm is measured, since `scripts/compare` repeats it itself.
pub(crate) fn rounds(usual: usize) -> usize {
    if is_alone() { 1 } else { usual }
}

/// Whether a program is in PATH, and peers are measured.
pub(crate) fn is_installed(program: &str) -> bool {
    if is_alone() {
        return false;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}
