//! From evidence to a verdict, in this order: the process ended, a blocker is seen, a hook's word,
//! title or progress, footer, quiet output. What says nothing is unknown, which is never idle.

use std::time::Duration;

use super::glimpse::Glimpse;
use super::verdict::{State, Verdict};
use crate::presets::{Preset, Rule};

/// A hook that says otherwise than the screen is believed for this long: hooks are not told of
/// everything (Escape ends a turn without one), and screens lag behind.
pub(crate) const HOOK_PATIENCE: Duration = Duration::from_secs(2);

/// The last word of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookWord {
    /// The name of the event.
    pub(crate) event: String,
    pub(crate) state: State,
}

/// What is known of an agent at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence<'a> {
    pub(crate) glimpse: &'a Glimpse,
    /// How long nothing was printed.
    pub(crate) quiet: Duration,
    /// It was seen to print something.
    pub(crate) printed: bool,
    /// A hook's word, and how long ago.
    pub(crate) hook: Option<(&'a HookWord, Duration)>,
}

/// What a screen says by itself: a blocker first, then the program's own report, its title, its
/// footer.
pub(crate) fn seen(preset: &Preset, evidence: Evidence<'_>) -> Option<Verdict> {
    let by_rules = |tier: fn(&Rule) -> bool| strongest(preset, tier, evidence);
    let blocked = by_rules(|rule| rule.state == State::Blocked);
    let shown = || {
        let title = by_rules(|rule| rule.title.is_some() || rule.progress.is_some());
        title.or_else(|| by_rules(|_| true))
    };
    let reported = || match reported(&evidence.glimpse.report)? {
        // Idle is said only where nothing says otherwise: a report may forget the background.
        rest if rest.state == State::Idle => {
            Some(shown().filter(|shown| shown.state == State::Working).unwrap_or(rest))
        }
        other => Some(other),
    };
    blocked.or_else(reported).or_else(shown)
}

/// What a program says of its own state (OSC 7501).
pub(crate) fn reported(report: &str) -> Option<Verdict> {
    let state = report.split(':').find_map(|field| field.strip_prefix("state="))?;
    let state = match state {
        "working" => State::Working,
        "blocked" => State::Blocked,
        "idle" | "done" | "error" => State::Idle,
        _ => return None,
    };
    let failed = if report.contains("state=error") { FAILED } else { "" };
    Some(Verdict::new(state, format!("{failed}it reports `{report}`")))
}

/// How the reason of a rest begins that came of a failure: of the model's server, of the login.
pub(crate) const FAILED: &str = "its last turn failed: ";

/// Whether a report says that a turn is over, and not only that nothing runs.
pub(crate) fn reports_an_end(report: &str) -> bool {
    ["state=done", "state=error"].iter().any(|end| report.starts_with(end))
}

/// Of rules that are worth the same, the one that is less ready to call it over counts.
fn strongest(preset: &Preset, tier: fn(&Rule) -> bool, evidence: Evidence<'_>) -> Option<Verdict> {
    [State::Blocked, State::Working, State::Unknown, State::Idle].iter().find_map(|state| {
        let rules = preset.rules.iter().filter(|(_, rule)| tier(rule) && rule.state == *state);
        rules.filter_map(|(name, rule)| matched(name, rule, evidence)).next()
    })
}

/// What a screen says at this moment, of which nothing else is known.
pub(crate) fn seen_now(preset: &Preset, glimpse: &Glimpse) -> Option<Verdict> {
    seen(preset, Evidence { glimpse, quiet: Duration::ZERO, printed: false, hook: None })
}

/// What an agent does. `steady` is how long its screen has said the same.
pub(crate) fn agent(preset: &Preset, evidence: Evidence<'_>, steady: Duration) -> Verdict {
    let seen = seen(preset, evidence);
    let Some((hook, age)) = evidence.hook else {
        return seen.or_else(|| quiet(preset, evidence)).unwrap_or_else(nothing);
    };
    let failed = preset.hooks.get(&hook.event).is_some_and(|hook| hook.failed);
    let failed = if failed { FAILED } else { "" };
    let word = || Verdict::new(hook.state, format!("{failed}hook {}", hook.event));
    let Some(seen) = seen else { return word() };
    let contradicted = age >= HOOK_PATIENCE && steady >= HOOK_PATIENCE;
    match (hook.state, seen.state) {
        (_, State::Blocked) => seen,
        (a, b) if a == b => word(),
        // Idle is said only where nothing says otherwise.
        (State::Idle, _) => seen,
        _ if contradicted => {
            let reason = format!("{}, though no hook told after {}", seen.reason, hook.event);
            Verdict::new(seen.state, reason)
        }
        _ => word(),
    }
}

fn nothing() -> Verdict {
    Verdict::new(State::Unknown, "nothing on its screen says what it does")
}

fn quiet(preset: &Preset, evidence: Evidence<'_>) -> Option<Verdict> {
    let needed = preset.input.quiet_ms?;
    if evidence.quiet >= needed {
        return Some(Verdict::new(State::Idle, format!("it printed nothing for {needed:?}")));
    }
    evidence.printed.then(|| Verdict::new(State::Working, "it prints"))
}

