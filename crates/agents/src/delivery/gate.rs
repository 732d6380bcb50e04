//! The gate before an agent's prompt: nothing is typed in while a person is asked something, while
//! the CLI starts, into a draft, or between a person's keys.

use std::time::Duration;

use crate::activity::{ActivityState, ActivityStatus, ScreenSnapshot};
use crate::presets::Preset;

/// A person who typed so lately goes on typing.
const HAND_PAUSE: Duration = Duration::from_secs(2);

/// And what others type may be half-way: a prompt does not show it at once.
const WRITE_PAUSE: Duration = Duration::from_secs(1);

/// Characters of a draft that a receipt shows.
const DRAFT_CHARS: usize = 40;

/// Why nothing is typed in where the prompt itself cannot be read.
const DRAFT: &str = "something was typed into it and not entered yet";

/// What the gate looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before<'a> {
    pub(super) snapshot: &'a ScreenSnapshot,
    pub(super) status: &'a ActivityStatus,
    /// How long its prompt has been seen.
    pub(super) ready: Option<Duration>,
    /// How long ago a person typed.
    pub(super) typed: Option<Duration>,
    /// How long ago anything was typed that was not a text of patterm's.
    pub(super) written: Option<Duration>,
    /// Something was typed and not entered.
    pub(super) draft: bool,
    /// And it is nothing but blanks, which a prompt does not show.
    pub(super) blanks: bool,
    /// The text of patterm's own that was left in the prompt, by its number.
    pub(super) own: Option<u64>,
    /// Its screen shows that a turn goes on, whatever else is said of it.
    pub(super) in_turn: bool,
}

/// Why nothing is typed in now, and when that may change by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shut {
    pub(super) why: String,
    pub(super) again: Option<Duration>,
}

impl Shut {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: None }
    }

    pub(super) fn for_now(why: impl Into<String>, again: Duration) -> Self {
        Self { why: why.into(), again: Some(again) }
    }
}

/// Whether a turn may be put into an agent.
pub(super) fn agent(preset: &Preset, before: Before<'_>) -> Result<(), Shut> {
    let activity = &before.status.activity;
    if activity.state == ActivityState::Blocked {
        return Err(Shut::new(format!("it waits for a person ({})", activity.reason)));
    }
    typing(before)?;
    if preset.input.wants_bracketed_paste && !before.snapshot.bracketed_paste {
        return Err(Shut::new("it is not ready for input yet"));
    }
    match (&preset.composer, &before.snapshot.composer) {
        (Some(_), None) => return Err(Shut::new("its prompt is not visible")),
        (Some(_), Some(draft)) if !draft.is_empty() => {
            return Err(Shut::new(match before.own {
                Some(number) => left_standing(number, draft),
                None => format!("a draft stands in its prompt: `{}`", beginning(draft)),
            }));
        }
        (Some(_), Some(_)) if before.blanks => {
            return Err(Shut::new("a draft of blanks stands in its prompt"));
        }
        (None, _) if before.draft => return Err(Shut::new(DRAFT)),
        (None, _) if activity.state == ActivityState::Unknown => {
            return Err(Shut::new("nothing tells whether it is ready"));
        }
        _ => {}
    }
    if let Some(left) = left_of(WRITE_PAUSE, before.written) {
        return Err(Shut::for_now("something was just typed into it", left));
    }
    let ready = before.ready.unwrap_or_default();
    if preset.composer.is_some() && ready < preset.input.warm_up_ms {
        return Err(Shut::for_now("it has only just started", preset.input.warm_up_ms - ready));
    }
    let does = match activity.state {
        ActivityState::Working => "working",
        // Some wait for the end of a limit within their turn.
        ActivityState::Limited if before.in_turn => "limited in the middle of a turn",
        _ => return Ok(()),
    };
    match preset.input.while_working {
        true => Ok(()),
        false => {
            let why =
                format!("it is {does} ({}) and takes messages only when idle", activity.reason);
            Err(Shut::new(why))
        }
    }
}

