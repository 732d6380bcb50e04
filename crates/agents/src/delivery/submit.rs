//! Putting one text in: paste, wait until the echo settles, look again, Enter, and see whether it
//! was taken.

use std::time::Duration;

use patterm_screen::{Key, paste};
use tokio::time::Instant;

use super::deliverer::Target;
use super::evidence::{difference, same_words, stands_before, told};
use super::receipt::{Receipt, ReceiptState};
use super::record::{Delivery, Ending, Pending, SUBMITTING};
use crate::activity::{ActivityState, ScreenSnapshot, awaits_instructions};
use crate::presets::Preset;
use patterm_panes::data_plane::Keyboard;

/// How often the screen is looked at while something is expected of it.
const LOOK_PAUSE: Duration = Duration::from_millis(25);

/// How long an echo may take to come and to settle.
const ECHO_PATIENCE: Duration = Duration::from_secs(5);

/// How long after Enter the text may stand in the prompt before Enter is pressed once more.
const SECOND_ENTER: Duration = Duration::from_millis(1_500);

/// How long it may take to be seen to be taken.
const VERIFY_PATIENCE: Duration = Duration::from_secs(5);

/// How long the keyboard may be somebody else's.
const KEYBOARD_PATIENCE: Duration = Duration::from_secs(15);

/// How long nothing must have been typed before Enter is pressed where another had the keyboard.
const KEY_PAUSE: Duration = Duration::from_secs(1);

/// How long after a text was taken out again it may yet be seen that it was taken.
const LATE_PATIENCE: Duration = Duration::from_millis(1_500);

/// How many letters are erased at once, how long that may take to show, and how long all of it may
/// take. What a person types waits meanwhile: with a CLI that shows nothing of what is expected of it, for
/// two echoes, Enter, this and [`LATE_PATIENCE`], 22 seconds; never while a dialog is open.
const ERASED_AT_ONCE: usize = 64;
const ERASE_PAUSE: Duration = Duration::from_secs(2);
const ERASE_PATIENCE: Duration = Duration::from_secs(5);

/// What the receipt of a text adds that was accepted during a turn.
const IN_A_TURN: &str = "; it was in a turn, so its CLI may keep the text until that is over";

/// How putting in ended.
pub(super) enum SubmitOutcome {
    /// It was taken, or it is not known whether.
    Over(Ending),
    /// Nothing of it is in its process: it is tried again.
    Again(String),
}

/// What became of a prompt while a person was asked something.
struct Afterwards {
    /// What it holds.
    stands: String,
    /// It held nothing meanwhile, and nothing was typed into it.
    untouched: bool,
}

impl SubmitOutcome {
    fn stalled(why: impl Into<String>, left: Option<String>) -> Self {
        let receipt = Receipt::new(ReceiptState::Stalled, why);
        Self::Over(Ending { left, ..receipt.into() })
    }
}

/// How a part of the way ended before its time.
enum Failure {
    /// Nothing more can be done.
    Stalled(String),
    /// A person is asked something; the text may stand in the prompt and waits.
    Blocked(String),
    /// It is certain that nothing of it came to the prompt.
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

/// One text on its way in.
struct Job<'a> {
    preset: &'a Preset,
    text: String,
    began: Instant,
    /// Kept from before the paste on, until a person is asked something.
    keyboard: Option<Keyboard>,
    /// What the prompt showed of it.
    held: Option<String>,
    /// Enter was pressed.
    entered: bool,
    /// It was at rest before, so that work shows that the text was taken.
    rested: bool,
}

/// A text that was entered.
#[derive(Clone, Copy)]
struct Entered<'a> {
    text: &'a str,
    /// What the prompt held.
    held: Option<&'a str>,
    /// When Enter was pressed.
    at: Instant,
    /// It was at rest before.
    rested: bool,
}

