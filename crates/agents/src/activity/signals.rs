//! What is known about an agent apart from its screen: reports of hooks, and submitted turns.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::judge::{HookEvent, LimitMessage, named_end};
use super::screen_snapshot::ScreenSnapshot;
use super::tracker::Pending;
use crate::activity_state::{Activity, ActivityState, Dialog};
use crate::presets::{Limit, Preset};

/// How many reported turns are kept for comparison: a few seconds' worth.
const TURNS: usize = 16;

/// How long the hook of a CLI waits for the CLI to have patterm's tools.
const TOOLS_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a CLI may need after patterm's response until it has the tools: the maximum in 30
/// starts.
const TOOLS_SETTLE: Duration = Duration::from_millis(300);

/// What a hook reported, and when.
#[derive(Debug, Clone)]
pub struct HookReport {
    pub event: HookEvent,
    pub at: Instant,
}

/// What a hook reported about the conversation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ConversationReport {
    /// Its id.
    pub conversation: Option<String>,
    /// It is new.
    pub fresh: bool,
    /// The text of a turn that the CLI accepted.
    pub turn: Option<String>,
}

/// A turn that was submitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Submitted {
    what: &'static str,
    hold: Duration,
    pub(crate) at: Instant,
}

impl Submitted {
    /// As a pending turn from now on.
    pub(crate) fn pending(&self, now: Duration) -> Pending {
        Pending { what: self.what, until: now + self.hold }
    }
}

#[derive(Debug, Default)]
struct Inner {
    preset: Option<Arc<Preset>>,
    hook: Option<HookReport>,
    /// Texts of turns that hooks reported.
    turns: VecDeque<(Instant, String)>,
    submitted: Option<Submitted>,
    /// Since when its prompt has been visible, and when and why it last counted as working.
    prompt_seen: Option<Instant>,
    worked: Option<(Instant, String)>,
    /// It was idle at the last check, even if a delivery is waiting.
    rests: bool,
    /// Its CLI has requested patterm's tools.
    has_tools: bool,
    /// Its conversation was found by the files that its CLI has open.
    found_by_files: bool,
    /// The open dialog, and how many there were.
    dialog: Option<String>,
    dialogs: u64,
    /// Since when the screen has shown something else.
    dialog_changed: Option<Instant>,
}

/// What is known about one process apart from its screen.
#[derive(Debug, Default)]
pub struct AgentSignals {
    inner: Mutex<Inner>,
    /// Notified when there is something new.
    pub(crate) wakeup: Notify,
    /// Notified when its CLI requests patterm's tools.
    tools: Notify,
}

impl AgentSignals {
    /// Starts a new run with this preset; what was known about the old run is dropped.
    pub fn begin(&self, preset: Option<Arc<Preset>>) {
        let mut inner = self.lock();
        let (submitted, dialogs) = (inner.submitted.take(), inner.dialogs);
        *inner = Inner { preset, submitted, dialogs, ..Inner::default() };
    }

    /// Its preset; `None` if it is not an agent.
    pub fn preset(&self) -> Option<Arc<Preset>> {
        self.lock().preset.clone()
    }

    /// Records the report of a hook, which its CLI made `age` ago. Returns what it says about the
    /// conversation.
    pub fn record_hook(&self, event: &str, given: &Value, age: Duration) -> ConversationReport {
        let mut inner = self.lock();
        let Some(preset) = inner.preset.clone() else { return ConversationReport::default() };
        let Some(hook) = preset.hooks.get(event) else { return ConversationReport::default() };
        let now = Instant::now();
        let at = now.checked_sub(age).unwrap_or(now);
        let mut report = ConversationReport::default();
        let text = |pointer: &Option<String>| {
            let found = given.pointer(pointer.as_deref()?)?;
            Some(found.as_str()?.to_owned())
        };
        report.turn = text(&hook.prompt);
        if let Some(turn) = &report.turn {
            if inner.turns.len() == TURNS {
                inner.turns.pop_front();
            }
            inner.turns.push_back((at, turn.clone()));
        }
        report.conversation = text(&hook.conversation).filter(|id| !id.is_empty());
        report.fresh = hook.fresh.as_ref().is_some_and(|fresh| {
            let word = given.pointer(&fresh.at).and_then(Value::as_str);
            word.is_some_and(|word| fresh.words.iter().any(|known| known == word))
        });
        // Reports of CLIs that run several hooks at once may overtake each other.
        let is_newest = inner.hook.as_ref().is_none_or(|newest| newest.at <= at);
        if let Some(state) = hook.state.filter(|_| is_newest) {
            let background = hook.background.as_deref().and_then(|at| given.pointer(at));
            let in_background = background.is_some_and(is_nonempty);
            let limit = hook.limit.as_ref().and_then(|limit| limited(limit, given));
            let (name, state) = match (in_background, &limit) {
                (true, _) => {
                    (format!("{event}, with work in the background"), ActivityState::Working)
                }
                (false, Some(_)) => (event.to_owned(), ActivityState::Limited),
                (false, None) => (event.to_owned(), state),
            };
            let event = HookEvent {
                event: name,
                state,
                background: in_background,
                limit: limit.filter(|_| !in_background),
            };
            inner.hook = Some(HookReport { event, at });
        }
        drop(inner);
        self.wakeup.notify_one();
        report
    }

