//! Restoring the processes that were running when everything was ended, by `patterm kill`, a
//! log-out, a reboot or a kill of server and keeper: they are recorded, offered, and restored
//! in their own entries once a person confirms.

use std::collections::HashSet;

use patterm_wire::restore::{EndCause, RestoreMode, RestoreOffer, RestoredProcess};

use crate::lifecycle::{Lifecycle, LifecycleError};
use patterm_agents::Relaunch;
use patterm_agents::activity;
use patterm_agents::presets::Catalogue;
use patterm_panes::process::{Cause, Exit, Interruption, Kind, Process, ProcessId, Status};

/// A log-out or a shutdown signals everything at once: a process that ended at most this long
/// before the server was asked to end was ended with it.
const TOGETHER_MS: u64 = 2_000;

impl Lifecycle {
    /// Everything is about to be ended: records what is running, once, and on disk before
    /// anything ends. Processes that are being stopped are not meant to run.
    pub(crate) fn note_interruption(&self, cause: Cause) {
        let stopping: HashSet<ProcessId> = self
            .panes
            .runs()
            .into_iter()
            .filter(|(_, run)| run.is_stopping())
            .map(|(_, run)| run.id.clone())
            .collect();
        for (_, run) in self.panes.runs() {
            self.agents.conversations.find_blocking(&run);
        }
        let now = self.panes.clock().wall_ms();
        self.panes.processes.note_each(|process| {
            let runs = process.status.is_alive() && !stopping.contains(&process.id);
            let ended_with_us = cause == Cause::Signal && was_just_asked_to_exit(process, now);
            if runs || ended_with_us {
                let question = self.open_question(&process.id);
                process.interrupted.get_or_insert(Interruption { cause, at: Some(now), question });
            }
        });
    }

    /// What the dialog of an agent asks a person now.
    fn open_question(&self, id: &ProcessId) -> Option<String> {
        let activity = self.agents.activities.get(id).activity;
        let is_blocked = activity.state == activity::ActivityState::Blocked;
        is_blocked.then(|| activity.for_people().to_owned())
    }

    /// Says of an agent that it was interrupted, and what is recorded to wait for it. Of a restored one only until
    /// a person has typed into it.
    pub(crate) fn interruption_text(&self, process: &Process) -> Option<String> {
        let interruption = process.interrupted.as_ref().or(process.restored.as_ref())?;
        if process.kind != Kind::Agent {
            return None;
        }
        let queued = self.agents.deliveries.queue_of(&process.id).map_or(0, |(texts, _)| texts);
        let (timers, _) = self.timers.all();
        let timers = timers.iter().filter(|timer| timer.owner == process.id).count();
        let attention = process.attention.as_ref().map(|attention| &attention.reason);
        let question = interruption.question.as_ref().or(attention);
        Some(describe(interruption.cause, queued, timers, question.map(String::as_str)))
    }

    /// The processes that can be restored, oldest first.
    pub(crate) fn offers(&self) -> Vec<RestoreOffer> {
        let offered = self.chosen(None);
        // Loaded once for all of them, and usually not at all.
        let agents = offered.iter().any(|process| process.agent.is_some());
        let catalogue = agents.then(|| self.agents.presets.catalogue());
        let offer = |process| self.offer(process, catalogue.as_deref());
        offered.iter().filter_map(offer).collect()
    }

    /// Whether to offer a process for restoring: not if the project file forbids it to run,
    /// or has started it already.
    pub(crate) fn is_offered(&self, process: &Process) -> bool {
        process.awaits_decision() && self.declared.is_left_to_people(process)
    }

