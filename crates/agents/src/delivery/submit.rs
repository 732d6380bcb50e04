//! Types one text: pastes it, waits until the echo settles, checks the screen again, presses Enter,
//! and verifies that the CLI accepted it.

use std::time::Duration;

use patterm_screen::{Key, paste};
use tokio::time::Instant;

use super::deliverer::Target;
use super::evidence::{difference, draft_before, match_report, same_words};
use super::receipt::{Receipt, ReceiptState};
use super::record::{Delivery, Ending, Pending, SUBMITTING};
use crate::activity::{ActivityState, ScreenSnapshot, asks_now, awaits_instructions, works_now};
use crate::presets::Preset;
use patterm_panes::data_plane::Keyboard;

/// How often the screen is checked for an expected change.
const CHECK_INTERVAL: Duration = Duration::from_millis(25);

/// How long an echo may take to appear and to settle.
const ECHO_TIMEOUT: Duration = Duration::from_secs(5);

/// How long after Enter the text may stay in the prompt before Enter is pressed once more.
const SECOND_ENTER: Duration = Duration::from_millis(1_500);

/// How long it may take until there is evidence that the text was accepted.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long another writer may have the keyboard.
const KEYBOARD_TIMEOUT: Duration = Duration::from_secs(15);

/// How long nothing must have been typed before Enter is pressed after another writer had the
/// keyboard.
const KEY_PAUSE: Duration = Duration::from_secs(1);

/// How long after a key the program of a dialog may need until its screen shows the effect.
const KEY_EFFECT: Duration = Duration::from_millis(100);

/// How long after a text was erased it may still turn out that it was accepted.
const LATE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// How many letters are erased at once, how long that may take to show, and how long all of it may
/// take. A person's keys wait until it is done, but never while a dialog is open. In the worst case,
/// with a CLI that never reacts as expected, they wait for two echoes, Enter, this and
/// [`LATE_TIMEOUT`]: 22 seconds.
const ERASE_BATCH: usize = 64;
const ERASE_PAUSE: Duration = Duration::from_secs(2);
const ERASE_TIMEOUT: Duration = Duration::from_secs(5);

/// What the receipt of a text adds if the text was accepted during a turn.
const IN_A_TURN: &str =
    "; the agent was in a turn, so its CLI may hold the text until that turn ends";

/// How an attempt to type a text ended.
pub(super) enum SubmitOutcome {
    /// The text was accepted, or it is not known whether it was.
    Over(Ending),
    /// Nothing of the text is in its process, so it is tried again.
    Again(String),
}

/// The state of a prompt after a dialog.
struct Afterwards {
    /// Its content.
    in_prompt: String,
    /// It stayed empty while the dialog was open, and nothing was typed into it.
    untouched: bool,
}

impl SubmitOutcome {
    fn stalled(why: impl Into<String>, left: Option<String>) -> Self {
        let receipt = Receipt::new(ReceiptState::Stalled, why);
        Self::Over(Ending { left, ..receipt.into() })
    }
}

/// Why a step failed.
enum Failure {
    /// Nothing more can be done.
    Stalled(String),
    /// A dialog is open; the text may be waiting in the prompt.
    Blocked(String),
    /// It is certain that nothing of the text reached the prompt.
    Lost(String),
}

fn receipt(done: Result<String, Failure>) -> Receipt {
    match done {
        Ok(evidence) => Receipt::new(ReceiptState::Delivered, evidence),
        Err(Failure::Stalled(why) | Failure::Blocked(why) | Failure::Lost(why)) => {
            Receipt::new(ReceiptState::Stalled, why)
        }
    }
}

fn stalled(why: impl Into<String>) -> Failure {
    Failure::Stalled(why.into())
}

/// One text that is being typed.
struct Job<'a> {
    preset: &'a Preset,
    text: String,
    began: Instant,
    /// Reserved from before the paste until a dialog opens.
    keyboard: Option<Keyboard>,
    /// What the prompt showed of the text.
    held: Option<String>,
    /// Enter was pressed.
    entered: bool,
    /// The agent was idle before, so that work is evidence that the text was accepted.
    rested: bool,
}

/// A text that was submitted.
#[derive(Clone, Copy)]
struct Entered<'a> {
    text: &'a str,
    /// The prompt's content before Enter.
    held: Option<&'a str>,
    /// When Enter was pressed.
    at: Instant,
    /// The agent was idle before.
    rested: bool,
}

