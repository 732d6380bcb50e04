//! A user at a terminal: sends keys, and records all output as an asciicast.

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_bench::terminal::Terminal;
use patterm_screen::{Screen, Size};
use serde_json::json;

/// Longest wait for a text: agents' CLIs start slowly.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Between two keys.
const KEY: Duration = Duration::from_millis(55);

/// A frame is complete after this long without output.
const STILL: Duration = Duration::from_millis(300);

/// The longest pause in the recording.
const LONGEST: Duration = Duration::from_millis(1_500);

pub(crate) struct Recorder {
    terminal: Terminal,
    pub(crate) screen: Screen,
    cast: String,
    /// The time in the recording, and when the last event happened.
    shown: Duration,
    last: Instant,
    /// The beginning of an incomplete character.
    cut: Vec<u8>,
}

impl Recorder {
    pub(crate) fn start(setsid: Command, line: &str, size: Size) -> anyhow::Result<Self> {
        let terminal = Terminal::start(setsid, line, size)?;
        let head = json!({"version": 2, "width": size.columns, "height": size.rows,
            "title": "patterm", "env": {"TERM": "xterm-256color", "SHELL": "/bin/bash"}});
        Ok(Self {
            terminal,
            screen: Screen::new(size),
            cast: format!("{head}\n"),
            shown: Duration::ZERO,
            last: Instant::now(),
            cut: Vec::new(),
        })
    }

    /// The process on the terminal.
    pub(crate) fn pid(&self) -> u32 {
        self.terminal.pid()
    }

    /// Types a text.
    pub(crate) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        for letter in text.chars() {
            self.terminal.type_in(letter.encode_utf8(&mut [0; 4]).as_bytes())?;
            self.look_until(Instant::now() + KEY)?;
        }
        Ok(())
    }

    /// The leader, and a key after it.
    pub(crate) fn lead(&mut self, key: &str) -> anyhow::Result<()> {
        self.still()?;
        self.write("\x02")?;
        self.pause(500)?;
        // All bytes of a key come at once, as from a terminal.
        self.terminal.type_in(key.as_bytes())?;
        self.still()
    }

    /// Presses a key that is several bytes, such as an arrow.
    pub(crate) fn press(&mut self, key: &str) -> anyhow::Result<()> {
        self.terminal.type_in(key.as_bytes())?;
        self.still()
    }

    /// Waits until a text appears.
    pub(crate) fn until(&mut self, text: &str) -> anyhow::Result<()> {
        self.until_it(text, |shown| shown.contains(text))
    }

    pub(crate) fn until_it(
        &mut self,
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while !wanted(&self.text()) {
            let came = self.look(deadline).with_context(|| self.text())?;
            anyhow::ensure!(came, "not seen: {what}\n{}", self.text());
        }
        self.still()
    }

    /// Records for this many milliseconds.
    pub(crate) fn pause(&mut self, milliseconds: u64) -> anyhow::Result<()> {
        self.look_until(Instant::now() + Duration::from_millis(milliseconds))
    }

    /// The current screen.
    pub(crate) fn text(&self) -> String {
        let rows: Vec<String> =
            self.screen.rows().iter().map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// The recording.
    pub(crate) fn cast(self) -> String {
        self.cast
    }

    /// Waits until output pauses; gives up on output that never pauses.
    fn still(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + 4 * STILL;
        while Instant::now() < deadline && self.look(Instant::now() + STILL)? {}
        Ok(())
    }

    fn look_until(&mut self, deadline: Instant) -> anyhow::Result<()> {
        while Instant::now() < deadline {
            self.look(deadline)?;
        }
        Ok(())
    }

    /// Records the next output; false if there was none until the deadline.
    fn look(&mut self, deadline: Instant) -> anyhow::Result<bool> {
        let bytes =
            self.terminal.read(deadline).context("the recorded program has ended")?.to_vec();
        if bytes.is_empty() {
            return Ok(false);
        }
        self.screen.feed(&bytes);
        self.shown += self.last.elapsed().min(LONGEST);
        self.last = Instant::now();
        self.cut.extend(bytes);
        let whole = match std::str::from_utf8(&self.cut) {
            Ok(text) => text.len(),
            Err(e) => e.valid_up_to(),
        };
        let text: Vec<u8> = self.cut.drain(..whole).collect();
        if !text.is_empty() {
            let event = json!([
                (self.shown.as_secs_f64() * 1e3).round() / 1e3,
                "o",
                String::from_utf8_lossy(&text)
            ]);
            writeln!(self.cast, "{event}")?;
        }
        Ok(true)
    }
}
