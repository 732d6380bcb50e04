//! All shared servers of a project by name, and the handles that clients use to call them. It does
//! not know where servers run or how clients connect.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use patterm_wire::{Id, Message};
use tokio::sync::mpsc;

use crate::backend::Backend;
use crate::cache::{CachedServer, ServerCache};
use crate::call_slot::{CallReceiver, Said};
use crate::error::{GatewayError, GatewayErrorKind};
use crate::filter::ToolPatterns;
use crate::instance::{CallGuard, Instance, InstanceSpec, ServerStatus};
use crate::observer::ServerObserver;
use crate::relay::{ClientId, RelayConfig};
use crate::session::{Notification, Session, UsualRequest};
use crate::settings::{ServerLimits, Share};

/// Notifications queued for one client; further ones are dropped for that client only.
const NOTIFICATIONS: usize = 256;

/// The timeout of `subscriptions/listen`, which has no natural end.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Attempts per request. A second attempt is made only if the probe ended the server before it saw
/// the request.
const ATTEMPTS: usize = 2;

/// How a server is configured.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Where it runs.
    pub backend: Arc<dyn Backend>,
    /// Everything that makes this a different server when it changes, as text.
    pub fingerprint: String,
    /// Who shares an instance.
    pub share: Share,
    /// Its limits.
    pub limits: ServerLimits,
    /// The answer to `roots/list`, as a JSON list.
    pub roots: String,
    /// Which of its tools are visible.
    pub tools: ToolPatterns,
}

/// Who calls. It selects the instance where a server is not shared by everybody.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The agent or the token.
    pub name: String,
    /// The client's session, if it has one.
    pub session: String,
}

/// The shared servers.
#[derive(Clone, Default)]
pub struct Gateway(Arc<Inner>);

#[derive(Default)]
struct Inner {
    servers: Mutex<BTreeMap<String, ServerEntry>>,
    next_client: AtomicU64,
    cache: Option<Arc<dyn ServerCache>>,
    observer: Option<Arc<dyn ServerObserver>>,
    /// Why servers may be missing.
    missing: Mutex<Option<String>>,
}

struct ServerEntry {
    spec: ServerSpec,
    /// Instances by owner; the owner is empty if everybody shares the instance.
    instances: HashMap<String, Arc<Instance>>,
}

impl ServerEntry {
    fn is_running(&self) -> bool {
        self.instances.values().any(|instance| !instance.is_asleep())
    }
}

impl Gateway {
    /// A gateway that uses what is known about its servers from earlier runs, and reports what happens to them.
    pub fn new(cache: Arc<dyn ServerCache>, observer: Arc<dyn ServerObserver>) -> Self {
        let (cache, observer) = (Some(cache), Some(observer));
        Self(Arc::new(Inner { cache, observer, ..Inner::default() }))
    }

    /// What is known about a server from earlier runs.
    pub(crate) fn cached(&self, server: &str) -> Option<CachedServer> {
        let fingerprint = self.fingerprint(server)?;
        self.0.cache.as_ref()?.load(server, &fingerprint)
    }

    /// Updates what is known about a server.
    pub(crate) fn update_cache(&self, server: &str, mut change: impl FnMut(&mut CachedServer)) {
        if let (Some(cache), Some(fingerprint)) = (&self.0.cache, self.fingerprint(server)) {
            cache.update(server, &fingerprint, &mut change);
        }
    }

    fn fingerprint(&self, server: &str) -> Option<String> {
        self.servers().get(server).map(|entry| entry.spec.fingerprint.clone())
    }

    /// Replaces the set of servers. A server that was removed or changed takes no new calls and
    /// ends once its calls in flight are done.
    pub fn configure(&self, specs: BTreeMap<String, ServerSpec>) {
        let mut servers = self.servers();
        let mut old = std::mem::take(&mut *servers);
        for (name, spec) in specs {
            let same = old.get(&name).is_some_and(|e| e.spec.fingerprint == spec.fingerprint);
            let existing = if same { old.remove(&name) } else { None };
            let instances = existing.map(|entry| entry.instances).unwrap_or_default();
            let mut entry = ServerEntry { spec, instances };
            if let Some(old) = old.get(&name).filter(|old| old.spec.share == entry.spec.share) {
                entry.instances = self.successors(&name, &entry.spec, &old.instances);
            }
            servers.insert(name, entry);
        }
        if let Some(cache) = &self.0.cache {
            cache.retain(&servers.keys().map(String::as_str).collect::<Vec<_>>());
        }
        drop(servers);
        for instance in old.into_values().flat_map(|entry| entry.instances.into_values()) {
            // Now, so that the next call uses its successor.
            instance.mark_retired();
            tokio::spawn(async move { instance.retire().await });
        }
    }