impl Entered<'_> {
    /// The evidence that it was accepted, from turns that hooks reported since, from the prompt's
    /// content, and from work since.
    fn acceptance(
        &self,
        turns: &[String],
        in_prompt: Option<&str>,
        works: Option<&str>,
    ) -> Option<String> {
        if let Some(evidence) = turns.iter().find_map(|turn| match_report(turn, self.text)) {
            return Some(evidence);
        }
        if self.held.is_some() && in_prompt == Some("") {
            let evidence = "its prompt was empty again after Enter";
            let other = turns.last().filter(|_| !self.text.is_empty());
            return Some(match other {
                Some(turn) => {
                    let what = difference(turn, self.text);
                    format!("{evidence}, but a hook reported a different text ({what})")
                }
                None => evidence.into(),
            });
        }
        // A prompt that a dialog covers may still contain the text. An agent that worked before
        // continues to work, whatever happened to the text.
        let is_covered = self.held.is_some() && in_prompt.is_none();
        let still_holds = self.held.is_some() && in_prompt == self.held;
        let works = works.filter(|_| self.rested && !is_covered && !still_holds)?;
        Some(format!("it started working ({works})"))
    }

    /// The evidence in a turn that the screen shows instead of a prompt.
    fn turn_without_prompt(
        &self,
        in_prompt: Option<&str>,
        shows_turn: bool,
        works: Option<&str>,
    ) -> Option<String> {
        let counts = self.rested && shows_turn && in_prompt.is_none();
        works.filter(|_| counts).map(|works| format!("it started working ({works})"))
    }
}

/// The key that submits a text, and its name for people.
struct Submit {
    key: Key,
    name: String,
}

impl Job<'_> {
    /// Whether the prompt contains nothing but this text.
    fn is_all_of(&self, in_prompt: &str) -> bool {
        let is_alone = self.keyboard.is_some() && draft_before(&self.text, in_prompt).is_none();
        is_alone || same_words(in_prompt, &self.text)
    }

    /// How the delivery ended. During a turn, a CLI accepts a text into its own queue.
    fn ending(&self, mut receipt: Receipt) -> Ending {
        let unread = receipt.state == ReceiptState::Delivered && !self.rested;
        if unread {
            receipt.evidence.push_str(IN_A_TURN);
        }
        Ending { left: None, unread, receipt }
    }
}

impl Target {
    /// Types a text and returns the result.
    pub(super) async fn submit(&self, delivery: &Delivery, keyboard: Keyboard) -> SubmitOutcome {
        let Some(preset) = &self.preset else {
            let receipt = receipt(self.type_into_program(&delivery.text, &keyboard).await);
            return SubmitOutcome::Over(receipt.into());
        };
        let mut job = Job {
            preset,
            text: preset.as_typed(&delivery.text),
            began: Instant::now(),
            keyboard: Some(keyboard),
            held: None,
            entered: false,
            rested: self.rests(),
        };
        match self.type_into_agent(&mut job, delivery).await {
            Err(Failure::Stalled(why)) => self.erase_unsubmitted(job, why).await,
            Err(Failure::Lost(why)) => SubmitOutcome::Again(why),
            done => SubmitOutcome::Over(job.ending(receipt(done))),
        }
    }

    /// Types and submits what `send_input` sends to an agent: a deliberate act, which bypasses the
    /// gate and may answer a dialog. Only the acceptance of the input is verified.
    pub async fn submit_by_hand(&self, preset: &Preset, bytes: Vec<u8>) -> Receipt {
        receipt(self.type_by_hand(preset, bytes).await)
    }

    async fn type_by_hand(&self, preset: &Preset, bytes: Vec<u8>) -> Result<String, Failure> {
        let keyboard = self.keyboard().await?;
        let at_prompt = self.snapshot().composer.is_some();
        let rested = self.rests();
        self.write(&keyboard, bytes)?;
        let held = match at_prompt {
            true => self.echo(preset).await.unwrap_or_default(),
            // A dialog: Enter is pressed anyway, after a short pause for its program.
            false => {
                tokio::time::sleep(preset.input.settle_ms).await;
                None
            }
        };
        self.press_key(preset, &self.submit_key(preset)?, &keyboard)?;
        // Nothing more is typed, and the next screen may be a dialog for a person.
        drop(keyboard);
        let at = Instant::now();
        let entered = Entered { text: "", held: held.as_deref(), at, rested };
        while at.elapsed() < VERIFY_TIMEOUT {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if held.is_none() && self.run.is_written() {
                return Ok("it was typed and submitted; no prompt was visible".into());
            }
            if let Some(evidence) = self.acceptance(entered) {
                return Ok(evidence);
            }
            self.alive()?;
        }
        Err(stalled("Enter was pressed, but there is no evidence that the text was accepted"))
    }

