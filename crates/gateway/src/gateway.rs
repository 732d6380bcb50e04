//! All shared servers of a project by name, and the handles that clients use to call them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use patterm_wire::{Id, Message};
use tokio::sync::mpsc;

use crate::backend::Backend;
use crate::filter::Tools;
use crate::memory::{Memory, Remembered};
use crate::refusal::{Refusal, RefusalKind};
use crate::relay::{LineId, Terms};
use crate::server::{Plan, ServerStatus, Slot};
use crate::session::{Session, Told};
use crate::settings::{Bounds, Share};

/// Notifications queued for one client; further ones are dropped for that client only.
const TOLD: usize = 256;

/// The timeout of `subscriptions/listen`, which has no natural end.
const LISTENING: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Attempts per request. A second attempt is made only if the probe ended the server before it saw
/// the request.
const TRIES: usize = 2;

/// How a server is configured.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Where it runs.
    pub backend: Arc<dyn Backend>,
    /// Everything that makes this a different server when it changes, as text.
    pub fingerprint: String,
    /// Who shares an instance.
    pub share: Share,
    /// Its limits.
    pub bounds: Bounds,
    /// The answer to `roots/list`, as a JSON list.
    pub roots: String,
    /// Which of its tools are visible.
    pub tools: Tools,
}

/// Who calls. It selects the instance where a server is not shared by everybody.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The agent or the token.
    pub caller: String,
    /// The client's session, if it has one.
    pub session: String,
}

/// The shared servers.
#[derive(Clone, Default)]
pub struct Gateway(Arc<Inner>);

#[derive(Default)]
struct Inner {
    servers: Mutex<BTreeMap<String, Entry>>,
    next_line: AtomicU64,
    memory: Option<Arc<dyn Memory>>,
}

struct Entry {
    wanted: Wanted,
    /// Instances by owner; the owner is empty if everybody shares the instance.
    slots: HashMap<String, Arc<Slot>>,
}

impl Entry {
    fn is_awake(&self) -> bool {
        self.slots.values().any(|slot| !slot.is_asleep())
    }
}

impl Gateway {
    /// A gateway that uses what is known about its servers from earlier runs.
    pub fn remembering(memory: Arc<dyn Memory>) -> Self {
        Self(Arc::new(Inner { memory: Some(memory), ..Inner::default() }))
    }

    /// What is known about a server from earlier runs.
    pub(crate) fn recall(&self, server: &str) -> Option<Remembered> {
        let fingerprint = self.fingerprint(server)?;
        self.0.memory.as_ref()?.recall(server, &fingerprint)
    }

    /// Updates what is known about a server.
    pub(crate) fn remember(&self, server: &str, mut change: impl FnMut(&mut Remembered)) {
        if let (Some(memory), Some(fingerprint)) = (&self.0.memory, self.fingerprint(server)) {
            memory.remember(server, &fingerprint, &mut change);
        }
    }

    fn fingerprint(&self, server: &str) -> Option<String> {
        self.servers().get(server).map(|entry| entry.wanted.fingerprint.clone())
    }

    /// Replaces the set of servers. A server that was removed or changed takes no new calls and
    /// ends once its calls in flight are done.
    pub fn configure(&self, wanted: BTreeMap<String, Wanted>) {
        let mut servers = self.servers();
        let mut old = std::mem::take(&mut *servers);
        for (name, wanted) in wanted {
            let same = old.get(&name).is_some_and(|e| e.wanted.fingerprint == wanted.fingerprint);
            let kept = if same { old.remove(&name) } else { None };
            let slots = kept.map(|entry| entry.slots).unwrap_or_default();
            servers.insert(name, Entry { wanted, slots });
        }
        if let Some(memory) = &self.0.memory {
            memory.keep_only(&servers.keys().map(String::as_str).collect::<Vec<_>>());
        }
        drop(servers);
        for slot in old.into_values().flat_map(|entry| entry.slots.into_values()) {
            tokio::spawn(async move { slot.retire().await });
        }
    }

