//! Where a caller runs: outside all panes, in a person's pane, or in a pane where agents type. A process
//! in an agent's pane acts as that agent, whatever it claims; actions reserved for people are refused to
//! a caller that cannot be located.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use patterm_wire::events::Actor;
use patterm_wire::{ErrorObject, Framing, Id, Method, reply};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::caller::Caller;
use crate::enclosing_keeper::EnclosingKeeper;
use crate::registry;
use crate::runtime::{self, RuntimeDir};
use patterm_panes::process::{Kind, Process, ProcessId};
use patterm_panes::tree::{self, LONGEST_LINE};
use patterm_panes::{Panes, is_of_agents};
use patterm_store::project::Project;
use patterm_store::state::StateDir;

/// The request with which another project's server asks in whose pane a process runs here.
#[derive(Debug)]
pub(crate) enum LocateProcess {}

impl Method for LocateProcess {
    const NAME: &'static str = "patterm/place";
    type Params = PlaceParams;
    type Result = PlaceResult;
}

/// A program may connect before its pane is in the table: how long to retry the lookup.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often to retry it.
const LOOKUP_PAUSE: Duration = Duration::from_millis(10);

/// How many command lines are read, and how many other servers asked, at once. Either may hang on a
/// stuck process, and must not use up all blocking threads.
const PLACED_AT_ONCE: usize = 8;
static READING: Semaphore = Semaphore::const_new(PLACED_AT_ONCE);
static ASKING: Semaphore = Semaphore::const_new(PLACED_AT_ONCE);

/// How many nested panes of other projects a person may call from: each of their servers is asked.
const MOST_KEEPERS: usize = 8;

/// Size limit of another server's response to `patterm/place`, which is one word.
const ANSWER_BYTES: usize = 4 << 10;

/// The parameters of `patterm/place`: a process and its ancestors.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlaceParams {
    pub(crate) line: Vec<i32>,
}

impl PlaceParams {
    /// Refuses a line that is too long.
    pub(crate) fn check(&self) -> Result<(), ErrorObject> {
        let ids = self.line.len();
        match ids > LONGEST_LINE {
            true => Err(ErrorObject::invalid_params(format!(
                "`line` has {ids} ids; at most {LONGEST_LINE} are allowed"
            ))),
            false => Ok(()),
        }
    }
}

/// Its result.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlaceResult {
    pub(crate) person: bool,
}

/// Where a caller runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallerOrigin {
    /// In no pane: a person's shell, a script.
    Outside,
    /// In a pane that a person started.
    Person,
    /// In a pane where agents type: the nearest agent, or else the pane itself.
    Agents(ProcessId),
    /// Where it may not be a person: in an agent's pane of another project, in a container, or in the command of a
    /// hook.
    Elsewhere,
    /// The process ended before it could be located, or runs in an unknown pane.
    Nowhere,
}

impl CallerOrigin {
    /// Who types into a view that is attached from here.
    pub(crate) fn actor_at_view(&self) -> Actor {
        match self {
            Self::Outside | Self::Person => Actor::view(),
            Self::Agents(id) => Actor::agent(id.as_str()),
            Self::Elsewhere | Self::Nowhere => Actor::Unidentified,
        }
    }

    /// Whether a request from here can be a person's.
    pub(crate) fn is_human_origin(&self) -> bool {
        matches!(self, Self::Outside | Self::Person)
    }

    /// The caller, if it has no token; `None` if it must be refused.
    pub(crate) fn caller(&self, says: Caller) -> Option<Caller> {
        match self {
            Self::Outside | Self::Person => Some(says),
            Self::Agents(id) => Some(Caller::Inside(id.clone())),
            Self::Elsewhere => Some(Caller::Elsewhere),
            Self::Nowhere => None,
        }
    }
}

/// A process and its ancestors at the time it connected; what ends afterwards does not matter.
#[derive(Debug)]
pub(crate) enum Peer {
    /// The process and its ancestors, the nearest first.
    Line(Vec<i32>),
    /// The kernel does not report one: it runs in a container.
    Hidden,
    /// It ended before it could be read, or keeps changing.
    Gone,
}

impl Peer {
    /// The process that made a connection.
    pub(crate) fn of(stream: &tokio::net::UnixStream) -> Self {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid()).filter(|pid| *pid > 0);
        let Some(pid) = pid else { return Self::Hidden };
        // The pid alone may belong to another process by now.
        let life = patterm_keeper::peer_process(stream.as_fd());
        let line = tree::line_of(pid).filter(|_| life.is_none_or(|life| life.is(pid)));
        line.map_or(Self::Gone, Self::Line)
    }
}

/// Who types in a pane of this project.
#[derive(Debug)]
enum PaneOwner {
    /// A person.
    Person,
    /// Agents: the nearest one, or else the pane itself.
    Agents(ProcessId),
    /// Nobody: it is the command of a hook, whose arguments and input may be texts of agents.
    Hook,
}

/// A lookup of a caller's origin, begun when it connected: what happens to it and its ancestors
/// afterwards does not matter.
#[derive(Debug)]
pub(crate) enum OriginLookup {
    Done(CallerOrigin),
    UnderWay(JoinHandle<CallerOrigin>),
}

