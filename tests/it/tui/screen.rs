//! A terminal to run patterm on: tmux, which can be typed into and read.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TrySendError, sync_channel};
use std::time::Duration;

use crate::support::Place;

/// Longest wait for something on the screen, shorter than the time limit of a test, so that the test fails with
/// what the screen shows.
const PATIENCE: Duration = Duration::from_secs(90);

/// A tmux with one window. A second client reports what happens on it.
pub(crate) struct Screen<'a> {
    place: &'a Place,
    socket: String,
    listener: Child,
    events: Receiver<()>,
}

impl<'a> Screen<'a> {
    /// A terminal of this size with a shell on it.
    pub(crate) fn new(place: &'a Place, columns: u16, rows: u16) -> Self {
        let free = (1..).map(|n: u32| place.path(&format!("tmux{n}"))).find(|path| !path.exists());
        let socket = free.unwrap().to_str().unwrap().to_owned();
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let new = ["-f", "/dev/null", "new-session", "-d", "-s", "w", "-x", &columns, "-y", &rows];
        let made = tmux(place, &socket, &[&new[..], &["env", "sh"]].concat()).status().unwrap();
        assert!(made.success());
        for option in ["set-clipboard on", "escape-time 0", "focus-events on"] {
            let words: Vec<_> = ["set", "-s"].into_iter().chain(option.split(' ')).collect();
            assert!(tmux(place, &socket, &words).status().unwrap().success(), "{option}");
        }
        let mut listener = tmux(place, &socket, &["-C", "attach", "-t", "w"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(listener.stdout.take().unwrap());
        // One event that waits says that the screen must be read again; more would say nothing else.
        let (reported, events) = sync_channel(1);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                line.clear();
                if let Err(TrySendError::Disconnected(())) = reported.try_send(()) {
                    return;
                }
            }
        });
        let mut screen = Self { place, socket, listener, events };
        screen.until("prompt$");
        screen
    }

    /// The same with patterm on it.
    pub(crate) fn with_patterm(place: &'a Place, columns: u16, rows: u16) -> Self {
        let mut screen = Self::new(place, columns, rows);
        screen.patterm("");
        screen.until("ctrl+b: keys");
        screen
    }

    /// Types the command that starts patterm.
    pub(crate) fn patterm(&mut self, verb: &str) {
        let binary = self.place.binary();
        self.line(&format!("{} {verb}", binary.display()));
    }

    fn tmux(&self, words: &[&str]) -> Command {
        tmux(self.place, &self.socket, words)
    }

    fn ask(&self, words: &[&str]) -> String {
        let output = self.tmux(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Presses keys, by tmux's names for them.
    pub(crate) fn press(&mut self, keys: &[&str]) {
        self.ask(&[&["send-keys", "-t", "w"], keys].concat());
    }

    /// Types a text.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.ask(&["send-keys", "-t", "w", "-l", text]);
    }

    /// Sends raw bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let hex: Vec<&str> = hex.iter().map(String::as_str).collect();
        self.ask(&[&["send-keys", "-t", "w", "-H"], hex.as_slice()].concat());
    }

    /// Types a line.
    pub(crate) fn line(&mut self, text: &str) {
        self.type_in(text);
        self.press(&["Enter"]);
    }

    /// The leader, and a key after it.
    pub(crate) fn lead(&mut self, key: &str) {
        self.press(&["C-b", key]);
    }

    /// The current screen.
    pub(crate) fn text(&self) -> String {
        self.ask(&["capture-pane", "-p", "-t", "w"])
    }

    /// The current screen, with styles.
    pub(crate) fn styled(&self) -> String {
        self.ask(&["capture-pane", "-p", "-e", "-t", "w"])
    }

    /// The terminal's title.
    pub(crate) fn title(&self) -> String {
        self.ask(&["display-message", "-p", "-t", "w", "#{pane_title}"]).trim_end().to_owned()
    }

    /// Whether the alternate screen is shown.
    pub(crate) fn is_alternate(&self) -> bool {
        self.ask(&["display-message", "-p", "-t", "w", "#{alternate_on}"]).trim() == "1"
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> String {
        self.until_it(|shown| shown.contains(text))
    }

    /// Waits until the screen matches; checks again at every event.
    #[track_caller]
    pub(crate) fn until_it(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        self.until_read(Self::text, wanted)
    }

    /// The same for the screen with its styles.
    #[track_caller]
    pub(crate) fn until_styled(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        self.until_read(Self::styled, wanted)
    }

    #[track_caller]
    fn until_read(&mut self, look: fn(&Self) -> String, wanted: impl Fn(&str) -> bool) -> String {
        loop {
            let shown = look(self);
            if wanted(&shown) {
                return shown;
            }
            match self.events.recv_timeout(PATIENCE) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the terminal is gone, it showed\n{shown}")
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("nothing else is shown for {PATIENCE:?}\n{shown}")
                }
            }
        }
    }

    /// Records from now on, byte for byte, what the program on it writes.
    pub(crate) fn record(&self, file: &std::path::Path) {
        self.ask(&["pipe-pane", "-t", "w", &format!("exec cat > {}", file.display())]);
    }

    /// The last copied text.
    pub(crate) fn clipboard(&self) -> String {
        self.ask(&["show-buffer"])
    }

    /// Resizes the terminal.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.ask(&["resize-window", "-t", "w", "-x", &columns, "-y", &rows]);
    }

    /// The process id of its foreground program.
    pub(crate) fn front_pid(&self, name: &str) -> u32 {
        self.front(name).unwrap()
    }

    /// The same, if there is one.
    pub(crate) fn front(&self, name: &str) -> Option<u32> {
        let shell = self.ask(&["display-message", "-p", "-t", "w", "#{pane_pid}"]);
        let is_it = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
            stat.contains(&format!("({name})")) && parent == Some(shell.trim())
        };
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(is_it)
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).output();
        // It would wait until somebody reads its events, and the server for it.
        let _ = self.listener.kill();
        let _ = self.listener.wait();
    }
}

fn tmux(place: &Place, socket: &str, words: &[&str]) -> Command {
    let mut command = place.command("tmux".as_ref());
    command.env("SHELL", "/bin/sh").env("LANG", "C.UTF-8").env("PS1", "prompt$ ");
    command.args(["-u", "-S", socket]).args(words);
    command
}
