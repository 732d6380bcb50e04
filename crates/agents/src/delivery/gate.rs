//! The gate in front of an agent's prompt: nothing is typed into a dialog, into a draft, while the
//! CLI starts, or between a person's keys.

use std::time::Duration;

use crate::activity::{ActivityState, ActivityStatus, ScreenSnapshot};
use crate::presets::Preset;

/// A person who typed within this time is expected to continue.
const PERSON_PAUSE: Duration = Duration::from_secs(2);

/// The same for other writers, whose input may be incomplete: a prompt does not show it at once.
const WRITE_PAUSE: Duration = Duration::from_secs(1);

/// How many characters of a draft a receipt shows.
const DRAFT_CHARS: usize = 40;

/// Why nothing is typed if the prompt itself cannot be read.
const DRAFT: &str = "something was typed into it and not submitted yet";

/// What the gate decides from.
#[derive(Debug, Clone, Copy)]
pub(super) struct GateInput<'a> {
    pub(super) snapshot: &'a ScreenSnapshot,
    pub(super) status: &'a ActivityStatus,
    /// How long its prompt has been visible.
    pub(super) ready: Option<Duration>,
    /// How long ago a person typed.
    pub(super) typed: Option<Duration>,
    /// How long ago something other than a delivery was typed.
    pub(super) written: Option<Duration>,
    /// Something was typed and not submitted.
    pub(super) draft: bool,
    /// It consists only of whitespace, which a prompt does not show.
    pub(super) blanks: bool,
    /// The number of the delivery that was left in the prompt.
    pub(super) own: Option<u64>,
    /// Its screen shows a turn in progress, whatever its activity is.
    pub(super) in_turn: bool,
}

/// Why nothing may be typed now, and when that may change by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) why: String,
    pub(super) again: Option<Duration>,
}

impl Closed {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: None }
    }

    pub(super) fn for_now(why: impl Into<String>, again: Duration) -> Self {
        Self { why: why.into(), again: Some(again) }
    }
}

/// Whether a turn may be typed into an agent.
pub(super) fn agent(preset: &Preset, input: GateInput<'_>) -> Result<(), Closed> {
    let activity = &input.status.activity;
    if activity.state == ActivityState::Blocked {
        return Err(Closed::new(format!("it is waiting for a person ({})", activity.reason)));
    }
    typing(input)?;
    if preset.input.wants_bracketed_paste && !input.snapshot.bracketed_paste {
        return Err(Closed::new("it is not ready for input yet"));
    }
    match (&preset.composer, &input.snapshot.composer) {
        (Some(_), None) => return Err(Closed::new("its prompt is not visible")),
        (Some(_), Some(draft)) if !draft.is_empty() => {
            return Err(Closed::new(match input.own {
                Some(number) => left_in_prompt(number, draft),
                None => format!("its prompt contains a draft: `{}`", beginning(draft)),
            }));
        }
        (Some(_), Some(_)) if input.blanks => {
            return Err(Closed::new("its prompt contains a draft of only whitespace"));
        }
        (None, _) if input.draft => return Err(Closed::new(DRAFT)),
        (None, _) if activity.state == ActivityState::Unknown => {
            return Err(Closed::new("there is no sign that it is ready"));
        }
        _ => {}
    }
    if let Some(left) = left_of(WRITE_PAUSE, input.written) {
        return Err(Closed::for_now("something was just typed into it", left));
    }
    let ready = input.ready.unwrap_or_default();
    if preset.composer.is_some() && ready < preset.input.warm_up_ms {
        return Err(Closed::for_now("it has only just started", preset.input.warm_up_ms - ready));
    }
    let doing = match activity.state {
        ActivityState::Working => "working",
        // Some CLIs wait for the end of a limit within their turn.
        ActivityState::Limited if input.in_turn => "limited in the middle of a turn",
        _ => return Ok(()),
    };
    match preset.input.while_working {
        true => Ok(()),
        false => {
            let why =
                format!("it is {doing} ({}) and accepts messages only when idle", activity.reason);
            Err(Closed::new(why))
        }
    }
}

/// The reason for a text that was typed and not submitted.
pub(super) fn left_in_prompt(number: u64, in_prompt: &str) -> String {
    format!(
        "{} is in its prompt: `{}`; press Enter there to send it, or empty the prompt",
        left_message(number),
        beginning(in_prompt)
    )
}

/// The beginning of that reason.
pub(super) fn left_message(number: u64) -> String {
    format!("message {number}, which patterm typed and could not submit,")
}