    /// Sets why servers that were configured may be missing, for clients that ask for one.
    pub fn set_missing(&self, why: Option<String>) {
        *self.missing() = why;
    }

    fn missing(&self) -> MutexGuard<'_, Option<String>> {
        self.0.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error about a server that does not exist. It names no other server.
    pub(crate) fn unknown(&self, server: &str) -> String {
        let why = self.missing().as_ref().map(|why| format!("; {why}")).unwrap_or_default();
        format!("no server `{server}`{why}")
    }

    /// Adds a server unless it exists. If the limit is reached, a server that is asleep is removed
    /// to make room.
    pub(crate) fn add(
        &self,
        name: &str,
        most: usize,
        spec: impl FnOnce() -> ServerSpec,
    ) -> Result<(), GatewayError> {
        let mut servers = self.servers();
        if servers.contains_key(name) {
            return Ok(());
        }
        if most != 0 && servers.len() >= most {
            let asleep = servers.iter().find(|(_, entry)| !entry.is_running());
            let Some(asleep) = asleep.map(|(name, _)| name.clone()) else {
                let message = format!("the limit of {most} running servers is reached");
                return Err(GatewayError::new(GatewayErrorKind::Limit, message));
            };
            servers.remove(&asleep);
        }
        servers.insert(name.to_owned(), ServerEntry { spec: spec(), instances: HashMap::new() });
        Ok(())
    }

    /// Whether a server is running or starting.
    pub(crate) fn is_running(&self, name: &str) -> bool {
        self.servers().get(name).is_some_and(ServerEntry::is_running)
    }

    /// The names of all servers.
    pub fn names(&self) -> Vec<String> {
        self.servers().keys().cloned().collect()
    }

    /// Which tools of a server are visible.
    pub fn tools_of(&self, server: &str) -> ToolPatterns {
        self.servers().get(server).map(|entry| entry.spec.tools.clone()).unwrap_or_default()
    }

    /// Whether all tools of a server are visible.
    pub(crate) fn shows_all_tools(&self, server: &str) -> bool {
        self.servers().get(server).is_some_and(|entry| entry.spec.tools.shows_all())
    }

    /// The status of every instance: the server's name, the instance's owner, and its state.
    pub fn status(&self) -> Vec<(String, String, ServerStatus)> {
        let servers = self.servers();
        let mut all = Vec::new();
        for (name, entry) in &*servers {
            if entry.instances.is_empty() {
                let status = match entry.spec.backend.fault() {
                    Some(fault) => ServerStatus::failed(fault),
                    None => ServerStatus::asleep(),
                };
                all.push((name.clone(), String::new(), status));
            }
            for (owner, instance) in &entry.instances {
                all.push((name.clone(), owner.clone(), instance.status()));
            }
        }
        all
    }

    /// Connects a client to a server. The receiver gets the server's messages other than responses.
    /// The first call starts the server.
    pub fn connect(
        &self,
        server: &str,
        caller: &Caller,
    ) -> Result<(ClientHandle, mpsc::Receiver<Notification>), GatewayError> {
        let instance = self.instance(server, caller)?;
        let (notifier, notifications) = mpsc::channel(NOTIFICATIONS);
        let id = ClientId(self.0.next_client.fetch_add(1, Ordering::Relaxed));
        let binding = Binding::new(instance, caller);
        let client = ClientHandle {
            id,
            name: server.to_owned(),
            gateway: self.clone(),
            caller: caller.clone(),
            binding: Mutex::new(binding),
            notifier,
            joined: Mutex::default(),
        };
        Ok((client, notifications))
    }

    fn instance(&self, server: &str, caller: &Caller) -> Result<Arc<Instance>, GatewayError> {
        let mut servers = self.servers();
        let Some(entry) = servers.get_mut(server) else {
            let known: Vec<_> = servers.keys().map(String::as_str).collect();
            let mut message = self.unknown(server);
            message.push_str(&format!("; the servers are: {}", known.join(", ")));
            return Err(GatewayError::new(GatewayErrorKind::Unknown, message));
        };
        let owner = Self::owner(&entry.spec, caller);
        if let Some(instance) = entry.instances.get(&owner) {
            return Ok(instance.clone());
        }
        let most = entry.spec.limits.instances;
        if most != 0 && entry.instances.len() >= most {
            let asleep = entry.instances.iter().find(|(_, instance)| instance.is_asleep());
            let Some(asleep) = asleep.map(|(owner, _)| owner.clone()) else {
                let message = format!("`{server}` has reached its limit of {most} instances");
                return Err(GatewayError::new(GatewayErrorKind::Limit, message));
            };
            if let Some(asleep) = entry.instances.remove(&asleep) {
                asleep.mark_retired();
            }
        }
        let instance = self.new_instance(server, &entry.spec, &owner);
        entry.instances.insert(owner, instance.clone());
        Ok(instance)
    }