impl OriginLookup {
    /// The origin.
    pub(crate) async fn origin(self) -> CallerOrigin {
        match self {
            Self::Done(origin) => origin,
            Self::UnderWay(look) => look.await.unwrap_or(CallerOrigin::Nowhere),
        }
    }
}

/// Finds out where callers run.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    panes: Arc<Panes>,
    /// The key of the project.
    key: String,
}

impl Origins {
    pub(crate) fn new(panes: Arc<Panes>, project: &Project) -> Self {
        Self { panes, key: project.key().to_owned() }
    }

    /// Begins to look up where a process runs. In an agent's pane nothing nearer counts, so no command
    /// line needs to be read.
    pub(crate) fn begin_lookup(&self, peer: Peer) -> OriginLookup {
        let line = match peer {
            Peer::Hidden => return OriginLookup::Done(CallerOrigin::Elsewhere),
            Peer::Gone => return OriginLookup::Done(CallerOrigin::Nowhere),
            Peer::Line(line) => line,
        };
        match self.pane_owner(&line) {
            Some(PaneOwner::Agents(id)) => return OriginLookup::Done(CallerOrigin::Agents(id)),
            Some(PaneOwner::Hook) => return OriginLookup::Done(CallerOrigin::Elsewhere),
            Some(PaneOwner::Person) | None => {}
        }
        let origins = self.clone();
        OriginLookup::UnderWay(tokio::spawn(async move { origins.locate(&line).await }))
    }

    async fn locate(&self, line: &[i32]) -> CallerOrigin {
        let above = line.to_owned();
        let keepers = within_patience(&READING, move || EnclosingKeeper::all_above(&above)).await;
        let Some(keepers) = keepers else { return CallerOrigin::Nowhere };
        let (ours, others): (Vec<_>, Vec<_>) =
            keepers.into_iter().partition(|keeper| keeper.key == self.key);
        let pane = match self.known_pane(line).await {
            Some(PaneOwner::Agents(id)) => return CallerOrigin::Agents(id),
            Some(PaneOwner::Hook) => return CallerOrigin::Elsewhere,
            None if !ours.is_empty() || self.is_kept(line) => return CallerOrigin::Nowhere,
            pane => pane,
        };
        if others.is_empty() {
            return match pane {
                Some(_) => CallerOrigin::Person,
                None if self.may_be_left_behind(line).await => CallerOrigin::Elsewhere,
                None => CallerOrigin::Outside,
            };
        }
        if others.len() > MOST_KEEPERS {
            return CallerOrigin::Elsewhere;
        }
        // In either order: a person's pane within an agent's pane is an agent's.
        let above = line.to_owned();
        let asked = move || {
            let deadline = Instant::now() + PATIENCE;
            others.iter().all(|keeper| is_person_in(keeper, &above, deadline) == Some(true))
        };
        match within_patience(&ASKING, asked).await {
            Some(true) => CallerOrigin::Person,
            _ => CallerOrigin::Elsewhere,
        }
    }

    /// Whether a process outside all panes may have been left behind by an agent's pane: if the pane's
    /// init was killed after its keeper, no ancestor of the process shows where it came from. It was
    /// not if its terminal is not a pane's, or if it has an ancestor that is older than the pane and
    /// not an ancestor of this server: such a process is only reparented to those.
    async fn may_be_left_behind(&self, line: &[i32]) -> bool {
        let Some(since) = self.panes.left_behind_since() else { return false };
        let above = line.to_owned();
        let runs = self.panes.runs();
        let look = move || {
            let own = i32::try_from(std::process::id()).ok().and_then(tree::line_of);
            let own = own.unwrap_or_default();
            let is_older = |pid: &i32| tree::started_at(*pid).is_some_and(|at| at < since);
            let terminal = above.first().and_then(|pid| tree::terminal(*pid));
            let mut panes = runs.iter().filter_map(|(_, run)| run.pane.as_ref()?.terminal());
            let has_terminal = terminal.is_some_and(|terminal| panes.all(|pane| pane != terminal));
            !has_terminal && !above.iter().any(|pid| !own.contains(pid) && is_older(pid))
        };
        within_patience(&READING, look).await.unwrap_or(true)
    }

    /// Whether a process runs in a pane of this project that a person started.
    pub(crate) async fn is_in_a_persons_pane(&self, line: &[i32]) -> bool {
        matches!(self.known_pane(line).await, Some(PaneOwner::Person))
    }