    /// Adds a server unless it exists. If the limit is reached, a server that is asleep is removed
    /// to make room.
    pub(crate) fn add(
        &self,
        name: &str,
        most: usize,
        wanted: impl FnOnce() -> Wanted,
    ) -> Result<(), Refusal> {
        let mut servers = self.servers();
        if servers.contains_key(name) {
            return Ok(());
        }
        if most != 0 && servers.len() >= most {
            let asleep = servers.iter().find(|(_, entry)| !entry.is_awake());
            let Some(asleep) = asleep.map(|(name, _)| name.clone()) else {
                let message = format!("the limit of {most} running servers is reached");
                return Err(Refusal::new(RefusalKind::Limit, message));
            };
            servers.remove(&asleep);
        }
        servers.insert(name.to_owned(), Entry { wanted: wanted(), slots: HashMap::new() });
        Ok(())
    }

    /// Whether a server is running or starting.
    pub(crate) fn is_awake(&self, name: &str) -> bool {
        self.servers().get(name).is_some_and(Entry::is_awake)
    }

    /// The names of all servers.
    pub fn names(&self) -> Vec<String> {
        self.servers().keys().cloned().collect()
    }

    /// Which tools of a server are visible.
    pub fn tools_of(&self, server: &str) -> Tools {
        self.servers().get(server).map(|entry| entry.wanted.tools.clone()).unwrap_or_default()
    }

    /// The status of every instance: the server's name, the instance's owner, and its state.
    pub fn status(&self) -> Vec<(String, String, ServerStatus)> {
        let servers = self.servers();
        let mut all = Vec::new();
        for (name, entry) in &*servers {
            if entry.slots.is_empty() {
                all.push((name.clone(), String::new(), ServerStatus::asleep()));
            }
            for (owner, slot) in &entry.slots {
                all.push((name.clone(), owner.clone(), slot.status()));
            }
        }
        all
    }

    /// Connects a client to a server. The receiver gets the server's messages other than responses.
    /// The first call starts the server.
    pub fn line(
        &self,
        server: &str,
        caller: &Caller,
    ) -> Result<(Line, mpsc::Receiver<Told>), Refusal> {
        let slot = self.slot(server, caller)?;
        let (teller, told) = mpsc::channel(TOLD);
        let id = self.0.next_line.fetch_add(1, Ordering::Relaxed);
        let count = slot.count_of(&caller.caller);
        let line = Line {
            id,
            name: server.to_owned(),
            gateway: self.clone(),
            caller: caller.clone(),
            slot: Mutex::new((slot, count)),
            teller,
            joined: Mutex::default(),
        };
        Ok((line, told))
    }

    fn slot(&self, server: &str, caller: &Caller) -> Result<Arc<Slot>, Refusal> {
        let mut servers = self.servers();
        let Some(entry) = servers.get_mut(server) else {
            let there: Vec<_> = servers.keys().map(String::as_str).collect();
            let message = format!("no server `{server}`; the servers are: {}", there.join(", "));
            return Err(Refusal::new(RefusalKind::Unknown, message));
        };
        let owner = match entry.wanted.share {
            Share::All => String::new(),
            Share::Caller => caller.caller.clone(),
            Share::Session => format!("{} {}", caller.caller, caller.session),
        };
        if let Some(slot) = entry.slots.get(&owner) {
            return Ok(slot.clone());
        }
        let most = entry.wanted.bounds.sessions;
        if most != 0 && entry.slots.len() >= most {
            let asleep = entry.slots.iter().find(|(_, slot)| slot.is_asleep());
            let Some(asleep) = asleep.map(|(owner, _)| owner.clone()) else {
                let message = format!("`{server}` has reached its limit of {most} instances");
                return Err(Refusal::new(RefusalKind::Limit, message));
            };
            if let Some(asleep) = entry.slots.remove(&asleep) {
                asleep.let_go();
            }
        }
        let slot = Slot::new(Plan {
            name: server.to_owned(),
            fingerprint: entry.wanted.fingerprint.clone(),
            memory: self.0.memory.clone(),
            backend: entry.wanted.backend.clone(),
            terms: Terms {
                exclusive: entry.wanted.share == Share::Session,
                shared: entry.wanted.share == Share::All,
                roots: entry.wanted.roots.clone(),
                in_flight: entry.wanted.bounds.in_flight,
            },
            bounds: entry.wanted.bounds,
        });
        entry.slots.insert(owner, slot.clone());
        Ok(slot)
    }