    fn offer(&self, process: &Process, catalogue: Option<&Catalogue>) -> Option<RestoreOffer> {
        let Interruption { cause, at, .. } = process.interrupted.clone()?;
        let agent = process.agent.as_ref().zip(catalogue);
        let (how, reason) =
            match agent.map(|(agent, known)| self.agents.would_resume(process, agent, known)) {
                None => (RestoreMode::Again, None),
                Some(Ok(None)) => (RestoreMode::Resumed, None),
                Some(Ok(why @ Some(_))) => (RestoreMode::NewConversation, why),
                Some(Err(error)) => (RestoreMode::Not, Some(error.to_string())),
            };
        let cause = match cause {
            Cause::Kill => EndCause::Kill,
            Cause::Signal => EndCause::Signal,
            Cause::Reboot => EndCause::Reboot,
            Cause::Lost => EndCause::Lost,
        };
        Some(RestoreOffer { id: process.id.to_string(), how, reason, cause, at })
    }

    /// Restores the offered processes, or those of them in `ids`, each in its own entry. A
    /// failure does not affect the others, and that process stays offered.
    pub(crate) async fn restore(&self, ids: Option<&[String]>) -> Vec<RestoredProcess> {
        let mut back = self.not_offered(ids);
        // Parents are older than their children, and come first.
        for process in self.chosen(ids) {
            let (how, reason) = match self.restore_one(&process.id).await {
                Ok((how, reason)) => (how, reason),
                Err(error) => (RestoreMode::Not, Some(error.to_string())),
            };
            tracing::info!(id = %process.id, ?how, reason, "restored");
            back.push(restored(&process, how, reason));
        }
        back
    }

    async fn restore_one(
        &self,
        id: &ProcessId,
    ) -> Result<(RestoreMode, Option<String>), LifecycleError> {
        // Look it up again: restoring the ones before it took a while.
        let now = self.panes.processes.get(id);
        // One of them may need it, and so has started it, or will.
        let is_started = |process: &Process| {
            process.status.is_alive() || self.declared.starts_after(process).is_some()
        };
        if let Some(process) = now.as_ref().filter(|process| is_started(process)) {
            return Ok((RestoreMode::Again, self.waits_text(process)));
        }
        let Some(process) = now.filter(|process| self.is_offered(process)) else {
            return Ok((RestoreMode::Not, Some(NOT_OFFERED.into())));
        };
        if process.kind == Kind::Agent {
            self.agents.check_room()?;
        }
        let Relaunch { new_conversation, extra } = self.agents.prepare_again(&process)?;
        if self.declared.prepare(&process)?.is_some() {
            return Ok((RestoreMode::Again, self.waits_text(&process)));
        }
        let changed = self.panes.environments.why_changed(&process);
        self.begin(id, &extra).await?;
        Ok(match (process.agent, new_conversation) {
            (None, _) => (RestoreMode::Again, changed),
            (Some(_), None) => (RestoreMode::Resumed, changed),
            (Some(_), why) => (RestoreMode::NewConversation, why),
        })
    }

    /// Which processes the start of one waits for.
    fn waits_text(&self, process: &Process) -> Option<String> {
        let others = self.declared.starts_after(process).filter(|others| !others.is_empty())?;
        Some(format!("it is waiting for {}", others.join(", ")))
    }

    /// Withdraws the offers, or those in `ids`; these processes stay ended.
    pub(crate) fn decline(&self, ids: Option<&[String]>) -> Vec<RestoredProcess> {
        let mut declined = self.not_offered(ids);
        let chosen = self.chosen(ids);
        let known: HashSet<&ProcessId> = chosen.iter().map(|process| &process.id).collect();
        self.panes.processes.note_each(|process| {
            if known.contains(&process.id) && process.awaits_decision() {
                process.interrupted = None;
            }
        });
        for process in &chosen {
            // For waiting callers, it has ended for good.
            self.agents.activities.set(&process.id, activity::ended(process), true);
            declined.push(restored(process, RestoreMode::Not, None));
        }
        self.timers.notify();
        declined
    }

    fn chosen(&self, ids: Option<&[String]>) -> Vec<Process> {
        let is_meant = |process: &Process| {
            ids.is_none_or(|ids| ids.iter().any(|id| id == process.id.as_str()))
        };
        let mut all = self.panes.processes.all();
        all.retain(|process| is_meant(process) && self.is_offered(process));
        all
    }

