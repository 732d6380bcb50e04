//! Derives an activity from evidence, in this order: the process ended, a hook reports a limit, the
//! screen shows a limit or a dialog, a hook's report, the program's own report, title or progress,
//! footer, quiet output. Without evidence the activity is unknown, which is never idle.
//!
//! The screen also shows what users and models wrote. Rules look only where such text cannot be: at
//! the rows below the prompt box, at the rows that replace it, and at rows that begin with a mark
//! that the text of a message never has there.

use std::collections::BTreeMap;
use std::time::Duration;

use patterm_screen::decode_base64;

use super::dialog;
use super::screen_snapshot::ScreenSnapshot;
use crate::activity_state::{Activity, ActivityState};
use crate::presets::{Preset, Rule};

/// How long a hook is trusted against the screen: hooks do not cover everything (Escape ends a turn
/// without one), and screens lag behind.
const HOOK_TRUST: Duration = Duration::from_secs(2);

/// The same for a hook that reports work in the background. Its end begins a turn, which hooks
/// report; if a person ends it by hand, it only disappears from the footer, which other text may
/// cover for some seconds.
const BACKGROUND_TRUST: Duration = Duration::from_secs(10);

/// The last activity that a hook reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEvent {
    /// The name of the event.
    pub event: String,
    pub state: ActivityState,
    /// Work continues in the background although the turn is over.
    pub background: bool,
    /// The limit that it reports.
    pub limit: Option<LimitMessage>,
}

impl HookEvent {
    /// How long it is trusted against the screen.
    pub(crate) fn trusted_for(&self, preset: &Preset) -> Duration {
        let usual = if self.background { BACKGROUND_TRUST } else { HOOK_TRUST };
        preset.hooks.get(&self.event).and_then(|known| known.trust_ms).unwrap_or(usual)
    }
}

/// A limit that a hook reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitMessage {
    /// The CLI's message.
    pub text: String,
    /// When it ends, in the CLI's own words.
    pub until: Option<String>,
}

/// What is known about an agent at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence<'a> {
    pub snapshot: &'a ScreenSnapshot,
    /// How long it has printed nothing.
    pub quiet: Duration,
    /// It was seen to print something.
    pub printed: bool,
    /// The last report of a hook, and its age.
    pub hook: Option<(&'a HookEvent, Duration)>,
    /// How long each rule with a minimum duration has matched; `None` if they take effect at once.
    pub held: Option<&'a Held>,
    /// The reported end of the limit has passed: the limit does not count any more.
    pub past_limit: bool,
}

/// How long rules have matched, by their names.
pub(crate) type Held = BTreeMap<String, Duration>;

/// The rules with a minimum duration that match now.
pub(crate) fn holding<'a>(
    preset: &'a Preset,
    snapshot: &'a ScreenSnapshot,
) -> impl Iterator<Item = (&'a str, Duration)> {
    let evidence = Evidence::of(snapshot);
    let slow = preset.rules.iter().filter(|(_, rule)| !rule.for_ms.is_zero());
    let holds = slow.filter(move |(name, rule)| matched(name, rule, evidence).is_some());
    holds.map(|(name, rule)| (name.as_str(), rule.for_ms))
}

impl<'a> Evidence<'a> {
    /// A screen about which nothing else is known.
    fn of(snapshot: &'a ScreenSnapshot) -> Self {
        Self {
            snapshot,
            quiet: Duration::ZERO,
            printed: false,
            hook: None,
            held: None,
            past_limit: false,
        }
    }
}