fn beginning(text: &str) -> String {
    text.chars().take(DRAFT_CHARS).collect()
}

/// Whether a text may be typed into a process that is not an agent.
pub(super) fn program(input: GateInput<'_>) -> Result<(), Closed> {
    typing(input)?;
    match input.draft {
        true => Err(Closed::new(DRAFT)),
        false => Ok(()),
    }
}

fn typing(input: GateInput<'_>) -> Result<(), Closed> {
    match left_of(PERSON_PAUSE, input.typed) {
        Some(left) => Err(Closed::for_now("a person is typing into it", left)),
        None => Ok(()),
    }
}

/// The rest of a pause that began `ago`.
fn left_of(pause: Duration, ago: Option<Duration>) -> Option<Duration> {
    ago.and_then(|ago| pause.checked_sub(ago)).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Activity;
    use crate::presets::Catalogue;

    /// The empty prompt of an idle agent into which nothing was typed.
    fn open<'a>(snapshot: &'a ScreenSnapshot, status: &'a ActivityStatus) -> GateInput<'a> {
        let ready = Some(Duration::from_secs(60));
        GateInput {
            snapshot,
            status,
            ready,
            typed: None,
            written: None,
            draft: false,
            blanks: false,
            own: None,
            in_turn: false,
        }
    }

    #[track_caller]
    fn check(
        state: ActivityState,
        composer: Option<&str>,
        change: impl FnOnce(&mut GateInput<'_>),
        expected: Option<&str>,
    ) {
        let catalogue = Catalogue::read(None);
        let mut preset = catalogue.presets["claude"].preset.clone().unwrap();
        preset.input.while_working = false;
        let snapshot = ScreenSnapshot {
            composer: composer.map(Into::into),
            bracketed_paste: true,
            ..ScreenSnapshot::default()
        };
        let status =
            ActivityStatus { activity: Activity::new(state, "seen"), ..ActivityStatus::default() };
        let mut input = open(&snapshot, &status);
        change(&mut input);
        match (agent(&preset, input), expected) {
            (Ok(()), None) => {}
            (Err(closed), Some(why)) => assert!(closed.why.contains(why), "{closed:?}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    fn typed(ms: u64) -> impl FnOnce(&mut GateInput<'_>) {
        move |input| input.typed = Some(Duration::from_millis(ms))
    }

    #[test]
    fn nothing_is_typed_into_dialogs_or_drafts_or_between_a_persons_keys() {
        check(ActivityState::Idle, Some(""), |_| {}, None);
        check(ActivityState::Idle, Some(""), typed(5_000), None);
        check(ActivityState::Blocked, Some(""), |_| {}, Some("is waiting for a person"));
        check(ActivityState::Idle, None, |_| {}, Some("not visible"));
        check(ActivityState::Idle, Some("half a thou"), |_| {}, Some("`half a thou`"));
        check(ActivityState::Idle, Some(""), typed(100), Some("a person is typing"));
        check(
            ActivityState::Working,
            Some(""),
            |_| {},
            Some("it is working (seen) and accepts messages only when idle"),
        );
        check(ActivityState::Unknown, Some(""), |_| {}, None);
    }

    #[test]
    fn nothing_is_typed_after_blanks_or_right_after_another_writer() {
        check(
            ActivityState::Idle,
            Some(""),
            |input| input.blanks = true,
            Some("a draft of only whitespace"),
        );
        let written = |ms| move |input: &mut GateInput<'_>| input.written = Some(ms);
        let just = written(Duration::from_millis(900));
        check(ActivityState::Idle, Some(""), just, Some("just typed"));
        check(ActivityState::Idle, Some(""), written(Duration::from_secs(1)), None);
    }

    /// opencode waits for the end of a limit within its turn; claude, codex and gemini end the turn.
    #[test]
    fn at_a_limit_a_text_waits_only_during_a_turn() {
        check(ActivityState::Limited, Some(""), |_| {}, None);
        let in_turn = |input: &mut GateInput<'_>| input.in_turn = true;
        check(
            ActivityState::Limited,
            Some(""),
            in_turn,
            Some("limited in the middle of a turn (seen)"),
        );
        check(ActivityState::Idle, Some(""), in_turn, None);
    }

    #[test]
    fn a_delivery_left_in_the_prompt_is_named() {
        let own = |input: &mut GateInput<'_>| input.own = Some(7);
        check(
            ActivityState::Idle,
            Some("[external] see"),
            own,
            Some("message 7, which patterm typed"),
        );
    }
}