    fn new_instance(&self, server: &str, spec: &ServerSpec, owner: &str) -> Arc<Instance> {
        // Ids of sessions are for their clients only.
        let caller = match spec.share {
            Share::All => None,
            Share::Caller => Some(owner),
            Share::Session => owner.rsplit_once(' ').map(|(caller, _)| caller),
        };
        Instance::new(InstanceSpec {
            name: server.to_owned(),
            owner: caller.map(str::to_owned),
            observer: self.0.observer.clone(),
            fingerprint: spec.fingerprint.clone(),
            cache: self.0.cache.clone(),
            backend: spec.backend.clone(),
            config: RelayConfig {
                exclusive: spec.share == Share::Session,
                shared: spec.share == Share::All,
                roots: spec.roots.clone(),
                in_flight: spec.limits.in_flight,
            },
            limits: spec.limits,
        })
    }

    /// New instances in place of others, whose clients they take over.
    fn successors(
        &self,
        server: &str,
        spec: &ServerSpec,
        old: &HashMap<String, Arc<Instance>>,
    ) -> HashMap<String, Arc<Instance>> {
        let successor = |owner: &str, old: &Arc<Instance>| {
            let new = self.new_instance(server, spec, owner);
            new.succeed(old);
            new
        };
        old.iter().map(|(owner, old)| (owner.clone(), successor(owner, old))).collect()
    }

    /// The owner of a caller's instance; empty if everybody shares it.
    fn owner(spec: &ServerSpec, caller: &Caller) -> String {
        match spec.share {
            Share::All => String::new(),
            Share::Caller => caller.name.clone(),
            Share::Session => format!("{} {}", caller.name, caller.session),
        }
    }

    /// A caller's instance, if there is one.
    fn existing_instance(&self, server: &str, caller: &Caller) -> Option<Arc<Instance>> {
        let servers = self.servers();
        let entry = servers.get(server)?;
        entry.instances.get(&Self::owner(&entry.spec, caller)).cloned()
    }

    /// Ends the instances that a client's session had for itself.
    pub fn end_session(&self, caller: &Caller) {
        let owner = format!("{} {}", caller.name, caller.session);
        let mut servers = self.servers();
        for entry in servers.values_mut().filter(|e| e.spec.share == Share::Session) {
            if let Some(instance) = entry.instances.remove(&owner) {
                tokio::spawn(async move { instance.end("its client ended the session").await });
            }
        }
    }

    /// Ends a server's instances once their calls are answered; the next call starts the server
    /// again. Returns `false` if there is no such server.
    pub fn restart(&self, server: &str) -> bool {
        let mut servers = self.servers();
        let Some(entry) = servers.get_mut(server) else { return false };
        let successors = self.successors(server, &entry.spec, &entry.instances);
        for instance in std::mem::replace(&mut entry.instances, successors).into_values() {
            instance.mark_retired();
            tokio::spawn(async move { instance.retire().await });
        }
        true
    }

