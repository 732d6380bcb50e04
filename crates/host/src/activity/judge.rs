//! From evidence to a verdict, in this order: the process ended, a hook tells of a limit, a limit or a
//! blocker is seen, a hook's word, the program's own report, title or progress, footer, quiet output.
//! What says nothing is unknown, which is never idle.
//!
//! What users and models wrote stands on the same screen. Rules look only where that cannot stand: at the
//! rows below the prompt box, at what stands in its place, at rows that begin with a mark which nothing
//! that was said can have there.

use std::collections::BTreeMap;
use std::time::Duration;

use patterm_screen::decode_base64;

use super::glimpse::Glimpse;
use super::verdict::{State, Verdict};
use crate::presets::{Preset, Rule};

/// A hook that says otherwise than the screen is believed for this long: hooks are not told of
/// everything (Escape ends a turn without one), and screens lag behind.
const HOOK_PATIENCE: Duration = Duration::from_secs(2);

/// The same for a hook that says that something goes on in the background. Its end begins a turn, of which
/// hooks tell; one that a person ends by hand is only seen to be gone from the footer, which other
/// words may cover for some seconds.
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(10);

/// The last word of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookWord {
    /// The name of the event.
    pub(crate) event: String,
    pub(crate) state: State,
    /// Something goes on although the turn is over.
    pub(crate) background: bool,
    /// What it says of a limit.
    pub(crate) limit: Option<LimitWord>,
}

impl HookWord {
    /// How long it is believed against what the screen says.
    pub(crate) fn patience(&self) -> Duration {
        if self.background { BACKGROUND_PATIENCE } else { HOOK_PATIENCE }
    }
}

/// What a hook says of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LimitWord {
    /// The CLI's words for it.
    pub(crate) text: String,
    /// When it ends, as the CLI says it.
    pub(crate) until: Option<String>,
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
    /// How long rules have held that must hold for some time; `None` where they count at once.
    pub(crate) held: Option<&'a Held>,
    /// The time has passed at which the limit that is told of was to end: it counts no more.
    pub(crate) past_limit: bool,
}

/// How long rules have held, by their names.
pub(crate) type Held = BTreeMap<String, Duration>;

/// The rules that hold now, of those that must hold for some time.
pub(crate) fn holding<'a>(
    preset: &'a Preset,
    glimpse: &'a Glimpse,
) -> impl Iterator<Item = (&'a str, Duration)> {
    let evidence = Evidence::of(glimpse);
    let slow = preset.rules.iter().filter(|(_, rule)| !rule.for_ms.is_zero());
    let holds = slow.filter(move |(name, rule)| matched(name, rule, evidence).is_some());
    holds.map(|(name, rule)| (name.as_str(), rule.for_ms))
}

impl<'a> Evidence<'a> {
    /// A screen at this moment, of which nothing else is known.
    fn of(glimpse: &'a Glimpse) -> Self {
        Self {
            glimpse,
            quiet: Duration::ZERO,
            printed: false,
            hook: None,
            held: None,
            past_limit: false,
        }
    }
}

/// What a screen says by itself: a limit and a blocker first, then the program's own report, its
/// title, its footer.
pub(crate) fn seen(preset: &Preset, evidence: Evidence<'_>) -> Option<Verdict> {
    let report = reported(&evidence.glimpse.report);
    let by_rules = |tier: fn(&Rule) -> bool| {
        let counts = |rule: &Rule| {
            let is_outranked = rule.is_by_title() && report.is_some();
            let is_past = rule.state == State::Limited && evidence.past_limit;
            !is_outranked && !is_past
        };
        strongest(preset, |rule| tier(rule) && counts(rule), evidence)
    };
    let asked = by_rules(|rule| matches!(rule.state, State::Limited | State::Blocked));
    let by_text = || by_rules(|rule| !rule.is_by_title());
    let shown = || match by_rules(Rule::is_by_title) {
        // A title may forget the background, too.
        Some(rest) if rest.state == State::Idle => {
            Some(by_text().filter(|text| text.state == State::Working).unwrap_or(rest))
        }
        title => title.or_else(by_text),
    };
    let reported = || match report.clone()? {
        // Idle is said only where nothing says otherwise: a report may forget the background.
        rest if rest.state == State::Idle => {
            Some(shown().filter(|shown| shown.state == State::Working).unwrap_or(rest))
        }
        other => Some(other),
    };
    asked.or_else(reported).or_else(shown)
}

