//! Recovery of what an earlier server left: panes that the keeper holds, and the output of processes that ended.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use patterm_keeper::Pane;
use patterm_keeper::log::Log;

use crate::lifecycle::{replay, run_of, skip_lost_end};
use crate::offset::Offset;
use crate::panes::Panes;
use crate::process::{Cause, Interruption, Process, ProcessId, Status};

/// How much output of an ended process is shown again by the next server.
const REPLAY_BYTES: u64 = 8 << 20;

/// What an earlier server left.
#[derive(Debug)]
pub struct Recovered {
    /// The entries of processes that are not running.
    pub ended: Vec<Process>,
    /// A keeper was running, so nothing has to be started.
    pub is_kept: bool,
}

impl Panes {
    /// Takes over the panes that an earlier server left with the keeper. `is_agent` tells agents among processes that
    /// the table does not know.
    pub fn recover(&self, is_agent: impl Fn(&ProcessId) -> bool) -> io::Result<Recovered> {
        let mut panes: HashMap<String, Arc<Pane>> = self.keeper.recover()?.into_iter().collect();
        self.adopt_unknown(&panes, is_agent);
        let mut ended = Vec::new();
        for process in self.processes.all() {
            let pane = panes.remove(&process.pane());
            ended.extend(self.recover_process(&process, pane));
        }
        for (name, pane) in panes {
            tracing::warn!(
                name,
                "ending a pane of an earlier run, of a shared server, or of a check or stop command"
            );
            drop(pane);
            self.keeper.forget_now(&name);
        }
        // An older server may have closed entries without their environments.
        self.environments.sweep(&self.processes);
        Ok(Recovered { ended, is_kept: self.keeper.is_kept() })
    }

    /// Recovers a process; returns its entry if it is no longer running.
    fn recover_process(&self, process: &Process, pane: Option<Arc<Pane>>) -> Option<Process> {
        let log = self.find_log(process);
        match pane {
            Some(pane) => {
                let begun = self.note_begun(process, &log);
                self.attach(&begun, pane, log);
                None
            }
            None => {
                if process.status.is_alive() {
                    let cause = if self.processes.rebooted() { Cause::Reboot } else { Cause::Lost };
                    if cause == Cause::Lost {
                        self.left_behind.note(process);
                    }
                    let lost = self.update(&process.id, |process| {
                        process.status = Status::Lost;
                        process.ended_at = Some(self.clock.wall_ms());
                        process.interrupted.get_or_insert(Interruption {
                            cause,
                            at: None,
                            question: None,
                        });
                    });
                    tracing::warn!(id = %process.id, recorded = lost.is_ok(), "a process was lost");
                }
                let known = self.settled(&process.id);
                if log.is_open() {
                    self.show_last(&known, &log);
                }
                Some(known)
            }
        }
    }

    /// Corrects the entry of a running process: a server that died while it started the program has not recorded that
    /// it runs; one that died before it ended everything has recorded an interruption.
    fn note_begun(&self, process: &Process, log: &Log) -> Process {
        if process.interrupted.is_some() && process.status.is_alive() {
            self.processes.note(&process.id, |process| process.interrupted = None);
        }
        if process.status == Status::Starting {
            self.processes.note(&process.id, |process| {
                process.status = Status::Running;
                // No output of this run was read yet.
                process.run_offset = Offset::new(log.end());
                process.started_at = Some(self.clock.wall_ms());
                process.ended_at = None;
            });
        }
        self.settled(&process.id)
    }

    /// Makes the output of a run that is over available again.
    fn show_last(&self, process: &Process, log: &Log) {
        let output = log.reader();
        let marks = output.sizes(process.run_offset.get(), output.end());
        let size = marks.last().map(|last| last.after);
        let version_base = self.version_base(&process.id);
        let replay = replay(process, size, &output, REPLAY_BYTES, version_base);
        let run = run_of(process, None, log, replay);
        run.set_over(process.exit);
        if !run.is_rebuilt() {
            self.data_plane.rebuild(&run);
        }
        self.set_run(run);
    }

    /// Opens the log that an earlier server left. If that fails, the process loses only its output, and opening is
    /// tried again while the process runs.
    fn find_log(&self, process: &Process) -> Log {
        let folder = self.output_folder(&process.id);
        let mut log = Log::open(&folder, self.limits.log_bytes).unwrap_or_else(|error| {
            tracing::error!(id = %process.id, %error, "cannot open the log of a process; trying again later");
            Log::unopened(&folder, self.limits.log_bytes)
        });
        skip_lost_end(process, &mut log);
        log
    }
}