    /// The requested processes that are not offered.
    fn not_offered(&self, ids: Option<&[String]>) -> Vec<RestoredProcess> {
        let asked = ids.unwrap_or_default().iter();
        let known = |id: &String| self.panes.processes.get(&ProcessId::of(id));
        let other = asked.filter(|id| !known(id).is_some_and(|process| self.is_offered(&process)));
        other
            .map(|id| RestoredProcess {
                process_id: id.clone(),
                name: known(id).map(|process| process.name).unwrap_or_default(),
                how: RestoreMode::Not,
                reason: Some(NOT_OFFERED.into()),
            })
            .collect()
    }
}

/// What interrupted an agent, and what waits for it.
fn describe(cause: Cause, queued: usize, timers: usize, question: Option<&str>) -> String {
    let cause = match cause {
        Cause::Kill => "interrupted by `patterm kill`",
        Cause::Signal => "interrupted by a signal that ended everything",
        Cause::Reboot => "interrupted by a reboot",
        Cause::Lost => "interrupted when the server and its keeper were killed",
    };
    let count = |count: usize, one: &str, more: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        many => Some(format!("{many} {more}")),
    };
    let waiting = [count(queued, "queued text", "queued texts"), count(timers, "timer", "timers")];
    let waiting: Vec<String> = waiting.into_iter().flatten().collect();
    let waiting = match waiting.is_empty() {
        true => String::new(),
        false => format!("; waiting for it: {}", waiting.join(", ")),
    };
    let question = question.map(|question| format!("; it had asked: {question}"));
    format!("{cause}{waiting}{}", question.unwrap_or_default())
}

/// The reason for a process that is not, or no longer, offered.
const NOT_OFFERED: &str = "it is not waiting to be restored";

fn restored(process: &Process, how: RestoreMode, reason: Option<String>) -> RestoredProcess {
    RestoredProcess { process_id: process.id.to_string(), name: process.name.clone(), how, reason }
}

/// Whether a process was just ended by a signal that asks programs to exit, from any sender.
fn was_just_asked_to_exit(process: &Process, now: u64) -> bool {
    const HANG_UP: i32 = 1;
    const TERMINATE: i32 = 15;
    // The offset in the exit code of programs that catch the signal.
    const CAUGHT: i32 = 128;
    let signal = match process.exit {
        Some(Exit { signal: Some(signal), .. }) => signal,
        Some(Exit { code: Some(code), .. }) => code - CAUGHT,
        _ => return false,
    };
    let lately = process.ended_at.is_some_and(|at| now.saturating_sub(at) <= TOGETHER_MS);
    process.status == Status::Exited && lately && matches!(signal, HANG_UP | TERMINATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_an_interrupted_agent_is_described() {
        let text = |queued, timers, question| describe(Cause::Reboot, queued, timers, question);
        assert_eq!(text(0, 0, None), "interrupted by a reboot");
        assert_eq!(
            text(2, 1, Some("may I push?")),
            "interrupted by a reboot; waiting for it: 2 queued texts, 1 timer; it had asked: may I push?"
        );
        assert_eq!(text(0, 3, None), "interrupted by a reboot; waiting for it: 3 timers");
    }

    #[test]
    fn processes_that_ended_together_with_the_server() {
        let check = |status, code, signal, ended_at, expected| {
            let text = r#"{"id": "p1", "name": "a", "kind": "command"}"#;
            let mut process: Process = serde_json::from_str(text).unwrap();
            process.status = status;
            process.exit = Some(Exit { code, signal });
            process.ended_at = Some(ended_at);
            assert_eq!(was_just_asked_to_exit(&process, 10_000), expected, "{process:?}");
        };
        check(Status::Exited, None, Some(15), 9_900, true);
        check(Status::Exited, None, Some(1), 9_900, true);
        check(Status::Exited, Some(143), None, 9_900, true);
        check(Status::Exited, None, Some(15), 1_000, false);
        check(Status::Exited, None, Some(9), 9_900, false);
        check(Status::Exited, Some(0), None, 9_900, false);
        check(Status::Stopped, None, Some(15), 9_900, false);
    }
}