    /// The last report of a hook that states an activity.
    pub fn last_hook(&self) -> Option<HookReport> {
        self.lock().hook.clone()
    }

    /// The texts of turns that hooks reported since then.
    pub(crate) fn turns_since(&self, since: Instant) -> Vec<String> {
        let inner = self.lock();
        let new = inner.turns.iter().filter(|(at, _)| *at >= since);
        new.map(|(_, text)| text.clone()).collect()
    }

    /// The texts of all turns that hooks reported.
    pub fn turns(&self) -> Vec<String> {
        self.lock().turns.iter().map(|(_, text)| text.clone()).collect()
    }

    /// Records that a turn was submitted. It counts as work for `hold`, or until its effect is
    /// visible.
    pub(crate) fn submitted(&self, what: &'static str, hold: Duration) {
        self.lock().submitted = Some(Submitted { what, hold, at: Instant::now() });
        self.wakeup.notify_one();
    }

    /// Records that its CLI requested patterm's tools.
    pub fn note_tools(&self) {
        self.lock().has_tools = true;
        self.tools.notify_waiters();
    }

    /// Waits until a hook may return: at once, or when its CLI has patterm's tools.
    pub async fn may_return(&self, event: &str) {
        let waits =
            |preset: Arc<Preset>| preset.hooks.get(event).is_some_and(|h| h.waits_for_tools);
        if !self.preset().is_some_and(waits) {
            return;
        }
        let has_tools = async {
            loop {
                let notified = self.tools.notified();
                if self.lock().has_tools {
                    return;
                }
                notified.await;
            }
        };
        if tokio::time::timeout(TOOLS_TIMEOUT, has_tools).await.is_ok() {
            tokio::time::sleep(TOOLS_SETTLE).await;
        }
    }

    /// Records that its conversation was found by the files that its CLI has open.
    pub(crate) fn note_found_by_files(&self) {
        self.lock().found_by_files = true;
    }

    /// Whether its conversation was found that way in the current run.
    pub fn found_by_files(&self) -> bool {
        self.lock().found_by_files
    }

    /// Wakes up its observer: something other than the screen has changed.
    pub fn notify(&self) {
        self.wakeup.notify_one();
    }

    /// Restarts the warm-up of the prompt, which the CLI redraws.
    pub(crate) fn warm_up_again(&self) {
        let mut inner = self.lock();
        inner.prompt_seen = inner.prompt_seen.map(|_| Instant::now());
    }

    /// Since when its prompt has been visible.
    pub(crate) fn prompt_seen(&self) -> Option<Instant> {
        self.lock().prompt_seen
    }

    /// Whether it was idle at the last check, even if its first instructions are waiting.
    pub fn rests(&self) -> bool {
        self.lock().rests
    }

    /// When it last counted as working, and why.
    pub fn worked(&self) -> Option<(Instant, String)> {
        self.lock().worked.clone()
    }

    /// Records the result of a check.
    pub(crate) fn note(&self, snapshot: &ScreenSnapshot, activity: &Activity) {
        let now = Instant::now();
        let mut inner = self.lock();
        if snapshot.composer.is_some() {
            inner.prompt_seen.get_or_insert(now);
        }
        inner.rests = activity.state == ActivityState::Idle;
        if activity.state == ActivityState::Working {
            inner.worked = Some((now, activity.reason.clone()));
        }
    }

    /// Records the dialog on the screen, and numbers it: one that opens again is another, even with the same text. The
    /// open one is replaced or forgotten only after `settle`: until then, the rest of a frame may show it again, and
    /// people have its version. Returns how much of that time is left.
    pub(crate) fn note_dialog(
        &self,
        dialog: Option<&mut Dialog>,
        settle: Duration,
    ) -> Option<Duration> {
        let now = Instant::now();
        let mut inner = self.lock();
        let text = dialog.as_ref().map(|dialog| dialog.version.clone());
        let mut left = None;
        if inner.dialog == text {
            inner.dialog_changed = None;
        } else {
            let since = *inner.dialog_changed.get_or_insert(now);
            left = settle.checked_sub(now - since).filter(|left| !left.is_zero());
            if inner.dialog.is_none() || left.is_none() {
                inner.dialogs += u64::from(text.is_some());
                (inner.dialog, inner.dialog_changed, left) = (text, None, None);
            }
        }
        if let Some(dialog) = dialog {
            // If this one stays, it gets the next number.
            let number = inner.dialogs + u64::from(left.is_some());
            dialog.version = version(number, &dialog.version);
        }
        left
    }

