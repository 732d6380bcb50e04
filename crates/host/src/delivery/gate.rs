//! The gate before an agent's prompt: nothing is put in while a person is asked something, while
//! the CLI starts, into a draft, or between a person's keys.

use std::time::Duration;

use crate::activity::{Glimpse, Standing, State};
use crate::presets::Preset;

/// A person who typed so lately goes on typing.
const HAND_PAUSE: Duration = Duration::from_secs(2);

/// Characters of a draft that a receipt shows.
const DRAFT_CHARS: usize = 40;

/// Why nothing is put in where the prompt itself cannot be read.
const DRAFT: &str = "something was typed into it and not entered yet";

/// What the gate looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before<'a> {
    pub(super) glimpse: &'a Glimpse,
    pub(super) standing: &'a Standing,
    /// How long its prompt has been seen.
    pub(super) ready: Option<Duration>,
    /// How long ago a person typed.
    pub(super) typed: Option<Duration>,
    /// Something was typed and not entered.
    pub(super) draft: bool,
}

/// Why nothing is put in now, and when that may change by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shut {
    pub(super) why: String,
    pub(super) again: Option<Duration>,
}

impl Shut {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: None }
    }

    fn for_now(why: impl Into<String>, again: Duration) -> Self {
        Self { why: why.into(), again: Some(again) }
    }
}

/// Whether a turn may be put into an agent.
pub(super) fn agent(preset: &Preset, before: Before<'_>) -> Result<(), Shut> {
    let verdict = &before.standing.verdict;
    if verdict.state == State::Blocked {
        return Err(Shut::new(format!("it waits for a person ({})", verdict.reason)));
    }
    hand(before)?;
    if preset.input.wants_bracketed_paste && !before.glimpse.bracketed_paste {
        return Err(Shut::new("it is not ready for input yet"));
    }
    match (&preset.composer, &before.glimpse.composer) {
        (Some(_), None) => return Err(Shut::new("its prompt is not to be seen")),
        (Some(_), Some(draft)) if !draft.is_empty() => {
            let start: String = draft.chars().take(DRAFT_CHARS).collect();
            return Err(Shut::new(format!("a draft stands in its prompt: `{start}`")));
        }
        (None, _) if before.draft => return Err(Shut::new(DRAFT)),
        (None, _) if verdict.state == State::Unknown => {
            return Err(Shut::new("nothing tells whether it is ready"));
        }
        _ => {}
    }
    let ready = before.ready.unwrap_or_default();
    if preset.composer.is_some() && ready < preset.input.warm_up_ms {
        return Err(Shut::for_now("it has only just started", preset.input.warm_up_ms - ready));
    }
    if verdict.state == State::Working && !preset.input.while_working {
        return Err(Shut::new(format!(
            "it works ({}), and takes turns only at rest",
            verdict.reason
        )));
    }
    Ok(())
}

/// Whether a text may be typed into something that is no agent.
pub(super) fn program(before: Before<'_>) -> Result<(), Shut> {
    hand(before)?;
    match before.draft {
        true => Err(Shut::new(DRAFT)),
        false => Ok(()),
    }
}

fn hand(before: Before<'_>) -> Result<(), Shut> {
    match before.typed.and_then(|ago| HAND_PAUSE.checked_sub(ago)).filter(|left| !left.is_zero()) {
        Some(left) => Err(Shut::for_now("a person types into it", left)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Verdict;
    use crate::presets::Catalogue;

    #[track_caller]
    fn check(state: State, composer: Option<&str>, typed_ms: Option<u64>, expected: Option<&str>) {
        let catalogue = Catalogue::read(None);
        let mut preset = catalogue.presets["claude"].preset.clone().unwrap();
        preset.input.while_working = false;
        let glimpse = Glimpse {
            composer: composer.map(Into::into),
            bracketed_paste: true,
            ..Glimpse::default()
        };
        let standing = Standing { verdict: Verdict::new(state, "seen"), ..Standing::default() };
        let before = Before {
            glimpse: &glimpse,
            standing: &standing,
            ready: Some(Duration::from_secs(60)),
            typed: typed_ms.map(Duration::from_millis),
            draft: false,
        };
        match (agent(&preset, before), expected) {
            (Ok(()), None) => {}
            (Err(shut), Some(why)) => assert!(shut.why.contains(why), "{shut:?}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn nothing_is_put_into_dialogs_drafts_and_between_keys() {
        check(State::Idle, Some(""), None, None);
        check(State::Idle, Some(""), Some(5_000), None);
        check(State::Blocked, Some(""), None, Some("waits for a person"));
        check(State::Idle, None, None, Some("not to be seen"));
        check(State::Idle, Some("half a thou"), None, Some("`half a thou`"));
        check(State::Idle, Some(""), Some(100), Some("a person types"));
        check(State::Working, Some(""), None, Some("only at rest"));
        check(State::Unknown, Some(""), None, None);
    }
}
