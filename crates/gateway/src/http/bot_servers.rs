//! The servers inside bots' containers: one per container, shared by all callers, stopped when
//! idle. The owner of a container is verified with its engine repeatedly, because names and labels
//! change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::bots::{BOTS, BotsConfig, ContainerDenied};
use crate::backend::container::{ContainerInfo, EngineApi, EngineError, ExecSpec, open_in};
use crate::backend::{Backend, BoxFuture, Channel};
use crate::{
    Caller, ClientHandle, Gateway, GatewayError, ServerSpec, ServerState, ServerStatus, Share,
    ToolPatterns,
};

/// How long an engine's answer is valid while the server that was started with it runs: that server
/// ends with its container.
const VALID_FOR: Duration = Duration::from_secs(2);

/// How long it is valid before the server runs: many calls arrive with the first.
const START_GRACE: Duration = Duration::from_millis(200);

/// Characters of a container's id that distinguish it from another one of the same name.
const ID_CHARS: usize = 16;

/// Container names that are remembered; they come from requests.
const NAMES: usize = 1_024;

/// A container that was looked up.
#[derive(Clone)]
struct ResolvedContainer {
    info: ContainerInfo,
    asked_at: Instant,
}

/// The status of the servers in bots' containers, for the host.
#[derive(Clone, Default)]
pub struct BotServerStatus(Arc<StdMutex<Vec<BotGateway>>>);

/// The servers of one endpoint.
#[derive(Clone)]
struct BotGateway {
    gateway: Gateway,
    /// The bot of each server, by the server's name.
    bots: Arc<StdMutex<HashMap<String, String>>>,
}

/// A server in a bot's container.
#[derive(Debug, Clone)]
pub struct BotServerInfo {
    /// `bots/BOT/CONTAINER (ID)`.
    pub name: String,
    /// The bot it belongs to.
    pub bot: String,
    /// Its status.
    pub status: ServerStatus,
}

impl BotServerStatus {
    /// The running and failed servers, sorted by name.
    #[must_use]
    pub fn status(&self) -> Vec<BotServerInfo> {
        let mut all: Vec<_> = lock(&self.0).iter().flat_map(BotGateway::status).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Ends a server; the next call starts it again. Returns `false` if there is no such server.
    #[must_use]
    pub fn restart(&self, name: &str) -> bool {
        let all = lock(&self.0).clone();
        all.iter().any(|servers| servers.gateway.restart(name))
    }
}

impl std::fmt::Debug for BotServerStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BotServerStatus")
    }
}

impl BotGateway {
    fn status(&self) -> Vec<BotServerInfo> {
        let bots = lock(&self.bots);
        let session = |(name, _, status): (String, String, ServerStatus)| {
            let bot = bots.get(&name)?.clone();
            (status.state != ServerState::Asleep).then_some(BotServerInfo { name, bot, status })
        };
        self.gateway.status().into_iter().filter_map(session).collect()
    }
}

/// The lookup of one container; only one request asks the engine at a time.
type ContainerLookup = Arc<Mutex<Option<ResolvedContainer>>>;

/// All servers in bots' containers.
pub(super) struct BotServers {
    bots: BotsConfig,
    engine: Arc<dyn EngineApi>,
    names: StdMutex<HashMap<String, ContainerLookup>>,
    servers: BotGateway,
}

impl BotServers {
    pub(super) fn new(bots: BotsConfig) -> Self {
        let engine = bots.containers.engine_api(&bots.endpoint);
        let servers = BotGateway { gateway: Gateway::default(), bots: Arc::default() };
        lock(&bots.servers.0).push(servers.clone());
        Self { bots, engine, names: StdMutex::default(), servers }
    }

    /// The status of its servers.
    pub(super) fn status(&self) -> Vec<BotServerInfo> {
        self.servers.status()
    }

    /// The server in a container, if the container belongs to the bot and runs. `refresh` asks the
    /// engine even if its last answer is still valid, to explain a failed call.
    pub(super) async fn resolve(
        &self,
        bot: &str,
        container: &str,
        refresh: bool,
    ) -> Result<String, ContainerDenied> {
        let lookup = self.lookup(container);
        let mut resolved = lookup.lock().await;
        let is_valid = |found: &ResolvedContainer| {
            let age = found.asked_at.elapsed();
            let server = server_name(bot, container, &found.info);
            !refresh
                && age < VALID_FOR
                && (self.servers.gateway.is_running(&server) || age < START_GRACE)
        };
        let info = match resolved.as_ref().filter(|found| is_valid(found)) {
            Some(found) => found.info.clone(),
            None => {
                *resolved = None;
                let info = self.engine.find(container.to_owned()).await.inspect_err(|_| {
                    lock(&self.names).remove(container);
                })?;
                self.check(bot, container, &info)?;
                *resolved =
                    Some(ResolvedContainer { info: info.clone(), asked_at: Instant::now() });
                info
            }
        };
        drop(resolved);
        self.check(bot, container, &info)?;
        self.server(bot, container, &info)
    }

