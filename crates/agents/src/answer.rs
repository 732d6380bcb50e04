//! Answers a dialog for a person who sees it somewhere else: types the keys that choose an option, as long as the
//! dialog on the screen is the one that the person saw.

use patterm_events::About;
use patterm_wire::events::Fact;
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

/// What became of an answer.
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
            return AnswerOutcome::Refused(format!("{id} asks nothing"));
        };
        // Until its screen is complete, it shows no dialog that could be compared.
        self.panes().data_plane.rebuilt(&run).await;
        let answer = Answer { run, preset, signals, version };
        let asked = answer.on_screen();
        match answer.choose(self, option).await {
            Ok(text) => {
                tracing::info!(process = %id, "a person answered a dialog");
                self.record_answer(&answer.run, asked, option);
                answer.outcome(&text).await
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
        let fact = Fact::DialogAnswered { question, option: label, key: None };
        self.panes().events().record(about, fact);
    }
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
    /// Types the keys; returns the text of the dialog that was answered. Input of others waits meanwhile.
    async fn choose(&self, agents: &Agents, option: &ChosenOption) -> Result<String, Refusal> {
        let keyboard = self.keyboard(agents).await?;
        let dialog = self.dialog()?;
        let option = place(&dialog, option)?;
        let Some(way) = dialog.ways[option] else {
            return refused(
                "patterm does not know the keys of this dialog; answer it in its own pane",
            );
        };
        match way {
            AnswerWay::Number => self.press(&keyboard, &(option + 1).to_string())?,
            AnswerWay::Label => self.press(&keyboard, &dialog.options[option])?,
            AnswerWay::UpDown => self.move_to(&keyboard, option, ["up", "down"]).await?,
            AnswerWay::LeftRight => self.move_to(&keyboard, option, ["left", "right"]).await?,
        }
        agents.panes().attended(&self.run.id);
        self.signals.dialog_answered();
        Ok(dialog.version)
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
                    "its cursor does not go where it should; answer it in its own pane",
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
            None => {
                refused("patterm does not see which option is chosen; answer it in its own pane")
            }
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

    /// Presses a key, right after the last look at the dialog.
    fn press(&self, keyboard: &Keyboard, key: &str) -> Result<(), Refusal> {
        let Ok(key) = key.parse::<Key>() else {
            return refused(format!("`{key}` is not a key; answer it in its own pane"));
        };
        let bytes = key.encode(&self.run.screen().modes());
        self.dialog()?;
        let mut typist = Typist::default();
        self.run.note_typed(typist.read(&bytes));
        self.run.note_typed(typist.settle());
        match keyboard.write(bytes) {
            Ok(()) => Ok(()),
            Err(_full) => refused("it does not read its input, so nothing was typed"),
        }
    }

    /// Whether the dialog with this text went away.
    async fn outcome(&self, answered: &str) -> AnswerOutcome {
        let mut progress = self.run.watch();
        let until = Instant::now() + CLOSE_TIMEOUT;
        let mut gone = None;
        loop {
            if progress.borrow_and_update().is_over() {
                return AnswerOutcome::Accepted("the process ended".into());
            }
            let now = match self.on_screen() {
                None => Some("the dialog closed"),
                Some(dialog) if dialog.version != answered => Some("another question follows"),
                Some(_) => None,
            };
            // A frame that is being drawn may show no dialog.
            match (gone, now) {
                (Some(before), Some(now)) if before == now => {
                    return AnswerOutcome::Accepted(now.into());
                }
                _ => gone = now,
            }
            // What the last look shows for the first time is looked at once more.
            let most = if gone.is_some() { until + FRAME } else { until };
            if Instant::now() >= most {
                let why = format!("typed, but the dialog is still open after {CLOSE_TIMEOUT:?}");
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
            "there is no such option; there are {}: {}",
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

    #[tokio::test(start_paused = true)]
    async fn a_dialog_that_closes_late_is_looked_at_once_more() {
        let recording = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/agents/recordings/claude/blocked-shell.bytes");
        let mut screen = Screen::new(Size::new(24, 80));
        screen.feed(&std::fs::read(recording).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let log = Log::open(folder.path(), 1 << 20).unwrap();
        let (id, number) = (ProcessId::new(1), RunNumber::FIRST);
        let run = ProcessRun::new(id, number, None, log.reader(), screen, Offset::START);
        let preset = Catalogue::read(None).presets.remove("claude").unwrap().preset.unwrap();
        let (run, preset, signals) = (Arc::new(run), Arc::new(preset), Arc::default());
        let answer = Answer { run, preset, signals, version: "" };
        let open = answer.on_screen().unwrap().version;
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
