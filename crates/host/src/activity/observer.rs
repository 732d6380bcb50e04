//! Who looks at processes: one task for each life, that looks when something is printed, when a
//! hook speaks, and when time itself decides. A process at which nothing happens costs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Local};
use rustix::termios::tcgetpgrp;
use tokio::time::Instant;

use super::census::Census;
use super::facts::Facts;
use super::glimpse::Glimpse;
use super::judge::{self, Evidence};
use super::limit_end::limit_end;
use super::program::{self, Foreground, ProgramEvidence};
use super::tracker::{Told, Tracker};
use super::verdict::{State, Verdict};
use crate::host::Host;
use crate::plane::{Live, Progress};
use crate::presets::Preset;
use crate::process::{Attention, Kind, Process, Status};
use patterm_store::clock::now_ms;

/// After a look at an agent, the next one is not before this: a spinner turns ten times a second.
const AGENT_PAUSE: Duration = Duration::from_millis(50);

/// And at other programs, of which less is to be seen.
const PROGRAM_PAUSE: Duration = Duration::from_millis(500);

/// How often the files are looked at by which an agent at work tells its conversation.
const CONVERSATION_PAUSE: Duration = Duration::from_secs(2);

/// A tick of the kernel's clock, as it tells all programs on Linux.
const TICK: Duration = Duration::from_millis(10);

/// The part of one CPU from which on a program counts as busy: an event loop that only waits uses less.
const BUSY: f32 = 0.03;

/// How often the clock is looked at while a limit stands: a machine that slept has not counted its time.
const CLOCK_PAUSE: Duration = Duration::from_secs(60);

/// After so much work a failure or a limit is over. An agent that tries again at a limit works for a moment
/// each time.
const OVER_AFTER: Duration = Duration::from_secs(5);

/// How the words begin by which an agent at a limit calls a person.
const AT_LIMIT: [&str; 2] = ["limited until ", "limited: "];

/// Why an agent that shows its prompt counts as working all the same.
const NOT_INSTRUCTED: &str = "its first instructions are not taken yet";

/// Whether an agent works only in so far as it has not got its first instructions.
pub(crate) fn awaits_instructions(verdict: &Verdict) -> bool {
    verdict.state == State::Working && verdict.reason == NOT_INSTRUCTED
}

/// One life under observation.
struct Observer {
    host: Arc<Host>,
    live: Arc<Live>,
    facts: Arc<Facts>,
    tracker: Tracker,
    began: Instant,
    /// When it was last seen to print something.
    printed: Option<Instant>,
    /// What its processes did when they were last looked at.
    load: Load,
    /// How many looks in a row have shown nothing new.
    looks: u32,
    /// What its screen says, and since when.
    seen: Option<(State, Instant)>,
    /// Since when rules hold that must hold for some time.
    held: BTreeMap<String, Instant>,
    /// When a turn was last handed in, and how many reports there had been.
    submitted: Option<(Instant, u64)>,
    reports: u64,
    /// When its conversation was last looked for, and in which state it was then.
    looked_up: Option<(Instant, State)>,
    /// It was seen at a turn.
    spoken: bool,
    /// And at one that has not failed yet: what an earlier server saw fail is not told again.
    worked: bool,
    /// Whether it was last seen at a limit; `None` before the first look.
    limited: Option<bool>,
    /// Since when it works without a pause.
    working_since: Option<Instant>,
    /// It was seen to work since a person was last called because of its state.
    turned: bool,
    /// Such a call may stand; an earlier server may have made it.
    called: bool,
    /// The words of its CLI for the end of a limit, and when that is.
    limit_end: Option<(String, Option<DateTime<Local>>)>,
}