    /// The owner is checked first: others must not learn the state of the container.
    fn check(
        &self,
        bot: &str,
        container: &str,
        info: &ContainerInfo,
    ) -> Result<(), ContainerDenied> {
        let label = &self.bots.owner_label;
        match info.labels.get(label) {
            Some(owner) if owner == bot => {}
            // Not if its label is not trusted: an image may carry the label to choose a bot, and a
            // container whose image is gone may belong to another bot.
            None if self.bots.allow_unlabelled && !info.label_names.contains(label) => {}
            None if self.bots.allow_unlabelled => {
                let (container, label) = (container.to_owned(), label.clone());
                return Err(ContainerDenied::UntrustedLabel { container, label });
            }
            _ => {
                let (bot, container, label) = (bot.to_owned(), container.to_owned(), label.clone());
                return Err(ContainerDenied::NotOwned { bot, container, label });
            }
        }
        match info.is_running {
            true => Ok(()),
            false => Err(EngineError::NotRunning(container.to_owned()).into()),
        }
    }

    /// A client's connection to a server.
    pub(super) fn connect(&self, server: &str, caller: &str) -> Result<ClientHandle, GatewayError> {
        let caller = Caller { name: caller.to_owned(), session: String::new() };
        self.servers.gateway.connect(server, &caller).map(|(client, _)| client)
    }

    /// Ends all servers.
    pub(super) async fn end(&self) {
        self.servers.gateway.end().await;
        let own = &self.servers.bots;
        lock(&self.bots.servers.0).retain(|servers| !Arc::ptr_eq(&servers.bots, own));
    }

    fn lookup(&self, container: &str) -> ContainerLookup {
        let mut names = lock(&self.names);
        if names.len() >= NAMES {
            // Lookups in progress are kept.
            names.retain(|_, lookup| Arc::strong_count(lookup) > 1);
        }
        names.entry(container.to_owned()).or_default().clone()
    }

    /// The server in a container, under a name that no other container has. Bots that share a
    /// container without a label have one server each.
    fn server(
        &self,
        bot: &str,
        container: &str,
        info: &ContainerInfo,
    ) -> Result<String, ContainerDenied> {
        let name = server_name(bot, container, info);
        let spec = || ServerSpec {
            backend: Arc::new(ResolvedBackend {
                engine: self.engine.clone(),
                info: info.clone(),
                exec: ExecSpec {
                    endpoint: self.bots.endpoint.clone(),
                    container: container.to_owned(),
                    command: self.bots.command.clone(),
                    env: BTreeMap::new(),
                },
            }),
            fingerprint: info.id.clone(),
            share: Share::All,
            limits: self.bots.limits,
            roots: "[]".to_owned(),
            tools: ToolPatterns::default(),
        };
        let BotGateway { gateway, bots } = &self.servers;
        let added = gateway.add(&name, self.bots.limits.instances, spec);
        added.map_err(|error| ContainerDenied::Limit(error.message))?;
        let mut bots = lock(bots);
        if bots.len() >= NAMES && !bots.contains_key(&name) {
            let known_servers: HashSet<_> = gateway.names().into_iter().collect();
            bots.retain(|name, _| known_servers.contains(name));
        }
        bots.insert(name.clone(), bot.to_owned());
        Ok(name)
    }
}

fn server_name(bot: &str, container: &str, info: &ContainerInfo) -> String {
    let id: String = info.id.chars().take(ID_CHARS).collect();
    format!("{BOTS}/{bot}/{container} ({id})")
}

fn lock<T>(quick: &StdMutex<T>) -> MutexGuard<'_, T> {
    quick.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server in a container that was looked up, by the container's id: its name may be reused.
#[derive(Debug)]
struct ResolvedBackend {
    engine: Arc<dyn EngineApi>,
    info: ContainerInfo,
    exec: ExecSpec,
}

impl Backend for ResolvedBackend {
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>> {
        let (engine, info) = (self.engine.clone(), self.info.clone());
        let exec = self.exec.clone();
        Box::pin(async move { Ok(open_in(engine, info, exec).await?) })
    }
}
