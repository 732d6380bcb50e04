//! What ran when everything was ended, by `patterm kill`, a log-out, a reboot or a kill of server and
//! keeper: noted, offered, and restored in its own entries when a person says so.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use patterm_wire::restore::{EndCause, RestoreMode, RestoreOffer, RestoredProcess};

use crate::activity;
use crate::agents::Again;
use crate::host::Host;
use crate::presets::Catalogue;
use crate::process::{Cause, Exit, Interruption, Kind, Process, ProcessId, Status};
use crate::tools::ToolError;
use patterm_store::clock::now_ms;

/// A log-out or a shutdown signals everybody at once: who was ended so shortly before the server was
/// told to end was ended with it.
const TOGETHER_MS: u64 = 2_000;

impl Host {
    /// Everything is about to be ended: notes what runs, once, and on the disk before anything ends.
    /// What somebody stops just now is not meant to run.
    pub(crate) fn note_interruption(&self, cause: Cause) {
        let stopping: HashSet<ProcessId> = self
            .lives()
            .into_iter()
            .filter(|(_, live)| live.stopping.load(Ordering::Acquire))
            .map(|(_, live)| live.id.clone())
            .collect();
        for (_, live) in self.lives() {
            self.look_for_conversation_here(&live);
        }
        let now = now_ms();
        self.processes.note_each(|process| {
            let runs = process.status.is_alive() && !stopping.contains(&process.id);
            let ended_with_us = cause == Cause::Signal && was_just_told_to_end(process, now);
            if runs || ended_with_us {
                process.interrupted.get_or_insert(Interruption { cause, at: Some(now) });
            }
        });
    }

    /// What can be restored, oldest first.
    pub(crate) fn offers(&self) -> Vec<RestoreOffer> {
        let offered = self.chosen(None);
        // Read once for all of them, and not at all at most times.
        let agents = offered.iter().any(|process| process.agent.is_some());
        let catalogue = agents.then(|| self.catalogue());
        let offer = |process| self.offer(process, catalogue.as_ref());
        offered.iter().filter_map(offer).collect()
    }

    /// Whether a person is asked about a process: not about one that the project file does not let
    /// run, nor about one that it has started anyway.
    pub(crate) fn is_offered(&self, process: &Process) -> bool {
        process.awaits_decision() && self.is_left_to_people(process)
    }

    fn offer(&self, process: &Process, catalogue: Option<&Catalogue>) -> Option<RestoreOffer> {
        let Interruption { cause, at } = process.interrupted?;
        let agent = process.agent.as_ref().zip(catalogue);
        let (how, reason) = match agent.map(|(agent, known)| self.would_resume(agent, known)) {
            None => (RestoreMode::Again, None),
            Some(Ok(None)) => (RestoreMode::Resumed, None),
            Some(Ok(why @ Some(_))) => (RestoreMode::Anew, why),
            Some(Err(error)) => (RestoreMode::Not, Some(error.message)),
        };
        let cause = match cause {
            Cause::Kill => EndCause::Kill,
            Cause::Signal => EndCause::Signal,
            Cause::Reboot => EndCause::Reboot,
            Cause::Lost => EndCause::Lost,
        };
        Some(RestoreOffer { id: process.id.to_string(), how, reason, cause, at })
    }

    /// Brings back what is offered, or these of it, each in its own entry. One that fails stops no
    /// other, and stays offered.
    pub(crate) async fn restore(&self, ids: Option<&[String]>) -> Vec<RestoredProcess> {
        let mut back = self.not_offered(ids);
        // Whoever started another is older, and comes first.
        for process in self.chosen(ids) {
            let (how, reason) = match self.bring_one_back(&process.id).await {
                Ok((how, reason)) => (how, reason),
                Err(error) => (RestoreMode::Not, Some(error.message)),
            };
            tracing::info!(id = %process.id, ?how, reason, "restored");
            back.push(told(&process, how, reason));
        }
        back
    }

