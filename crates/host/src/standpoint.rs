//! Where a process of the operating system speaks from: outside, in a pane of a person's, or where
//! agents type. What a process in an agent's pane does is that agent's doing, whatever it says of itself;
//! what only people may do is not done for a caller that cannot be placed.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use patterm_wire::{ErrorObject, Framing, Id, Method, reply};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::caller::Caller;
use crate::host::Host;
use crate::process::{Kind, Process, ProcessId};
use crate::registry;
use crate::runtime::{self, RuntimeDir};
use crate::surroundings::Surroundings;
use crate::tree::{self, LONGEST_LINE};
use patterm_store::state::StateDir;

/// The request with which another project's server asks in whose pane here a process runs.
#[derive(Debug)]
pub(crate) enum LocateProcess {}

impl Method for LocateProcess {
    const NAME: &'static str = "patterm/place";
    type Params = Asked;
    type Result = Placed;
}

/// A program may speak before its pane is in the books: this long they are looked at again.
const PATIENCE: Duration = Duration::from_secs(2);

/// And this often.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// How many command lines are read, and how many other servers asked, at once. Either may hang on a
/// process that is stuck, and must not take all threads for work that waits.
const PLACED_AT_ONCE: usize = 8;
static READING: Semaphore = Semaphore::const_new(PLACED_AT_ONCE);
static ASKING: Semaphore = Semaphore::const_new(PLACED_AT_ONCE);

/// The most other projects in whose panes a caller may run, one within the other, and be a person:
/// each of their servers is asked.
const MOST_KEEPERS: usize = 8;

/// The kernel counts the time of its start in whole seconds, and a program runs a moment before its
/// start is written down.
const CLOCK_SLACK_MS: u64 = 2_000;

/// Bytes that another server's answer to `patterm/place` may have: it says one word.
const ANSWER_BYTES: usize = 4 << 10;

/// What `patterm/place` takes: a process, and those above it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) line: Vec<i32>,
}

impl Asked {
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

/// A process and those above it, as they were when it connected: one that ends afterwards stays where
/// it was.
#[derive(Debug)]
pub(crate) enum Peer {
    /// The process and those above it, the nearest first.
    Line(Vec<i32>),
    /// The kernel names none: it runs in a container.
    Hidden,
    /// It ended before it was looked at, or does not stand still.
    Gone,
}

impl Peer {
    /// The process that made a connection.
    pub(crate) fn of(stream: &tokio::net::UnixStream) -> Self {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid()).filter(|pid| *pid > 0);
        let Some(pid) = pid else { return Self::Hidden };
        // By its number alone, another process that got that number meanwhile would be looked at.
        let life = patterm_keeper::peer_life(stream.as_fd());
        let line = tree::line_of(pid).filter(|_| life.is_none_or(|life| life.is(pid)));
        line.map_or(Self::Gone, Self::Line)
    }
}

/// A pane of this project.
#[derive(Debug)]
enum Around {
    /// A person's.
    Person,
    /// Where agents type; the nearest agent, or else the pane itself.
    Agents(ProcessId),
}

/// A look at where a process speaks from, begun when it connected: what happens to it and to those
/// above it afterwards changes nothing.
#[derive(Debug)]
pub(crate) enum Placing {
    Done(Place),
    UnderWay(JoinHandle<Place>),
}

impl Placing {
    /// Where it speaks from.
    pub(crate) async fn place(self) -> Place {
        match self {
            Self::Done(place) => place,
            Self::UnderWay(look) => look.await.unwrap_or(Place::Nowhere),
        }
    }
}

impl Host {
    /// Begins to look where a process speaks from. In an agent's pane nothing that stands nearer
    /// counts, and no command line needs to be read.
    pub(crate) fn begin_to_place(self: &Arc<Self>, peer: Peer) -> Placing {
        let line = match peer {
            Peer::Hidden => return Placing::Done(Place::Elsewhere),
            Peer::Gone => return Placing::Done(Place::Nowhere),
            Peer::Line(line) => line,
        };
        if let Some(Around::Agents(id)) = self.pane_around(&line) {
            return Placing::Done(Place::Agents(id));
        }
        let host = self.clone();
        Placing::UnderWay(tokio::spawn(async move { host.place(&line).await }))
    }