    async fn type_into_agent(
        &self,
        job: &mut Job<'_>,
        begun: &Delivery,
    ) -> Result<String, Failure> {
        let mut pasted = self.paste_text(job).await;
        loop {
            let entered = match pasted {
                Ok(()) => self.enter(job).await,
                Err(failure) => Err(failure),
            };
            match entered {
                Err(Failure::Blocked(why)) => {
                    // The person who answers needs the keyboard.
                    job.keyboard = None;
                    let where_it_is = match job.held {
                        Some(_) if job.entered => "Enter was pressed while a dialog opened",
                        Some(_) => "the text is in the prompt but was not submitted",
                        None => "the text was pasted, but the prompt does not show it yet",
                    };
                    let why = format!("{where_it_is}: {why}");
                    self.deliverer.deliveries.explain(begun.id, Pending::Person, &why);
                    let accepted = self.after_dialog(job, begun).await?;
                    self.deliverer.deliveries.explain(begun.id, Pending::Typing, SUBMITTING);
                    match accepted {
                        Some(evidence) => return Ok(evidence),
                        None => pasted = Ok(()),
                    }
                }
                done => return done,
            }
        }
    }

    /// Pastes a text and records the prompt's content. A CLI that redraws its prompt may lose what
    /// it has just read. If it read all of the text and its prompt is still empty, the text is
    /// pasted once more, and counts only if it appears once.
    async fn paste_text(&self, job: &mut Job<'_>) -> Result<(), Failure> {
        let bytes = || paste(&job.text, &self.run.screen().modes());
        let keyboard =
            job.keyboard.as_ref().ok_or_else(|| stalled("the keyboard is not reserved"))?;
        self.write(keyboard, bytes())?;
        let lost = match self.echo(job.preset).await {
            Err(Failure::Stalled(why)) => why,
            done => {
                job.held = done?;
                return Ok(());
            }
        };
        let snapshot = self.snapshot();
        let empty = snapshot.composer.as_deref() == Some("");
        if !empty || !self.run.is_read() || self.blocked(&snapshot).is_some() {
            return Err(stalled(lost));
        }
        self.write(keyboard, bytes())?;
        match self.echo(job.preset).await? {
            Some(held) if same_words(&held, &job.text) => {
                job.held = Some(held);
                Ok(())
            }
            _ => Err(stalled(
                "the text was pasted again because the prompt stayed empty; the prompt then showed \
                 something else, so Enter was not pressed",
            )),
        }
    }

    /// Presses Enter if the prompt contains exactly the text that an earlier server typed there.
    pub(super) async fn submit_what_is_left(
        &self,
        begun: &Delivery,
        snapshot: &ScreenSnapshot,
    ) -> Option<Ending> {
        let preset = self.preset.as_ref()?;
        let held = snapshot.composer.as_deref().filter(|held| same_words(held, &begun.text))?;
        if self.blocked(snapshot).is_some() {
            return None;
        }
        let mut job = Job {
            preset,
            text: begun.text.clone(),
            began: Instant::now(),
            keyboard: None,
            held: Some(held.to_owned()),
            entered: false,
            rested: self.rests(),
        };
        let receipt = receipt(self.enter(&mut job).await);
        Some(job.ending(receipt))
    }

