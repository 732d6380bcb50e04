//! Answers a dialog for a person who sees it somewhere else: types the keys that choose an option, as long as the
//! dialog on the screen is the one that the person saw.

use patterm_events::About;
use patterm_wire::events::{AnswerEvidence, Fact};
use std::sync::Arc;
use std::time::Duration;

use patterm_panes::data_plane::{Keyboard, ProcessRun, Typist};
use patterm_panes::process::ProcessId;
use patterm_screen::Key;
use tokio::time::Instant;

use crate::activity::{AgentSignals, Dialog, ScreenSnapshot, asks_now, dialog};
use crate::activity_state::AnswerWay;
use crate::agents::Agents;
use crate::presets::Preset;

/// How long another writer may keep the keyboard: a delivery that is about to notice the dialog releases it sooner.
const KEYBOARD_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the program may take to read what was typed before, and to move its cursor.
const KEY_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the dialog may stay open after the last key.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the dialog may show the chosen option after the program has read Enter before Enter is pressed once more.
const ENTER_AGAIN: Duration = Duration::from_millis(700);

/// How long a program may take to draw one frame.
const FRAME: Duration = Duration::from_millis(50);

/// How often that is checked where nothing signals it.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The option that a person chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenOption {
    /// By its place; the first is 1.
    Number(usize),
    /// By its text, as the dialog was reported.
    Label(String),
}

/// The outcome of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The dialog took it; the text is the evidence.
    Accepted(String),
    /// It was typed, but the dialog is still open.
    Unconfirmed(String),
    /// No option was chosen, for this reason.
    Refused(String),
}

/// Why nothing was answered.
struct Refusal(String);

fn refused<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(why.into()))
}

impl Agents {
    /// Chooses an option of the dialog with this version.
    pub async fn answer_dialog(
        &self,
        id: &ProcessId,
        version: &str,
        option: &ChosenOption,
    ) -> AnswerOutcome {
        let signals = self.activities.signals(id);
        let (Some(run), Some(preset)) = (self.panes().run_of(id), signals.preset()) else {
            return AnswerOutcome::Refused(format!("{id} is not asking anything"));
        };
        // Until its screen is complete, it shows no dialog that could be compared.
        self.panes().data_plane.rebuilt(&run).await;
        let answer = Answer { run, preset, signals, version };
        let asked = answer.on_screen();
        match answer.choose(self, option).await {
            Ok(typed) => {
                tracing::info!(process = %id, "a person answered a dialog");
                self.record_answer(&answer.run, asked, option);
                answer.outcome(&typed).await
            }
            Err(Refusal(why)) => AnswerOutcome::Refused(why),
        }
    }

    fn record_answer(&self, run: &ProcessRun, asked: Option<Dialog>, option: &ChosenOption) {
        let label = asked.as_ref().and_then(|dialog| {
            let at = place(dialog, option).ok()?;
            dialog.options.get(at).cloned()
        });
        let question = asked.map(|dialog| dialog.question).unwrap_or_default();
        let offset = run.watch().borrow().parsed.get();
        let about = About::process(&run.id).run(run.number.get()).at(offset);
        let evidence = AnswerEvidence::Chosen;
        let fact = Fact::DialogAnswered { question, option: label, key: None, evidence };
        self.panes().events().record(about, fact);
    }
}

/// An answer that was typed.
#[derive(Debug)]
struct Typed {
    /// The text of the dialog.
    version: String,
    /// The row of the cursor as long as the CLI only shows what was typed there, without blanks.
    row: Option<String>,
}

/// One answer on its way.
struct Answer<'a> {
    run: Arc<ProcessRun>,
    preset: Arc<Preset>,
    signals: Arc<AgentSignals>,
    /// The dialog that the person saw.
    version: &'a str,
}

