//! What happened to processes that are no agents, ports, scratchpads, shared servers and the project: one entry for
//! each thing, however often it changed.

use std::collections::BTreeMap;

use patterm_wire::digest::{Digest, DigestEntry};
use patterm_wire::events::{EventRecord, Fact};

use super::text::{commit, ending, entry, short, short_name, times};

/// The part of a digest that tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Processes,
    Ports,
    Scratchpads,
    Servers,
    Project,
}

/// One thing, and how often what happened to it.
#[derive(Debug, Default)]
struct Tally {
    name: String,
    /// What happened, in the order in which each happened first.
    counts: Vec<(String, u64)>,
    /// The last one, or the last end of a process.
    last: DigestEntry,
    has_ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct Tallies(BTreeMap<(Section, String), Tally>);

impl Tallies {
    /// Takes an event of the window.
    pub(super) fn feed(
        &mut self,
        event: &EventRecord,
        fact: &Fact,
        is_agent: bool,
        process: Option<&str>,
        by: &str,
    ) {
        let process = process.unwrap_or_default();
        let id = event.process_id.clone().unwrap_or_default();
        let (section, key, name, what) = match fact {
            Fact::PortOpened { port } | Fact::PortClosed { port } => {
                let opened = matches!(fact, Fact::PortOpened { .. });
                let what = if opened { "opened" } else { "closed" };
                let owner = if process.is_empty() { String::new() } else { format!("{process}: ") };
                (Section::Ports, format!("{id} {port}"), format!("{owner}port {port}"), what.into())
            }
            Fact::PadCreated { name, .. } => pad(name, format!("created by {by}")),
            Fact::PadWritten { name, .. } | Fact::PadAppended { name, .. } => {
                pad(name, format!("changed by {by}"))
            }
            Fact::PadEditedOutside { name, .. } => pad(name, "edited outside".into()),
            Fact::PadDeleted { name } => pad(name, "deleted".into()),
            Fact::ServerStarted { server, .. } => shared(server, "started".into()),
            Fact::ServerFailed { server, error, .. } => {
                shared(server, format!("failed: {}", short(error)))
            }
            Fact::ServerStopped { server, .. } => shared(server, "stopped".into()),
            // Agents have a section of their own.
            Fact::GitCommit { .. } if is_agent => return,
            _ => {
                let of_process = if process.is_empty() || is_agent {
                    None
                } else {
                    process_text(event, fact, by)
                };
                match (of_process, project_text(event, fact, by)) {
                    (Some(what), _) => (Section::Processes, id, process.to_owned(), what),
                    (None, Some((key, name, what))) => (Section::Project, key, name, what),
                    (None, None) => return,
                }
            }
        };
        let tally = self.0.entry((section, key)).or_default();
        tally.add(name, what, event, fact);
    }

    /// Adds an entry for each thing, oldest first.
    pub(super) fn finish(self, digest: &mut Digest, most: usize) {
        for ((section, _), tally) in self.0 {
            let entries = match section {
                Section::Processes => &mut digest.processes,
                Section::Ports => &mut digest.ports,
                Section::Scratchpads => &mut digest.scratchpads,
                Section::Servers => &mut digest.servers,
                Section::Project => &mut digest.project,
            };
            entries.push(tally.into_entry());
        }
        let sections = [
            &mut digest.processes,
            &mut digest.ports,
            &mut digest.scratchpads,
            &mut digest.servers,
            &mut digest.project,
        ];
        let each = (most / sections.len()).max(1);
        for entries in sections {
            entries.sort_by_key(|entry| entry.seq);
            let excess = entries.len().saturating_sub(each);
            entries.drain(..excess);
            digest.left_out += excess as u64;
        }
    }
}

impl Tally {
    fn add(&mut self, name: String, what: String, event: &EventRecord, fact: &Fact) {
        self.name = name;
        match self.counts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((what, 1)),
        }
        // A person who goes there wants to see how it ended.
        let is_end = matches!(
            fact,
            Fact::ProcessExited { .. } | Fact::ProcessStopped { .. } | Fact::ProcessLost {}
        );
        if is_end || !self.has_ended {
            self.last = entry(event, String::new());
        }
        self.has_ended |= is_end;
    }

    fn into_entry(self) -> DigestEntry {
        let parts: Vec<_> =
            self.counts.iter().map(|(what, count)| format!("{what}{}", times(*count))).collect();
        let text = match self.name.is_empty() {
            true => parts.join(", "),
            false => format!("{}: {}", self.name, parts.join(", ")),
        };
        DigestEntry { text: short(&text), ..self.last }
    }
}

fn pad(name: &str, what: String) -> (Section, String, String, String) {
    (Section::Scratchpads, name.to_owned(), short_name(name), what)
}

fn shared(name: &str, what: String) -> (Section, String, String, String) {
    (Section::Servers, name.to_owned(), short_name(name), what)
}

/// What happened to a process that is no agent.
fn process_text(event: &EventRecord, fact: &Fact, by: &str) -> Option<String> {
    Some(match fact {
        Fact::ProcessCreated { .. } => format!("created by {by}"),
        Fact::ProcessRestarted { .. } => "restarted".to_owned(),
        Fact::ProcessExited { code, signal, error } => ending(*code, *signal, error.as_deref()),
        Fact::ProcessStopped { .. } => format!("stopped by {by}"),
        Fact::ProcessLost {} => "lost, with its end unknown".to_owned(),
        Fact::ProcessClosed {} => format!("closed by {by}"),
        Fact::GitCommit { commit: hash, subject, branch, .. } => {
            commit(event, hash, subject.as_deref(), branch.as_deref())
        }
        _ => return None,
    })
}

/// What happened to the project: the thing, its name, and what.
fn project_text(event: &EventRecord, fact: &Fact, by: &str) -> Option<(String, String, String)> {
    let (name, what) = match fact {
        Fact::ProjectFileChanged { .. } => ("patterm.toml".to_owned(), "changed".to_owned()),
        Fact::ProjectFileTrusted { .. } => ("patterm.toml".to_owned(), format!("trusted by {by}")),
        Fact::WorktreeCreated { path, .. } => (short(path), format!("worktree created by {by}")),
        Fact::WorktreeMerged { path, .. } => (short(path), "worktree merged".to_owned()),
        Fact::WorktreeRemoved { path } => (short(path), "worktree removed".to_owned()),
        Fact::GitCommit { commit: hash, subject, branch, .. } => {
            let text = commit(event, hash, subject.as_deref(), branch.as_deref());
            return Some((hash.clone(), String::new(), text));
        }
        Fact::HookFailed { hook, reason } => {
            (format!("hook {}", short_name(hook)), format!("failed: {}", short(reason)))
        }
        Fact::SystemUpgraded { version, .. } => {
            ("patterm".to_owned(), format!("upgraded to {}", short_name(version)))
        }
        Fact::SystemRecovered { .. } => {
            ("patterm".to_owned(), "repaired the log of events".to_owned())
        }
        Fact::SystemClockChanged { .. } => ("clock".to_owned(), "set".to_owned()),
        _ => return None,
    };
    Some((name.clone(), name, what))
}