/// What the processes of a life were last seen to do.
#[derive(Debug, Default)]
struct Load {
    census: Census,
    /// When its CPU time was last compared, and what it was then.
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

/// Observes a life to its end.
pub(crate) async fn observe(host: Arc<Host>, live: Arc<Live>) {
    let Some(process) = host.processes.get(&live.id) else { return };
    let preset = host.preset_of(&process);
    let facts = host.activities.facts(&live.id);
    facts.begin(preset.clone());
    let now = Instant::now();
    let observer = Observer {
        host,
        live,
        facts,
        tracker: Tracker::default(),
        began: now,
        printed: None,
        load: Load::default(),
        looks: 0,
        seen: None,
        held: BTreeMap::new(),
        submitted: None,
        reports: 0,
        looked_up: None,
        spoken: false,
        worked: false,
        limited: None,
        working_since: None,
        turned: false,
        called: true,
        limit_end: None,
    };
    observer.run(process.kind, preset).await;
}

impl Observer {
    async fn run(mut self, kind: Kind, preset: Option<Arc<Preset>>) {
        let pause = if preset.is_some() { AGENT_PAUSE } else { PROGRAM_PAUSE };
        let (mut progress, mut end) = (self.live.watch(), self.live.watch());
        let mut parsed = progress.borrow().parsed;
        loop {
            let here = *progress.borrow_and_update();
            if here.is_over() {
                break;
            }
            if std::mem::replace(&mut parsed, here.parsed) != here.parsed {
                self.printed = Some(Instant::now());
                self.looks = 0;
            }
            let told = match &preset {
                Some(preset) => self.look_at_agent(preset),
                None => self.look_at_program(kind).await,
            };
            let again = told.again;
            self.tell(told);
            // An end is heard at once: until then what belongs to this life cannot be given back.
            // By an ear of its own, so that what is printed in the pause still counts as new below.
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                over = end.wait_for(Progress::is_over) => if over.is_ok() { continue } else { return },
            }
            tokio::select! {
                changed = progress.changed() => if changed.is_err() { return },
                () = self.facts.bell.notified() => {}
                () = later(again) => {}
            }
        }
        self.live.noted().await;
        if let Some(process) = self.host.processes.get(&self.live.id)
            && process.runs == self.live.run
        {
            // One that may be restored has not come to rest.
            let settled = !process.awaits_decision();
            self.tell(Told { verdict: ended(&process), settled, again: None });
        }
    }

    fn tell(&self, told: Told) {
        // A life that was followed by another has no say any more.
        if self.host.live(&self.live.id).is_some_and(|live| live.run == self.live.run) {
            self.host.activities.set(&self.live.id, told.verdict, told.settled);
        }
    }

    fn look_at_agent(&mut self, preset: &Preset) -> Told {
        let glimpse = Glimpse::of(&self.live.screen(), Some(preset));
        let now = Instant::now();
        let heard = self.facts.heard();
        let (held, until_held) = self.note_held(preset, &glimpse, now);
        let evidence = Evidence {
            glimpse: &glimpse,
            quiet: now - self.printed.unwrap_or(self.began),
            printed: self.printed.is_some(),
            hook: heard.as_ref().map(|heard| (&heard.word, now - heard.at)),
            held: Some(&held),
            past_limit: false,
        };
        self.reports = glimpse.reports;
        if let Some((at, reports)) = self.submitted {
            let told = heard.as_ref().is_some_and(|h| h.at > at && h.word.state == State::Idle);
            let reported = glimpse.reports > reports && judge::reports_an_end(&glimpse.report);
            if told || reported {
                self.tracker.is_over();
                self.submitted = None;
            }
        }
        let seen = judge::seen(preset, evidence).map(|verdict| verdict.state);
        if self.seen.map(|(state, _)| state) != seen {
            self.seen = seen.map(|state| (state, now));
        }
        let steady = self.seen.map_or(Duration::ZERO, |(_, since)| now - since);
        let verdict = judge::agent(preset, evidence, steady);
        let until_over = self.until_limit_ends(&verdict);
        let over = until_over == Some(Duration::ZERO);
        let mut verdict =
            if over { past_limit(preset, evidence, steady, verdict) } else { verdict };
        self.facts.note(&glimpse, &verdict);
        self.note_failure(&verdict);
        self.look_up(preset, verdict.state, now);
        // Before its prompt was seen it is only starting. A CLI that tells its conversation by files may
        // show work beside its prompt while it starts: there the file says that there was a turn.
        let started = preset.composer.is_none() || self.facts.prompt_seen().is_some();
        let by_file = preset.has_conversation_file();
        if verdict.state == State::Working && started && !by_file && !self.spoken {
            self.spoken = true;
            self.host.note_spoken(&self.live.id);
        }
        if matches!(verdict.state, State::Idle | State::Unknown)
            && self.host.deliveries.first_prompt_is_open(&self.live.id)
        {
            verdict = Verdict::new(State::Working, NOT_INSTRUCTED);
        }
        // What depends on time alone is looked at again when that time has come.
        let quiet = preset.input.quiet_ms.and_then(|quiet| quiet.checked_sub(evidence.quiet));
        let patience =
            evidence.hook.map(|(word, age)| word.patience().saturating_sub(age.min(steady)));
        let until_over = until_over.map(|left| left.min(CLOCK_PAUSE));
        let waits = [quiet, patience, until_held, until_over];
        let waits = waits.into_iter().flatten().filter(|wait| !wait.is_zero()).min();
        self.conclude(verdict, waits)
    }

