//! Observes processes: one task per run. It checks the process when it prints, when a hook reports,
//! and when a deadline passes. A process that does nothing costs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Local};
use rustix::termios::tcgetpgrp;
use tokio::time::Instant;

use crate::activity::census::Census;
use crate::activity::judge::{self, Evidence};
use crate::activity::limit_end::limit_end;
use crate::activity::program::{self, Foreground, ProgramEvidence};
use crate::activity::signals::{AgentSignals, HookReport};
use crate::activity::tracker::{Observation, Tracker};
use crate::activity::{Activities, Activity, ActivityState, NOT_INSTRUCTED, ScreenSnapshot, ended};
use crate::agent_recorder::AgentRecorder;
use crate::conversations::Conversations;
use crate::delivery::Deliveries;
use crate::presets::{Preset, Presets};
use patterm_panes::Panes;
use patterm_panes::data_plane::{ProcessRun, RunProgress};
use patterm_panes::process::{Attention, Kind};
use patterm_store::clock::Clock;

/// The shortest interval between two checks of an agent: a spinner turns ten times a second.
const AGENT_PAUSE: Duration = Duration::from_millis(50);

/// The same for other programs, which show less.
const PROGRAM_PAUSE: Duration = Duration::from_millis(500);

/// How long a change of a dialog must last to count: a program may take that long to draw one frame.
const FRAME: Duration = Duration::from_millis(50);

/// The same while the program says that it is drawing a frame. One that never says that it is done must not keep its
/// dialog forever.
const SYNCHRONIZED_FRAME: Duration = Duration::from_secs(1);

/// How often a working agent's open files are searched for its conversation.
const CONVERSATION_PAUSE: Duration = Duration::from_secs(2);

/// A tick of the kernel's clock, as reported to programs on Linux.
const TICK: Duration = Duration::from_millis(10);

/// The share of one CPU from which a program counts as busy: an event loop that only waits uses
/// less.
const BUSY: f32 = 0.03;

/// How often the clock is checked while an agent is limited: timers do not count the time that a
/// machine was asleep.
const CLOCK_PAUSE: Duration = Duration::from_secs(60);

/// After this much continuous work, a failure or a limit is over. An agent that retries at a limit
/// works for a moment each time.
const OVER_AFTER: Duration = Duration::from_secs(5);

/// How the attention reason of an agent at a limit begins.
const LIMIT_REASONS: [&str; 2] = ["limited until ", "limited: "];

/// One run under observation.
struct Observer {
    context: Arc<Observers>,
    run: Arc<ProcessRun>,
    signals: Arc<AgentSignals>,
    tracker: Tracker,
    began: Instant,
    /// When it last printed.
    printed: Option<Instant>,
    /// What its processes did at the last measurement.
    load: Load,
    /// How many checks in a row have shown nothing new.
    checks: u32,
    /// The state that its screen shows, and since when.
    seen: Option<(ActivityState, Instant)>,
    /// Since when each rule with a minimum duration has matched.
    held: BTreeMap<String, Instant>,
    /// When a turn was last submitted, and the number of reports at that time.
    submitted: Option<(Instant, u64)>,
    reports: u64,
    /// When its conversation was last searched for, and its state at that time.
    searched: Option<(Instant, ActivityState)>,
    /// It was seen to work on a turn.
    had_turn: bool,
    /// It was seen to work on a turn that has not failed yet. A failure that an earlier server saw
    /// is not reported again.
    worked: bool,
    /// Whether it was limited at the last check; `None` before the first.
    limited: Option<bool>,
    /// Since when it has worked without a pause.
    working_since: Option<Instant>,
    /// It was seen to work since it last requested attention because of its state.
    turned: bool,
    /// Such a request may be open; an earlier server may have made it.
    called: bool,
    /// The end of a limit in the words of its CLI, and as a time.
    limit_end: Option<(String, Option<DateTime<Local>>)>,
    recorder: AgentRecorder,
}

/// What the processes of a run did at the last measurement.
#[derive(Debug, Default)]
struct Load {
    census: Census,
    /// When its CPU time was last compared, and its value.
    compared: Option<(Instant, u64)>,
    /// Whether CPU was used between the last two comparisons.
    busy: Option<bool>,
}

