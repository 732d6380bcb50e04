//! What needs a person at the end of a digest, most urgent first.

use std::collections::BTreeMap;

use patterm_wire::digest::DigestEntry;
use patterm_wire::events::{EventRecord, Fact};

use super::agent::{AgentState, ProcessTrack};
use super::message::MessagesTo;
use super::text::{entry, short, short_name};

/// How urgent something is: what blocks an agent comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    Blocked,
    Attention,
    Untrusted,
    Stalled,
    Failed,
    Limited,
    Ended,
    Server,
}

/// Instances of shared servers that failed and were not started since, by their servers and owners.
#[derive(Debug, Default)]
pub(super) struct OpenServers(BTreeMap<(String, Option<String>), DigestEntry>);

impl OpenServers {
    pub(super) fn feed(&mut self, event: &EventRecord, fact: &Fact) {
        match fact {
            Fact::ServerFailed { server, owner, error } => {
                let text = format!("shared server {} failed: {}", short_name(server), short(error));
                self.0.insert((server.clone(), owner.clone()), entry(event, text));
            }
            Fact::ServerStarted { server, owner } | Fact::ServerStopped { server, owner } => {
                self.0.remove(&(server.clone(), owner.clone()));
            }
            _ => {}
        }
    }
}

/// What was found at the end of a window.
pub(super) struct Found<'a> {
    pub(super) processes: &'a BTreeMap<String, ProcessTrack>,
    pub(super) names: &'a BTreeMap<String, String>,
    pub(super) messages: &'a BTreeMap<String, MessagesTo>,
    pub(super) servers: OpenServers,
    pub(super) untrusted: Option<DigestEntry>,
    /// When the window ended.
    pub(super) end: u64,
}

impl Found<'_> {
    /// What needs a person; the most urgent, and how many there was no room for.
    pub(super) fn needs(self, most: usize) -> (Vec<DigestEntry>, u64) {
        let mut needs = Vec::new();
        for (id, process) in self.processes {
            self.of_process(id, process, &mut needs);
        }
        needs.extend(self.untrusted.map(|entry| (Urgency::Untrusted, entry)));
        needs.extend(self.servers.0.into_values().map(|entry| (Urgency::Server, entry)));
        needs.sort_by_key(|(urgency, entry)| (*urgency, entry.seq));
        let excess = needs.len().saturating_sub(most);
        let kept = needs.into_iter().take(most).map(|(_, entry)| entry).collect();
        (kept, excess as u64)
    }

    fn of_process(
        &self,
        id: &str,
        process: &ProcessTrack,
        needs: &mut Vec<(Urgency, DigestEntry)>,
    ) {
        if process.is_closed {
            return;
        }
        let name = self.names.get(id).map_or(id, String::as_str);
        let mut add = |urgency, entry: Option<&DigestEntry>, ms| {
            let Some(entry) = entry.cloned() else { return };
            let between = match urgency {
                Urgency::Blocked => " is ",
                Urgency::Failed => ": ",
                _ => " ",
            };
            let text = format!("{name}{between}{}", entry.text);
            let process_id = Some(id.to_owned());
            needs.push((urgency, DigestEntry { text, ms, process_id, ..entry }));
        };
        let lasted = process.known_since().map(|since| self.end.saturating_sub(since));
        for (state, urgency, what) in [
            (AgentState::Blocked, Urgency::Blocked, "blocked"),
            (AgentState::Limited, Urgency::Limited, "has reached a usage limit"),
        ] {
            if !process.is(state) {
                continue;
            }
            let unread = DigestEntry {
                text: format!("{what} since before the events that were read"),
                ..DigestEntry::default()
            };
            add(urgency, Some(process.waits.as_ref().unwrap_or(&unread)), lasted);
        }
        add(Urgency::Attention, process.attention.as_ref(), None);
        add(Urgency::Failed, process.failed.as_ref(), None);
        add(Urgency::Ended, process.ended_badly.as_ref(), None);
        let open = self.messages.get(id).map(|of| of.open.as_slice()).unwrap_or_default();
        for (_, entry) in open.iter().filter(|(has_stalled, _)| *has_stalled) {
            let text = format!("{name}: {}", entry.text);
            needs.push((Urgency::Stalled, DigestEntry { text, ..entry.clone() }));
        }
    }
}