/// Whether a screen shows a dialog or a menu: a text that is put in would answer it, whatever else is
/// said of the agent.
pub(crate) fn asks_now(preset: &Preset, glimpse: &Glimpse) -> Option<Verdict> {
    let evidence = Evidence::of(glimpse);
    let report = reported(&glimpse.report);
    let rule =
        |rule: &Rule| rule.state == State::Blocked && !(rule.is_by_title() && report.is_some());
    let blocked = |verdict: &Verdict| verdict.state == State::Blocked;
    strongest(preset, rule, evidence).or_else(|| report.clone().filter(blocked))
}

/// A field of what a program says of its own state.
fn field<'a>(report: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = report.split(':').filter_map(|field| field.split_once('='));
    fields.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Whether a screen shows a turn that goes on, whatever hooks say of it.
pub(crate) fn works_now(preset: &Preset, glimpse: &Glimpse) -> bool {
    seen(preset, Evidence::of(glimpse)).is_some_and(|verdict| verdict.state == State::Working)
}

/// What a program says of its own state (OSC 7501).
pub(crate) fn reported(report: &str) -> Option<Verdict> {
    let state = match field(report, "state")? {
        "working" => State::Working,
        "blocked" => State::Blocked,
        "idle" | "done" | "error" => State::Idle,
        _ => return None,
    };
    let failed = if field(report, "state") == Some("error") { FAILED } else { "" };
    let plain: Vec<_> = report.split(':').filter(|field| !field.starts_with("msg=")).collect();
    let words = field(report, "msg").and_then(report_words).map(|words| format!(" ({words})"));
    let words = words.unwrap_or_default();
    Some(Verdict::new(state, format!("{failed}it reports `{}`{words}", plain.join(":"))))
}

/// Characters of a report's message that a reason shows: as much as a row of a terminal has.
const REPORT_CHARS: usize = 120;

/// The words of a report's message, which come as base64: those of a program, so without control
/// characters and not many. `None` where it is no text.
fn report_words(msg: &str) -> Option<String> {
    let text = String::from_utf8(decode_base64(msg.as_bytes())?).ok()?;
    let text = plain(&text.replace(char::is_control, " "));
    let words: String = text.chars().take(REPORT_CHARS).collect();
    (!words.is_empty()).then_some(words)
}

/// How the reason of a rest begins that came of a failure: of the model's server, of the login.
pub(crate) const FAILED: &str = "its last turn failed: ";

/// Whether a report says that a turn is over, and not only that nothing runs.
pub(crate) fn reports_an_end(report: &str) -> bool {
    ["state=done", "state=error"].iter().any(|end| report.starts_with(end))
}

/// Of rules that are worth the same, the one that is less ready to call it over counts.
fn strongest(
    preset: &Preset,
    tier: impl Fn(&Rule) -> bool,
    evidence: Evidence<'_>,
) -> Option<Verdict> {
    let states = [State::Limited, State::Blocked, State::Working, State::Unknown, State::Idle];
    states.iter().find_map(|state| {
        let rules = preset.rules.iter().filter(|(_, rule)| tier(rule) && rule.state == *state);
        rules.filter_map(|(name, rule)| matched(name, rule, evidence)).next()
    })
}

/// What a screen says at this moment, of which nothing else is known.
#[cfg(test)]
pub(crate) fn seen_now(preset: &Preset, glimpse: &Glimpse) -> Option<Verdict> {
    seen(preset, Evidence::of(glimpse))
}