    /// Waits until the pasted text is visible and the screen is stable; returns the prompt's
    /// content.
    async fn echo(&self, preset: &Preset) -> Result<Option<String>, Failure> {
        let began = Instant::now();
        let mut last = (self.run.log.end(), None);
        let mut still = began;
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            self.alive()?;
            let snapshot = self.snapshot();
            let shows = preset.composer.is_none()
                || snapshot.composer.as_ref().is_some_and(|held| !held.is_empty());
            if !shows && let Some(why) = self.blocked(&snapshot) {
                return Err(Failure::Blocked(why));
            }
            let now = (self.run.log.end(), snapshot.composer);
            // A prompt with the same content counts as stable even if a spinner turns elsewhere.
            let same = match preset.composer.is_some() {
                true => now.1 == last.1,
                false => now.0 == last.0,
            };
            if !same || !shows {
                still = Instant::now();
            }
            last = now;
            let settled =
                shows && self.run.is_written() && still.elapsed() >= preset.input.settle_ms;
            if settled {
                return Ok(last.1);
            }
            if began.elapsed() >= ECHO_TIMEOUT {
                return match shows {
                    true => Ok(last.1),
                    false => Err(stalled(
                        "the text was pasted, but the prompt did not show it; Enter was not pressed",
                    )),
                };
            }
        }
    }

    /// Presses Enter and verifies that the text is accepted.
    async fn enter(&self, job: &mut Job<'_>) -> Result<String, Failure> {
        if job.keyboard.is_none() {
            job.keyboard = Some(self.keyboard_after_others(job.held.as_deref()).await?);
        }
        let held = job.held.clone();
        if let Some(before) = held.as_deref().and_then(|held| draft_before(&job.text, held)) {
            let why =
                format!("its prompt contains `{before}` before the text; Enter was not pressed");
            return Err(stalled(why));
        }
        // The same key both times: after the first, the agent counts as working.
        let submit = self.submit_key(job.preset)?;
        self.press(job, &submit)?;
        let began = Instant::now();
        let mut pressed_again = false;
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let held = held.as_deref();
            let entered = Entered { text: &job.text, held, at: began, rested: job.rested };
            if let Some(evidence) = self.acceptance(entered) {
                return Ok(evidence);
            }
            self.alive()?;
            // The text may be in a prompt that a dialog covers; the person who answers needs the
            // keyboard.
            let blocked = self.blocked(&self.snapshot());
            if let Some(why) = blocked.filter(|_| held.is_some()) {
                return Err(Failure::Blocked(why));
            }
            let still_holds = self.still_holds(held);
            if began.elapsed() >= SECOND_ENTER && !pressed_again && still_holds {
                pressed_again = true;
                self.press(job, &submit)?;
            }
            if began.elapsed() >= VERIFY_TIMEOUT {
                let entered = Entered { text: &job.text, held, at: began, rested: job.rested };
                if let Some(evidence) = self.began_turn(entered) {
                    return Ok(evidence);
                }
                let what = match (job.preset.composer.is_some(), still_holds) {
                    (true, true) => "pressed twice, but the text is still in the prompt",
                    _ => "pressed, but there is no evidence that the text was accepted",
                };
                return Err(stalled(format!("{} was {what}", submit.name)));
            }
        }
    }

    fn press(&self, job: &mut Job<'_>, submit: &Submit) -> Result<(), Failure> {
        // The last check before a key that could approve something.
        if let Some(why) = self.blocked(&self.snapshot()) {
            return Err(Failure::Blocked(why));
        }
        let keyboard =
            job.keyboard.as_ref().ok_or_else(|| stalled("the keyboard is not reserved"))?;
        job.entered = true;
        self.press_key(job.preset, submit, keyboard)
    }

    /// The key that submits a text now.
    fn submit_key(&self, preset: &Preset) -> Result<Submit, Failure> {
        let works =
            self.deliverer.activities.get(&self.run.id).activity.state == ActivityState::Working;
        let other = preset.input.submit_while_working.as_ref().filter(|_| works);
        let name = other.unwrap_or(&preset.input.submit);
        let key = name
            .parse()
            .map_err(|e| stalled(format!("the preset's submit key is invalid: {e}")))?;
        let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
        Ok(Submit { key, name: format!("{}{rest}", first.to_uppercase()) })
    }

    fn press_key(
        &self,
        preset: &Preset,
        submit: &Submit,
        keyboard: &Keyboard,
    ) -> Result<(), Failure> {
        let modes = self.run.screen().modes();
        self.signals.submitted("a turn was just submitted", preset.input.hold_ms);
        self.write(keyboard, submit.key.encode(&modes))
    }

    /// Whether it is idle, and no turn was just submitted.
    fn rests(&self) -> bool {
        let activity = self.deliverer.activities.get(&self.run.id).activity;
        let works = activity.state == ActivityState::Working && !awaits_instructions(&activity);
        self.signals.rests() && !works
    }

    /// The evidence that a text was accepted, if there is any.
    fn acceptance(&self, entered: Entered<'_>) -> Option<String> {
        let turns = self.signals.turns_since(entered.at);
        let works = self.signals.worked().filter(|(at, _)| *at > entered.at).map(|(_, why)| why);
        // A CLI that is being stopped may empty its prompt and end without reading the text.
        let in_prompt = self.snapshot().composer.filter(|_| !self.run.is_stopping());
        entered.acceptance(&turns, in_prompt.as_deref(), works.as_deref())
    }

    /// The evidence in a turn that began after Enter and hides the prompt: a CLI may show none while it works. Only
    /// at the end of [`VERIFY_TIMEOUT`], because a frame that is being drawn looks the same, and never under a dialog.
    fn began_turn(&self, entered: Entered<'_>) -> Option<String> {
        let preset = self.preset.as_ref()?;
        let snapshot = self.snapshot();
        let is_asked = self.blocked(&snapshot).is_some() || asks_now(preset, &snapshot).is_some();
        let shows_turn = !is_asked && works_now(preset, &snapshot) && !self.run.is_stopping();
        let works = self.signals.worked().filter(|(at, _)| *at > entered.at).map(|(_, why)| why);
        entered.turn_without_prompt(snapshot.composer.as_deref(), shows_turn, works.as_deref())
    }

    fn still_holds(&self, held: Option<&str>) -> bool {
        held.is_some() && self.snapshot().composer.as_deref() == held
    }

    /// Waits until no dialog is open, and then checks the text: it was accepted, and this is the
    /// evidence; or it is in the prompt, and only Enter is missing.
    async fn after_dialog(
        &self,
        job: &mut Job<'_>,
        begun: &Delivery,
    ) -> Result<Option<String>, Failure> {
        let Afterwards { in_prompt, untouched } = self.prompt_after_dialog().await?;
        let turns = self.signals.turns_since(job.began);
        if let Some(evidence) = turns.iter().find_map(|turn| match_report(turn, &job.text)) {
            return Ok(Some(evidence));
        }
        if in_prompt.is_empty()
            && let Some(evidence) = self.shown_now(begun)
        {
            return Ok(Some(evidence));
        }
        let why = match &job.held {
            Some(held) if *held == in_prompt => return Ok(None),
            None if same_words(&in_prompt, &job.text) => {
                job.held = Some(in_prompt);
                return Ok(None);
            }
            None if in_prompt.is_empty() && untouched => {
                return Err(Failure::Lost(
                    "a dialog opened while the text was being pasted, and the prompt was empty \
                     afterwards; the text is typed again"
                        .into(),
                ));
            }
            // A person may have pressed Enter on it.
            _ if in_prompt.is_empty() => {
                "the prompt was empty, so it is not known whether the text was accepted"
            }
            _ => "the prompt contained something else, so Enter was not pressed",
        };
        Err(stalled(format!("a dialog opened after the text was pasted; afterwards {why}")))
    }

    /// The prompt's content once no dialog is open and nobody is typing.
    async fn prompt_after_dialog(&self) -> Result<Afterwards, Failure> {
        let mut status = self.deliverer.activities.watch(&self.run.id);
        let mut printed = self.run.watch();
        let mut last = (None, Instant::now());
        let (mut has_held, mut visible) = (false, None);
        let mut keys_in_dialog = self.run.typing().keys;
        loop {
            let typing = self.run.typing();
            let is_blocked = status.borrow_and_update().activity.state == ActivityState::Blocked;
            printed.borrow_and_update();
            self.alive()?;
            let snapshot = self.snapshot();
            has_held |= snapshot.composer.as_ref().is_some_and(|in_prompt| !in_prompt.is_empty());
            match snapshot.composer.is_some() && self.asks(&snapshot).is_none() {
                true => visible = visible.or(Some(Instant::now())),
                false => visible = None,
            }
            let is_asked = is_blocked || self.blocked(&snapshot).is_some();
            let has_effect = typing.written.is_none_or(|at| at.elapsed() >= KEY_EFFECT);
            if is_asked && has_effect {
                keys_in_dialog = typing.keys;
            }
            let in_prompt = snapshot.composer.filter(|_| !is_asked);
            if in_prompt != last.0 {
                last = (in_prompt, Instant::now());
            }
            match &last {
                (Some(in_prompt), since) => {
                    let types = typing.written.is_some_and(|at| at.elapsed() < KEY_PAUSE);
                    if since.elapsed() >= KEY_PAUSE && !types && self.run.is_read() {
                        let after = typing.written.zip(visible);
                        let typed = after.is_some_and(|(written, visible)| written > visible);
                        // One key closed the dialog. The prompt may have shown the text too briefly to be
                        // seen here, and a second key may have submitted it.
                        let typed = typed || typing.keys > keys_in_dialog + 1;
                        let untouched = !has_held && !typed;
                        return Ok(Afterwards { in_prompt: in_prompt.clone(), untouched });
                    }
                    tokio::time::sleep(CHECK_INTERVAL).await;
                }
                // Checked as soon as it changes: a person may immediately submit what the prompt
                // shows then.
                (None, _) => tokio::select! {
                    changed = status.changed() => drop(changed),
                    changed = printed.changed() => drop(changed),
                    () = tokio::time::sleep(KEY_EFFECT), if !has_effect => {}
                },
            }
        }
    }

    /// Takes the keyboard after another writer had it, once nothing is typed and the prompt's
    /// content is unchanged.
    async fn keyboard_after_others(&self, held: Option<&str>) -> Result<Keyboard, Failure> {
        let began = Instant::now();
        loop {
            let keyboard = self.keyboard().await?;
            let types = self.run.typing().written.is_some_and(|at| at.elapsed() < KEY_PAUSE);
            if !types {
                return match held.is_none() || self.still_holds(held) {
                    true => Ok(keyboard),
                    false => Err(stalled(
                        "something else was typed into the prompt after the text was pasted; Enter was \
                         not pressed",
                    )),
                };
            }
            drop(keyboard);
            if began.elapsed() >= KEYBOARD_TIMEOUT {
                return Err(stalled(
                    "a person typed into it after the text was pasted; Enter was not pressed",
                ));
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Erases a text that could not be submitted, if the prompt contains nothing else: other texts
    /// would wait behind it.
    async fn erase_unsubmitted(&self, mut job: Job<'_>, why: String) -> SubmitOutcome {
        let snapshot = self.snapshot();
        let in_prompt = match &snapshot.composer {
            Some(in_prompt) if !in_prompt.is_empty() && self.alive().is_ok() => in_prompt.clone(),
            _ => return SubmitOutcome::stalled(why, None),
        };
        let keyboard = match &job.keyboard {
            Some(keyboard) if job.is_all_of(&in_prompt) => keyboard,
            _ => return SubmitOutcome::stalled(why, Some(in_prompt)),
        };
        if !self.erase_prompt(keyboard).await {
            let left = self.snapshot().composer.filter(|left| !left.is_empty());
            return SubmitOutcome::stalled(why, left);
        }
        if !job.entered {
            return SubmitOutcome::Again(format!("{why}; it was erased from the prompt"));
        }
        // A slow CLI may have accepted the text before it was erased.
        let emptied = Instant::now();
        while emptied.elapsed() < LATE_TIMEOUT {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if self.blocked(&self.snapshot()).is_some() {
                job.keyboard = None;
            }
            let turns = self.signals.turns_since(job.began);
            let reported = turns.iter().find_map(|turn| match_report(turn, &job.text));
            let worked = self.signals.worked().filter(|(at, _)| job.rested && *at > job.began);
            let works = worked.map(|(_, why)| format!("it started working ({why})"));
            if let Some(evidence) = reported.or(works) {
                let receipt = Receipt::new(ReceiptState::Delivered, evidence);
                return SubmitOutcome::Over(job.ending(receipt));
            }
        }
        SubmitOutcome::stalled(format!("{why}; it was erased from the prompt; send it again"), None)
    }

    /// Erases the prompt's content; `false` if that fails. In an empty prompt this key does
    /// nothing, so it is safe whatever the CLI does in the meantime.
    async fn erase_prompt(&self, keyboard: &Keyboard) -> bool {
        let Ok(key) = "backspace".parse::<Key>() else { return false };
        let began = Instant::now();
        while began.elapsed() < ERASE_TIMEOUT {
            let snapshot = self.snapshot();
            let Some(before) = snapshot.composer.clone() else { return false };
            if before.is_empty() {
                return true;
            }
            if self.alive().is_err() || self.blocked(&snapshot).is_some() {
                return false;
            }
            let keys = key.encode(&self.run.screen().modes()).repeat(ERASE_BATCH);
            if self.write(keyboard, keys).is_err() {
                return false;
            }
            let wrote = Instant::now();
            while self.still_holds(Some(&before)) {
                if wrote.elapsed() >= ERASE_PAUSE {
                    return false;
                }
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        }
        false
    }

    /// Types a text and Enter into a process that is not an agent.
    async fn type_into_program(&self, text: &str, keyboard: &Keyboard) -> Result<String, Failure> {
        let modes = self.run.screen().modes();
        self.write(keyboard, paste(text, &modes))?;
        let enter =
            "enter".parse::<Key>().map_or_else(|_| b"\r".to_vec(), |key| key.encode(&modes));
        self.write(keyboard, enter)?;
        let began = Instant::now();
        while !self.run.is_written() {
            self.alive()?;
            if began.elapsed() >= VERIFY_TIMEOUT {
                return Err(stalled("it does not read its input"));
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        Ok("it was typed into its terminal".into())
    }

    async fn keyboard(&self) -> Result<Keyboard, Failure> {
        let began = Instant::now();
        loop {
            if let Some(keyboard) = self.deliverer.panes.data_plane.reserve(&self.run) {
                return Ok(keyboard);
            }
            if began.elapsed() >= KEYBOARD_TIMEOUT {
                return Err(stalled("another writer held the keyboard for too long"));
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    fn write(&self, keyboard: &Keyboard, bytes: Vec<u8>) -> Result<(), Failure> {
        keyboard.write(bytes).map_err(|_full| stalled("it does not read its input"))
    }

    fn alive(&self) -> Result<(), Failure> {
        match self.run.watch().borrow().is_over() {
            true => Err(stalled("the process ended while the text was being typed")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The evidence that `hello` was accepted, which the prompt contained before Enter.
    fn acceptance(
        rested: bool,
        turns: &[&str],
        in_prompt: Option<&str>,
        works: bool,
    ) -> Option<String> {
        let turns: Vec<_> = turns.iter().map(|&turn| turn.to_owned()).collect();
        let at = Instant::now();
        let entered = Entered { text: "hello", held: Some("hello"), at, rested };
        entered.acceptance(&turns, in_prompt, works.then_some("title"))
    }

    #[test]
    fn work_is_evidence_that_a_text_was_accepted_only_if_the_agent_was_idle_before() {
        assert_eq!(acceptance(true, &[], Some("hel"), true).unwrap(), "it started working (title)");
        assert_eq!(acceptance(false, &[], Some("hel"), true), None, "a torn frame");
        assert_eq!(acceptance(false, &[], Some("hello, changed"), true), None);
        for rested in [true, false] {
            assert_eq!(acceptance(rested, &[], Some("hello"), true), None, "it is still there");
            assert_eq!(acceptance(rested, &[], None, true), None, "a dialog covers it");
            assert_eq!(acceptance(rested, &[], Some("hel"), false), None);
            let empty = acceptance(rested, &[], Some(""), false).unwrap();
            assert_eq!(empty, "its prompt was empty again after Enter");
            let reported = acceptance(rested, &["hello"], Some("hello"), false).unwrap();
            assert_eq!(reported, "a hook of its CLI reported the same text");
        }
    }

    #[test]
    fn a_turn_that_hides_the_prompt_is_evidence_only_if_it_began_after_enter() {
        let check = |rested, in_prompt, shows_turn, works| {
            let entered =
                Entered { text: "hello", held: Some("hello"), at: Instant::now(), rested };
            entered.turn_without_prompt(in_prompt, shows_turn, works)
        };
        let works = Some("turn: esc to stop");
        let evidence = check(true, None, true, works).unwrap();
        assert_eq!(evidence, "it started working (turn: esc to stop)");
        assert_eq!(check(false, None, true, works), None, "it worked before");
        assert_eq!(check(true, Some("hello"), true, works), None, "the prompt still has it");
        assert_eq!(check(true, None, false, works), None, "a dialog, or no turn");
        assert_eq!(check(true, None, true, None), None, "it did not begin after Enter");
    }

    #[test]
    fn a_hook_that_reports_a_different_text_is_mentioned_with_the_difference() {
        let other = acceptance(true, &["help"], Some(""), false).unwrap();
        let expected = "its prompt was empty again after Enter, but a hook reported a different text \
            (from character 4: `p` instead of `lo`)";
        assert_eq!(other, expected);
    }
}