/// The activity that a screen shows by itself: a limit or a dialog first, then the program's own
/// report, its title, its footer.
pub(crate) fn seen(preset: &Preset, evidence: Evidence<'_>) -> Option<Activity> {
    let report = reported(&evidence.snapshot.report);
    let by_rules = |tier: fn(&Rule) -> bool| {
        let counts = |rule: &Rule| {
            let is_outranked = rule.is_by_title() && report.is_some();
            let is_past = rule.state == ActivityState::Limited && evidence.past_limit;
            !is_outranked && !is_past
        };
        strongest(preset, |rule| tier(rule) && counts(rule), evidence)
    };
    let asked =
        by_rules(|rule| matches!(rule.state, ActivityState::Limited | ActivityState::Blocked));
    let by_text = || by_rules(|rule| !rule.is_by_title());
    let shown = || match by_rules(Rule::is_by_title) {
        // A title may ignore background work, too.
        Some(rest) if rest.state == ActivityState::Idle => {
            Some(by_text().filter(|text| text.state == ActivityState::Working).unwrap_or(rest))
        }
        title => title.or_else(by_text),
    };
    let reported = || match report.clone()? {
        // Idle counts only without contrary evidence: a report may ignore background work.
        rest if rest.state == ActivityState::Idle => {
            Some(shown().filter(|shown| shown.state == ActivityState::Working).unwrap_or(rest))
        }
        other => Some(other),
    };
    asked.or_else(reported).or_else(shown)
}

/// The dialog or menu that a screen shows, if any: typed text would answer it, whatever other
/// evidence says.
pub(crate) fn asks_now(preset: &Preset, snapshot: &ScreenSnapshot) -> Option<Activity> {
    let evidence = Evidence::of(snapshot);
    let report = reported(&snapshot.report);
    let rule = |rule: &Rule| {
        rule.state == ActivityState::Blocked && !(rule.is_by_title() && report.is_some())
    };
    let blocked = |activity: &Activity| activity.state == ActivityState::Blocked;
    strongest(preset, rule, evidence).or_else(|| report.clone().filter(blocked))
}

/// A field of a program's report of its own state.
fn field<'a>(report: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = report.split(':').filter_map(|field| field.split_once('='));
    fields.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Whether a screen shows a turn in progress, whatever hooks report.
pub(crate) fn works_now(preset: &Preset, snapshot: &ScreenSnapshot) -> bool {
    seen(preset, Evidence::of(snapshot))
        .is_some_and(|activity| activity.state == ActivityState::Working)
}