impl Answer<'_> {
    /// Types the keys; returns what was answered. Input of others waits meanwhile.
    async fn choose(&self, agents: &Agents, option: &ChosenOption) -> Result<Typed, Refusal> {
        let keyboard = self.keyboard(agents).await?;
        let dialog = self.dialog()?;
        let option = place(&dialog, option)?;
        let Some(way) = dialog.ways[option] else {
            return refused(
                "patterm does not know the keys of this dialog; answer it in its own pane",
            );
        };
        let mut row = None;
        match way {
            AnswerWay::Number | AnswerWay::Label => {
                let text = match way {
                    AnswerWay::Number => (option + 1).to_string(),
                    _ => dialog.options[option].clone(),
                };
                row = Some(format!("{}{text}", self.cursor_row()));
                self.type_answer(&keyboard, &dialog.rule, &text)?;
            }
            AnswerWay::Enter => return refused("Enter alone chooses no option"),
            AnswerWay::UpDown => self.move_to(&keyboard, option, ["up", "down"]).await?,
            AnswerWay::LeftRight => self.move_to(&keyboard, option, ["left", "right"]).await?,
        }
        agents.panes().attended(&self.run.id);
        self.signals.dialog_answered();
        Ok(Typed { version: dialog.version, row })
    }

    /// Types a number or a label. A CLI that reads a line shows it behind its question, where the dialog is not
    /// recognized any more: so Enter is written together with it.
    fn type_answer(&self, keyboard: &Keyboard, rule: &str, text: &str) -> Result<(), Refusal> {
        let is_line =
            self.preset.rules.get(rule).is_some_and(|rule| rule.answer.contains(&AnswerWay::Enter));
        let modes = self.run.screen().modes();
        let Ok(enter) = "enter".parse::<Key>() else { return refused("`enter` is not a key") };
        let mut bytes = text.as_bytes().to_vec();
        if is_line {
            bytes.extend(enter.encode(&modes));
        }
        self.write(keyboard, bytes)
    }

    /// What the row of the cursor shows, without blanks.
    fn cursor_row(&self) -> String {
        let screen = self.run.screen();
        without_blanks(&screen.row(screen.cursor().row))
    }

    /// The keyboard, once nobody else types and everything that was typed has been read: it may answer the dialog.
    async fn keyboard(&self, agents: &Agents) -> Result<Keyboard, Refusal> {
        let began = Instant::now();
        let keyboard = loop {
            if let Some(keyboard) = agents.panes().data_plane.reserve(&self.run) {
                break keyboard;
            }
            if began.elapsed() >= KEYBOARD_TIMEOUT {
                return refused("something else is typing into it; try again");
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        };
        let began = Instant::now();
        while !self.run.is_read() {
            if began.elapsed() >= KEY_TIMEOUT {
                return refused("it does not read its input, so nothing was typed");
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        Ok(keyboard)
    }

    /// The dialog on the screen at this moment.
    fn on_screen(&self) -> Option<Dialog> {
        let screen = self.run.screen();
        let snapshot = ScreenSnapshot::of(&screen, Some(&self.preset));
        let mut found = asks_now(&self.preset, &snapshot)?.dialog?;
        let options = self.preset.rules.get(&found.rule).and_then(|rule| rule.options.as_ref());
        if found.ways.contains(&Some(AnswerWay::LeftRight)) {
            found.cursor = options.and_then(|options| dialog::highlighted(&screen, options));
        }
        Some(found)
    }

    /// The same, if it is the one that the person saw.
    fn dialog(&self) -> Result<Dialog, Refusal> {
        if self.run.watch().borrow().is_over() {
            return refused("it has ended, so there is nothing to answer");
        }
        match self.on_screen() {
            Some(dialog) if self.signals.is_dialog(self.version, &dialog) => Ok(dialog),
            Some(dialog) if is_same_text(self.version, &dialog) => refused(
                "the question on the screen has the same text, but it was answered or asked again since it was shown; \
                 look at it again before you answer",
            ),
            Some(_) => refused("it asks something else now, so it was not answered"),
            None => refused("its question is gone, so nothing was answered"),
        }
    }

    /// Moves the cursor to an option, one key at a time, and presses Enter only there.
    async fn move_to(
        &self,
        keyboard: &Keyboard,
        option: usize,
        [back, forth]: [&str; 2],
    ) -> Result<(), Refusal> {
        let mut cursor = self.cursor()?;
        let mut keys_left = self.dialog()?.options.len();
        while cursor != option {
            if keys_left == 0 {
                return refused(
                    "its cursor does not move to that option; answer it in its own pane",
                );
            }
            keys_left -= 1;
            self.press(keyboard, if cursor > option { back } else { forth })?;
            cursor = self.moved(cursor).await?;
        }
        self.press(keyboard, "enter")?;
        // A CLI ignores an Enter that comes right after the dialog opened, and draws nothing. The same dialog with its
        // cursor at the same place after the key was read is evidence of that; each key is preceded by a look at the
        // dialog.
        let again = Instant::now() + ENTER_AGAIN;
        while self.cursor().is_ok_and(|cursor| cursor == option) {
            if Instant::now() >= again {
                return if self.run.is_read() { self.press(keyboard, "enter") } else { Ok(()) };
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        Ok(())
    }

    fn cursor(&self) -> Result<usize, Refusal> {
        match self.dialog()?.cursor {
            Some(cursor) => Ok(cursor),
            None => refused(
                "patterm cannot tell which option is highlighted; answer it in its own pane",
            ),
        }
    }

    /// The place of the cursor once it has moved.
    async fn moved(&self, before: usize) -> Result<usize, Refusal> {
        let began = Instant::now();
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let cursor = self.cursor();
            if began.elapsed() >= KEY_TIMEOUT {
                return match cursor? {
                    cursor if cursor == before => {
                        refused("its cursor does not move; answer it in its own pane")
                    }
                    cursor => Ok(cursor),
                };
            }
            // A frame that is being drawn may show no cursor, or none of the dialog.
            if let Ok(cursor) = cursor
                && cursor != before
            {
                return Ok(cursor);
            }
        }
    }

    /// Presses a key.
    fn press(&self, keyboard: &Keyboard, key: &str) -> Result<(), Refusal> {
        let Ok(key) = key.parse::<Key>() else {
            return refused(format!("`{key}` is not a key; answer it in its own pane"));
        };
        // The look at the dialog in `write` locks the screen again.
        let bytes = key.encode(&self.run.screen().modes());
        self.write(keyboard, bytes)
    }

    /// Writes keys, right after the last look at the dialog.
    fn write(&self, keyboard: &Keyboard, bytes: Vec<u8>) -> Result<(), Refusal> {
        self.dialog()?;
        self.run.forget_typist();
        let mut typist = Typist::default();
        self.run.note_typed(typist.read(&bytes));
        self.run.note_typed(typist.settle());
        match keyboard.write(bytes) {
            Ok(()) => Ok(()),
            Err(_full) => refused("it does not read its input, so nothing was typed"),
        }
    }

    /// Whether the dialog that was answered went away.
    async fn outcome(&self, answered: &Typed) -> AnswerOutcome {
        let mut progress = self.run.watch();
        let until = Instant::now() + CLOSE_TIMEOUT;
        let mut gone = None;
        loop {
            if progress.borrow_and_update().is_over() {
                return AnswerOutcome::Accepted("the process ended".into());
            }
            let now = match self.on_screen() {
                None if answered.row.as_ref().is_some_and(|row| *row == self.cursor_row()) => None,
                None => Some("the dialog closed"),
                Some(dialog) if dialog.version != answered.version => {
                    Some("another question follows")
                }
                Some(_) => None,
            };
            // A frame that is being drawn may show no dialog.
            match (gone, now) {
                (Some(before), Some(now)) if before == now => {
                    return AnswerOutcome::Accepted(now.into());
                }
                _ => gone = now,
            }
            // If the last look shows something new, look once more.
            let most = if gone.is_some() { until + FRAME } else { until };
            if Instant::now() >= most {
                let why = match self.on_screen() {
                    Some(_) => format!("typed, but the dialog is still open after {CLOSE_TIMEOUT:?}"),
                    None => "typed, but the answer is still behind the question; if the CLI waits for Enter, its \
                             preset needs `enter` in `answer`"
                        .into(),
                };
                return AnswerOutcome::Unconfirmed(why);
            }
            let again = if gone.is_some() { Instant::now() + FRAME } else { until };
            tokio::select! {
                _ = progress.changed(), if gone.is_none() => {}
                () = tokio::time::sleep_until(again) => {}
            }
        }
    }
}

/// Whether a dialog has the text of the one with this version.
fn is_same_text(version: &str, dialog: &Dialog) -> bool {
    version.split_once('-').is_some_and(|(_, text)| text == dialog.version)
}

fn without_blanks(row: &str) -> String {
    row.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The place of an option, from 0.
fn place(dialog: &Dialog, option: &ChosenOption) -> Result<usize, Refusal> {
    let found = match option {
        ChosenOption::Number(number) => {
            number.checked_sub(1).filter(|at| *at < dialog.options.len())
        }
        ChosenOption::Label(label) => dialog.options.iter().position(|option| option == label),
    };
    match found {
        Some(found) => Ok(found),
        None => refused(format!(
            "there is no such option; the dialog has {}: {}",
            dialog.options.len(),
            dialog.options.join(" | ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;
    use patterm_panes::Offset;
    use patterm_panes::process::RunNumber;
    use patterm_screen::{Screen, Size};

    use super::*;
    use crate::presets::Catalogue;

    /// A run of an agent whose screen shows this, and its folder.
    fn shows(bytes: &[u8]) -> (tempfile::TempDir, Arc<ProcessRun>) {
        let mut screen = Screen::new(Size::new(24, 80));
        screen.feed(bytes);
        let folder = tempfile::tempdir().unwrap();
        let log = Log::open(folder.path(), 1 << 20).unwrap();
        let (id, number) = (ProcessId::new(1), RunNumber::FIRST);
        let run = ProcessRun::new(id, number, None, log.reader(), screen, Offset::START);
        (folder, Arc::new(run))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_waits_behind_its_question_is_not_accepted() {
        let (_folder, run) = shows(b"Run `make`? [y/n] ");
        let text = include_str!("../../../docs/examples/preset.toml");
        let preset = Arc::new(toml::from_str(text).unwrap());
        let answer = Answer { run, preset, signals: Arc::default(), version: "" };
        let version = answer.on_screen().unwrap().version;
        let typed = Typed { version, row: Some(format!("{}y", answer.cursor_row())) };
        answer.run.screen().feed(b"y");
        assert!(answer.on_screen().is_none());
        let outcome = answer.outcome(&typed).await;
        assert!(matches!(&outcome, AnswerOutcome::Unconfirmed(why) if why.contains("`enter`")));
        answer.run.screen().feed(b"\r\n");
        let closed = AnswerOutcome::Accepted("the dialog closed".into());
        assert_eq!(answer.outcome(&typed).await, closed);
    }

    #[test]
    fn a_question_that_was_answered_is_not_called_another_one() {
        let (_folder, run) = shows(b"Run `make`? [y/n]");
        let text = include_str!("../../../docs/examples/preset.toml");
        let preset: Arc<Preset> = Arc::new(toml::from_str(text).unwrap());
        let refusal = |version: &str| {
            let (run, preset) = (run.clone(), preset.clone());
            let answer = Answer { run, preset, signals: Arc::default(), version };
            answer.dialog().err().unwrap().0
        };
        let shown = Answer {
            run: run.clone(),
            preset: preset.clone(),
            signals: Arc::default(),
            version: "",
        };
        let version = shown.on_screen().unwrap().version;
        assert!(refusal(&format!("1-{version}")).contains("the same text"));
        assert!(refusal("1-other").contains("asks something else"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_dialog_that_closes_late_is_looked_at_once_more() {
        let recording = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/agents/recordings/claude/blocked-shell.bytes");
        let (_folder, run) = shows(&std::fs::read(recording).unwrap());
        let preset = Catalogue::read(None).presets.remove("claude").unwrap().preset.unwrap();
        let (run, preset, signals) = (run, Arc::new(preset), Arc::default());
        let answer = Answer { run, preset, signals, version: "" };
        let open = Typed { version: answer.on_screen().unwrap().version, row: None };
        let outcome = answer.outcome(&open).await;
        assert!(matches!(&outcome, AnswerOutcome::Unconfirmed(_)), "{outcome:?}");
        let close = async {
            tokio::time::sleep(CLOSE_TIMEOUT / 2).await;
            answer.run.screen().feed(b"\x1b[2J");
            std::future::pending().await
        };
        let outcome = tokio::select! {
            outcome = answer.outcome(&open) => outcome,
            () = close => unreachable!(),
        };
        assert_eq!(outcome, AnswerOutcome::Accepted("the dialog closed".into()));
    }
}