    async fn bring_one_back(
        &self,
        id: &ProcessId,
    ) -> Result<(RestoreMode, Option<String>), ToolError> {
        // As it is now: the ones before it took a while.
        let Some(process) = self.processes.get(id).filter(|process| self.is_offered(process))
        else {
            return Ok((RestoreMode::Not, Some(NOT_OFFERED.into())));
        };
        if process.kind == Kind::Agent {
            self.room_for_agent()?;
        }
        let Again { anew, instructions } = self.prepare_again(&process)?;
        if self.prepare_declared(&process)?.is_some() {
            let waits = self.declared_seen(&process).map(|seen| seen.waits_for.join(", "));
            return Ok((
                RestoreMode::Again,
                waits.map(|others| format!("as soon as {others} is ready")),
            ));
        }
        self.begin(id, &instructions).await?;
        Ok(match (process.agent, anew) {
            (None, _) => (RestoreMode::Again, None),
            (Some(_), None) => (RestoreMode::Resumed, None),
            (Some(_), why) => (RestoreMode::Anew, why),
        })
    }

    /// What is offered, or these of it, stays as it is and is not offered any more.
    pub(crate) fn decline(&self, ids: Option<&[String]>) -> Vec<RestoredProcess> {
        let mut declined = self.not_offered(ids);
        let chosen = self.chosen(ids);
        let known: HashSet<&ProcessId> = chosen.iter().map(|process| &process.id).collect();
        self.processes.note_each(|process| {
            if known.contains(&process.id) && process.awaits_decision() {
                process.interrupted = None;
            }
        });
        for process in &chosen {
            // It has ended for good, for whoever waits for that.
            self.activities.set(&process.id, activity::ended(process), true);
            declined.push(told(process, RestoreMode::Not, None));
        }
        self.timers.ring();
        declined
    }

    fn chosen(&self, ids: Option<&[String]>) -> Vec<Process> {
        let is_meant = |process: &Process| {
            ids.is_none_or(|ids| ids.iter().any(|id| id == process.id.as_str()))
        };
        let mut all = self.processes.all();
        all.retain(|process| is_meant(process) && self.is_offered(process));
        all
    }

    /// Those asked for that are not offered.
    fn not_offered(&self, ids: Option<&[String]>) -> Vec<RestoredProcess> {
        let asked = ids.unwrap_or_default().iter();
        let known = |id: &String| self.processes.get(&ProcessId::of(id));
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

/// What is said of one that somebody else has decided about.
const NOT_OFFERED: &str = "it does not wait to be restored";

fn told(process: &Process, how: RestoreMode, reason: Option<String>) -> RestoredProcess {
    RestoredProcess { process_id: process.id.to_string(), name: process.name.clone(), how, reason }
}

/// Whether a process was ended a moment ago by a signal that tells to end, whoever sent it.
fn was_just_told_to_end(process: &Process, now: u64) -> bool {
    const HANG_UP: i32 = 1;
    const TERMINATE: i32 = 15;
    // As programs say it that catch the signal.
    const CAUGHT: i32 = 128;
    let told = match process.exit {
        Some(Exit { signal: Some(signal), .. }) => signal,
        Some(Exit { code: Some(code), .. }) => code - CAUGHT,
        _ => return false,
    };
    let lately = process.ended_at.is_some_and(|at| now.saturating_sub(at) <= TOGETHER_MS);
    process.status == Status::Exited && lately && matches!(told, HANG_UP | TERMINATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_told_to_end_together_with_the_server() {
        let check = |status, code, signal, ended_at, expected| {
            let text = r#"{"id": "p1", "name": "a", "kind": "command"}"#;
            let mut process: Process = serde_json::from_str(text).unwrap();
            process.status = status;
            process.exit = Some(Exit { code, signal });
            process.ended_at = Some(ended_at);
            assert_eq!(was_just_told_to_end(&process, 10_000), expected, "{process:?}");
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