/// A row without its padding.
fn plain(row: &str) -> String {
    row.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a rule holds; the reason names it and shows what it matched.
fn matched(name: &str, rule: &Rule, evidence: Evidence<'_>) -> Option<Verdict> {
    let mut shown = Vec::new();
    if let Some(title) = &rule.title {
        if !title.is_match(&evidence.glimpse.title) {
            return None;
        }
        shown.push(format!("title `{}`", plain(&evidence.glimpse.title)));
    }
    if let Some(busy) = rule.progress {
        if evidence.glimpse.busy != Some(busy) {
            return None;
        }
        shown.push(format!("progress {}", if busy { "busy" } else { "off" }));
    }
    let rows = || evidence.glimpse.bottom.iter().take(rule.rows);
    if let Some(bottom) = &rule.bottom {
        let row = rows().find(|row| bottom.is_match(row))?;
        shown.push(format!("`{}`", plain(row)));
    }
    if let Some(unless) = &rule.unless
        && rows().any(|row| unless.is_match(row))
    {
        return None;
    }
    (!shown.is_empty()).then(|| Verdict::new(rule.state, format!("{name}: {}", shown.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Catalogue;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(100);

    fn claude() -> Preset {
        Catalogue::read(None).presets.remove("claude").unwrap().preset.unwrap()
    }

    fn glimpse(title: &str, report: &str, rows: &[&str]) -> Glimpse {
        let bottom = rows.iter().map(|row| (*row).to_owned()).collect();
        Glimpse { title: title.into(), report: report.into(), bottom, ..Glimpse::default() }
    }

    #[track_caller]
    fn check(
        glimpse: &Glimpse,
        hook: Option<(State, Duration)>,
        steady: Duration,
        expected: State,
    ) {
        let word = hook.map(|(state, _)| HookWord { event: "Event".into(), state });
        let hook = word.as_ref().zip(hook.map(|(_, age)| age));
        let evidence = Evidence { glimpse, quiet: LONG, printed: true, hook };
        let verdict = agent(&claude(), evidence, steady);
        assert_eq!(verdict.state, expected, "{verdict:?}");
        assert!(!verdict.reason.is_empty());
    }

    #[test]
    fn a_blocker_that_is_seen_beats_every_word() {
        let dialog = glimpse("✳ x", "state=idle", &[" Esc to cancel", " ❯ 1. Yes"]);
        check(&dialog, None, LONG, State::Blocked);
        check(&dialog, Some((State::Idle, SHORT)), LONG, State::Blocked);
        check(&dialog, Some((State::Working, SHORT)), SHORT, State::Blocked);
    }

    #[test]
    fn a_dialog_that_somebody_only_quotes_is_none() {
        let quoted = glimpse("✳ x", "", &["──────────", "❯\u{a0}", "──────────", "Esc to cancel"]);
        check(&quoted, None, LONG, State::Idle);
    }

    #[test]
    fn idle_is_said_only_where_nothing_says_otherwise() {
        check(&glimpse("◐ x", "", &[]), Some((State::Idle, LONG)), LONG, State::Working);
        check(&glimpse("✳ x", "", &[]), Some((State::Idle, SHORT)), SHORT, State::Idle);
        check(&glimpse("", "", &[]), Some((State::Idle, SHORT)), SHORT, State::Idle);
        // A report of rest while the footer counts what goes on in the background.
        let background =
            glimpse("✳ x", "state=done", &["  auto mode on · 1 shell · ? for shortcuts"]);
        check(&background, None, LONG, State::Working);
    }

    #[test]
    fn a_hook_is_believed_until_the_screen_has_long_said_otherwise() {
        let rest = glimpse("✳ x", "", &[]);
        check(&rest, Some((State::Working, SHORT)), LONG, State::Working);
        check(&rest, Some((State::Working, LONG)), SHORT, State::Working);
        // Escape ends a turn, and no hook tells.
        check(&rest, Some((State::Working, LONG)), LONG, State::Idle);
        let turn = glimpse("◐ x", "", &[]);
        check(&turn, Some((State::Blocked, SHORT)), SHORT, State::Blocked);
        check(&turn, Some((State::Blocked, LONG)), LONG, State::Working);
    }

    #[test]
    fn what_says_nothing_is_unknown_and_a_report_is_heard() {
        check(&glimpse("", "", &["some text"]), None, LONG, State::Unknown);
        check(&glimpse("", "state=clear", &[]), None, LONG, State::Unknown);
        check(&glimpse("", "state=working:app=x", &[]), None, LONG, State::Working);
        check(&glimpse("", "state=blocked:kind=auth", &[]), None, LONG, State::Blocked);
        check(&glimpse("", "state=error", &[]), None, LONG, State::Idle);
    }

    #[test]
    fn a_turn_that_failed_is_told_from_one_that_is_done() {
        let rest = glimpse("✳ x", "", &[]);
        let reason = |event: &str| {
            let word = HookWord { event: event.into(), state: State::Idle };
            let hook = Some((&word, SHORT));
            let evidence = Evidence { glimpse: &rest, quiet: LONG, printed: true, hook };
            agent(&claude(), evidence, SHORT).reason
        };
        assert_eq!(reason("StopFailure"), "its last turn failed: hook StopFailure");
        assert_eq!(reason("Stop"), "hook Stop");
        let failed = |report: &str| reported(report).unwrap().reason.starts_with(FAILED);
        assert!(failed("state=error:app=codex") && !failed("state=done:app=codex"));
    }

    #[test]
    fn without_rules_a_pause_is_all_there_is_to_see() {
        let generic = Catalogue::read(None).presets.remove("generic").unwrap().preset.unwrap();
        let glimpse = glimpse("x", "", &["text"]);
        let state = |quiet, printed| {
            let evidence = Evidence { glimpse: &glimpse, quiet, printed, hook: None };
            agent(&generic, evidence, LONG).state
        };
        assert_eq!(state(SHORT, true), State::Working);
        assert_eq!(state(SHORT, false), State::Unknown, "it was not seen to print");
        assert_eq!([true, false].map(|printed| state(LONG, printed)), [State::Idle; 2]);
    }
}