impl Entered<'_> {
    /// How it is seen that it was taken: by turns that hooks told since, by the prompt as it is, by work
    /// since.
    fn taken(&self, turns: &[String], stands: Option<&str>, works: Option<&str>) -> Option<String> {
        if let Some(evidence) = turns.iter().find_map(|turn| told(turn, self.text)) {
            return Some(evidence);
        }
        if self.held.is_some() && stands == Some("") {
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
        // A prompt that a dialog covers may still hold it. One that worked before works on, whatever
        // became of the text.
        let is_covered = self.held.is_some() && stands.is_none();
        let still_holds = self.held.is_some() && stands == self.held;
        let works = works.filter(|_| self.rested && !is_covered && !still_holds)?;
        Some(format!("it went to work ({works})"))
    }
}

/// The key that enters a text, and how a person calls it.
struct Submit {
    key: Key,
    name: String,
}

impl Job<'_> {
    /// Whether nothing but this text stands in the prompt.
    fn is_all_of(&self, stands: &str) -> bool {
        let is_alone = self.keyboard.is_some() && stands_before(&self.text, stands).is_none();
        is_alone || same_words(stands, &self.text)
    }

    /// How the delivery ended. A CLI that is in a turn accepts a text into its own queue.
    fn ending(&self, mut receipt: Receipt) -> Ending {
        let unread = receipt.state == ReceiptState::Delivered && !self.rested;
        if unread {
            receipt.evidence.push_str(IN_A_TURN);
        }
        Ending { left: None, unread, receipt }
    }
}

