//! What others know of an agent and its observer must hear: hooks' words, and turns submitted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::judge::{HookWord, LimitWord, named_end};
use super::screen_snapshot::ScreenSnapshot;
use super::tracker::Pending;
use crate::activity_state::{Activity, ActivityState};
use crate::presets::{Limit, Preset};

/// Turns that hooks told of and that may still be asked for: a few seconds' worth.
const TURNS: usize = 16;

/// How long a CLI may be kept from its first turn for want of patterm's tools.
const TOOLS_PATIENCE: Duration = Duration::from_secs(4);

/// How long a CLI may take from patterm's answer to having the tools: in 30 starts none took longer.
const TOOLS_SETTLE: Duration = Duration::from_millis(300);

/// A hook's word, when it came, and what it was given.
#[derive(Debug, Clone)]
pub struct HookReport {
    pub word: HookWord,
    pub at: Instant,
}

/// What a hook said of the conversation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Its id.
    pub conversation: Option<String>,
    /// It has only begun.
    pub fresh: bool,
    /// The text of a turn that was taken in it.
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
    /// As something that pends from now on.
    pub(crate) fn pending(&self, now: Duration) -> Pending {
        Pending { what: self.what, until: now + self.hold }
    }
}

#[derive(Debug, Default)]
struct Inner {
    preset: Option<Arc<Preset>>,
    heard: Option<HookReport>,
    /// Texts of turns that hooks said were taken.
    taken: VecDeque<(Instant, String)>,
    submitted: Option<Submitted>,
    /// Since when its prompt is there, and when it was last seen to work.
    prompt_seen: Option<Instant>,
    worked: Option<(Instant, String)>,
    /// It was last seen to rest, whatever waits for it.
    rests: bool,
    /// Its CLI has asked for patterm's tools.
    has_tools: bool,
    /// The files that its CLI has open have told its conversation.
    told_by_files: bool,
}

/// What is known of one process beside its screen.
#[derive(Debug, Default)]
pub struct AgentSignals {
    inner: Mutex<Inner>,
    /// Notified when there is something new.
    pub(crate) wakeup: Notify,
    /// Notified when its CLI asks for patterm's tools.
    tools: Notify,
}

impl AgentSignals {
    /// Says which CLI it is; a new run begins without what was said of the old one.
    pub fn begin(&self, preset: Option<Arc<Preset>>) {
        let mut inner = self.lock();
        let submitted = inner.submitted.take();
        *inner = Inner { preset, submitted, ..Inner::default() };
    }

    /// Which CLI it is; `None` for what is no agent.
    pub fn preset(&self) -> Option<Arc<Preset>> {
        self.lock().preset.clone()
    }

    /// A hook of its CLI says something. Returns what that says of the conversation.
    pub fn hear(&self, event: &str, given: &Value) -> Said {
        let mut inner = self.lock();
        let Some(preset) = inner.preset.clone() else { return Said::default() };
        let Some(hook) = preset.hooks.get(event) else { return Said::default() };
        let at = Instant::now();
        let mut said = Said::default();
        let text = |pointer: &Option<String>| {
            let found = given.pointer(pointer.as_deref()?)?;
            Some(found.as_str()?.to_owned())
        };
        said.turn = text(&hook.prompt);
        if let Some(turn) = &said.turn {
            if inner.taken.len() == TURNS {
                inner.taken.pop_front();
            }
            inner.taken.push_back((at, turn.clone()));
        }
        said.conversation = text(&hook.conversation).filter(|id| !id.is_empty());
        said.fresh = hook.fresh.as_ref().is_some_and(|fresh| {
            let word = given.pointer(&fresh.at).and_then(Value::as_str);
            word.is_some_and(|word| fresh.words.iter().any(|known| known == word))
        });
        if let Some(state) = hook.state {
            let background = hook.background.as_deref().and_then(|at| given.pointer(at));
            let goes_on = background.is_some_and(is_something);
            let limit = hook.limit.as_ref().and_then(|limit| limited(limit, given));
            let (event, state) = match (goes_on, &limit) {
                (true, _) => {
                    (format!("{event}, with work in the background"), ActivityState::Working)
                }
                (false, Some(_)) => (event.to_owned(), ActivityState::Limited),
                (false, None) => (event.to_owned(), state),
            };
            let word =
                HookWord { event, state, background: goes_on, limit: limit.filter(|_| !goes_on) };
            inner.heard = Some(HookReport { word, at });
        }
        drop(inner);
        self.wakeup.notify_one();
        said
    }

