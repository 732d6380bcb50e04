//! A new user's machine: a small Debian with the package and a shell to type into.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::support::Place;

/// What the shell prints after a command, with its exit code. No program prints it.
const END: &str = "\u{1}end of the command\u{1}";

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// A login shell of a new user. Everything that runs there ends on drop.
pub(crate) struct Harness {
    shell: Child,
    /// Taken at the end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    _shared: tempfile::TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    /// Its output.
    pub(crate) text: String,
}

impl Harness {
    /// A machine with packages of these formats in the shell's folder, a project.
    #[expect(clippy::disallowed_methods, reason = "tests start what they test")]
    pub(crate) fn new(forms: &[&str]) -> Self {
        assert!(
            rustix::process::getuid().is_root(),
            "this test makes a Debian of its own: run the tests as root"
        );
        let shared = tempfile::tempdir().unwrap();
        package(forms, shared.path());
        let npm = repository().join("tests/release/npm");
        std::fs::copy(npm, shared.path().join("npm")).unwrap();
        // It belongs to the new user, too.
        std::fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let mut shell = Command::new(repository().join("tests/release/enter"))
            .arg(shared.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let output = BufReader::new(output);
        let input = Some(input);
        let mut harness = Self { shell, input, output, _shared: shared };
        harness.does(
            "mkdir project && cd project && cp /mnt/patterm* . && sudo cp /mnt/npm /usr/local/bin",
        );
        harness
    }

    /// The same with the package installed.
    pub(crate) fn installed() -> Self {
        let mut harness = Self::new(&["deb"]);
        harness.does("sudo apt-get install --quiet=2 ./patterm_*.deb");
        harness
    }

    /// Starts a user manager, as a login does.
    pub(crate) fn begin_manager(&mut self) {
        self.does("export XDG_RUNTIME_DIR=/run/user/$(id -u)");
        self.does("/lib/systemd/systemd --user >/dev/null 2>&1 &");
        self.does("until systemctl --user show-environment >/dev/null 2>&1; do :; done");
    }

    /// Types a command and waits until it has ended.
    pub(crate) fn says(&mut self, command: &str) -> Said {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{{ {command}\n}} </dev/null 2>&1; echo \"{END}$?\"").unwrap();
        let mut text = String::new();
        loop {
            let begin = text.len();
            let read = self.output.read_line(&mut text).unwrap();
            assert!(read > 0, "the shell ended at {command:?}: {text}");
            if let Some(at) = text[begin..].find(END) {
                let code = text[begin + at + END.len()..].trim().parse().unwrap();
                text.truncate(begin + at);
                return Said { code, text };
            }
        }
    }

    /// Types a command that must succeed; returns its output.
    #[track_caller]
    pub(crate) fn does(&mut self, command: &str) -> String {
        let printed = self.says(command);
        assert_eq!(printed.code, 0, "{command}: {}", printed.text);
        printed.text
    }

    /// Types a command on a terminal, and then an answer.
    pub(crate) fn answers(&mut self, command: &str, answer: &str) -> Said {
        let quoted = command.replace('\'', "'\\''");
        let typed = format!("script -qec '{quoted}' /dev/null <<<'{answer}'");
        self.says(&typed)
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        // The end of its input ends the shell and everything else.
        drop(self.input.take());
        let _ = self.shell.wait();
    }
}

/// Packs the binary under test as `scripts/package` packs others.
#[expect(clippy::disallowed_methods, reason = "tests start what they test")]
fn package(forms: &[&str], into: &Path) {
    let output = Command::new(repository().join("scripts/package"))
        .arg("--binary")
        .arg(Place::new().binary())
        .arg("--out")
        .arg(into)
        .args(forms)
        // It is unpacked once.
        .envs([("DPKG_DEB_COMPRESSOR_TYPE", "gzip"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