/// What is said of a text that was typed in and not entered.
pub(super) fn left_standing(number: u64, stands: &str) -> String {
    format!(
        "{} stands in its prompt: `{}`; press Enter there to send it, or empty the prompt",
        left_message(number),
        beginning(stands)
    )
}

/// How that begins.
pub(super) fn left_message(number: u64) -> String {
    format!("message {number}, which patterm typed and could not enter,")
}

fn beginning(text: &str) -> String {
    text.chars().take(DRAFT_CHARS).collect()
}

/// Whether a text may be typed into something that is no agent.
pub(super) fn program(before: Before<'_>) -> Result<(), Shut> {
    typing(before)?;
    match before.draft {
        true => Err(Shut::new(DRAFT)),
        false => Ok(()),
    }
}

fn typing(before: Before<'_>) -> Result<(), Shut> {
    match left_of(HAND_PAUSE, before.typed) {
        Some(left) => Err(Shut::for_now("a person is typing into it", left)),
        None => Ok(()),
    }
}

/// What is left of a pause that began so long ago.
fn left_of(pause: Duration, ago: Option<Duration>) -> Option<Duration> {
    ago.and_then(|ago| pause.checked_sub(ago)).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Activity;
    use crate::presets::Catalogue;

    /// A prompt that is empty, of an agent at rest, at which nothing was typed.
    fn open<'a>(snapshot: &'a ScreenSnapshot, status: &'a ActivityStatus) -> Before<'a> {
        let ready = Some(Duration::from_secs(60));
        Before {
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
        change: impl FnOnce(&mut Before<'_>),
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
        let mut before = open(&snapshot, &status);
        change(&mut before);
        match (agent(&preset, before), expected) {
            (Ok(()), None) => {}
            (Err(shut), Some(why)) => assert!(shut.why.contains(why), "{shut:?}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    fn typed(ms: u64) -> impl FnOnce(&mut Before<'_>) {
        move |before| before.typed = Some(Duration::from_millis(ms))
    }

    #[test]
    fn nothing_is_put_into_dialogs_drafts_and_between_keys() {
        check(ActivityState::Idle, Some(""), |_| {}, None);
        check(ActivityState::Idle, Some(""), typed(5_000), None);
        check(ActivityState::Blocked, Some(""), |_| {}, Some("waits for a person"));
        check(ActivityState::Idle, None, |_| {}, Some("not visible"));
        check(ActivityState::Idle, Some("half a thou"), |_| {}, Some("`half a thou`"));
        check(ActivityState::Idle, Some(""), typed(100), Some("a person is typing"));
        check(
            ActivityState::Working,
            Some(""),
            |_| {},
            Some("it is working (seen) and takes messages only when idle"),
        );
        check(ActivityState::Unknown, Some(""), |_| {}, None);
    }

    #[test]
    fn nothing_is_put_behind_blanks_or_right_behind_what_another_typed() {
        check(
            ActivityState::Idle,
            Some(""),
            |before| before.blanks = true,
            Some("a draft of blanks"),
        );
        let written = |ms| move |before: &mut Before<'_>| before.written = Some(ms);
        let just = written(Duration::from_millis(900));
        check(ActivityState::Idle, Some(""), just, Some("just typed"));
        check(ActivityState::Idle, Some(""), written(Duration::from_secs(1)), None);
    }

    /// opencode waits for the end of a limit within its turn; claude, codex and gemini end the turn.
    #[test]
    fn at_a_limit_a_text_waits_only_for_the_end_of_a_turn() {
        check(ActivityState::Limited, Some(""), |_| {}, None);
        let in_turn = |before: &mut Before<'_>| before.in_turn = true;
        check(
            ActivityState::Limited,
            Some(""),
            in_turn,
            Some("limited in the middle of a turn (seen)"),
        );
        check(ActivityState::Idle, Some(""), in_turn, None);
    }

    #[test]
    fn a_queue_behind_a_text_of_patterms_own_says_so() {
        let own = |before: &mut Before<'_>| before.own = Some(7);
        check(
            ActivityState::Idle,
            Some("[external] see"),
            own,
            Some("message 7, which patterm typed"),
        );
    }
}