    /// The last word of a hook.
    pub fn heard(&self) -> Option<HookReport> {
        self.lock().heard.clone()
    }

    /// The texts that hooks said were taken since then.
    pub(crate) fn taken_since(&self, since: Instant) -> Vec<String> {
        let inner = self.lock();
        let new = inner.taken.iter().filter(|(at, _)| *at >= since);
        new.map(|(_, text)| text.clone()).collect()
    }

    /// All texts that hooks said were taken.
    pub fn taken(&self) -> Vec<String> {
        self.lock().taken.iter().map(|(_, text)| text.clone()).collect()
    }

    /// A turn was submitted: until something shows of it, or so much time is over, it counts as work.
    pub(crate) fn submitted(&self, what: &'static str, hold: Duration) {
        self.lock().submitted = Some(Submitted { what, hold, at: Instant::now() });
        self.wakeup.notify_one();
    }

    /// Its CLI asks for patterm's tools.
    pub fn note_tools(&self) {
        self.lock().has_tools = true;
        self.tools.notify_waiters();
    }

    /// Returns once a hook may return: at once, or when its CLI has patterm's tools.
    pub async fn may_return(&self, event: &str) {
        let waits =
            |preset: Arc<Preset>| preset.hooks.get(event).is_some_and(|h| h.waits_for_tools);
        if !self.preset().is_some_and(waits) {
            return;
        }
        let has_tools = async {
            loop {
                let told = self.tools.notified();
                if self.lock().has_tools {
                    return;
                }
                told.await;
            }
        };
        if tokio::time::timeout(TOOLS_PATIENCE, has_tools).await.is_ok() {
            tokio::time::sleep(TOOLS_SETTLE).await;
        }
    }

    /// The files that its CLI has open have told its conversation.
    pub(crate) fn note_told_by_files(&self) {
        self.lock().told_by_files = true;
    }

    /// Whether they have, in its present run.
    pub fn told_by_files(&self) -> bool {
        self.lock().told_by_files
    }

    /// Something that its observer looks at beside the screen has changed.
    pub fn notify(&self) {
        self.wakeup.notify_one();
    }

    /// Its prompt is drawn anew: it needs its time as after a start.
    pub(crate) fn warm_up_again(&self) {
        let mut inner = self.lock();
        inner.prompt_seen = inner.prompt_seen.map(|_| Instant::now());
    }

    /// Since when its prompt is there.
    pub(crate) fn prompt_seen(&self) -> Option<Instant> {
        self.lock().prompt_seen
    }

    /// Whether it was last seen to rest, though its first instructions may wait for it.
    pub fn rests(&self) -> bool {
        self.lock().rests
    }

    /// When it was last seen to work, and by what.
    pub fn worked(&self) -> Option<(Instant, String)> {
        self.lock().worked.clone()
    }

    /// What its observer sees.
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

    pub(crate) fn take_submitted(&self) -> Option<Submitted> {
        self.lock().submitted.take()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a CLI's words for a limit that are kept: a line or two.
const LIMIT_BYTES: usize = 400;

/// What a hook says of a limit, where it says that there is one.
fn limited(limit: &Limit, given: &Value) -> Option<LimitWord> {
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
    Some(LimitWord { text, until })
}

/// Whether a value names anything that goes on.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Bool(true) => true,
    }
}