/// The activity that a program reports (OSC 7501).
pub(crate) fn reported(report: &str) -> Option<Activity> {
    let state = match field(report, "state")? {
        "working" => ActivityState::Working,
        "blocked" => ActivityState::Blocked,
        "idle" | "done" | "error" => ActivityState::Idle,
        _ => return None,
    };
    let failed = if field(report, "state") == Some("error") { FAILED } else { "" };
    let what = match field(report, "state")? {
        "working" => "that it is working",
        "blocked" => "that it is waiting for you",
        "done" => "that its turn is over",
        "error" => "an error",
        _ => "that it is idle",
    };
    // What it waits for, such as a permission; only if that is a plain word.
    let kind = field(report, "kind").filter(|_| state == ActivityState::Blocked);
    let kind =
        kind.filter(|kind| kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    let kind =
        kind.filter(|kind| !kind.is_empty()).map(|kind| format!(": {kind}")).unwrap_or_default();
    let words = field(report, "msg").and_then(report_message);
    let words = words.map(|words| format!(" ({})", dialog::cut_middle(&words, REPORT_CHARS)));
    let words = words.unwrap_or_default();
    Some(Activity::new(state, format!("{failed}it reports {what}{kind}{words}")))
}

/// Characters of a report's message that a reason shows: as much as a row of a terminal has.
const REPORT_CHARS: usize = 120;

/// The message of a report, decoded from base64. The program controls it, so control characters are
/// removed. `None` if it is not text.
fn report_message(msg: &str) -> Option<String> {
    let text = String::from_utf8(decode_base64(msg.as_bytes())?).ok()?;
    let text = plain(&text.replace(char::is_control, " "));
    (!text.is_empty()).then_some(text)
}

/// How the reason begins if an agent is idle because of a failure: of the model's server, of the
/// login.
pub const FAILED: &str = "its last turn failed: ";

/// Whether a report says that a turn ended, and not only that nothing runs.
pub(crate) fn reports_an_end(report: &str) -> bool {
    ["state=done", "state=error"].iter().any(|end| report.starts_with(end))
}

/// The activity of the matching rule with the most significant state: idle comes last.
fn strongest(
    preset: &Preset,
    tier: impl Fn(&Rule) -> bool,
    evidence: Evidence<'_>,
) -> Option<Activity> {
    let states = [
        ActivityState::Limited,
        ActivityState::Blocked,
        ActivityState::Working,
        ActivityState::Unknown,
        ActivityState::Idle,
    ];
    states.iter().find_map(|state| {
        let rules = preset.rules.iter().filter(|(_, rule)| tier(rule) && rule.state == *state);
        rules.filter_map(|(name, rule)| matched(name, rule, evidence)).next()
    })
}

/// The activity that a screen shows, if nothing else is known.
#[cfg(test)]
pub(crate) fn seen_now(preset: &Preset, snapshot: &ScreenSnapshot) -> Option<Activity> {
    seen(preset, Evidence::of(snapshot))
}

/// The activity of an agent. `steady` is how long its screen has shown the same state.
pub(crate) fn agent(preset: &Preset, evidence: Evidence<'_>, steady: Duration) -> Activity {
    let seen = seen(preset, evidence);
    let Some((hook, age)) = evidence.hook else {
        return seen.or_else(|| quiet(preset, evidence)).unwrap_or_else(nothing);
    };
    let known = preset.hooks.get(&hook.event);
    let failed = if known.is_some_and(|known| known.failed) { FAILED } else { "" };
    let limit = hook.limit.as_ref().filter(|_| !evidence.past_limit);
    let state = match (limit, known.and_then(|known| known.state)) {
        (None, Some(state)) if hook.limit.is_some() => state,
        _ => hook.state,
    };
    let word = || match (limit, known.and_then(|known| known.says.as_ref())) {
        (Some(limit), _) => {
            Activity::limited(format!("it says {}", quoted(&limit.text)), limit.until.clone())
        }
        (None, Some(says)) => Activity::new(state, format!("{failed}{says} (hook {})", hook.event)),
        (None, None) => Activity::new(state, format!("{failed}hook {}", hook.event)),
    };
    let Some(seen) = seen else { return word() };
    let contradicted = age.min(steady) >= hook.trusted_for(preset);
    let reports_work = || {
        reported(&evidence.snapshot.report)
            .is_some_and(|report| report.state == ActivityState::Working)
    };
    match (state, seen.state) {
        // A limited agent's screen looks idle, or working while it waits to retry.
        (ActivityState::Limited, ActivityState::Working) if contradicted && reports_work() => seen,
        (ActivityState::Limited, _) => word(),
        (_, ActivityState::Limited | ActivityState::Blocked) => seen,
        (a, b) if a == b => word(),
        // Idle counts only without contrary evidence.
        (ActivityState::Idle, _) => seen,
        _ if contradicted => {
            let reason =
                format!("{}, although hooks report nothing since {}", seen.reason, hook.event);
            Activity::new(seen.state, reason)
        }
        _ => word(),
    }
}

fn nothing() -> Activity {
    Activity::new(ActivityState::Unknown, "nothing on its screen shows what it is doing")
}

fn quiet(preset: &Preset, evidence: Evidence<'_>) -> Option<Activity> {
    let needed = preset.input.quiet_ms?;
    if evidence.quiet >= needed {
        return Some(Activity::new(
            ActivityState::Idle,
            format!("it printed nothing for {needed:?}"),
        ));
    }
    evidence.printed.then(|| Activity::new(ActivityState::Working, "it prints"))
}

/// Text without padding and line breaks. A URL that continues in the next row is joined again.
fn plain(text: &str) -> String {
    let mut joined = String::new();
    for row in text.lines() {
        let cut = joined.rsplit(' ').next().is_some_and(|word| {
            word.contains("://") && word.ends_with(['/', '-', '_', '=', '&', '?'])
        });
        for (number, word) in row.split_whitespace().enumerate() {
            let goes_on = cut && number == 0;
            if !joined.is_empty() && !goes_on {
                joined.push(' ');
            }
            joined.push_str(word);
        }
    }
    joined
}

/// Maximum length of one quotation in a reason: a question, or a line or two.
const QUOTE_CHARS: usize = 160;

/// How many of the lowest rows may contain a dialog's question.
const QUOTE_ROWS: usize = 24;

/// Text from the screen as a reason quotes it: on one line, and shortened.
fn quoted(text: &str) -> String {
    let text = plain(text);
    match text.char_indices().nth(QUOTE_CHARS) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Maximum number of rows into which a narrow pane wraps one hint: the longest of claude's takes
/// three in 45 columns.
const WRAPPED_ROWS: usize = 3;

/// The lowest row that matches, or the wrapped rows that match when they are joined.
fn lowest_match(rule: &Rule, bottom: &regex::Regex, rows: &[String]) -> Option<String> {
    let alone = || rows.iter().find(|row| bottom.is_match(row)).cloned();
    let joined = |count: usize| {
        let joined = |rows: &[String]| {
            let (first, more) = rows.split_last()?;
            let more = more.iter().rev().map(|row| row.trim());
            Some([first.trim_end()].into_iter().chain(more).collect::<Vec<_>>().join(" "))
        };
        rows.windows(count).filter_map(joined).find(|text| bottom.is_match(text))
    };
    let wrapped = || (2..=WRAPPED_ROWS).filter(|_| rule.wraps).find_map(joined);
    alone().or_else(wrapped)
}

/// What a rule quotes from rows, without duplicates.
fn quotations(rule: &Rule, text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for pattern in &rule.quotes {
        let Some(found) = pattern.captures_iter(text).last() else { continue };
        let Some(found) = found.name("quote").or_else(|| found.get(0)) else { continue };
        let quotation = quoted(found.as_str());
        if !all.contains(&quotation) {
            all.push(quotation);
        }
    }
    all
}

/// Whether a row contains text, and not only a drawn line.
fn has_words(row: &str) -> bool {
    row.chars().any(char::is_alphanumeric)
}

/// The lowest rows as lines, from top to bottom, without the borders of a box around them.
fn as_lines(rows: &[String]) -> String {
    let border = ['│', '┃'];
    let inner = |row: &String| {
        let row = row.trim_end().trim_end_matches(border);
        let bare = row.trim_start();
        bare.strip_prefix(border).unwrap_or(row).trim_end().to_owned()
    };
    rows.iter().rev().map(inner).collect::<Vec<_>>().join("\n")
}

/// Applies a rule; the reason names it and shows what it matched.
fn matched(name: &str, rule: &Rule, evidence: Evidence<'_>) -> Option<Activity> {
    let snapshot = evidence.snapshot;
    if rule.no_prompt && snapshot.composer.is_some() {
        return None;
    }
    let held = |held: &Held| held.get(name).is_some_and(|time| *time >= rule.for_ms);
    if !rule.for_ms.is_zero() && !evidence.held.is_none_or(held) {
        return None;
    }
    if rule.report.as_ref().is_some_and(|report| !report.is_match(&snapshot.report)) {
        return None;
    }
    let rows = snapshot.bottom.get(..rule.rows).unwrap_or(&snapshot.bottom);
    let lowest = snapshot.bottom.first();
    if let Some(unless) = &rule.unless_lowest
        && lowest.is_some_and(|row| unless.is_match(row))
    {
        return None;
    }
    if let Some(unless) = &rule.unless
        && rows.iter().any(|row| unless.is_match(row))
    {
        return None;
    }
    // What the rule has matched so far, and what the reason shows of it.
    let (mut shown, mut holds, mut until) = (Vec::new(), false, None);
    if let Some(title) = &rule.title {
        if !title.is_match(&snapshot.title) {
            return None;
        }
        (shown, holds) = (vec![format!("title {}", quoted(&snapshot.title))], true);
    }
    if let Some(busy) = rule.progress {
        if snapshot.busy != Some(busy) {
            return None;
        }
        shown.push(format!("progress {}", if busy { "busy" } else { "off" }));
        holds = true;
    }
    if let Some(pattern) = &rule.lowest {
        let row = lowest.filter(|row| pattern.is_match(row))?;
        // A dialog's question says more than its last row.
        shown.extend(
            Some(row).filter(|row| rule.bottom.is_none() && has_words(row)).map(|row| quoted(row)),
        );
        holds = true;
    }
    if let Some(bottom) = &rule.bottom {
        shown.push(quoted(&lowest_match(rule, bottom, rows)?));
        let named = |until| rows.iter().find_map(|row| named_end(until, row));
        (holds, until) = (true, rule.until.as_ref().and_then(named));
    }
    let shown_rows = snapshot.bottom.get(..rule.rows.max(QUOTE_ROWS)).unwrap_or(&snapshot.bottom);
    let mut looked_at = as_lines(shown_rows);
    if let Some(above) = &rule.above {
        looked_at = text_above(rule, snapshot)?;
        shown.push(quoted(above.find(&looked_at)?.as_str()));
        (holds, until) = (true, rule.until.as_ref().and_then(|until| named_end(until, &looked_at)));
    }
    if !holds && (rule.no_prompt || rule.report.is_some()) {
        shown.push(quoted(lowest?));
        holds = true;
    }
    if !holds {
        return None;
    }
    let asked = Some(())
        .filter(|()| rule.state == ActivityState::Blocked)
        .and_then(|()| asked(&snapshot.report));
    // Rows of what only covers the prompt are no options.
    let has_question = rule.says.is_none() || !rule.answer.is_empty();
    let place = Some(())
        .filter(|()| rule.state == ActivityState::Blocked && has_question)
        .and_then(|()| dialog::place(&snapshot.bottom, shown_rows.len(), rule, snapshot.is_full));
    if let Some(place) = &place
        && rule.above.is_none()
    {
        // An earlier dialog may still be on the screen.
        looked_at = as_lines(shown_rows.get(..place.height()).unwrap_or(shown_rows));
    }
    let dialog = place.and_then(|place| {
        let bare = |quoted: &String| quoted.trim_matches('`').to_owned();
        let quotes: Vec<String> = quotations(rule, &looked_at).iter().map(bare).collect();
        dialog::find(&place, asked.as_deref(), &quotes, (name, rule))
    });
    let asks = dialog.as_ref().map(dialog::in_one_line);
    let quotations = match asked {
        Some(asked) => vec![format!("`{}`", dialog::cut_middle(&asked, REPORT_CHARS))],
        None => quotations(rule, &looked_at),
    };
    if !quotations.is_empty() {
        shown = quotations;
    }
    let (says, shown) =
        (rule.says.clone(), Some(shown.join(", ")).filter(|shown| !shown.is_empty()));
    let words = says.into_iter().chain(shown).collect::<Vec<_>>().join(": ");
    Some(match rule.state {
        ActivityState::Limited if rule.says.is_some() => Activity::limited(words, until),
        ActivityState::Limited => Activity::limited(format!("it says {words}"), until),
        state if words.is_empty() => Activity { asks, dialog, ..Activity::new(state, name) },
        state => Activity { asks, dialog, ..Activity::new(state, format!("{name}: {words}")) },
    })
}

/// The question in a program's own report, if it has a message (OSC 7501).
fn asked(report: &str) -> Option<String> {
    let (state, words) = (field(report, "state")?, field(report, "msg").and_then(report_message)?);
    (state == "blocked").then_some(words)
}

/// The text above the prompt box since the last turn began.
fn text_above(rule: &Rule, snapshot: &ScreenSnapshot) -> Option<String> {
    snapshot.composer.as_ref()?;
    let begins = |row: &&String| rule.since.as_ref().is_some_and(|since| since.is_match(row));
    let rows = snapshot.bottom.iter().skip(snapshot.run).take_while(|row| !begins(row));
    let mut rows: Vec<_> = rows.map(|row| row.trim_end()).collect();
    rows.reverse();
    Some(rows.join("\n"))
}

/// The text in the group `until` of a pattern: when a limit ends.
pub(super) fn named_end(pattern: &regex::Regex, text: &str) -> Option<String> {
    let end = pattern.captures(text)?.name("until")?;
    Some(plain(end.as_str())).filter(|end| !end.is_empty())
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

    fn snapshot(title: &str, report: &str, rows: &[&str]) -> ScreenSnapshot {
        let bottom = rows.iter().map(|row| (*row).to_owned()).collect();
        ScreenSnapshot {
            title: title.into(),
            report: report.into(),
            bottom,
            ..ScreenSnapshot::default()
        }
    }

    #[track_caller]
    fn check(
        snapshot: &ScreenSnapshot,
        hook: Option<(ActivityState, Duration)>,
        steady: Duration,
        expected: ActivityState,
    ) {
        let word = hook.map(|(state, _)| HookEvent {
            event: "Event".into(),
            state,
            background: false,
            limit: None,
        });
        let hook = word.as_ref().zip(hook.map(|(_, age)| age));
        let evidence =
            Evidence { snapshot, quiet: LONG, printed: true, hook, held: None, past_limit: false };
        let activity = agent(&claude(), evidence, steady);
        assert_eq!(activity.state, expected, "{activity:?}");
        assert!(!activity.reason.is_empty());
    }

    #[test]
    fn a_visible_dialog_overrides_hooks_and_reports() {
        let dialog = snapshot("✳ x", "state=idle", &[" Esc to cancel", " ❯ 1. Yes"]);
        check(&dialog, None, LONG, ActivityState::Blocked);
        check(&dialog, Some((ActivityState::Idle, SHORT)), LONG, ActivityState::Blocked);
        check(&dialog, Some((ActivityState::Working, SHORT)), SHORT, ActivityState::Blocked);
    }

    #[test]
    fn a_quoted_dialog_is_ignored() {
        let quoted = snapshot("✳ x", "", &["──────────", "❯\u{a0}", "──────────", "Esc to cancel"]);
        check(&quoted, None, LONG, ActivityState::Idle);
    }

    #[test]
    fn idle_counts_only_without_contrary_evidence() {
        check(
            &snapshot("◐ x", "", &[]),
            Some((ActivityState::Idle, LONG)),
            LONG,
            ActivityState::Working,
        );
        check(
            &snapshot("✳ x", "", &[]),
            Some((ActivityState::Idle, SHORT)),
            SHORT,
            ActivityState::Idle,
        );
        check(
            &snapshot("", "", &[]),
            Some((ActivityState::Idle, SHORT)),
            SHORT,
            ActivityState::Idle,
        );
        // The report says `done` while the footer counts background work.
        let background =
            snapshot("✳ x", "state=done", &["  auto mode on · 1 shell · ? for shortcuts"]);
        check(&background, None, LONG, ActivityState::Working);
    }

    #[test]
    fn background_work_counts_while_the_footer_or_the_hook_reports_it() {
        let report = "state=done:app=claude-code";
        let footer = "  ⏵⏵ auto mode on · 1 shell · ← for agents · ↓ to manage";
        let prompt = ["─".repeat(40), "❯\u{a0}".into()];
        let with =
            |footer: &str| snapshot("Claude Code", report, &[footer, &prompt[0], &prompt[1]]);
        let (runs, over) = (with(footer), with("  ⏵⏵ auto mode on (shift+tab to cycle)"));
        let activity = |snapshot: &ScreenSnapshot, age| {
            let event = "Stop, with work in the background".into();
            let word =
                HookEvent { event, state: ActivityState::Working, background: true, limit: None };
            let hook = Some((&word, age));
            let evidence = Evidence {
                snapshot,
                quiet: LONG,
                printed: true,
                hook,
                held: None,
                past_limit: false,
            };
            agent(&claude(), evidence, age).state
        };
        assert_eq!(
            activity(&runs, LONG),
            ActivityState::Working,
            "the report `done` is wrong about it"
        );
        assert_eq!(
            activity(&over, HOOK_TRUST),
            ActivityState::Working,
            "other text covers the footer"
        );
        assert_eq!(
            activity(&over, LONG),
            ActivityState::Idle,
            "a person ended it, and no hook reported that"
        );
    }

    #[test]
    fn text_in_the_prompt_is_not_a_footer() {
        let border = "─".repeat(40);
        let rows = ["  ⏵⏵ auto mode on", &border, "❯\u{a0}start · 1 shell · in it"];
        check(&snapshot("", "state=done:app=claude-code", &rows), None, LONG, ActivityState::Idle);
    }

    #[test]
    fn a_title_does_not_count_if_the_program_reports_its_state() {
        let title = "◐ a title that a model chose";
        check(&snapshot(title, "", &[]), None, LONG, ActivityState::Working);
        check(&snapshot(title, "state=done:app=claude-code", &[]), None, LONG, ActivityState::Idle);
    }

    #[test]
    fn a_limit_from_a_hook_lasts_until_a_turn_is_reported() {
        let limit = LimitMessage { text: "used up".into(), until: Some("3pm".into()) };
        let event = "StopFailure".to_owned();
        let word = HookEvent {
            event,
            state: ActivityState::Limited,
            background: false,
            limit: Some(limit),
        };
        let judged = |report: &str| {
            let snapshot = snapshot("", report, &[]);
            let hook = Some((&word, LONG));
            let evidence = Evidence {
                snapshot: &snapshot,
                quiet: LONG,
                printed: true,
                hook,
                held: None,
                past_limit: false,
            };
            agent(&claude(), evidence, LONG)
        };
        let limited = judged("state=error:app=claude-code");
        assert_eq!(
            (limited.state, limited.limited_until.as_deref()),
            (ActivityState::Limited, Some("3pm"))
        );
        assert!(limited.reason.contains("used up"), "{limited:?}");
        assert_eq!(judged("state=working:app=claude-code").state, ActivityState::Working);
    }

    #[test]
    fn a_limit_does_not_count_after_its_reported_end() {
        let limit = LimitMessage { text: "used up".into(), until: Some("3pm".into()) };
        let word = |event: &str| HookEvent {
            event: event.into(),
            state: ActivityState::Limited,
            background: false,
            limit: Some(limit.clone()),
        };
        let snapshot = snapshot("", "state=error:app=claude-code", &[]);
        let state = |preset: &Preset, word: &HookEvent, past_limit| {
            let hook = Some((word, LONG));
            let quiet = Evidence { quiet: LONG, printed: true, ..Evidence::of(&snapshot) };
            agent(preset, Evidence { hook, past_limit, ..quiet }, LONG).state
        };
        let stopped = word("StopFailure");
        assert_eq!(state(&claude(), &stopped, false), ActivityState::Limited);
        assert_eq!(state(&claude(), &stopped, true), ActivityState::Idle);
        // It waits within its turn, and reports when the turn continues.
        let opencode = Catalogue::read(None).presets.remove("opencode").unwrap().preset.unwrap();
        assert_eq!(state(&opencode, &word("limited"), true), ActivityState::Limited);
    }

    #[test]
    fn a_hint_wrapped_by_a_narrow_pane_is_matched_and_unrelated_rows_are_not_joined() {
        let rows = ["  cancel", "  ←/→ to switch · ↓ to select · Esc to", "    1.  Add a rule"];
        check(&snapshot("✳ x", "", &rows), None, LONG, ActivityState::Blocked);
        let rows = ["  to cancel", "  Esc", "    1.  Add a rule"];
        check(&snapshot("✳ x", "", &rows), None, LONG, ActivityState::Blocked);
        let rows = ["  cancel", "  of something", "  Esc to"];
        check(&snapshot("✳ x", "", &rows), None, LONG, ActivityState::Idle);
    }

    #[test]
    fn the_message_of_a_report_is_decoded_for_the_reason() {
        let reason = |report: &str| reported(report).unwrap().reason;
        assert_eq!(
            reason("state=blocked:kind=permission:msg=YXBwcm92ZSBCYXNoOiB0b3VjaCBtYWRl"),
            "it reports that it is waiting for you: permission (approve Bash: touch made)"
        );
        // Control characters; not base64, not text, empty.
        assert_eq!(
            reason("state=done:msg=YQobWzMxbWI="),
            "it reports that its turn is over (a [31mb)"
        );
        for msg in ["%%%", "gICA", ""] {
            assert_eq!(
                reason(&format!("state=done:msg={msg}")),
                "it reports that its turn is over"
            );
        }
        let long = reason(&format!("state=done:msg={}", "YWFh".repeat(1_000)));
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn a_hook_is_trusted_until_the_screen_has_contradicted_it_for_long() {
        let rest = snapshot("✳ x", "", &[]);
        check(&rest, Some((ActivityState::Working, SHORT)), LONG, ActivityState::Working);
        check(&rest, Some((ActivityState::Working, LONG)), SHORT, ActivityState::Working);
        // Escape ends a turn, and no hook reports that.
        check(&rest, Some((ActivityState::Working, LONG)), LONG, ActivityState::Idle);
        let turn = snapshot("◐ x", "", &[]);
        check(&turn, Some((ActivityState::Blocked, SHORT)), SHORT, ActivityState::Blocked);
        check(&turn, Some((ActivityState::Blocked, LONG)), LONG, ActivityState::Working);
    }

    #[test]
    fn a_hook_of_a_cli_that_draws_late_but_reports_every_end_is_trusted_for_longer() {
        let preset = Catalogue::read(None).presets.remove("opencode").unwrap().preset.unwrap();
        let rest = snapshot("OpenCode", "", &["   tab agents  ctrl+p commands"]);
        let state_after = |hook: &str, time: Duration| {
            let hook = HookEvent {
                event: hook.into(),
                state: ActivityState::Working,
                background: false,
                limit: None,
            };
            let evidence = Evidence { hook: Some((&hook, time)), ..Evidence::of(&rest) };
            agent(&preset, evidence, time).state
        };
        assert_eq!(seen_now(&preset, &rest).unwrap().state, ActivityState::Idle);
        for hook in ["turn", "works"] {
            assert_eq!(
                state_after(hook, Duration::from_secs(30)),
                ActivityState::Working,
                "{hook}"
            );
            // Its plugin may have died.
            assert_eq!(state_after(hook, 2 * LONG), ActivityState::Idle, "{hook}");
        }
    }

    #[test]
    fn without_evidence_the_activity_is_unknown_and_a_report_is_evidence() {
        check(&snapshot("", "", &["some text"]), None, LONG, ActivityState::Unknown);
        check(&snapshot("", "state=clear", &[]), None, LONG, ActivityState::Unknown);
        check(&snapshot("", "state=working:app=x", &[]), None, LONG, ActivityState::Working);
        check(&snapshot("", "state=blocked:kind=auth", &[]), None, LONG, ActivityState::Blocked);
        check(&snapshot("", "state=error", &[]), None, LONG, ActivityState::Idle);
    }

    #[test]
    fn a_failed_turn_is_distinguished_from_a_finished_one() {
        let rest = snapshot("✳ x", "", &[]);
        let reason = |event: &str| {
            let word = HookEvent {
                event: event.into(),
                state: ActivityState::Idle,
                background: false,
                limit: None,
            };
            let hook = Some((&word, SHORT));
            let evidence = Evidence {
                snapshot: &rest,
                quiet: LONG,
                printed: true,
                hook,
                held: None,
                past_limit: false,
            };
            agent(&claude(), evidence, SHORT).reason
        };
        assert_eq!(reason("StopFailure"), "its last turn failed: hook StopFailure");
        assert_eq!(reason("Stop"), "its turn is over (hook Stop)");
        let failed = |report: &str| reported(report).unwrap().reason.starts_with(FAILED);
        assert!(failed("state=error:app=codex") && !failed("state=done:app=codex"));
    }

    #[test]
    fn without_rules_quiet_output_is_the_only_evidence() {
        let generic = Catalogue::read(None).presets.remove("generic").unwrap().preset.unwrap();
        let snapshot = snapshot("x", "", &["text"]);
        let state = |quiet, printed| {
            let evidence = Evidence {
                snapshot: &snapshot,
                quiet,
                printed,
                hook: None,
                held: None,
                past_limit: false,
            };
            agent(&generic, evidence, LONG).state
        };
        assert_eq!(state(SHORT, true), ActivityState::Working);
        assert_eq!(state(SHORT, false), ActivityState::Unknown, "it was not seen to print");
        assert_eq!([true, false].map(|printed| state(LONG, printed)), [ActivityState::Idle; 2]);
    }
}
