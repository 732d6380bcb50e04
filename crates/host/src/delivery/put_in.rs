//! Putting one text in: paste, wait until the echo settles, look again, Enter, and see whether it
//! was taken.

use std::time::Duration;

use patterm_screen::{Key, paste};
use tokio::time::Instant;

use super::deliverer::Target;
use super::receipt::{Receipt, ReceiptState};
use super::record::Delivery;
use crate::activity::{Glimpse, State};
use crate::plane::Keyboard;
use crate::presets::Preset;

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

/// How a part of the way ended before its time.
enum Failure {
    /// Nothing more can be done.
    Stalled(String),
    /// A person is asked something; the text stands in the prompt and waits.
    Blocked(String),
}

fn receipt(done: Result<String, Failure>) -> Receipt {
    match done {
        Ok(evidence) => Receipt::new(ReceiptState::Delivered, evidence),
        Err(Failure::Stalled(why) | Failure::Blocked(why)) => {
            Receipt::new(ReceiptState::Stalled, why)
        }
    }
}

fn stalled(why: impl Into<String>) -> Failure {
    Failure::Stalled(why.into())
}

impl Target {
    /// Puts a text in and says what became of it.
    pub(super) async fn put_in(&self, delivery: &Delivery) -> Receipt {
        let done = match &self.preset {
            Some(preset) => self.put_into_agent(preset, delivery).await,
            None => self.type_into_program(&delivery.text).await,
        };
        receipt(done)
    }

    /// What `send_input` submits to an agent: the deliberate hand, which passes the gate and may
    /// answer a dialog. Only whether it was taken is looked at.
    pub(crate) async fn submit_by_hand(&self, preset: &Preset, bytes: Vec<u8>) -> Receipt {
        receipt(self.hand_into_agent(preset, bytes).await)
    }

    async fn hand_into_agent(&self, preset: &Preset, bytes: Vec<u8>) -> Result<String, Failure> {
        let keyboard = self.keyboard().await?;
        let at_prompt = self.glimpse().composer.is_some();
        self.write(&keyboard, bytes)?;
        let held = match at_prompt {
            true => self.echo(preset).await.unwrap_or_default(),
            // A dialog: Enter is pressed all the same, once its program has had a moment.
            false => {
                tokio::time::sleep(preset.input.settle_ms).await;
                None
            }
        };
        self.press_key(preset, &keyboard)?;
        let began = Instant::now();
        while began.elapsed() < VERIFY_PATIENCE {
            tokio::time::sleep(LOOK_PAUSE).await;
            if held.is_none() && self.live.is_written() {
                return Ok("it was typed and entered; no prompt was to be seen".into());
            }
            if let Some(evidence) = self.taken("", held.as_deref(), began) {
                return Ok(evidence);
            }
            self.alive()?;
        }
        Err(stalled("Enter was pressed, and nothing shows whether it was taken"))
    }

    async fn put_into_agent(
        &self,
        preset: &Preset,
        delivery: &Delivery,
    ) -> Result<String, Failure> {
        let keyboard = self.keyboard().await?;
        let text = &preset.as_words(&delivery.text);
        let mut held = self.paste_in(preset, &keyboard, text).await?;
        let mut keyboard = Some(keyboard);
        loop {
            match self.enter(preset, text, held.as_deref(), keyboard).await {
                Err(Failure::Blocked(why)) => {
                    // Whoever answers needs the keyboard.
                    let why = format!("it stands in its prompt, not entered: {why}");
                    self.host.deliveries.explain(delivery.id, &why);
                    held = self.until_asked_no_more(held).await?;
                    keyboard = None;
                }
                done => return done,
            }
        }
    }