    async fn place(&self, line: &[i32]) -> Place {
        let above = line.to_owned();
        let keepers = within_patience(&READING, move || Surroundings::all_around(&above)).await;
        let Some(keepers) = keepers else { return Place::Nowhere };
        let (ours, others): (Vec<_>, Vec<_>) =
            keepers.into_iter().partition(|around| around.key == self.project.key());
        let pane = match self.known_pane(line).await {
            Some(Around::Agents(id)) => return Place::Agents(id),
            None if !ours.is_empty() || self.is_kept(line) => return Place::Nowhere,
            pane => pane,
        };
        if others.is_empty() {
            return match pane {
                Some(_) => Place::Person,
                None if self.may_be_left_behind(line).await => Place::Elsewhere,
                None => Place::Outside,
            };
        }
        if others.len() > MOST_KEEPERS {
            return Place::Elsewhere;
        }
        // Whichever is nearer: a person's pane in an agent's pane is an agent's.
        let above = line.to_owned();
        let asked = move || {
            let deadline = Instant::now() + PATIENCE;
            others.iter().all(|around| is_person_in(around, &above, deadline) == Some(true))
        };
        match within_patience(&ASKING, asked).await {
            Some(true) => Place::Person,
            _ => Place::Elsewhere,
        }
    }

    /// Whether a process in no pane may be what an agent's pane left behind: the init of such a pane
    /// was killed after its keeper, so that nothing above the process says any more where it came from.
    /// A process with a terminal that is no pane's is not; nor is one below a process that is older
    /// than the pane and not above this server, since what was left behind can only stand below those.
    async fn may_be_left_behind(&self, line: &[i32]) -> bool {
        self.look_for_left_behind();
        let since = self.left_behind.load(Ordering::Acquire);
        if since == u64::MAX {
            return false;
        }
        let above = line.to_owned();
        let lives = self.lives();
        let look = move || {
            let own = i32::try_from(std::process::id()).ok().and_then(tree::line_of);
            let own = own.unwrap_or_default();
            let is_older = |pid: &i32| tree::started_at(*pid).is_some_and(|at| at < since);
            let terminal = above.first().and_then(|pid| tree::terminal(*pid));
            let mut panes = lives.iter().filter_map(|(_, live)| live.pane.as_ref()?.terminal());
            let has_terminal = terminal.is_some_and(|terminal| panes.all(|pane| pane != terminal));
            !has_terminal && !above.iter().any(|pid| !own.contains(pid) && is_older(pid))
        };
        within_patience(&READING, look).await.unwrap_or(true)
    }

    /// Notes panes of agents that left something behind.
    pub(crate) fn look_for_left_behind(&self) {
        for process in self.panes_left_behind().iter().filter_map(|id| self.processes.get(id)) {
            self.note_left_behind(&process);
        }
    }

    /// Notes that a pane left something behind.
    pub(crate) fn note_left_behind(&self, process: &Process) {
        if is_of_agents(process) {
            let began = process.started_at.unwrap_or(0).saturating_sub(CLOCK_SLACK_MS);
            self.left_behind.fetch_min(began, Ordering::AcqRel);
        }
    }

    /// Whether a process runs in a pane here that a person started.
    pub(crate) async fn is_in_a_persons_pane(&self, line: &[i32]) -> bool {
        matches!(self.known_pane(line).await, Some(Around::Person))
    }

