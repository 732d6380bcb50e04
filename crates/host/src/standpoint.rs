//! Where a process of the operating system speaks from: outside, in a pane of a person's, or where
//! agents type. What somebody in an agent's pane does is that agent's doing, whatever he says of himself;
//! what only people may do is not done for who cannot be placed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use patterm_wire::{Framing, Id, reply};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::caller::Caller;
use crate::host::Host;
use crate::process::{Kind, Process, ProcessId};
use crate::registry;
use crate::runtime::{self, RuntimeDir};
use crate::state::StateDir;
use crate::surroundings::Surroundings;
use crate::tree;

/// The request with which another project's server asks in whose pane here a process runs.
pub(crate) const PLACE_METHOD: &str = "patterm/place";

/// A program may speak before its pane is in the books: this long they are looked at again.
const PATIENCE: Duration = Duration::from_secs(2);

/// And this often.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// What `patterm/place` takes: a process, and those above it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) line: Vec<i32>,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) person: bool,
}

/// Where somebody speaks from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In no pane: a person's shell, a script.
    Outside,
    /// In a pane that a person started.
    Person,
    /// Where agents type; the nearest agent, or else the pane itself.
    Agents(ProcessId),
    /// Where nothing says that it is a person: an agent's pane of another project, a container.
    Elsewhere,
    /// The process ended before anybody looked, or runs in a pane that nobody knows.
    Nowhere,
}

impl Place {
    /// Whether what is asked for from here can be a person's wish.
    pub(crate) fn may_be_a_persons(&self) -> bool {
        matches!(self, Self::Outside | Self::Person)
    }

    /// Who speaks, if it is somebody without a token; `None` if he is not to be served.
    pub(crate) fn caller(&self, says: Caller) -> Option<Caller> {
        match self {
            Self::Outside | Self::Person => Some(says),
            Self::Agents(id) => Some(Caller::Inside(id.clone())),
            Self::Elsewhere => Some(Caller::Elsewhere),
            Self::Nowhere => None,
        }
    }
}

/// A process and those above it, as they were when it connected: whoever ends afterwards stays where
/// he was.
#[derive(Debug)]
pub(crate) struct Peer {
    line: Vec<i32>,
    seen: bool,
}

impl Peer {
    /// The process with this id; `None` where the kernel names none.
    pub(crate) fn of(pid: Option<i32>) -> Self {
        let line = pid.map(tree::line_of).unwrap_or_default();
        let exists = |pid: &i32| Path::new(&format!("/proc/{pid}")).exists();
        let seen = line.len() > 1 || line.first().is_some_and(exists);
        Self { line, seen }
    }
}

/// What one look says.
enum Look {
    Sure(Place),
    /// In a pane of ours that is not known yet, or not any more.
    Unknown,
    /// In a pane of another project.
    Foreign(Surroundings),
}

impl Host {
    /// Where a process speaks from. It may take a moment.
    pub(crate) async fn place(self: &Arc<Self>, peer: Peer) -> Place {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.look_for(&peer) {
                Look::Sure(place) => return place,
                Look::Foreign(around) => {
                    let asked =
                        tokio::task::spawn_blocking(move || is_person_in(&around, peer.line));
                    return match asked.await {
                        Ok(Some(true)) => Place::Person,
                        _ => Place::Elsewhere,
                    };
                }
                Look::Unknown if Instant::now() >= deadline => return Place::Nowhere,
                Look::Unknown => tokio::time::sleep(LOOK_PAUSE).await,
            }
        }
    }

    /// Whether a process runs in a pane here that a person started.
    pub(crate) fn is_in_a_persons_pane(&self, line: &[i32]) -> bool {
        self.pane_around(line).is_some_and(|process| !is_of_agents(&process))
    }

    fn look_for(&self, peer: &Peer) -> Look {
        if peer.line.is_empty() {
            return Look::Sure(Place::Elsewhere);
        }
        if !peer.seen {
            return Look::Sure(Place::Nowhere);
        }
        let around = match Surroundings::within(&peer.line) {
            None => return Look::Sure(Place::Outside),
            Some(around) => around,
        };
        if around.key != self.project.key() {
            return Look::Foreign(around);
        }
        match self.pane_around(&peer.line) {
            Some(process) if is_of_agents(&process) => {
                let is_agent = process.kind == Kind::Agent;
                let above = if is_agent { None } else { self.processes.agent_above(&process) };
                Look::Sure(Place::Agents(above.unwrap_or(process).id))
            }
            Some(_) => Look::Sure(Place::Person),
            None => Look::Unknown,
        }
    }

    /// The process in whose pane the first of these runs.
    fn pane_around(&self, line: &[i32]) -> Option<Process> {
        let init = |process: &Process| self.live(&process.id)?.status().map(|status| status.init);
        let is_above = |process: &Process| init(process).is_some_and(|init| line.contains(&init));
        self.processes.all().into_iter().find(is_above)
    }
}

/// Whether agents may type in a pane: theirs, what the project file declares, what an agent started
/// (though it may be closed by now), and what came over HTTP or from nobody knows where.
fn is_of_agents(process: &Process) -> bool {
    process.kind == Kind::Agent
        || process.declared.is_some()
        || process.parent_id.is_some()
        || process.not_a_persons
        || process.adopted
}

/// Asks another project's server whether a process runs in a person's pane there.
fn is_person_in(around: &Surroundings, line: Vec<i32>) -> Option<bool> {
    let folders = RuntimeDir::candidates(Some(&around.keeper_socket));
    let state = StateDir::from_env(&around.key).ok();
    let entries = registry::find(&around.key, &folders, state.as_ref());
    let mut stream =
        entries.iter().find_map(|entry| runtime::connect(&entry.socket).ok().flatten())?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let params = serde_json::to_string(&Asked { line }).ok()?;
    let request = reply::request(&Id::from_number(1), PLACE_METHOD, Some(&params));
    let mut asked = Vec::new();
    Framing::Newline.encode(&request, &mut asked);
    stream.write_all(&asked).ok()?;
    let mut said = String::new();
    BufReader::new(stream).read_line(&mut said).ok()?;
    let mut said: serde_json::Value = serde_json::from_str(&said).ok()?;
    serde_json::from_value::<Placed>(said["result"].take()).ok().map(|placed| placed.person)
}