    /// Pastes a text; returns what the prompt holds then. A CLI that draws its prompt anew may lose
    /// what it has just read. If it read all of it and its prompt is empty all the while, it is
    /// pasted once more, and counts only if it stands there once.
    async fn paste_in(
        &self,
        preset: &Preset,
        keyboard: &Keyboard,
        text: &str,
    ) -> Result<Option<String>, Failure> {
        let bytes = || paste(text, &self.live.screen().modes());
        self.write(keyboard, bytes())?;
        let lost = match self.echo(preset).await {
            Err(Failure::Stalled(why)) => why,
            done => return done,
        };
        let glimpse = self.glimpse();
        let empty = glimpse.composer.as_deref() == Some("");
        if !empty || !self.live.is_read() || self.blocked(&glimpse).is_some() {
            return Err(stalled(lost));
        }
        self.write(keyboard, bytes())?;
        match self.echo(preset).await? {
            Some(held) if same_words(&held, text) => Ok(Some(held)),
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
        glimpse: &Glimpse,
    ) -> Option<Receipt> {
        let preset = self.preset.as_ref()?;
        let held = glimpse.composer.as_deref().filter(|held| same_words(held, &begun.text))?;
        if self.blocked(glimpse).is_some() {
            return None;
        }
        Some(receipt(self.enter(preset, &begun.text, Some(held), None).await))
    }

    /// Waits until what was pasted shows and its screen stands still; returns what the prompt holds.
    async fn echo(&self, preset: &Preset) -> Result<Option<String>, Failure> {
        let began = Instant::now();
        let mut last = (self.live.log.end(), None);
        let mut still = began;
        loop {
            tokio::time::sleep(LOOK_PAUSE).await;
            self.alive()?;
            let glimpse = self.glimpse();
            let now = (self.live.log.end(), glimpse.composer);
            let shows = preset.composer.is_none() || now.1.as_ref().is_some_and(|c| !c.is_empty());
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
                shows && self.live.is_written() && still.elapsed() >= preset.input.settle_ms;
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
    async fn enter(
        &self,
        preset: &Preset,
        text: &str,
        held: Option<&str>,
        keyboard: Option<Keyboard>,
    ) -> Result<String, Failure> {
        let keyboard = match keyboard {
            Some(keyboard) => keyboard,
            None => self.keyboard().await?,
        };
        self.press(preset, &keyboard)?;
        let began = Instant::now();
        let mut pressed_again = false;
        loop {
            tokio::time::sleep(LOOK_PAUSE).await;
            if let Some(evidence) = self.taken(text, held, began) {
                return Ok(evidence);
            }
            self.alive()?;
            if began.elapsed() >= SECOND_ENTER && !pressed_again && self.still_holds(held) {
                pressed_again = true;
                self.press(preset, &keyboard)?;
            }
            if began.elapsed() >= VERIFY_PATIENCE {
                let why = match (preset.composer.is_some(), self.still_holds(held)) {
                    (true, true) => {
                        "Enter was pressed twice, and the text still stands in its prompt"
                    }
                    _ => "Enter was pressed, and nothing shows whether it was taken",
                };
                return Err(stalled(why));
            }
        }
    }

    fn press(&self, preset: &Preset, keyboard: &Keyboard) -> Result<(), Failure> {
        // The last look before a key that could approve something.
        if let Some(why) = self.blocked(&self.glimpse()) {
            return Err(Failure::Blocked(why));
        }
        self.press_key(preset, keyboard)
    }

    fn press_key(&self, preset: &Preset, keyboard: &Keyboard) -> Result<(), Failure> {
        let modes = self.live.screen().modes();
        let works = self.host.activities.get(&self.live.id).verdict.state == State::Working;
        let other = preset.input.submit_while_working.as_ref().filter(|_| works);
        let name = other.unwrap_or(&preset.input.submit);
        let key: Key = name.parse().map_err(|e| stalled(format!("no key: {e}")))?;
        self.facts.submitted("a turn was just handed in", preset.input.hold_ms);
        self.write(keyboard, key.encode(&modes))
    }

    /// How it is seen that a text was taken.
    fn taken(&self, text: &str, held: Option<&str>, since: Instant) -> Option<String> {
        if self.facts.taken_since(since).iter().any(|told| same_words(told, text)) {
            return Some("a hook of its CLI told the same text".into());
        }
        let glimpse = self.glimpse();
        if held.is_some() && glimpse.composer.as_deref() == Some("") {
            return Some("its prompt was empty again after Enter".into());
        }
        let (worked, why) = self.facts.worked()?;
        let moved = worked > since && !self.still_holds(held);
        moved.then(|| format!("it went to work ({why})"))
    }

    fn still_holds(&self, held: Option<&str>) -> bool {
        held.is_some() && self.glimpse().composer.as_deref() == held
    }

    /// Waits until a person is asked nothing any more and the prompt holds what it held.
    async fn until_asked_no_more(&self, held: Option<String>) -> Result<Option<String>, Failure> {
        let mut standing = self.host.activities.watch(&self.live.id);
        loop {
            tokio::time::sleep(LOOK_PAUSE).await;
            self.alive()?;
            let glimpse = self.glimpse();
            if self.blocked(&glimpse).is_none() && standing.borrow().verdict.state != State::Blocked
            {
                return match glimpse.composer == held {
                    true => Ok(held),
                    false => Err(stalled(
                        "a person was asked something after it was pasted; afterwards its prompt \
                         held something else, so Enter was not pressed",
                    )),
                };
            }
            tokio::select! {
                changed = standing.changed() => drop(changed),
                changed = async { self.live.watch().changed().await } => drop(changed),
            }
        }
    }

    /// Types a text and Enter into something that is no agent.
    async fn type_into_program(&self, text: &str) -> Result<String, Failure> {
        let keyboard = self.keyboard().await?;
        let modes = self.live.screen().modes();
        self.write(&keyboard, paste(text, &modes))?;
        let enter =
            "enter".parse::<Key>().map_or_else(|_| b"\r".to_vec(), |key| key.encode(&modes));
        self.write(&keyboard, enter)?;
        let began = Instant::now();
        while !self.live.is_written() {
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
            if let Some(keyboard) = self.host.plane.reserve(&self.live) {
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
        match self.live.watch().borrow().is_over() {
            true => Err(stalled("the process ended after it was begun")),
            false => Ok(()),
        }
    }
}

/// Whether two texts say the same, however their blanks and lines were broken.
pub(super) fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}