impl Load {
    fn take(&mut self, census: Census, now: Instant) {
        self.census = census;
        let Some((at, ticks)) = self.compared else {
            self.compared = Some((now, census.ticks));
            return;
        };
        let passed = now - at;
        if passed >= program::LOAD_PAUSE.mul_f32(0.9) {
            let used = TICK.saturating_mul(
                u32::try_from(census.ticks.saturating_sub(ticks)).unwrap_or(u32::MAX),
            );
            self.busy = Some(used >= passed.mul_f32(BUSY));
            self.compared = Some((now, census.ticks));
        }
    }
}

/// The parts that observers use.
#[derive(Debug)]
pub(crate) struct Observers {
    pub(crate) panes: Arc<Panes>,
    pub(crate) presets: Arc<Presets>,
    pub(crate) activities: Arc<Activities>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) conversations: Arc<Conversations>,
}

impl Observers {
    /// Observes every run from its beginning to its end.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            for run in self.panes.next_started().await {
                tokio::spawn(observe(self.clone(), run));
            }
        }
    }
}

/// Observes a run to its end.
async fn observe(context: Arc<Observers>, run: Arc<ProcessRun>) {
    let Some(process) = context.panes.processes.get(&run.id) else { return };
    let preset = context.presets.of(&process);
    let signals = context.activities.signals(&run.id);
    signals.begin(preset.clone());
    if !run.watch().borrow().is_over() {
        // Until then, its screen is no evidence.
        run.rebuilt().await;
    }
    let now = Instant::now();
    let recorder = AgentRecorder::new(context.panes.events().clone(), run.clone());
    let observer = Observer {
        context,
        run,
        signals,
        tracker: Tracker::default(),
        began: now,
        printed: None,
        load: Load::default(),
        checks: 0,
        seen: None,
        held: BTreeMap::new(),
        submitted: None,
        reports: 0,
        searched: None,
        had_turn: false,
        worked: false,
        limited: None,
        working_since: None,
        turned: false,
        called: true,
        limit_end: None,
        recorder,
    };
    observer.run(process.kind, preset).await;
}

