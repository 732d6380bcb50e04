//! Panes that the keeper holds and the process table does not know: the table was damaged, or is older
//! than they are. Their programs keep running under their own ids, in entries made from what the
//! system reports.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use patterm_keeper::{Pane, Size};

use crate::environment::PANE_VARIABLE;
use crate::lifecycle::SIZE;
use crate::panes::Panes;
use crate::process::{Kind, Process, ProcessId, Recipe, Status};

impl Panes {
    /// Gives every pane of an unknown process an entry. Panes of earlier runs of known processes are
    /// not needed any more.
    pub(crate) fn adopt_unknown(
        &self,
        panes: &HashMap<String, Arc<Pane>>,
        is_agent: impl Fn(&ProcessId) -> bool,
    ) {
        // Of several runs of one process, the last counts.
        let mut runs: BTreeMap<u64, (u64, &Arc<Pane>)> = BTreeMap::new();
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
                    tracing::warn!(%id, run, "the table does not know the last run of a process");
                    self.processes.note(&id, |process| {
                        process.runs = run;
                        process.status = Status::Running;
                        process.exit = None;
                    });
                }
                None => {
                    tracing::warn!(%id, run, "a pane that the table does not know gets an entry");
                    let kind = if is_agent(&id) { Kind::Agent } else { Kind::Command };
                    self.processes.restore(number, self.entry_of(id, run, kind, pane));
                }
            }
        }
    }

    /// An entry for a running program, from what the system reports.
    fn entry_of(&self, id: ProcessId, run: u64, kind: Kind, pane: &Pane) -> Process {
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

    /// How a program was started: its own arguments, folder and environment.
    fn recipe_of(&self, pid: i32, pane: &Pane) -> Option<Recipe> {
        let texts = |file: &str| -> Option<Vec<String>> {
            let bytes = std::fs::read(format!("/proc/{pid}/{file}")).ok()?;
            let texts = bytes.split(|byte| *byte == 0);
            let mut texts: Vec<_> =
                texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect();
            // Each ends with a zero byte.
            texts.pop_if(|last| last.is_empty());
            Some(texts)
        };
        let argv = texts("cmdline").filter(|argv| !argv.is_empty())?;
        let variables = texts("environ").unwrap_or_default();
        let variables = variables.iter().filter_map(|text| text.split_once('='));
        let own = |(name, value): &(&str, &str)| {
            *name != PANE_VARIABLE && self.environment.get(*name).is_none_or(|ours| ours != value)
        };
        let env = variables.filter(own).map(|(name, value)| (name.to_owned(), value.to_owned()));
        let working_dir = std::fs::read_link(format!("/proc/{pid}/cwd"));
        let size = rustix::termios::tcgetwinsize(pane.master());
        let size = size.map_or(SIZE, |size| Size { rows: size.ws_row, columns: size.ws_col });
        Some(Recipe {
            argv,
            env: env.collect(),
            working_dir: working_dir.unwrap_or_else(|_| PathBuf::from(self.project.root())),
            size: if size.rows == 0 || size.columns == 0 { SIZE } else { size },
        })
    }
}

/// The process and the run that a pane's name stands for.
fn process_and_run(pane: &str) -> Option<(u64, u64)> {
    let (id, run) = pane.strip_prefix('p')?.split_once('.')?;
    Some((id.parse().ok()?, run.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::process_and_run;

    #[test]
    fn panes_of_processes_are_told_from_others() {
        assert_eq!(process_and_run("p12.3"), Some((12, 3)));
        for other in ["shared search 0 0x7f", "p1", "p.1", "px.1", "p1.x", "q1.1", ""] {
            assert_eq!(process_and_run(other), None, "{other}");
        }
    }
}
