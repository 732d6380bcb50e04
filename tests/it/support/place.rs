//! An isolated environment for each test: runtime folder, state folder, project.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use patterm_host::runtime::RuntimeDir;
use patterm_host::tools::Registry;
use patterm_host::{Project, Settings};
use patterm_store::limits::Limits;
use patterm_store::state::StateDir;
use rustix::process::Signal;

use super::running::{Running, running_in};
use super::server::{Serving, Spawned};
use super::tools;
use super::user::User;

/// Folders that no other test uses, removed on drop.
pub(crate) struct Place {
    top: tempfile::TempDir,
    user: Option<User>,
    /// Variables in addition to those that every place has.
    variables: BTreeMap<String, OsString>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let top = tempfile::Builder::new().prefix("patterm-it-").tempdir().unwrap();
        for folder in ["run", "state", "home", "project"] {
            std::fs::create_dir(top.path().join(folder)).unwrap();
        }
        Self { top, user: None, variables: BTreeMap::new() }
    }

    /// A place with its own user, who runs everything that is started there.
    pub(crate) fn of_another_user() -> Self {
        let mut place = Self::new();
        place.user = Some(User::reserve());
        // The tests' own build may be in a folder that only root can enter.
        std::fs::copy(patterm_binary(), place.path("patterm")).unwrap();
        place.give_to_user(place.top.path());
        place
    }

    /// The user of this place, if it is not the one who runs the tests.
    pub(crate) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Sets a variable for everything that is started here from now on.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.insert(name.into(), value.into());
    }

    /// Creates another folder in the place.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir(&path).unwrap();
        self.give_to_user(&path);
        path
    }

    /// Gives a file or folder, with its content, to the user of this place.
    pub(crate) fn give_to_user(&self, path: &Path) {
        let uid = self.user.as_ref().map(|user| user.uid);
        std::os::unix::fs::lchown(path, uid, uid).unwrap();
        if path.is_dir() {
            let within = std::fs::read_dir(path).unwrap();
            within.for_each(|entry| self.give_to_user(&entry.unwrap().path()));
        }
    }

    /// The path of a folder or file of the place.
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
        let mut command = self.command(&self.binary());
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
            .envs(&self.variables)
            .current_dir(self.path("project"));
        if let Some(user) = &self.user {
            command.uid(user.uid).gid(user.uid);
        }
        command
    }

    /// The binary under test, at a path where this place's user can run it.
    pub(crate) fn binary(&self) -> PathBuf {
        match self.user {
            Some(_) => self.path("patterm"),
            None => patterm_binary(),
        }
    }

    /// Runs the binary to its end; it must succeed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.patterm(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "patterm {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A server in this process, with its own tools and the test tools.
    pub(crate) fn serve_in_process(&self) -> Serving {
        self.serve_with(Limits::default())
    }

    pub(crate) fn serve_with(&self, limits: Limits) -> Serving {
        self.serve_as(limits, tools::registry())
    }

    /// A server in this process with these tools.
    pub(crate) fn serve_as(&self, limits: Limits, tools: Registry) -> Serving {
        Serving::start(Settings {
            project: self.project(),
            runtime: self.runtime(),
            state: self.state(),
            tools,
            limits,
            program: patterm_binary(),
            settings: Some(self.path("home/.config/patterm/config.toml")),
            http: None,
            ends_unused: false,
        })
    }

    /// The real server, as `patterm serve` starts it.
    pub(crate) fn serve(&self) -> Spawned {
        Spawned::start(self)
    }
}

/// Ends what a test left running: first as a person would, then everything that still has its
/// working directory here, such as a server that the registry does not know or that is being
/// started.
impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_server_logs();
        }
        let all =
            if self.user.is_some() { &["kill", "--now", "--all"][..] } else { &["kill", "--now"] };
        let _ = self.patterm(all).output();
        while let Some(left) = running_in(self.top.path()).into_iter().find_map(Running::find) {
            left.signal(Signal::KILL);
            left.wait();
        }
        if let Some(user) = &self.user {
            let _ = std::fs::remove_dir_all(user.folder_in_tmp());
        }
    }
}

impl Place {
    /// Prints the end of each server's log, so that a rare failure can be understood from the output of CI.
    #[expect(clippy::print_stdout, reason = "the output of a failed test")]
    fn print_server_logs(&self) {
        let projects = std::fs::read_dir(self.path("state/patterm"));
        for project in projects.into_iter().flatten().flatten() {
            let path = project.path().join("server.log");
            let Ok(log) = std::fs::read(&path) else { continue };
            let log = String::from_utf8_lossy(&log);
            let lines: Vec<_> = log.lines().collect();
            println!("the end of {}:", path.display());
            for line in &lines[lines.len().saturating_sub(60)..] {
                println!("  {line}");
            }
        }
    }
}

/// The binary that nextest's setup script built, or the one next to this test.
pub(crate) fn patterm_binary() -> PathBuf {
    if let Some(path) = std::env::var_os("PATTERM_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().unwrap();
    let beside = test.parent().and_then(Path::parent).unwrap().join("patterm");
    assert!(beside.exists(), "no binary to test: run `cargo build`, or use `cargo nextest run`");
    beside
}