/// What an agent does. `steady` is how long its screen has said the same.
pub(crate) fn agent(preset: &Preset, evidence: Evidence<'_>, steady: Duration) -> Verdict {
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
            Verdict::limited(format!("it says {}", quoted(&limit.text)), limit.until.clone())
        }
        (None, Some(says)) => Verdict::new(state, format!("{failed}{says} (hook {})", hook.event)),
        (None, None) => Verdict::new(state, format!("{failed}hook {}", hook.event)),
    };
    let Some(seen) = seen else { return word() };
    let contradicted = age.min(steady) >= hook.patience();
    let reports_work =
        || reported(&evidence.glimpse.report).is_some_and(|report| report.state == State::Working);
    match (state, seen.state) {
        // A screen at a limit looks like one at rest, or like one at work that tries again later.
        (State::Limited, State::Working) if contradicted && reports_work() => seen,
        (State::Limited, _) => word(),
        (_, State::Limited | State::Blocked) => seen,
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

/// Text without padding and line ends. An address that goes on in the next row is put together again.
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

/// Characters of one quotation in a reason: a question, or a line or two.
const QUOTE_CHARS: usize = 160;

/// The lowest rows in which a dialog has what it asks.
const QUOTE_ROWS: usize = 24;

/// A text of the screen as a reason shows it: one line, and not a long one.
fn quoted(text: &str) -> String {
    let text = plain(text);
    match text.char_indices().nth(QUOTE_CHARS) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Rows of one hint that a narrow pane breaks: the longest of claude's takes three in 45 columns.
const WRAPPED_ROWS: usize = 3;

/// The lowest row that matches, or the rows that do when they are joined to one.
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

/// What a rule quotes of rows, each quotation once.
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

/// Whether a row says something, and is not only a line that is drawn.
fn has_words(row: &str) -> bool {
    row.chars().any(char::is_alphanumeric)
}

/// The lowest rows as lines, highest first, without the borders of a box around them.
fn as_lines(rows: &[String]) -> String {
    let border = ['│', '┃'];
    let inner = |row: &String| {
        let row = row.trim_end().trim_end_matches(border);
        let bare = row.trim_start();
        bare.strip_prefix(border).unwrap_or(row).trim_end().to_owned()
    };
    rows.iter().rev().map(inner).collect::<Vec<_>>().join("\n")
}

/// Whether a rule holds; the reason names it and shows what it matched.
fn matched(name: &str, rule: &Rule, evidence: Evidence<'_>) -> Option<Verdict> {
    let glimpse = evidence.glimpse;
    if rule.no_prompt && glimpse.composer.is_some() {
        return None;
    }
    let held = |held: &Held| held.get(name).is_some_and(|time| *time >= rule.for_ms);
    if !rule.for_ms.is_zero() && !evidence.held.is_none_or(held) {
        return None;
    }
    if rule.report.as_ref().is_some_and(|report| !report.is_match(&glimpse.report)) {
        return None;
    }
    let rows = glimpse.bottom.get(..rule.rows).unwrap_or(&glimpse.bottom);
    let lowest = glimpse.bottom.first();
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
    // What it depends on, and what of that a reason shows.
    let (mut shown, mut holds, mut until) = (Vec::new(), false, None);
    if let Some(title) = &rule.title {
        if !title.is_match(&glimpse.title) {
            return None;
        }
        (shown, holds) = (vec![format!("title {}", quoted(&glimpse.title))], true);
    }
    if let Some(busy) = rule.progress {
        if glimpse.busy != Some(busy) {
            return None;
        }
        shown.push(format!("progress {}", if busy { "busy" } else { "off" }));
        holds = true;
    }
    if let Some(pattern) = &rule.lowest {
        let row = lowest.filter(|row| pattern.is_match(row))?;
        // What a dialog asks says more than how it ends.
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
    let dialog = glimpse.bottom.get(..rule.rows.max(QUOTE_ROWS)).unwrap_or(&glimpse.bottom);
    let mut looked_at = as_lines(dialog);
    if let Some(above) = &rule.above {
        looked_at = said_above(rule, glimpse)?;
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
    let asked =
        Some(()).filter(|()| rule.state == State::Blocked).and_then(|()| asked(&glimpse.report));
    let quotations = asked.map_or_else(|| quotations(rule, &looked_at), |asked| vec![asked]);
    if !quotations.is_empty() {
        shown = quotations;
    }
    let (says, shown) =
        (rule.says.clone(), Some(shown.join(", ")).filter(|shown| !shown.is_empty()));
    let words = says.into_iter().chain(shown).collect::<Vec<_>>().join(": ");
    Some(match rule.state {
        State::Limited if rule.says.is_some() => Verdict::limited(words, until),
        State::Limited => Verdict::limited(format!("it says {words}"), until),
        state if words.is_empty() => Verdict::new(state, name),
        state => Verdict::new(state, format!("{name}: {words}")),
    })
}

/// What a program says that it asks, where its own report has words for it (OSC 7501).
fn asked(report: &str) -> Option<String> {
    let (state, words) = (field(report, "state")?, field(report, "msg").and_then(report_words)?);
    (state == "blocked").then(|| format!("`{words}`"))
}

/// What stands above the prompt box since the last turn began.
fn said_above(rule: &Rule, glimpse: &Glimpse) -> Option<String> {
    glimpse.composer.as_ref()?;
    let begins = |row: &&String| rule.since.as_ref().is_some_and(|since| since.is_match(row));
    let rows = glimpse.bottom.iter().skip(glimpse.live).take_while(|row| !begins(row));
    let mut rows: Vec<_> = rows.map(|row| row.trim_end()).collect();
    rows.reverse();
    Some(rows.join("\n"))
}

/// What the group `until` of a pattern finds: when a limit ends.
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
        let word = hook.map(|(state, _)| HookWord {
            event: "Event".into(),
            state,
            background: false,
            limit: None,
        });
        let hook = word.as_ref().zip(hook.map(|(_, age)| age));
        let evidence =
            Evidence { glimpse, quiet: LONG, printed: true, hook, held: None, past_limit: false };
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
    fn work_in_the_background_is_believed_while_the_footer_or_the_hook_says_it() {
        let report = "state=done:app=claude-code";
        let footer = "  ⏵⏵ auto mode on · 1 shell · ← for agents · ↓ to manage";
        let prompt = ["─".repeat(40), "❯\u{a0}".into()];
        let with = |footer: &str| glimpse("Claude Code", report, &[footer, &prompt[0], &prompt[1]]);
        let (runs, over) = (with(footer), with("  ⏵⏵ auto mode on (shift+tab to cycle)"));
        let verdict = |glimpse: &Glimpse, age| {
            let event = "Stop, with work in the background".into();
            let word = HookWord { event, state: State::Working, background: true, limit: None };
            let hook = Some((&word, age));
            let evidence = Evidence {
                glimpse,
                quiet: LONG,
                printed: true,
                hook,
                held: None,
                past_limit: false,
            };
            agent(&claude(), evidence, age).state
        };
        assert_eq!(verdict(&runs, LONG), State::Working, "the report `done` is wrong about it");
        assert_eq!(verdict(&over, HOOK_PATIENCE), State::Working, "other words cover the footer");
        assert_eq!(verdict(&over, LONG), State::Idle, "a person ended it, and no hook told");
    }

    #[test]
    fn what_a_person_typed_is_no_footer() {
        let border = "─".repeat(40);
        let rows = ["  ⏵⏵ auto mode on", &border, "❯\u{a0}start · 1 shell · in it"];
        check(&glimpse("", "state=done:app=claude-code", &rows), None, LONG, State::Idle);
    }

    #[test]
    fn the_words_of_a_title_do_not_count_where_the_program_reports_its_state() {
        let title = "◐ a title that a model chose";
        check(&glimpse(title, "", &[]), None, LONG, State::Working);
        check(&glimpse(title, "state=done:app=claude-code", &[]), None, LONG, State::Idle);
    }

    #[test]
    fn a_limit_that_a_hook_tells_holds_until_a_turn_is_reported() {
        let limit = LimitWord { text: "used up".into(), until: Some("3pm".into()) };
        let event = "StopFailure".to_owned();
        let word = HookWord { event, state: State::Limited, background: false, limit: Some(limit) };
        let told = |report: &str| {
            let glimpse = glimpse("", report, &[]);
            let hook = Some((&word, LONG));
            let evidence = Evidence {
                glimpse: &glimpse,
                quiet: LONG,
                printed: true,
                hook,
                held: None,
                past_limit: false,
            };
            agent(&claude(), evidence, LONG)
        };
        let limited = told("state=error:app=claude-code");
        assert_eq!(
            (limited.state, limited.limited_until.as_deref()),
            (State::Limited, Some("3pm"))
        );
        assert!(limited.reason.contains("used up"), "{limited:?}");
        assert_eq!(told("state=working:app=claude-code").state, State::Working);
    }

    #[test]
    fn a_limit_counts_no_more_when_it_was_to_end_by_now() {
        let limit = LimitWord { text: "used up".into(), until: Some("3pm".into()) };
        let word = |event: &str| HookWord {
            event: event.into(),
            state: State::Limited,
            background: false,
            limit: Some(limit.clone()),
        };
        let glimpse = glimpse("", "state=error:app=claude-code", &[]);
        let state = |preset: &Preset, word: &HookWord, past_limit| {
            let hook = Some((word, LONG));
            let quiet = Evidence { quiet: LONG, printed: true, ..Evidence::of(&glimpse) };
            agent(preset, Evidence { hook, past_limit, ..quiet }, LONG).state
        };
        let stopped = word("StopFailure");
        assert_eq!(state(&claude(), &stopped, false), State::Limited);
        assert_eq!(state(&claude(), &stopped, true), State::Idle);
        // It waits within its turn, and tells itself when that goes on.
        let opencode = Catalogue::read(None).presets.remove("opencode").unwrap().preset.unwrap();
        assert_eq!(state(&opencode, &word("limited"), true), State::Limited);
    }

    #[test]
    fn a_hint_that_a_narrow_pane_breaks_is_matched_and_other_rows_are_not_joined() {
        let rows = ["  cancel", "  ←/→ to switch · ↓ to select · Esc to", "    1.  Add a rule"];
        check(&glimpse("✳ x", "", &rows), None, LONG, State::Blocked);
        let rows = ["  to cancel", "  Esc", "    1.  Add a rule"];
        check(&glimpse("✳ x", "", &rows), None, LONG, State::Blocked);
        let rows = ["  cancel", "  of something", "  Esc to"];
        check(&glimpse("✳ x", "", &rows), None, LONG, State::Idle);
    }

    #[test]
    fn the_message_of_a_report_is_shown_as_words() {
        let reason = |report: &str| reported(report).unwrap().reason;
        assert_eq!(
            reason("state=blocked:kind=permission:msg=YXBwcm92ZSBCYXNoOiB0b3VjaCBtYWRl"),
            "it reports `state=blocked:kind=permission` (approve Bash: touch made)"
        );
        // Control characters, no base64, no text, nothing.
        assert_eq!(reason("state=done:msg=YQobWzMxbWI="), "it reports `state=done` (a [31mb)");
        for msg in ["%%%", "gICA", ""] {
            assert_eq!(reason(&format!("state=done:msg={msg}")), "it reports `state=done`");
        }
        let long = reason(&format!("state=done:msg={}", "YWFh".repeat(1_000)));
        assert!(long.len() < 200, "{long}");
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
            let word = HookWord {
                event: event.into(),
                state: State::Idle,
                background: false,
                limit: None,
            };
            let hook = Some((&word, SHORT));
            let evidence = Evidence {
                glimpse: &rest,
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
    fn without_rules_a_pause_is_all_there_is_to_see() {
        let generic = Catalogue::read(None).presets.remove("generic").unwrap().preset.unwrap();
        let glimpse = glimpse("x", "", &["text"]);
        let state = |quiet, printed| {
            let evidence = Evidence {
                glimpse: &glimpse,
                quiet,
                printed,
                hook: None,
                held: None,
                past_limit: false,
            };
            agent(&generic, evidence, LONG).state
        };
        assert_eq!(state(SHORT, true), State::Working);
        assert_eq!(state(SHORT, false), State::Unknown, "it was not seen to print");
        assert_eq!([true, false].map(|printed| state(LONG, printed)), [State::Idle; 2]);
    }
}