    /// The pane around a process. Below our keeper there is one, but it may not be in the books yet.
    async fn known_pane(&self, line: &[i32]) -> Option<Around> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let pane = self.pane_around(line);
            if pane.is_some() || !self.is_kept(line) || Instant::now() >= deadline {
                return pane;
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// Whether our keeper is one of these processes.
    fn is_kept(&self, line: &[i32]) -> bool {
        self.keeping.pid().is_some_and(|keeper| line.contains(&keeper))
    }

    /// The pane in which the first of these runs. Where one is within another, an agent's counts.
    fn pane_around(&self, line: &[i32]) -> Option<Around> {
        let panes: Vec<_> = self
            .panes_with_inits(line)
            .into_iter()
            .filter_map(|id| self.processes.get(&id))
            .collect();
        match panes.iter().find(|process| is_of_agents(process)) {
            Some(process) if process.kind == Kind::Agent => {
                Some(Around::Agents(process.id.clone()))
            }
            Some(process) => {
                let above = self.processes.agent_above(process);
                Some(Around::Agents(above.map_or_else(|| process.id.clone(), |above| above.id)))
            }
            None => panes.first().map(|_| Around::Person),
        }
    }
}

/// Does something on a thread that may wait, when there is a turn for it; `None` if none comes in time.
async fn within_patience<T: Send + 'static>(
    turns: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let turn = tokio::time::timeout(PATIENCE, turns.acquire()).await.ok()?.ok()?;
    let work = move || {
        // Held until the work is done, though the caller may be gone by then.
        let _turn = turn;
        work()
    };
    tokio::task::spawn_blocking(work).await.ok()
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
fn is_person_in(around: &Surroundings, line: &[i32], deadline: Instant) -> Option<bool> {
    let folders = RuntimeDir::candidates(Some(&around.keeper_socket));
    let state = StateDir::from_env(&around.key).ok();
    let entries = registry::find(&around.key, &folders, state.as_ref());
    let stream = entries.iter().find_map(|entry| runtime::connect(&entry.socket).ok().flatten())?;
    ask(stream, line, deadline).ok()
}

/// The same over a connection to that server, which may say anything, or nothing.
fn ask(mut stream: UnixStream, line: &[i32], deadline: Instant) -> io::Result<bool> {
    let params = serde_json::to_string(&Asked { line: line.to_owned() })?;
    let request = reply::request(&Id::from_number(1), LocateProcess::NAME, Some(&params));
    let mut asked = Vec::new();
    Framing::Newline.encode(&request, &mut asked);
    stream.set_write_timeout(Some(left_until(deadline)?))?;
    stream.write_all(&asked)?;
    let mut said = Vec::new();
    let mut piece = [0; 1024];
    let end = loop {
        if let Some(end) = memchr::memchr(b'\n', &said) {
            break end;
        }
        if said.len() > ANSWER_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        stream.set_read_timeout(Some(left_until(deadline)?))?;
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => said.extend_from_slice(&piece[..bytes]),
        }
    };
    let mut said: serde_json::Value = serde_json::from_slice(&said[..end])?;
    Ok(serde_json::from_value::<Placed>(said["result"].take())?.person)
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
    fn a_server_that_answers_without_end_is_not_listened_to_without_end() {
        let error = asked_of(|mut stream| while stream.write_all(&[b'x'; 1024]).is_ok() {});
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_answer_of_another_server() {
        let said = |text: &'static str| {
            asked_of(move |mut stream| {
                let mut request = [0; 1];
                stream.read_exact(&mut request).unwrap();
                stream.write_all(text.as_bytes()).unwrap();
            })
        };
        assert!(said("{\"id\":1,\"result\":{\"person\":true}}\n").unwrap());
        assert!(!said("{\"id\":1,\"result\":{\"person\":false}}\n").unwrap());
        assert!(said("{\"id\":1,\"error\":{}}\n").is_err());
        assert!(said("{\"id\":1,\"result\":{\"person\":true}}").is_err(), "it is cut off");
    }

    #[test]
    fn after_its_time_no_answer_is_waited_for() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(ask(ours, &[7], Instant::now()).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_line_of_more_processes_than_can_be_is_refused() {
        let asked = |ids: usize| Asked { line: vec![1; ids] };
        assert!(asked(LONGEST_LINE).check().is_ok());
        let error = asked(LONGEST_LINE + 1).check().unwrap_err();
        assert!(error.message.contains("1001 ids"), "{}", error.message);
    }
}
