//! Panes that the keeper holds but the process table does not know, because the table was damaged or is older. Their
//! programs keep running under their ids, in entries that are created from what the system reports.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use patterm_keeper::{Pane, Size};

use crate::environment::{self, Environment, IDENTITY, PANE_VARIABLE};
use crate::lifecycle::SIZE;
use crate::panes::Panes;
use crate::process::{Kind, Process, ProcessId, Recipe, RunNumber, Status};

impl Panes {
    /// Creates an entry for every pane of an unknown process. Panes of earlier runs of known processes are not
    /// needed.
    pub(crate) fn adopt_unknown(
        &self,
        panes: &HashMap<String, Arc<Pane>>,
        is_agent: impl Fn(&ProcessId) -> bool,
    ) {
        // If a process has several runs, the last one counts.
        let mut runs: BTreeMap<u64, (RunNumber, &Arc<Pane>)> = BTreeMap::new();
        for (name, pane) in panes {
            let Some((number, run)) = process_and_run(name) else { continue };
            match runs.get(&number) {
                Some((later, _)) if *later > run => {}
                _ => drop(runs.insert(number, (run, pane))),
            }
        }
        for (number, (run, pane)) in runs {
            let id = ProcessId::new(number);
            match self.processes.get(&id) {
                Some(known) if known.runs >= run => {}
                Some(_) => {
                    tracing::warn!(%id, %run, "the process table does not know the last run of a process");
                    self.processes.note(&id, |process| {
                        process.runs = run;
                        process.status = Status::Running;
                        process.exit = None;
                    });
                }
                None => {
                    tracing::warn!(%id, %run, "creating an entry for an unknown pane");
                    let kind = if is_agent(&id) { Kind::Agent } else { Kind::Command };
                    self.processes.restore(number, self.entry_of(id.clone(), run, kind, pane));
                    self.adopt_environment(&id, pane);
                }
            }
        }
    }

    /// An entry for a running program, from what the system reports.
    fn entry_of(&self, id: ProcessId, run: RunNumber, kind: Kind, pane: &Pane) -> Process {
        let program = pane.status().ok().flatten().filter(|status| status.exit.is_none());
        let recipe = program.and_then(|status| self.recipe_of(status.program, pane));
        let argv0 = recipe.as_ref().and_then(|recipe| recipe.argv.first());
        let name = argv0.and_then(|program| program.rsplit('/').next()).filter(|n| !n.is_empty());
        Process {
            name: name.unwrap_or(id.as_str()).to_owned(),
            kind,
            recipe,
            status: Status::Running,
            runs: run,
            adopted: true,
            ..Process::unstarted(id)
        }
    }

    /// Keeps the environment of a running program for its restart.
    fn adopt_environment(&self, id: &ProcessId, pane: &Pane) {
        let program = pane.status().ok().flatten().filter(|status| status.exit.is_none());
        let Some(status) = program else { return };
        let given = environment::of_a_caller(environ_of(status.program), &BTreeSet::new());
        if let Err(error) = self.set_environment(id, given) {
            tracing::error!(%id, %error, "cannot store the environment of a process for its restart");
        }
    }

    /// How a program was started: its arguments, folder and identity.
    fn recipe_of(&self, pid: i32, pane: &Pane) -> Option<Recipe> {
        let texts = |file: &str| -> Option<Vec<String>> {
            let bytes = std::fs::read(format!("/proc/{pid}/{file}")).ok()?;
            let texts = bytes.split(|byte| *byte == 0);
            let mut texts: Vec<_> =
                texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect();
            // Every string ends with a NUL byte, so the last part is empty.
            texts.pop_if(|last| last.is_empty());
            Some(texts)
        };
        let argv = texts("cmdline").filter(|argv| !argv.is_empty())?;
        let given = environ_of(pid);
        let own = IDENTITY.into_iter().filter(|name| *name != PANE_VARIABLE);
        let env = own.filter_map(|name| Some((name.to_owned(), given.text(name)?.to_owned())));
        let working_dir = std::fs::read_link(format!("/proc/{pid}/cwd"));
        let size = rustix::termios::tcgetwinsize(pane.master());
        let size = size.map_or(SIZE, |size| Size { rows: size.ws_row, columns: size.ws_col });
        Some(Recipe {
            argv,
            env: env.collect(),
            env_file: None,
            working_dir: working_dir.unwrap_or_else(|_| PathBuf::from(self.project.root())),
            size: if size.rows == 0 || size.columns == 0 { SIZE } else { size },
            terminal_name: None,
        })
    }
}

/// The environment with which a program was started.
fn environ_of(pid: i32) -> Environment {
    Environment::from_block(&std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default())
}

/// The number of the process and of the run in the name of a pane.
fn process_and_run(pane: &str) -> Option<(u64, RunNumber)> {
    let (id, run) = pane.strip_prefix('p')?.split_once('.')?;
    Some((id.parse().ok()?, run.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panes_of_processes_are_distinguished_from_others() {
        assert_eq!(process_and_run("p12.3"), Some((12, RunNumber::new(3))));
        for other in ["shared search 0 0x7f", "p1", "p.1", "px.1", "p1.x", "q1.1", ""] {
            assert_eq!(process_and_run(other), None, "{other}");
        }
    }
}