impl Observer {
    async fn run(mut self, kind: Kind, preset: Option<Arc<Preset>>) {
        let pause = if preset.is_some() { AGENT_PAUSE } else { PROGRAM_PAUSE };
        let (mut progress, mut end) = (self.run.watch(), self.run.watch_life());
        let mut parsed = progress.borrow().parsed;
        loop {
            let here = *progress.borrow_and_update();
            if here.is_over() {
                break;
            }
            if std::mem::replace(&mut parsed, here.parsed) != here.parsed {
                self.printed = Some(Instant::now());
                self.checks = 0;
            }
            let observation = match &preset {
                Some(preset) => self.check_agent(preset),
                None => self.check_program(kind).await,
            };
            let mut again = observation.again;
            if preset.is_some() {
                let drawn = self.recorder.note(&observation.activity, Instant::now());
                again = [again, drawn].into_iter().flatten().min();
            }
            self.publish(observation);
            // The end of the run is handled at once: until then, its resources cannot be released.
            // It has its own receiver, so that output printed during the pause still counts as new
            // below.
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                over = end.wait_for(RunProgress::is_over) => if over.is_ok() { continue } else { return },
            }
            tokio::select! {
                changed = progress.changed() => if changed.is_err() { return },
                () = self.signals.wakeup.notified() => {}
                () = later(again) => {}
            }
        }
        self.recorder.end(Instant::now());
        self.run.noted().await;
        if let Some(process) = self.context.panes.processes.get(&self.run.id)
            && process.runs == self.run.number
        {
            // A process that may be restored does not count as settled.
            let settled = !process.awaits_decision();
            self.publish(Observation { activity: ended(&process), settled, again: None });
        }
    }

    fn publish(&self, observation: Observation) {
        // Ignored if another run has started since.
        if self.context.panes.run_of(&self.run.id).is_some_and(|run| run.number == self.run.number)
        {
            self.context.activities.set(&self.run.id, observation.activity, observation.settled);
        }
    }

    fn check_agent(&mut self, preset: &Preset) -> Observation {
        let screen = self.run.screen();
        let snapshot = ScreenSnapshot::of(&screen, Some(preset));
        let settle = if screen.modes().synchronized { SYNCHRONIZED_FRAME } else { FRAME };
        drop(screen);
        let now = Instant::now();
        self.reports = snapshot.reports;
        self.note_submitted();
        // Until the effect of a submitted turn is visible, reports from before it say nothing.
        let is_outdated = |hook: &HookReport| {
            self.tracker.is_pending() && self.submitted.is_some_and(|(at, _)| hook.at <= at)
        };
        let hook = self.signals.last_hook().filter(|hook| !is_outdated(hook));
        let (held, until_held) = self.note_held(preset, &snapshot, now);
        let evidence = Evidence {
            snapshot: &snapshot,
            quiet: now - self.printed.unwrap_or(self.began),
            printed: self.printed.is_some(),
            hook: hook.as_ref().map(|hook| (&hook.event, now - hook.at)),
            held: Some(&held),
            past_limit: false,
        };
        if let Some((at, reports)) = self.submitted {
            let says_idle =
                hook.as_ref().is_some_and(|h| h.at > at && h.event.state == ActivityState::Idle);
            let reported = snapshot.reports > reports && judge::reports_an_end(&snapshot.report);
            if says_idle || reported {
                self.tracker.is_over();
                self.submitted = None;
            }
        }
        let seen = judge::seen(preset, evidence).map(|activity| activity.state);
        if self.seen.map(|(state, _)| state) != seen {
            self.seen = seen.map(|state| (state, now));
        }
        let steady = self.seen.map_or(Duration::ZERO, |(_, since)| now - since);
        let activity = judge::agent(preset, evidence, steady);
        let until_over = self.until_limit_ends(&activity);
        let over = until_over == Some(Duration::ZERO);
        let mut activity =
            if over { past_limit(preset, evidence, steady, activity) } else { activity };
        self.signals.note(&snapshot, &activity);
        let until_settled = self.signals.note_dialog(activity.dialog.as_mut(), settle);
        self.note_failure(&activity);
        self.find_conversation(preset, activity.state, now);
        // Until its prompt was seen, it is only starting. A CLI whose conversation is found by its
        // files may show work beside its prompt while it starts; there, the file proves that there
        // was a turn.
        let started = preset.composer.is_none() || self.signals.prompt_seen().is_some();
        let by_file = preset.has_conversation_file();
        if activity.state == ActivityState::Working && started && !by_file && !self.had_turn {
            self.had_turn = true;
            self.context.conversations.note_turn(&self.run.id);
        }
        if matches!(activity.state, ActivityState::Idle | ActivityState::Unknown)
            && self.context.deliveries.first_prompt_is_open(&self.run.id)
        {
            activity = Activity::new(ActivityState::Working, NOT_INSTRUCTED);
        }
        // Conditions that depend on time alone are checked again when that time has come.
        let quiet = preset.input.quiet_ms.and_then(|quiet| quiet.checked_sub(evidence.quiet));
        let patience = evidence
            .hook
            .map(|(event, age)| event.trusted_for(preset).saturating_sub(age.min(steady)));
        let until_over = until_over.map(|left| left.min(CLOCK_PAUSE));
        let waits = [quiet, patience, until_held, until_over, until_settled];
        let waits = waits.into_iter().flatten().filter(|wait| !wait.is_zero()).min();
        self.conclude(activity, waits)
    }

    /// Searches for the conversation of a CLI that is found by its files: when its state changes,
    /// and periodically while it works.
    fn find_conversation(&mut self, preset: &Preset, state: ActivityState, now: Instant) {
        let is_by_file = preset.has_conversation_file();
        let is_due = self.searched.is_none_or(|(at, before)| {
            before != state || (state == ActivityState::Working && now - at >= CONVERSATION_PAUSE)
        });
        if is_by_file && is_due {
            self.searched = Some((now, state));
            let (conversations, run) = (self.context.conversations.clone(), self.run.clone());
            tokio::spawn(async move { conversations.find(&run).await });
        }
    }

    /// Requests attention for an agent that is idle because its turn failed: it looks like one that
    /// is done.
    fn note_failure(&mut self, activity: &Activity) {
        let failed =
            activity.state == ActivityState::Idle && activity.reason.starts_with(judge::FAILED);
        if failed && std::mem::take(&mut self.worked) {
            self.called = true;
            let at = self.context.panes.clock().wall_ms();
            self.context.panes.processes.note(&self.run.id, |process| {
                let (reason, by) = (activity.reason.clone(), process.id.to_string());
                process.attention.get_or_insert(Attention { reason, by, at });
            });
        }
        self.worked |= activity.state == ActivityState::Working;
        self.note_over(activity, failed);
        self.note_limit(activity);
    }

    /// Withdraws a request for attention because of a failure or a limit once that is over.
    fn note_over(&mut self, activity: &Activity, failed: bool) {
        let now = Instant::now();
        let works = activity.state == ActivityState::Working;
        self.working_since = works.then(|| self.working_since.unwrap_or(now));
        self.turned |= works;
        let is_over = match activity.state {
            ActivityState::Working => {
                self.working_since.is_some_and(|since| now - since >= OVER_AFTER)
            }
            // A request of an earlier server remains until a turn was seen.
            ActivityState::Idle | ActivityState::Blocked => {
                self.turned || self.limited == Some(true)
            }
            ActivityState::Limited | ActivityState::Unknown => false,
        };
        self.turned &= !failed;
        if failed || !is_over {
            return;
        }
        self.turned = works;
        self.limited = Some(false);
        if !std::mem::take(&mut self.called) {
            return;
        }
        self.context.panes.processes.note(&self.run.id, |process| {
            let own = process.id.to_string();
            process.attention.take_if(|call| {
                let mut own_words = LIMIT_REASONS.into_iter().chain([judge::FAILED]);
                call.by == own && own_words.any(|how| call.reason.starts_with(how))
            });
        });
    }

    /// The time until a limit ends, if the CLI states it in a form that patterm understands.
    fn until_limit_ends(&mut self, activity: &Activity) -> Option<Duration> {
        let Some(words) = &activity.limited_until else {
            self.limit_end = None;
            return None;
        };
        let now = local_time(self.context.panes.clock())?;
        if self.limit_end.as_ref().is_none_or(|(known, _)| known != words) {
            self.limit_end = Some((words.clone(), limit_end(words, now)));
        }
        let end = self.limit_end.as_ref()?.1?;
        Some((end - now).to_std().unwrap_or_default())
    }

    /// Requests attention once for an agent that reaches a limit, with a reason that says more than
    /// that its turn failed.
    fn note_limit(&mut self, activity: &Activity) {
        let limited = activity.state == ActivityState::Limited;
        if !limited {
            self.limited.get_or_insert(false);
            return;
        }
        // An agent that was limited when this server began has already requested it.
        if self.limited.replace(true) != Some(false) {
            return;
        }
        (self.worked, self.turned, self.called) = (false, false, true);
        let reason = match &activity.limited_until {
            Some(until) => format!("{}{until}: {}", LIMIT_REASONS[0], activity.reason),
            None => format!("{}{}", LIMIT_REASONS[1], activity.reason),
        };
        let at = self.context.panes.clock().wall_ms();
        self.context.panes.processes.note(&self.run.id, |process| {
            let by = process.id.to_string();
            let is_failure =
                |old: &Attention| old.by == by && old.reason.starts_with(judge::FAILED);
            if process.attention.as_ref().is_none_or(is_failure) {
                process.attention = Some(Attention { reason, by, at });
            }
        });
    }

    /// How long each rule with a minimum duration has matched, and when the next of them takes
    /// effect.
    fn note_held(
        &mut self,
        preset: &Preset,
        snapshot: &ScreenSnapshot,
        now: Instant,
    ) -> (judge::Held, Option<Duration>) {
        let before = std::mem::take(&mut self.held);
        let mut again = None;
        let mut held = judge::Held::new();
        for (name, needed) in judge::holding(preset, snapshot) {
            let since = before.get(name).copied().unwrap_or(now);
            self.held.insert(name.to_owned(), since);
            held.insert(name.to_owned(), now - since);
            let left = needed.saturating_sub(now - since);
            again = [again, Some(left)].into_iter().flatten().filter(|left| !left.is_zero()).min();
        }
        (held, again)
    }

    async fn check_program(&mut self, kind: Kind) -> Observation {
        self.note_submitted();
        let reported = judge::reported(self.run.screen().report());
        let (shell, foreground) = (kind == Kind::Terminal, self.foreground());
        let quiet = self.printed.map(|printed| printed.elapsed());
        let is_quiet = quiet.is_none_or(|quiet| quiet >= program::QUIET);
        let is_at_prompt = shell && foreground == Foreground::Itself;
        if reported.is_none() && (is_quiet || is_at_prompt) {
            self.measure().await;
        }
        let (busy, waits, checks) = (self.load.busy, self.load.census.waits, self.checks);
        self.checks = checks.saturating_add(1);
        let watched = self.context.activities.is_followed(&self.run.id);
        let evidence =
            ProgramEvidence { shell, foreground, reported, quiet, busy, waits, checks, watched };
        let (activity, again) = program::program(&evidence);
        self.conclude(activity, again)
    }

    /// Measures its processes, on a blocking thread because there may be many.
    async fn measure(&mut self) {
        let Some(status) = self.run.status() else { return };
        let census = tokio::task::spawn_blocking(move || Census::of(status.init)).await;
        if let Ok(census) = census {
            self.load.take(census, Instant::now());
        }
    }

    /// Notes a turn that was submitted since the last check.
    fn note_submitted(&mut self) {
        if let Some(submitted) = self.signals.take_submitted() {
            self.tracker.submitted(submitted.pending(self.began.elapsed()));
            self.submitted = Some((submitted.at, self.reports));
        }
    }

    fn conclude(&mut self, activity: Activity, again: Option<Duration>) -> Observation {
        let now = self.began.elapsed();
        let observation = self.tracker.take(now, activity, false);
        let again = [observation.again, again].into_iter().flatten().min();
        // Idle with a delivery on its way is not the rest that others wait for.
        let settled = observation.settled && !self.context.deliveries.has_open(&self.run.id);
        Observation { again, settled, ..observation }
    }

    /// The program in the terminal's foreground.
    fn foreground(&self) -> Foreground {
        let group = self.run.pane.as_ref().and_then(|pane| tcgetpgrp(pane.master()).ok());
        let own = self.run.status().map(|status| status.program);
        match (group, own) {
            (Some(group), Some(own)) if group.as_raw_pid() == own => Foreground::Itself,
            (Some(group), Some(_)) => {
                let name = std::fs::read_to_string(format!("/proc/{group}/comm"));
                Foreground::Other(name.map_or_else(|_| "a program".into(), |n| n.trim().to_owned()))
            }
            _ => Foreground::Unknown,
        }
    }
}

/// The activity of an agent whose limit has expired: what it shows apart from that limit.
fn past_limit(
    preset: &Preset,
    evidence: Evidence<'_>,
    steady: Duration,
    limited: Activity,
) -> Activity {
    let activity = judge::agent(preset, Evidence { past_limit: true, ..evidence }, steady);
    match (activity.state, limited.limited_until.clone()) {
        (ActivityState::Idle, Some(until)) => {
            Activity::new(ActivityState::Idle, format!("its limit was due to end at {until}"))
        }
        // It is waiting within its turn, and reports when the turn continues.
        (ActivityState::Limited, until) => Activity { limited_until: until, ..limited },
        _ => activity,
    }
}

/// The user's local time.
fn local_time(clock: &Clock) -> Option<DateTime<Local>> {
    let wall_ms = i64::try_from(clock.wall_ms()).ok()?;
    Some(DateTime::from_timestamp_millis(wall_ms)?.with_timezone(&Local))
}

async fn later(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}