    /// Looks for the conversation of a CLI that tells it by files: when its state changes, and from time
    /// to time while it works.
    fn look_up(&mut self, preset: &Preset, state: State, now: Instant) {
        let is_told = preset.has_conversation_file();
        let is_due = self.looked_up.is_none_or(|(at, before)| {
            before != state || (state == State::Working && now - at >= CONVERSATION_PAUSE)
        });
        if is_told && is_due {
            self.looked_up = Some((now, state));
            let (host, live) = (self.host.clone(), self.live.clone());
            tokio::spawn(async move { host.look_for_conversation(&live).await });
        }
    }

    /// An agent that rests because its turn failed looks like one that is done: a person is called.
    fn note_failure(&mut self, verdict: &Verdict) {
        let failed = verdict.state == State::Idle && verdict.reason.starts_with(judge::FAILED);
        if failed && std::mem::take(&mut self.worked) {
            self.called = true;
            self.host.processes.note(&self.live.id, |process| {
                let (reason, by) = (verdict.reason.clone(), process.id.to_string());
                process.attention.get_or_insert(Attention { reason, by, at: now_ms() });
            });
        }
        self.worked |= verdict.state == State::Working;
        self.note_over(verdict, failed);
        self.note_limit(verdict);
    }

    /// A call for a person because of a failure or a limit is taken back when that is over.
    fn note_over(&mut self, verdict: &Verdict, failed: bool) {
        let now = Instant::now();
        let works = verdict.state == State::Working;
        self.working_since = works.then(|| self.working_since.unwrap_or(now));
        self.turned |= works;
        let is_over = match verdict.state {
            State::Working => self.working_since.is_some_and(|since| now - since >= OVER_AFTER),
            // What an earlier server called for stands until a turn was seen.
            State::Idle | State::Blocked => self.turned || self.limited == Some(true),
            State::Limited | State::Unknown => false,
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
        self.host.processes.note(&self.live.id, |process| {
            let own = process.id.to_string();
            process.attention.take_if(|call| {
                let mut own_words = AT_LIMIT.into_iter().chain([judge::FAILED]);
                call.by == own && own_words.any(|how| call.reason.starts_with(how))
            });
        });
    }

    /// How long it is until a limit ends, where its CLI says that in words that are understood.
    fn until_limit_ends(&mut self, verdict: &Verdict) -> Option<Duration> {
        let Some(words) = &verdict.limited_until else {
            self.limit_end = None;
            return None;
        };
        let now = Local::now();
        if self.limit_end.as_ref().is_none_or(|(known, _)| known != words) {
            self.limit_end = Some((words.clone(), limit_end(words, now)));
        }
        let end = self.limit_end.as_ref()?.1?;
        Some((end - now).to_std().unwrap_or_default())
    }

    /// An agent that comes to a limit calls a person once, with words that say more than that its turn
    /// failed.
    fn note_limit(&mut self, verdict: &Verdict) {
        let limited = verdict.state == State::Limited;
        if !limited {
            self.limited.get_or_insert(false);
            return;
        }
        // One that was at its limit when this server began has called already.
        if self.limited.replace(true) != Some(false) {
            return;
        }
        (self.worked, self.turned, self.called) = (false, false, true);
        let reason = match &verdict.limited_until {
            Some(until) => format!("{}{until}: {}", AT_LIMIT[0], verdict.reason),
            None => format!("{}{}", AT_LIMIT[1], verdict.reason),
        };
        self.host.processes.note(&self.live.id, |process| {
            let by = process.id.to_string();
            let is_failure =
                |old: &Attention| old.by == by && old.reason.starts_with(judge::FAILED);
            if process.attention.as_ref().is_none_or(is_failure) {
                process.attention = Some(Attention { reason, by, at: now_ms() });
            }
        });
    }

    /// How long rules have held that must hold for some time, and when the next of them has.
    fn note_held(
        &mut self,
        preset: &Preset,
        glimpse: &Glimpse,
        now: Instant,
    ) -> (judge::Held, Option<Duration>) {
        let before = std::mem::take(&mut self.held);
        let mut again = None;
        let mut held = judge::Held::new();
        for (name, needed) in judge::holding(preset, glimpse) {
            let since = before.get(name).copied().unwrap_or(now);
            self.held.insert(name.to_owned(), since);
            held.insert(name.to_owned(), now - since);
            let left = needed.saturating_sub(now - since);
            again = [again, Some(left)].into_iter().flatten().filter(|left| !left.is_zero()).min();
        }
        (held, again)
    }

    async fn look_at_program(&mut self, kind: Kind) -> Told {
        let reported = judge::reported(self.live.screen().report());
        let (shell, foreground) = (kind == Kind::Terminal, self.foreground());
        let quiet = self.printed.map(|printed| printed.elapsed());
        let is_quiet = quiet.is_none_or(|quiet| quiet >= program::QUIET);
        let is_at_prompt = shell && foreground == Foreground::Itself;
        if reported.is_none() && (is_quiet || is_at_prompt) {
            self.measure().await;
        }
        let (busy, waits, looks) = (self.load.busy, self.load.census.waits, self.looks);
        self.looks = looks.saturating_add(1);
        let watched = self.host.activities.is_followed(&self.live.id);
        let evidence =
            ProgramEvidence { shell, foreground, reported, quiet, busy, waits, looks, watched };
        let (verdict, again) = program::program(&evidence);
        self.conclude(verdict, again)
    }

    /// Looks at its processes. Off this thread: they may be many.
    async fn measure(&mut self) {
        let Some(status) = self.live.status() else { return };
        let census = tokio::task::spawn_blocking(move || Census::of(status.init)).await;
        if let Ok(census) = census {
            self.load.take(census, Instant::now());
        }
    }

    fn conclude(&mut self, verdict: Verdict, again: Option<Duration>) -> Told {
        let now = self.began.elapsed();
        if let Some(submitted) = self.facts.take_submitted() {
            self.tracker.submitted(submitted.pending(now));
            self.submitted = Some((submitted.at, self.reports));
        }
        let told = self.tracker.take(now, verdict, false);
        let again = [told.again, again].into_iter().flatten().min();
        // A rest with a message on its way is not one that others wait for.
        let settled = told.settled && !self.host.deliveries.has_open(&self.live.id);
        Told { again, settled, ..told }
    }

    /// Who has the terminal.
    fn foreground(&self) -> Foreground {
        let group = self.live.pane.as_ref().and_then(|pane| tcgetpgrp(pane.master()).ok());
        let own = self.live.status().map(|status| status.program);
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

/// What an agent does whose limit was to end by now: what it says without that limit.
fn past_limit(
    preset: &Preset,
    evidence: Evidence<'_>,
    steady: Duration,
    limited: Verdict,
) -> Verdict {
    let verdict = judge::agent(preset, Evidence { past_limit: true, ..evidence }, steady);
    match (verdict.state, limited.limited_until.clone()) {
        (State::Idle, Some(until)) => {
            Verdict::new(State::Idle, format!("its limit was to end at {until}"))
        }
        // It waits within its turn, and tells when that goes on.
        (State::Limited, until) => Verdict { limited_until: until, ..limited },
        _ => verdict,
    }
}

async fn later(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// What is said of a process that does not run.
pub(crate) fn ended(process: &Process) -> Verdict {
    let reason = match (process.status, process.exit) {
        (Status::Exited, Some(exit)) => match (exit.code, exit.signal) {
            (Some(code), _) => format!("it exited with code {code}"),
            (None, Some(signal)) => format!("it was ended by signal {signal}"),
            (None, None) => "it exited".into(),
        },
        (Status::Stopped, _) if process.runs == 0 => "it was not started yet".into(),
        (Status::Stopped, _) => "it was stopped".into(),
        (Status::Failed, _) => "it could not be started".into(),
        (Status::Lost, _) => {
            "what watched over it was killed; nothing of it is known to run".into()
        }
        (Status::Exited, None) => "it exited".into(),
        (Status::Starting | Status::Running, _) => "it ended".into(),
    };
    Verdict::new(State::Idle, reason)
}
