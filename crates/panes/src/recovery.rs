//! What an earlier server left: panes that the keeper holds, and the output of processes that ended.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use patterm_keeper::Pane;
use patterm_keeper::log::Log;
use patterm_store::clock::now_ms;

use crate::data_plane::ProcessRun;
use crate::lifecycle::{go_on, replay};
use crate::panes::Panes;
use crate::process::{Cause, Interruption, Process, ProcessId, Status};

/// How much of an ended process's output is shown again by the next server.
const REPLAY_BYTES: u64 = 8 << 20;

/// What was found of an earlier server.
#[derive(Debug)]
pub struct Recovered {
    /// The entries of processes that do not run.
    pub ended: Vec<Process>,
    /// A keeper was left, so that nothing has to be started.
    pub is_kept: bool,
}

impl Panes {
    /// Takes over the panes that an earlier server left with the keeper. `is_agent` says it of a
    /// process that the table does not know.
    pub fn recover(&self, is_agent: impl Fn(&ProcessId) -> bool) -> io::Result<Recovered> {
        let mut panes: HashMap<String, Arc<Pane>> = self.keeper.recover()?.into_iter().collect();
        self.adopt_unknown(&panes, is_agent);
        let mut ended = Vec::new();
        for process in self.processes.all() {
            let pane = panes.remove(&process.pane());
            ended.extend(self.recover_process(&process, pane));
        }
        for (name, pane) in panes {
            tracing::warn!(name, "a pane of an earlier run or of a shared server is ended");
            drop(pane);
            self.keeper.forget_now(&name);
        }
        Ok(Recovered { ended, is_kept: self.keeper.is_kept() })
    }

    /// Recovers a process after the server died; returns its entry if it does not run any more.
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
                        process.ended_at = Some(now_ms());
                        process.interrupted.get_or_insert(Interruption { cause, at: None });
                    });
                    tracing::warn!(id = %process.id, written = lost.is_ok(), "a process is lost");
                }
                let known = self.settled(&process.id);
                if log.is_open() {
                    self.show_last(&known, &log);
                }
                Some(known)
            }
        }
    }

    /// Corrects the entry of a running process: a server that died while starting the program did not
    /// record that it runs; one that died before it ended everything recorded an interruption.
    fn note_begun(&self, process: &Process, log: &Log) -> Process {
        if process.interrupted.is_some() && process.status.is_alive() {
            self.processes.note(&process.id, |process| process.interrupted = None);
        }
        if process.status == Status::Starting {
            self.processes.note(&process.id, |process| {
                process.status = Status::Running;
                // Nothing of this run was read yet.
                process.run_offset = log.end();
                process.started_at = Some(now_ms());
                process.ended_at = None;
            });
        }
        self.settled(&process.id)
    }

    /// Makes the output of a run that is over readable again.
    fn show_last(&self, process: &Process, log: &Log) {
        let (mut screen, parsed) = replay(process, &log.reader(), REPLAY_BYTES);
        screen.raise_version(self.version_base(&process.id));
        let run =
            ProcessRun::new(process.id.clone(), process.runs, None, log.reader(), screen, parsed);
        run.set_over(process.exit);
        self.set_run(Arc::new(run));
    }

    /// The log that an earlier server left. If it cannot be opened, the process loses only its output,
    /// and opening is tried again while the process runs.
    fn find_log(&self, process: &Process) -> Log {
        let folder = self.output_folder(&process.id);
        let mut log = Log::open(&folder, self.limits.log_bytes).unwrap_or_else(|error| {
            tracing::error!(id = %process.id, %error, "its log cannot be opened now");
            Log::unopened(&folder, self.limits.log_bytes)
        });
        go_on(process, &mut log);
        log
    }
}
