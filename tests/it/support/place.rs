//! A place of its own for each test: runtime folder, state folder, project.

use std::path::{Path, PathBuf};
use std::process::Command;

use patterm_host::limits::Limits;
use patterm_host::runtime::RuntimeDir;
use patterm_host::state::StateDir;
use patterm_host::{Project, Settings};

use super::server::{Serving, Spawned};
use super::tools;

/// Folders that nobody else uses, gone with this value.
pub(crate) struct Place {
    top: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let top = tempfile::Builder::new().prefix("patterm-it-").tempdir().unwrap();
        for folder in ["run", "state", "home", "project"] {
            std::fs::create_dir(top.path().join(folder)).unwrap();
        }
        Self { top }
    }

    /// A folder or file of the place.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    pub(crate) fn project(&self) -> Project {
        Project::of(&self.path("project")).unwrap()
    }

    pub(crate) fn runtime(&self) -> RuntimeDir {
        RuntimeDir::for_session(Some(&self.path("run")))
    }

    pub(crate) fn state(&self) -> StateDir {
        StateDir::within(&self.path("state"), self.project().key())
    }

    /// The binary under test, run in the project with only this place's environment.
    pub(crate) fn patterm(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&patterm_binary());
        command.args(arguments);
        command
    }

    /// Another program in the same environment.
    #[expect(clippy::disallowed_methods, reason = "tests start what they test")]
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_STATE_HOME", self.path("state"))
            .current_dir(self.path("project"));
        command
    }

    /// Runs the binary to its end; it must succeed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.patterm(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "patterm {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A server in this process, with the tools to test with beside its own.
    pub(crate) fn serve_in_process(&self) -> Serving {
        self.serve_with(Limits::default())
    }

    pub(crate) fn serve_with(&self, limits: Limits) -> Serving {
        Serving::start(Settings {
            project: self.project(),
            runtime: self.runtime(),
            state: self.state(),
            tools: tools::registry(),
            limits,
        })
    }

    /// The real server, as `patterm serve` starts it.
    pub(crate) fn serve(&self) -> Spawned {
        Spawned::start(self)
    }
}

/// Ends what a test left running.
impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.patterm(&["kill"]).output();
    }
}

/// The binary that nextest's set-up script built, or the one beside this test.
pub(crate) fn patterm_binary() -> PathBuf {
    if let Some(path) = std::env::var_os("PATTERM_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().unwrap();
    let beside = test.parent().and_then(Path::parent).unwrap().join("patterm");
    assert!(beside.exists(), "no binary to test: run `cargo build`, or use `cargo nextest run`");
    beside
}