impl Target {
    /// Puts a text in and says what became of it.
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
        match self.put_into_agent(&mut job, delivery).await {
            Err(Failure::Stalled(why)) => self.clear_up(job, why).await,
            Err(Failure::Lost(why)) => SubmitOutcome::Again(why),
            done => SubmitOutcome::Over(job.ending(receipt(done))),
        }
    }

    /// What `send_input` submits to an agent: the deliberate hand, which passes the gate and may
    /// answer a dialog. Only whether it was taken is looked at.
    pub async fn submit_by_hand(&self, preset: &Preset, bytes: Vec<u8>) -> Receipt {
        receipt(self.hand_into_agent(preset, bytes).await)
    }

    async fn hand_into_agent(&self, preset: &Preset, bytes: Vec<u8>) -> Result<String, Failure> {
        let keyboard = self.keyboard().await?;
        let at_prompt = self.snapshot().composer.is_some();
        let rested = self.rests();
        self.write(&keyboard, bytes)?;
        let held = match at_prompt {
            true => self.echo(preset).await.unwrap_or_default(),
            // A dialog: Enter is pressed all the same, once its program has had a moment.
            false => {
                tokio::time::sleep(preset.input.settle_ms).await;
                None
            }
        };
        self.press_key(preset, &self.submit_key(preset)?, &keyboard)?;
        // Nothing more is typed, and what it shows next may be a dialog for a person.
        drop(keyboard);
        let at = Instant::now();
        let entered = Entered { text: "", held: held.as_deref(), at, rested };
        while at.elapsed() < VERIFY_PATIENCE {
            tokio::time::sleep(LOOK_PAUSE).await;
            if held.is_none() && self.run.is_written() {
                return Ok("it was typed and entered; no prompt was visible".into());
            }
            if let Some(evidence) = self.taken(entered) {
                return Ok(evidence);
            }
            self.alive()?;
        }
        Err(stalled("Enter was pressed, and nothing shows whether it was taken"))
    }

    async fn put_into_agent(&self, job: &mut Job<'_>, begun: &Delivery) -> Result<String, Failure> {
        let mut pasted = self.paste_in(job).await;
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
                        Some(_) if job.entered => {
                            "Enter was pressed as a person was asked something"
                        }
                        Some(_) => "it stands in its prompt, not entered",
                        None => "it was pasted, and its prompt did not show it yet",
                    };
                    let why = format!("{where_it_is}: {why}");
                    self.deliverer.deliveries.explain(begun.id, Pending::Person, &why);
                    let taken = self.after_question(job, begun).await?;
                    self.deliverer.deliveries.explain(begun.id, Pending::Typing, SUBMITTING);
                    match taken {
                        Some(evidence) => return Ok(evidence),
                        None => pasted = Ok(()),
                    }
                }
                done => return done,
            }
        }
    }

    /// Pastes a text, and notes what the prompt holds then. A CLI that draws its prompt anew may lose
    /// what it has just read. If it read all of it and its prompt is empty all the while, it is
    /// pasted once more, and counts only if it stands there once.
    async fn paste_in(&self, job: &mut Job<'_>) -> Result<(), Failure> {
        let bytes = || paste(&job.text, &self.run.screen().modes());
        let keyboard = job.keyboard.as_ref().ok_or_else(|| stalled("it has no keyboard"))?;
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
                "it was pasted again, since its prompt stayed empty, which then showed something \
                 else; Enter was not pressed",
            )),
        }
    }

    /// Presses Enter where the prompt holds exactly a text that an earlier server put there.
    pub(super) async fn enter_what_stands(
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

    /// Waits until what was pasted shows and its screen stands still; returns what the prompt holds.
    async fn echo(&self, preset: &Preset) -> Result<Option<String>, Failure> {
        let began = Instant::now();
        let mut last = (self.run.log.end(), None);
        let mut still = began;
        loop {
            tokio::time::sleep(LOOK_PAUSE).await;
            self.alive()?;
            let snapshot = self.snapshot();
            let shows = preset.composer.is_none()
                || snapshot.composer.as_ref().is_some_and(|held| !held.is_empty());
            if !shows && let Some(why) = self.blocked(&snapshot) {
                return Err(Failure::Blocked(why));
            }
            let now = (self.run.log.end(), snapshot.composer);
            // A prompt that holds the same counts as still though a spinner turns elsewhere.
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
            if began.elapsed() >= ECHO_PATIENCE {
                return match shows {
                    true => Ok(last.1),
                    false => Err(stalled(
                        "it was pasted, and its prompt did not show it; Enter was not pressed",
                    )),
                };
            }
        }
    }

    /// Presses Enter and sees whether the text is taken.
    async fn enter(&self, job: &mut Job<'_>) -> Result<String, Failure> {
        if job.keyboard.is_none() {
            job.keyboard = Some(self.keyboard_after_others(job.held.as_deref()).await?);
        }
        let held = job.held.clone();
        if let Some(before) = held.as_deref().and_then(|held| stands_before(&job.text, held)) {
            let why = format!("`{before}` stands before it in its prompt; Enter was not pressed");
            return Err(stalled(why));
        }
        // The same key both times: after the first it counts as at work.
        let submit = self.submit_key(job.preset)?;
        self.press(job, &submit)?;
        let began = Instant::now();
        let mut pressed_again = false;
        loop {
            tokio::time::sleep(LOOK_PAUSE).await;
            let held = held.as_deref();
            let entered = Entered { text: &job.text, held, at: began, rested: job.rested };
            if let Some(evidence) = self.taken(entered) {
                return Ok(evidence);
            }
            self.alive()?;
            // The text may stand in a prompt that a dialog covers; who answers needs the keyboard.
            let blocked = self.blocked(&self.snapshot());
            if let Some(why) = blocked.filter(|_| held.is_some()) {
                return Err(Failure::Blocked(why));
            }
            let still_holds = self.still_holds(held);
            if began.elapsed() >= SECOND_ENTER && !pressed_again && still_holds {
                pressed_again = true;
                self.press(job, &submit)?;
            }
            if began.elapsed() >= VERIFY_PATIENCE {
                let what = match (job.preset.composer.is_some(), still_holds) {
                    (true, true) => "pressed twice, and the text still stands in its prompt",
                    _ => "pressed, and nothing shows whether it was taken",
                };
                return Err(stalled(format!("{} was {what}", submit.name)));
            }
        }
    }

    fn press(&self, job: &mut Job<'_>, submit: &Submit) -> Result<(), Failure> {
        // The last look before a key that could approve something.
        if let Some(why) = self.blocked(&self.snapshot()) {
            return Err(Failure::Blocked(why));
        }
        let keyboard = job.keyboard.as_ref().ok_or_else(|| stalled("it has no keyboard"))?;
        job.entered = true;
        self.press_key(job.preset, submit, keyboard)
    }

    /// The key that enters a text now.
    fn submit_key(&self, preset: &Preset) -> Result<Submit, Failure> {
        let works =
            self.deliverer.activities.get(&self.run.id).activity.state == ActivityState::Working;
        let other = preset.input.submit_while_working.as_ref().filter(|_| works);
        let name = other.unwrap_or(&preset.input.submit);
        let key = name.parse().map_err(|e| stalled(format!("no key: {e}")))?;
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
        self.signals.submitted("a turn was just handed in", preset.input.hold_ms);
        self.write(keyboard, submit.key.encode(&modes))
    }

    /// Whether it is at rest, and no turn was just submitted.
    fn rests(&self) -> bool {
        let activity = self.deliverer.activities.get(&self.run.id).activity;
        let works = activity.state == ActivityState::Working && !awaits_instructions(&activity);
        self.signals.rests() && !works
    }

    /// How it is seen that a text was taken.
    fn taken(&self, entered: Entered<'_>) -> Option<String> {
        let turns = self.signals.taken_since(entered.at);
        let works = self.signals.worked().filter(|(at, _)| *at > entered.at).map(|(_, why)| why);
        entered.taken(&turns, self.snapshot().composer.as_deref(), works.as_deref())
    }

    fn still_holds(&self, held: Option<&str>) -> bool {
        held.is_some() && self.snapshot().composer.as_deref() == held
    }

    /// Waits until a person is asked nothing any more, and looks what became of the text: it was
    /// taken, and by what that is known; or it stands in the prompt, and Enter is missing.
    async fn after_question(
        &self,
        job: &mut Job<'_>,
        begun: &Delivery,
    ) -> Result<Option<String>, Failure> {
        let Afterwards { stands, untouched } = self.stands_after_question().await?;
        let turns = self.signals.taken_since(job.began);
        if let Some(evidence) = turns.iter().find_map(|turn| told(turn, &job.text)) {
            return Ok(Some(evidence));
        }
        if stands.is_empty()
            && let Some(evidence) = self.says_now(begun)
        {
            return Ok(Some(evidence));
        }
        let why = match &job.held {
            Some(held) if *held == stands => return Ok(None),
            None if same_words(&stands, &job.text) => {
                job.held = Some(stands);
                return Ok(None);
            }
            None if stands.is_empty() && untouched => {
                return Err(Failure::Lost(
                    "a person was asked something as it was pasted, and its prompt was empty \
                     afterwards; it is put in again"
                        .into(),
                ));
            }
            // A person may have pressed Enter on it.
            _ if stands.is_empty() => "its prompt was empty, so whether it was taken is not known",
            _ => "its prompt held something else, so Enter was not pressed",
        };
        Err(stalled(format!("a person was asked something after it was pasted; afterwards {why}")))
    }

    /// What the prompt holds once a person is asked nothing any more and types nothing.
    async fn stands_after_question(&self) -> Result<Afterwards, Failure> {
        let mut status = self.deliverer.activities.watch(&self.run.id);
        let mut printed = self.run.watch();
        let mut last = (None, Instant::now());
        let (mut has_held, mut visible) = (false, None);
        loop {
            let is_blocked = status.borrow_and_update().activity.state == ActivityState::Blocked;
            printed.borrow_and_update();
            self.alive()?;
            let snapshot = self.snapshot();
            has_held |= snapshot.composer.as_ref().is_some_and(|stands| !stands.is_empty());
            match snapshot.composer.is_some() && self.asks(&snapshot).is_none() {
                true => visible = visible.or(Some(Instant::now())),
                false => visible = None,
            }
            let is_asked = is_blocked || self.blocked(&snapshot).is_some();
            let stands = snapshot.composer.filter(|_| !is_asked);
            if stands != last.0 {
                last = (stands, Instant::now());
            }
            match &last {
                (Some(stands), since) => {
                    let types = self.run.typing().written.is_some_and(|w| w.elapsed() < KEY_PAUSE);
                    if since.elapsed() >= KEY_PAUSE && !types && self.run.is_read() {
                        let written = self.run.typing().written;
                        let typed = written.zip(visible).is_some_and(|(at, since)| at > since);
                        let untouched = !has_held && !typed;
                        return Ok(Afterwards { stands: stands.clone(), untouched });
                    }
                    tokio::time::sleep(LOOK_PAUSE).await;
                }
                // Looked at as soon as it changes: a person may enter at once what the prompt shows then.
                (None, _) => tokio::select! {
                    changed = status.changed() => drop(changed),
                    changed = printed.changed() => drop(changed),
                },
            }
        }
    }

    /// Takes the keyboard where another had it, once nothing is typed and the prompt still holds
    /// what it held.
    async fn keyboard_after_others(&self, held: Option<&str>) -> Result<Keyboard, Failure> {
        let began = Instant::now();
        loop {
            let keyboard = self.keyboard().await?;
            let types = self.run.typing().written.is_some_and(|at| at.elapsed() < KEY_PAUSE);
            if !types {
                return match held.is_none() || self.still_holds(held) {
                    true => Ok(keyboard),
                    false => Err(stalled(
                        "something was typed into its prompt after it was pasted; Enter was not \
                         pressed",
                    )),
                };
            }
            drop(keyboard);
            if began.elapsed() >= KEYBOARD_PATIENCE {
                return Err(stalled(
                    "a person typed into it after it was pasted; Enter was not pressed",
                ));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// Takes a text that could not be entered out of the prompt again, where nothing else stands
    /// there: others would wait behind it.
    async fn clear_up(&self, mut job: Job<'_>, why: String) -> SubmitOutcome {
        let snapshot = self.snapshot();
        let stands = match &snapshot.composer {
            Some(stands) if !stands.is_empty() && self.alive().is_ok() => stands.clone(),
            _ => return SubmitOutcome::stalled(why, None),
        };
        let keyboard = match &job.keyboard {
            Some(keyboard) if job.is_all_of(&stands) => keyboard,
            _ => return SubmitOutcome::stalled(why, Some(stands)),
        };
        if !self.take_out(keyboard).await {
            let left = self.snapshot().composer.filter(|left| !left.is_empty());
            return SubmitOutcome::stalled(why, left);
        }
        if !job.entered {
            return SubmitOutcome::Again(format!("{why}; it was taken out of the prompt again"));
        }
        // Its CLI may have been slow, and have taken it before it was erased.
        let emptied = Instant::now();
        while emptied.elapsed() < LATE_PATIENCE {
            tokio::time::sleep(LOOK_PAUSE).await;
            if self.blocked(&self.snapshot()).is_some() {
                job.keyboard = None;
            }
            let turns = self.signals.taken_since(job.began);
            let told = turns.iter().find_map(|turn| told(turn, &job.text));
            let worked = self.signals.worked().filter(|(at, _)| job.rested && *at > job.began);
            let works = worked.map(|(_, why)| format!("it went to work ({why})"));
            if let Some(evidence) = told.or(works) {
                let receipt = Receipt::new(ReceiptState::Delivered, evidence);
                return SubmitOutcome::Over(job.ending(receipt));
            }
        }
        SubmitOutcome::stalled(
            format!("{why}; it was taken out of the prompt again, send it anew"),
            None,
        )
    }

    /// Erases what stands in the prompt; `false` if that does not help. At an empty prompt this key
    /// does nothing, so that it is safe whatever the CLI does meanwhile.
    async fn take_out(&self, keyboard: &Keyboard) -> bool {
        let Ok(key) = "backspace".parse::<Key>() else { return false };
        let began = Instant::now();
        while began.elapsed() < ERASE_PATIENCE {
            let snapshot = self.snapshot();
            let Some(before) = snapshot.composer.clone() else { return false };
            if before.is_empty() {
                return true;
            }
            if self.alive().is_err() || self.blocked(&snapshot).is_some() {
                return false;
            }
            let keys = key.encode(&self.run.screen().modes()).repeat(ERASED_AT_ONCE);
            if self.write(keyboard, keys).is_err() {
                return false;
            }
            let wrote = Instant::now();
            while self.still_holds(Some(&before)) {
                if wrote.elapsed() >= ERASE_PAUSE {
                    return false;
                }
                tokio::time::sleep(LOOK_PAUSE).await;
            }
        }
        false
    }

    /// Types a text and Enter into something that is no agent.
    async fn type_into_program(&self, text: &str, keyboard: &Keyboard) -> Result<String, Failure> {
        let modes = self.run.screen().modes();
        self.write(keyboard, paste(text, &modes))?;
        let enter =
            "enter".parse::<Key>().map_or_else(|_| b"\r".to_vec(), |key| key.encode(&modes));
        self.write(keyboard, enter)?;
        let began = Instant::now();
        while !self.run.is_written() {
            self.alive()?;
            if began.elapsed() >= VERIFY_PATIENCE {
                return Err(stalled("it does not read what is typed into it"));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok("it was typed into its terminal".into())
    }

    async fn keyboard(&self) -> Result<Keyboard, Failure> {
        let began = Instant::now();
        loop {
            if let Some(keyboard) = self.deliverer.panes.data_plane.reserve(&self.run) {
                return Ok(keyboard);
            }
            if began.elapsed() >= KEYBOARD_PATIENCE {
                return Err(stalled("another writer kept the keyboard"));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    fn write(&self, keyboard: &Keyboard, bytes: Vec<u8>) -> Result<(), Failure> {
        keyboard.write(bytes).map_err(|_full| stalled("it does not read what is typed into it"))
    }

    fn alive(&self) -> Result<(), Failure> {
        match self.run.watch().borrow().is_over() {
            true => Err(stalled("the process ended after it was begun")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What shows that `hello` was taken, which the prompt held before Enter.
    fn taken(rested: bool, turns: &[&str], stands: Option<&str>, works: bool) -> Option<String> {
        let turns: Vec<_> = turns.iter().map(|&turn| turn.to_owned()).collect();
        let at = Instant::now();
        let entered = Entered { text: "hello", held: Some("hello"), at, rested };
        entered.taken(&turns, stands, works.then_some("title"))
    }

    #[test]
    fn work_shows_that_a_text_was_taken_only_if_the_agent_was_at_rest_before() {
        assert_eq!(taken(true, &[], Some("hel"), true).unwrap(), "it went to work (title)");
        assert_eq!(taken(false, &[], Some("hel"), true), None, "a torn frame");
        assert_eq!(taken(false, &[], Some("hello, changed"), true), None);
        for rested in [true, false] {
            assert_eq!(taken(rested, &[], Some("hello"), true), None, "it still stands there");
            assert_eq!(taken(rested, &[], None, true), None, "a dialog covers it");
            assert_eq!(taken(rested, &[], Some("hel"), false), None);
            let empty = taken(rested, &[], Some(""), false).unwrap();
            assert_eq!(empty, "its prompt was empty again after Enter");
            let told = taken(rested, &["hello"], Some("hello"), false).unwrap();
            assert_eq!(told, "a hook of its CLI reported the same text");
        }
    }

    #[test]
    fn a_hook_that_reports_a_different_text_is_named_with_the_difference() {
        let other = taken(true, &["help"], Some(""), false).unwrap();
        let expected = "its prompt was empty again after Enter, but a hook reported a different text \
            (from character 4: `p` instead of `lo`)";
        assert_eq!(other, expected);
    }
}
