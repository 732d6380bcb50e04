//! `patterm blame`: prints who made a commit.

mod evidence;
#[cfg(test)]
mod sample;
mod text;

use std::path::Path;

use clap::Args;
use patterm_git::{Git, ReflogEntry};
use patterm_keeper::Environment;
use patterm_wire::events::{Actor, EventQuery, EventRecord, Fact, format_time};
use patterm_wire::tools::GetEvents;
use serde::Serialize;

use crate::client::Client;
use crate::print::{print, print_json};
use evidence::{Presence, Story};

/// Events of one request.
const PAGE: usize = 1_000;

/// Print which agent or person made a commit
///
/// Prints the process, its turn, the prompt before it and the dialogs that were answered in it, as far as events show
/// them. The evidence is a git command that ran in a pane while the commit was written. A commit that was made elsewhere
/// has none, and neither has one of a program in a pane that has git write traces for itself (GIT_TRACE2_EVENT, or
/// trace2.eventTarget). Programs of the same user can forge such evidence.
#[derive(Debug, Args)]
pub(crate) struct BlameVerb {
    /// A commit of the repository in this folder: a hash, a branch, HEAD~2
    #[arg(value_name = "COMMIT")]
    commit: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is known about a commit.
#[derive(Debug, Serialize)]
struct Report {
    commit: String,
    subject: String,
    /// `process_tree`, `time`, or `none`.
    evidence: String,
    /// The event that tells who made it, and what else events tell.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    story: Option<Story>,
    /// The time of the first event that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_begins_at: Option<String>,
    /// The log begins after the date of the commit.
    log_begins_later: bool,
    /// Without evidence: agents that were in a turn at the date of the commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_a_turn_then: Vec<Presence>,
}

impl BlameVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let environment: Environment = std::env::vars_os().collect();
        let folder = std::env::current_dir()?;
        let commit = find(&Git::new(&environment), &folder, &self.commit)?;
        let mut events = Events(Client::connect_to_read()?);
        let report = report(&mut events, &commit)?;
        match self.json {
            true => print_json(&report),
            false => {
                print(&text::of(&report));
                Ok(())
            }
        }
    }
}

fn find(git: &Git, folder: &Path, name: &str) -> anyhow::Result<ReflogEntry> {
    git.commit(folder, name).map_err(|error| {
        anyhow::anyhow!("cannot find the commit {name} in the repository of this folder: {error}")
    })
}

fn report(events: &mut Events, commit: &ReflogEntry) -> anyhow::Result<Report> {
    let first = events.first()?;
    let made = events.made(&commit.commit)?;
    // The date of a commit has whole seconds.
    let committed_ms = commit.committed_s.saturating_mul(1_000).saturating_add(999);
    let story = match &made {
        None => None,
        Some(made) => {
            let mut story = Story::of(made);
            events.each(&story.query(), |event| story.note(event))?;
            Some(story)
        }
    };
    let mut in_a_turn_then = Vec::new();
    if story.is_none() {
        let types = ["agent.*", "process.*"].map(str::to_owned).to_vec();
        let mut presences = evidence::Presences::at(committed_ms);
        events.each(&EventQuery { types, ..EventQuery::default() }, |e| presences.note(e))?;
        in_a_turn_then = presences.in_a_turn();
    }
    let begins = first.map(|event| event.time);
    let is_later = begins.as_ref().is_none_or(|begins| *begins > format_time(committed_ms));
    let evidence = story.as_ref().map_or_else(|| "none".to_owned(), |story| story.evidence());
    Ok(Report {
        commit: commit.commit.clone(),
        subject: commit.subject.clone(),
        evidence,
        log_begins_later: story.is_none() && is_later,
        log_begins_at: begins,
        story,
        in_a_turn_then,
    })
}

/// The log of events.
struct Events(Client);

impl Events {
    /// The first event that is kept. Of those that tell something about commits, older ones may be dropped.
    fn first(&mut self) -> anyhow::Result<Option<EventRecord>> {
        let any = EventQuery { since: Some(1), limit: Some(1), ..EventQuery::default() };
        let first = self.0.query::<GetEvents>(&any)?.result.events.pop();
        if first.as_ref().is_none_or(|first| first.seq == 1) {
            return Ok(first);
        }
        let types = ["agent.*", "git.*", "process.*"].map(str::to_owned).to_vec();
        Ok(self.0.query::<GetEvents>(&EventQuery { types, ..any })?.result.events.pop())
    }

    /// The event about a commit.
    fn made(&mut self, hash: &str) -> anyhow::Result<Option<EventRecord>> {
        let types = vec!["git.commit".to_owned()];
        let mut found = None;
        self.each(&EventQuery { types, ..EventQuery::default() }, |event| {
            let is_it =
                matches!(event.fact(), Some(Fact::GitCommit { commit, .. }) if commit == hash);
            if is_it && found.is_none() {
                found = Some(event.clone());
            }
        })?;
        Ok(found)
    }

    /// Reads all events that a query asks for.
    fn each(
        &mut self,
        query: &EventQuery,
        mut take: impl FnMut(&EventRecord),
    ) -> anyhow::Result<()> {
        let mut query = EventQuery { since: Some(1), limit: Some(PAGE), ..query.clone() };
        loop {
            let page = self.0.query::<GetEvents>(&query)?.result;
            page.events.iter().for_each(&mut take);
            // A page may be empty where nothing is wanted.
            if query.since.is_none_or(|since| page.next <= since) || page.events.is_empty() {
                return Ok(());
            }
            query.since = Some(page.next);
        }
    }
}

/// The process that an actor is, if it is one.
fn process_of(actor: &Actor) -> Option<&str> {
    match actor {
        Actor::Agent { process_id } => Some(process_id),
        _ => None,
    }
}