    /// Ends all servers.
    pub async fn end(&self) {
        let all = std::mem::take(&mut *self.servers());
        let instances: Vec<_> =
            all.into_values().flat_map(|entry| entry.instances.into_values()).collect();
        let ends: Vec<_> = instances
            .into_iter()
            .map(|instance| {
                tokio::spawn(async move { instance.end("patterm is shutting down").await })
            })
            .collect();
        for end in ends {
            let _ = end.await;
        }
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, ServerEntry>> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's connection to a server. Dropping it cancels its pending requests.
pub struct ClientHandle {
    id: ClientId,
    name: String,
    gateway: Gateway,
    caller: Caller,
    /// The instance it uses; replaced when the server is reconfigured.
    binding: Mutex<Binding>,
    notifier: mpsc::Sender<Notification>,
    /// The session it joined; replaced when the server is restarted.
    joined: Mutex<Option<Session>>,
}

/// The instance that a client uses, and the counter of its caller's calls to it.
#[derive(Clone)]
struct Binding {
    instance: Arc<Instance>,
    in_flight: Arc<AtomicUsize>,
}

impl Binding {
    fn new(instance: Arc<Instance>, caller: &Caller) -> Self {
        let in_flight = instance.counter_of(&caller.name);
        Self { instance, in_flight }
    }
}

impl ClientHandle {
    /// Sends a request and returns the whole response, under the client's id. `text` is the message
    /// as received. Dropping the future cancels the call.
    pub async fn request(
        &self,
        id: &Id,
        method: &str,
        mut text: String,
    ) -> Result<Vec<u8>, GatewayError> {
        let Binding { instance, in_flight } = self.binding()?;
        let _guard = instance.count(&in_flight)?;
        let listens = method == "subscriptions/listen";
        let limit = if listens { LISTEN_TIMEOUT } else { instance.limits().call_timeout };
        for _ in 0..ATTEMPTS {
            let session = instance.session().await?;
            self.join(&session);
            let response = session.request(self.id, id.clone(), method, text)?;
            let mut call =
                PendingCall { session, client: self.id, id: id.clone(), why: Some(DISCONNECTED) };
            let Some(answered) = instance.timeouts().timeout(limit, response).await else {
                call.why = Some(TIMED_OUT);
                let message = format!("`{}` did not answer within {limit:?}", self.name);
                return Err(GatewayError::new(GatewayErrorKind::Timeout, message));
            };
            call.why = None;
            match answered {
                Some(Ok(response)) => return Ok(response),
                // The probe ended it before it saw the request; its successor is not probed.
                Some(Err(returned)) => text = returned,
                None => break,
            }
        }
        let message = format!("`{}` ended before it answered", self.name);
        Err(GatewayError::new(GatewayErrorKind::Ended, message))
    }

    /// Begins a usual call of a tool if its server is running and nothing about it is unusual.
    pub(crate) fn begin_usual(&self, call: &UsualRequest<'_>) -> Option<UsualCall> {
        let Binding { instance, in_flight } = self.binding().ok()?;
        let guard = instance.count(&in_flight).ok()?;
        let session = instance.running()?;
        self.join(&session);
        let response = session.begin_usual(self.id, call)?;
        let id = call.id.clone();
        Some(UsualCall {
            response,
            timeout: instance.limits().call_timeout,
            call: PendingCall { session, client: self.id, id, why: Some(DISCONNECTED) },
            _guard: guard,
        })
    }

    /// Forwards a notification, or a response to a request that the server sent to this client.
    pub fn notify(&self, message: &Message<'_>, text: &str) {
        let joined = self.joined().clone();
        if let Some(session) = joined.filter(Session::is_running) {
            session.notify(self.id, message, text);
        }
    }

    fn binding(&self) -> Result<Binding, GatewayError> {
        let mut binding = self.binding.lock().unwrap_or_else(PoisonError::into_inner);
        if binding.instance.is_retired() {
            let instance = self.gateway.instance(&self.name, &self.caller)?;
            *binding = Binding::new(instance, &self.caller);
        }
        Ok(binding.clone())
    }

    fn join(&self, session: &Session) {
        let mut joined = self.joined();
        if joined.as_ref().is_none_or(|old| !old.is(session)) {
            // Without a session, a client cannot send the response to a request.
            let can_respond = !self.caller.session.is_empty();
            session.join(self.id, &self.caller.name, can_respond, self.notifier.clone());
            *joined = Some(session.clone());
        }
    }

    fn joined(&self) -> MutexGuard<'_, Option<Session>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        let Some(session) = self.joined().take() else { return };
        session.leave(self.id);
        // A successor of the server it joined may have taken it over.
        let instance = self.binding.lock().unwrap_or_else(PoisonError::into_inner).instance.clone();
        if instance.is_retired()
            && let Some(successor) = self.gateway.existing_instance(&self.name, &self.caller)
        {
            successor.leave(self.id);
        }
        instance.leave(self.id);
    }
}

/// Why a call is cancelled on its server.
const DISCONNECTED: &str = "the client disconnected";
const TIMED_OUT: &str = "it timed out";

/// A call in flight.
struct PendingCall {
    session: Session,
    client: ClientId,
    id: Id,
    /// The reason for cancelling it, until it is answered.
    why: Option<&'static str>,
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if let Some(why) = self.why {
            self.session.cancel(self.client, &self.id, why);
        }
    }
}

/// A usual call in flight. Dropping it before it is answered cancels it.
pub struct UsualCall {
    response: CallReceiver,
    timeout: Duration,
    call: PendingCall,
    _guard: CallGuard,
}

impl UsualCall {
    /// What the server says about it.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<Said> {
        self.response.poll_said(context)
    }

    /// How long it may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The client's id of it.
    pub(crate) fn id(&self) -> &Id {
        &self.call.id
    }

    /// It is over: nothing is left to be cancelled.
    pub(crate) fn answered(&mut self) {
        self.call.why = None;
    }

    /// It takes too long.
    pub(crate) fn timed_out(&mut self) {
        self.call.why = Some(TIMED_OUT);
    }
}