    /// Whether a dialog on the screen is the one with this version.
    pub(crate) fn is_dialog(&self, wanted: &str, on_screen: &Dialog) -> bool {
        let inner = self.lock();
        let is_open = inner.dialog.as_ref() == Some(&on_screen.version);
        // One that has just replaced the open one has the next number.
        let replaces = !is_open && inner.dialog_changed.is_some();
        let number = inner.dialogs + u64::from(replaces);
        (is_open || replaces) && wanted == version(number, &on_screen.version)
    }

    /// Records that the open dialog was answered: if the same text is there again, it is another dialog.
    pub(crate) fn dialog_answered(&self) {
        let mut inner = self.lock();
        // It may be one that has just replaced another.
        inner.dialogs += u64::from(inner.dialog_changed.is_some());
        (inner.dialog, inner.dialog_changed) = (None, None);
        drop(inner);
        self.notify();
    }

    pub(crate) fn take_submitted(&self) -> Option<Submitted> {
        self.lock().submitted.take()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What people and clients get as the version of a dialog.
fn version(number: u64, text: &str) -> String {
    format!("{number}-{text}")
}

/// How many bytes of a CLI's message about a limit are kept: a line or two.
const LIMIT_BYTES: usize = 400;

/// The limit that a hook reports, if it reports one.
fn limited(limit: &Limit, given: &Value) -> Option<LimitMessage> {
    let text_at = |pointer: &str| given.pointer(pointer).and_then(Value::as_str);
    if let (Some(kind), Some(is)) = (&limit.kind, &limit.is)
        && !text_at(kind).is_some_and(|kind| is.is_match(kind))
    {
        return None;
    }
    let all = text_at(&limit.text).unwrap_or_default();
    let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
    let fits = (0..=LIMIT_BYTES.min(all.len())).rev().find(|at| all.is_char_boundary(*at));
    let text = all[..fits.unwrap_or(0)].to_owned();
    let until = limit.until.as_ref().and_then(|until| named_end(until, &text));
    Some(LimitMessage { text, until })
}

/// Whether a value names any background work.
fn is_nonempty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Bool(true) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Duration = Duration::from_millis(50);

    fn dialog(text: &str) -> Dialog {
        let (question, rule) = (String::new(), String::new());
        let version = text.to_owned();
        Dialog { version, question, options: Vec::new(), ways: Vec::new(), cursor: None, rule }
    }

    /// What a check shows; returns the version that people get.
    fn check(signals: &AgentSignals, text: Option<&str>) -> Option<String> {
        let mut shown = text.map(dialog);
        signals.note_dialog(shown.as_mut(), FRAME);
        shown.map(|dialog| dialog.version)
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_is_being_drawn_does_not_make_a_dialog_another_one() {
        let signals = AgentSignals::default();
        assert_eq!(check(&signals, Some("push")).as_deref(), Some("1-push"));
        for torn in [None, Some("pu")] {
            check(&signals, torn);
            assert!(signals.is_dialog("1-push", &dialog("push")), "{torn:?}");
            tokio::time::advance(FRAME * 2).await;
            assert_eq!(check(&signals, Some("push")).as_deref(), Some("1-push"), "{torn:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_dialog_that_opens_again_or_changes_is_another_one() {
        let signals = AgentSignals::default();
        check(&signals, Some("push"));
        assert_eq!(signals.note_dialog(None, FRAME), Some(FRAME), "it is checked again then");
        tokio::time::advance(FRAME).await;
        assert_eq!(signals.note_dialog(None, FRAME), None);
        assert_eq!(check(&signals, Some("push")).as_deref(), Some("2-push"));
        assert_eq!(check(&signals, Some("pull")).as_deref(), Some("3-pull"));
        assert!(signals.is_dialog("3-pull", &dialog("pull")), "a person may answer it at once");
        assert!(!signals.is_dialog("2-push", &dialog("pull")));
        tokio::time::advance(FRAME).await;
        assert_eq!(check(&signals, Some("pull")).as_deref(), Some("3-pull"));
        assert!(signals.is_dialog("3-pull", &dialog("pull")));
        signals.dialog_answered();
        assert_eq!(check(&signals, Some("pull")).as_deref(), Some("4-pull"));
        check(&signals, Some("merge"));
        signals.dialog_answered();
        assert!(!signals.is_dialog("5-merge", &dialog("merge")), "it was answered");
        assert_eq!(check(&signals, Some("merge")).as_deref(), Some("6-merge"));
    }
}
