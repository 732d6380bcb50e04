//! The terminal is asked for its colours; `COLORTERM` only counts if it does not answer.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::Place;

/// The questions, as far as a terminal sees them.
const QUESTIONS: &str = "\x1bP$qm\x1b\\\x1b[m\x1bP+q524742\x1b\\\x1b[c";

/// A terminal whose answers the test writes.
struct Terminal {
    master: File,
    patterm: Child,
    /// What was written to it.
    seen: Vec<u8>,
}

impl Terminal {
    /// Runs patterm with these variables.
    fn new(place: &Place, variables: &[(&str, &str)]) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let side = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
        // `setsid --ctty` makes it the terminal of a session of its own.
        let mut command = place.command(Path::new("setsid"));
        command.args(["--ctty", "--wait"]).arg(place.binary()).env_remove("TMUX");
        command
            .env_remove("COLORTERM")
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied());
        let patterm = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        Self { master: File::from(master), patterm, seen: Vec::new() }
    }

    /// Reads until a text was written.
    #[track_caller]
    fn until(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.seen.windows(text.len()).any(|seen| seen == text.as_bytes()) {
            let read = self.master.read(&mut buffer).unwrap_or(0);
            assert!(read > 0, "no {text:?} in {:?}", String::from_utf8_lossy(&self.seen));
            self.seen.extend_from_slice(&buffer[..read]);
        }
    }

    fn write(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Answers, and leaves once a style was drawn.
    #[track_caller]
    fn answer_and_expect(mut self, answers: &str, style: &str) {
        self.until(QUESTIONS);
        self.seen.clear();
        self.write(answers);
        self.until(style);
        self.write("\x02d");
        self.until("detached; everything keeps running");
        assert!(self.patterm.wait().unwrap().success());
        let seen = String::from_utf8_lossy(&self.seen);
        assert!(!seen.contains("$r") && !seen.contains("+r"), "no answer is typed: {seen:?}");
    }
}

#[test]
fn the_terminals_answer_decides_about_its_colours() {
    let place = Place::new();
    place.run(&["run", "--", "sh", "-c", "printf '\\033[48;2;10;200;30mgreen\\033[m'; exec cat"]);
    place.run(&["wait", "p1", "green"]);
    // Over ssh, the variable is lost, but the terminal has the colours.
    let has_them = "\x1bP1$r0;48:2::1:2:3m\x1b\\\x1bP0+r524742\x1b\\\x1b[?65;1;9c";
    Terminal::new(&place, &[]).answer_and_expect(has_them, "48;2;10;200;30mgreen");
    // The variable claims more than the terminal has.
    let lacks_them = "\x1bP1$r0;48:5:16m\x1b\\\x1bP0+r524742\x1b\\\x1b[?64;1c";
    let claims = [("COLORTERM", "truecolor")];
    Terminal::new(&place, &claims).answer_and_expect(lacks_them, "48;5;40mgreen");
    // A terminal that answers neither question is as the environment describes it.
    Terminal::new(&place, &claims).answer_and_expect("\x1b[?6c", "48;2;10;200;30mgreen");
    let slow = "\x1b[?6c";
    Terminal::new(&place, &[]).answer_and_expect(slow, "48;5;40mgreen");
}

#[test]
fn an_answer_that_comes_in_pieces_is_not_typed_into_the_program() {
    let place = Place::new();
    place.run(&["run", "--", "cat", "-v"]);
    let mut terminal = Terminal::new(&place, &[]);
    terminal.until(QUESTIONS);
    terminal.write("\x1bP1$r0;48:2:");
    // A frame that was drawn later than an escape key would have been recognised.
    let number = place.run(&["run", "--name", "later", "--", "cat"]);
    terminal.until("later");
    terminal.write(":1:2:3m\x1b\\\x1b[?65c");
    terminal.write("typed\r");
    terminal.until("typed");
    terminal.write("\x02d");
    terminal.until("detached; everything keeps running");
    assert!(terminal.patterm.wait().unwrap().success());
    assert_eq!(number.trim(), "p2");
    for id in ["p1", "p2"] {
        let logs = place.run(&["logs", id]);
        assert!(!logs.contains("48") && !logs.contains('$'), "{logs}");
    }
}