    /// The owner of the pane that a process runs in. Below our keeper there is one, but the pane may
    /// not be in the table yet.
    async fn known_pane(&self, line: &[i32]) -> Option<PaneOwner> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let pane = self.pane_owner(line);
            if pane.is_some() || !self.is_kept(line) || Instant::now() >= deadline {
                return pane;
            }
            tokio::time::sleep(LOOKUP_PAUSE).await;
        }
    }

    /// Whether our keeper is one of these processes.
    fn is_kept(&self, line: &[i32]) -> bool {
        self.panes.keeper.pid().is_some_and(|keeper| line.contains(&keeper))
    }

    /// The owner of the pane that the first of these runs in. Of nested panes, an agent's counts.
    fn pane_owner(&self, line: &[i32]) -> Option<PaneOwner> {
        let panes: Vec<_> = self
            .panes
            .panes_with_inits(line)
            .into_iter()
            .filter_map(|id| self.panes.processes.get(&id))
            .collect();
        let agents = panes.iter().find_map(|process| acting_agent(&self.panes, process));
        match agents {
            Some(id) => Some(PaneOwner::Agents(id)),
            None if self.panes.is_of_hook(line) => Some(PaneOwner::Hook),
            None => panes.first().map(|_| PaneOwner::Person),
        }
    }
}

/// Who acts in the pane of a process where agents type: the nearest agent, or else the process itself. `None` for a
/// person's pane.
fn acting_agent(panes: &Panes, process: &Process) -> Option<ProcessId> {
    if !is_of_agents(process) {
        return None;
    }
    if process.kind == Kind::Agent {
        return Some(process.id.clone());
    }
    let above = panes.processes.agent_above(process);
    Some(above.map_or_else(|| process.id.clone(), |above| above.id))
}

/// Who causes what the programs in a pane do.
pub(crate) fn actor_in_pane(panes: &Panes, process: &Process) -> Actor {
    acting_agent(panes, process).map_or_else(Actor::view, |id| Actor::agent(id.as_str()))
}

/// Runs blocking work once there is a free slot; `None` if there is none in time.
async fn within_patience<T: Send + 'static>(
    turns: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let turn = tokio::time::timeout(PATIENCE, turns.acquire()).await.ok()?.ok()?;
    let work = move || {
        // Held until the work is done, even if the caller is gone by then.
        let _turn = turn;
        work()
    };
    tokio::task::spawn_blocking(work).await.ok()
}

/// Asks another project's server whether a process runs in a person's pane there.
fn is_person_in(keeper: &EnclosingKeeper, line: &[i32], deadline: Instant) -> Option<bool> {
    let folders = RuntimeDir::candidates(Some(&keeper.keeper_socket));
    let state = StateDir::from_env(&keeper.key).ok();
    let entries = registry::find(&keeper.key, &folders, state.as_ref());
    let stream = entries.iter().find_map(|entry| runtime::connect(&entry.socket).ok().flatten())?;
    ask(stream, line, deadline).ok()
}

/// The same over a connection to that server, which may answer anything, or nothing.
fn ask(mut stream: UnixStream, line: &[i32], deadline: Instant) -> io::Result<bool> {
    let params = serde_json::to_string(&PlaceParams { line: line.to_owned() })?;
    let request = reply::request(&Id::from_number(1), LocateProcess::NAME, Some(&params));
    let mut message = Vec::new();
    Framing::Newline.encode(&request, &mut message);
    stream.set_write_timeout(Some(left_until(deadline)?))?;
    stream.write_all(&message)?;
    let mut response = Vec::new();
    let mut piece = [0; 1024];
    let end = loop {
        if let Some(end) = memchr::memchr(b'\n', &response) {
            break end;
        }
        if response.len() > ANSWER_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        stream.set_read_timeout(Some(left_until(deadline)?))?;
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => response.extend_from_slice(&piece[..bytes]),
        }
    };
    let mut response: serde_json::Value = serde_json::from_slice(&response[..end])?;
    Ok(serde_json::from_value::<PlaceResult>(response["result"].take())?.person)
}

fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_of(server: impl FnOnce(UnixStream) + Send + 'static) -> io::Result<bool> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || server(theirs));
        let answer = ask(ours, &[7, 1], Instant::now() + Duration::from_secs(60));
        server.join().unwrap();
        answer
    }

    #[test]
    fn reading_an_endless_response_of_another_server_stops() {
        let error = asked_of(|mut stream| while stream.write_all(&[b'x'; 1024]).is_ok() {});
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_response_of_another_server_is_parsed() {
        let parsed = |text: &'static str| {
            asked_of(move |mut stream| {
                let mut request = [0; 1];
                stream.read_exact(&mut request).unwrap();
                stream.write_all(text.as_bytes()).unwrap();
            })
        };
        assert!(parsed("{\"id\":1,\"result\":{\"person\":true}}\n").unwrap());
        assert!(!parsed("{\"id\":1,\"result\":{\"person\":false}}\n").unwrap());
        assert!(parsed("{\"id\":1,\"error\":{}}\n").is_err());
        assert!(parsed("{\"id\":1,\"result\":{\"person\":true}}").is_err(), "it is truncated");
    }

    #[test]
    fn asking_another_server_times_out() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(ask(ours, &[7], Instant::now()).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_line_with_too_many_processes_is_refused() {
        let asked = |ids: usize| PlaceParams { line: vec![1; ids] };
        assert!(asked(LONGEST_LINE).check().is_ok());
        let error = asked(LONGEST_LINE + 1).check().unwrap_err();
        assert!(error.message.contains("1001 ids"), "{}", error.message);
    }
}