    /// Ends the instances that a client's session had for itself.
    pub fn end_session(&self, caller: &Caller) {
        let owner = format!("{} {}", caller.caller, caller.session);
        let mut servers = self.servers();
        for entry in servers.values_mut().filter(|e| e.wanted.share == Share::Session) {
            if let Some(slot) = entry.slots.remove(&owner) {
                tokio::spawn(async move { slot.end("its client ended the session").await });
            }
        }
    }

    /// Ends a server's instances once their calls are answered; the next call starts the server
    /// again. Returns `false` if there is no such server.
    pub fn restart(&self, server: &str) -> bool {
        let mut servers = self.servers();
        let Some(entry) = servers.get_mut(server) else { return false };
        for slot in std::mem::take(&mut entry.slots).into_values() {
            tokio::spawn(async move { slot.retire().await });
        }
        true
    }

    /// Ends all servers.
    pub async fn end(&self) {
        let all = std::mem::take(&mut *self.servers());
        let slots: Vec<_> = all.into_values().flat_map(|entry| entry.slots.into_values()).collect();
        let ends: Vec<_> = slots
            .into_iter()
            .map(|slot| tokio::spawn(async move { slot.end("patterm is shutting down").await }))
            .collect();
        for end in ends {
            let _ = end.await;
        }
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's connection to a server. Dropping it cancels its pending requests.
pub struct Line {
    id: LineId,
    name: String,
    gateway: Gateway,
    caller: Caller,
    /// The instance it uses; replaced when the server is reconfigured.
    slot: Mutex<Place>,
    teller: mpsc::Sender<Told>,
    /// The session it joined; replaced when the server is restarted.
    joined: Mutex<Option<Session>>,
}

/// An instance, and the counter of the caller's calls to it.
type Place = (Arc<Slot>, Arc<AtomicUsize>);

impl Line {
    /// Sends a request and returns the whole response, under the client's id. `text` is the message
    /// as received. Dropping the future cancels the call.
    pub async fn ask(&self, id: &Id, method: &str, mut text: String) -> Result<Vec<u8>, Refusal> {
        let (slot, count) = self.place()?;
        let _counted = slot.count(&count)?;
        let listens = method == "subscriptions/listen";
        let patience = if listens { LISTENING } else { slot.bounds().call };
        for _ in 0..TRIES {
            let session = slot.session().await?;
            self.join(&session);
            let answer = session.ask(self.id, id.clone(), method, text)?;
            let mut call =
                Call { session, line: self.id, id, why: Some("the client disconnected") };
            let Some(answered) = slot.timers().timeout(patience, answer).await else {
                call.why = Some("it timed out");
                let message = format!("`{}` did not answer within {patience:?}", self.name);
                return Err(Refusal::new(RefusalKind::Timeout, message));
            };
            call.why = None;
            match answered {
                Ok(Ok(answer)) => return Ok(answer),
                // The probe ended it before it saw the request; its successor is not probed.
                Ok(Err(unseen)) => text = unseen,
                Err(_) => break,
            }
        }
        let message = format!("`{}` ended before it answered", self.name);
        Err(Refusal::new(RefusalKind::Ended, message))
    }

    /// Forwards a notification, or a response to a request that the server sent to this client.
    pub fn tell(&self, message: &Message<'_>, text: &str) {
        let joined = self.joined().clone();
        if let Some(session) = joined.filter(Session::is_running) {
            session.tell(self.id, message, text);
        }
    }

    fn place(&self) -> Result<Place, Refusal> {
        let mut place = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if place.0.is_retired() {
            let slot = self.gateway.slot(&self.name, &self.caller)?;
            let count = slot.count_of(&self.caller.caller);
            *place = (slot, count);
        }
        Ok(place.clone())
    }

    fn join(&self, session: &Session) {
        let mut joined = self.joined();
        if joined.as_ref().is_none_or(|old| !old.is(session)) {
            session.join(self.id, &self.caller.caller, self.teller.clone());
            *joined = Some(session.clone());
        }
    }

    fn joined(&self) -> MutexGuard<'_, Option<Session>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(session) = self.joined().take() {
            session.leave(self.id);
        }
    }
}

/// A call in flight.
struct Call<'a> {
    session: Session,
    line: LineId,
    id: &'a Id,
    /// The reason for cancelling it, until it is answered.
    why: Option<&'static str>,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(why) = self.why {
            self.session.cancel(self.line, self.id, why);
        }
    }
}
