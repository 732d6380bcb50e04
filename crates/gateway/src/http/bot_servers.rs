//! The servers inside bots' containers: one per container, shared by all callers, stopped when
//! idle. The owner of a container is checked with its engine again and again: names and labels
//! change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex as Quick, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::bots::{Bots, DOOR, Denied};
use crate::backend::container::{Exec, Reach, Target, Trouble, open_in};
use crate::backend::{Backend, Channel, Later};
use crate::{Caller, Gateway, Line, Refusal, ServerStatus, Share, Tools, Wanted};

/// How long an engine's answer is valid while the server that was started with it runs: that server
/// ends with its container.
const HOLDS: Duration = Duration::from_secs(2);

/// How long it is valid before the server runs: many calls arrive with the first.
const BEGINS: Duration = Duration::from_millis(200);

/// Characters of a container's id that distinguish it from another one of the same name.
const ID_LETTERS: usize = 16;

/// Container names that are remembered; they come from requests.
const NAMES: usize = 1_024;

/// A container that was looked up.
#[derive(Clone)]
struct Found {
    target: Target,
    asked: Instant,
}

/// The status of the servers in bots' containers, for the host.
#[derive(Clone, Default)]
pub struct BotSessions(Arc<Quick<Vec<Serving>>>);

/// The servers of one endpoint.
#[derive(Clone)]
struct Serving {
    gateway: Gateway,
    /// The bot of each server, by the server's name.
    bots: Arc<Quick<HashMap<String, String>>>,
}

/// A server in a bot's container.
#[derive(Debug, Clone)]
pub struct BotSession {
    /// `bots/BOT/CONTAINER (ID)`.
    pub name: String,
    /// The bot it belongs to.
    pub bot: String,
    /// Its status.
    pub status: ServerStatus,
}

impl BotSessions {
    /// The running and failed servers, sorted by name.
    #[must_use]
    pub fn status(&self) -> Vec<BotSession> {
        let mut all: Vec<_> = lock(&self.0).iter().flat_map(Serving::status).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Ends a server; the next call starts it again. Returns `false` if there is no such server.
    #[must_use]
    pub fn restart(&self, name: &str) -> bool {
        let all = lock(&self.0).clone();
        all.iter().any(|serving| serving.gateway.restart(name))
    }
}

impl std::fmt::Debug for BotSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BotSessions")
    }
}

impl Serving {
    fn status(&self) -> Vec<BotSession> {
        let bots = lock(&self.bots);
        let session = |(name, _, status): (String, String, ServerStatus)| {
            let bot = bots.get(&name)?.clone();
            (status.state != "asleep").then_some(BotSession { name, bot, status })
        };
        self.gateway.status().into_iter().filter_map(session).collect()
    }
}

/// The lookup of one container; only one request asks the engine at a time.
type Asker = Arc<Mutex<Option<Found>>>;

/// All servers in bots' containers.
pub(super) struct BotServers {
    bots: Bots,
    engine: Arc<dyn Reach>,
    names: Quick<HashMap<String, Asker>>,
    serving: Serving,
}

impl BotServers {
    pub(super) fn new(bots: Bots) -> Self {
        let engine = bots.containers.reach(&bots.place);
        let serving = Serving { gateway: Gateway::default(), bots: Arc::default() };
        lock(&bots.sessions.0).push(serving.clone());
        Self { bots, engine, names: Quick::default(), serving }
    }

    /// The status of its servers.
    pub(super) fn status(&self) -> Vec<BotSession> {
        self.serving.status()
    }

    /// The server in a container, if the container belongs to the bot and runs. `refresh` asks the
    /// engine even if its last answer is still valid, to explain a failed call.
    pub(super) async fn of(
        &self,
        bot: &str,
        container: &str,
        anew: bool,
    ) -> Result<String, Denied> {
        let asker = self.asker(container);
        let mut known = asker.lock().await;
        let holds = |found: &Found| {
            let age = found.asked.elapsed();
            let server = name_of(bot, container, &found.target);
            !anew && age < HOLDS && (self.serving.gateway.is_awake(&server) || age < BEGINS)
        };
        let target = match known.as_ref().filter(|found| holds(found)) {
            Some(found) => found.target.clone(),
            None => {
                *known = None;
                let target = self.engine.find(container.to_owned()).await.inspect_err(|_| {
                    lock(&self.names).remove(container);
                })?;
                self.check(bot, container, &target)?;
                *known = Some(Found { target: target.clone(), asked: Instant::now() });
                target
            }
        };
        drop(known);
        self.check(bot, container, &target)?;
        self.server(bot, container, &target)
    }

    /// The owner is checked first: others must not learn the state of the container.
    fn check(&self, bot: &str, container: &str, target: &Target) -> Result<(), Denied> {
        let label = &self.bots.owner_label;
        match target.labels.get(label) {
            Some(owner) if owner == bot => {}
            // Not if its label is not trusted: an image may carry the label to choose a bot, and a
            // container whose image is gone may belong to another bot.
            None if self.bots.allow_unlabelled && !target.named.contains(label) => {}
            None if self.bots.allow_unlabelled => {
                let (container, label) = (container.to_owned(), label.clone());
                return Err(Denied::Claiming { container, label });
            }
            _ => {
                let (bot, container, label) = (bot.to_owned(), container.to_owned(), label.clone());
                return Err(Denied::Foreign { bot, container, label });
            }
        }
        match target.is_running {
            true => Ok(()),
            false => Err(Trouble::Stopped(container.to_owned()).into()),
        }
    }

    /// A client's connection to a server.
    pub(super) fn line(&self, server: &str, caller: &str) -> Result<Line, Refusal> {
        let caller = Caller { caller: caller.to_owned(), session: String::new() };
        self.serving.gateway.line(server, &caller).map(|(line, _)| line)
    }

    /// Ends all servers.
    pub(super) async fn end(&self) {
        self.serving.gateway.end().await;
        let own = &self.serving.bots;
        lock(&self.bots.sessions.0).retain(|serving| !Arc::ptr_eq(&serving.bots, own));
    }

    fn asker(&self, container: &str) -> Asker {
        let mut names = lock(&self.names);
        if names.len() >= NAMES {
            // Lookups in progress are kept.
            names.retain(|_, asker| Arc::strong_count(asker) > 1);
        }
        names.entry(container.to_owned()).or_default().clone()
    }

    /// The server in a container, under a name that no other container has. Bots that share a
    /// container without a label have one server each.
    fn server(&self, bot: &str, container: &str, target: &Target) -> Result<String, Denied> {
        let name = name_of(bot, container, target);
        let made = || Wanted {
            backend: Arc::new(InFound {
                engine: self.engine.clone(),
                target: target.clone(),
                exec: Exec {
                    place: self.bots.place.clone(),
                    container: container.to_owned(),
                    command: self.bots.command.clone(),
                    env: BTreeMap::new(),
                },
            }),
            fingerprint: target.id.clone(),
            share: Share::All,
            bounds: self.bots.bounds,
            roots: "[]".to_owned(),
            tools: Tools::default(),
        };
        let Serving { gateway, bots } = &self.serving;
        let added = gateway.add(&name, self.bots.bounds.sessions, made);
        added.map_err(|refusal| Denied::Limit(refusal.message))?;
        let mut bots = lock(bots);
        if bots.len() >= NAMES && !bots.contains_key(&name) {
            let there: HashSet<_> = gateway.names().into_iter().collect();
            bots.retain(|name, _| there.contains(name));
        }
        bots.insert(name.clone(), bot.to_owned());
        Ok(name)
    }
}

fn name_of(bot: &str, container: &str, target: &Target) -> String {
    let id: String = target.id.chars().take(ID_LETTERS).collect();
    format!("{DOOR}/{bot}/{container} ({id})")
}

fn lock<T>(quick: &Quick<T>) -> MutexGuard<'_, T> {
    quick.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server in a container that was looked up, by the container's id: its name may be reused.
#[derive(Debug)]
struct InFound {
    engine: Arc<dyn Reach>,
    target: Target,
    exec: Exec,
}

impl Backend for InFound {
    fn open(&self) -> Later<Result<Channel, Refusal>> {
        let (engine, target) = (self.engine.clone(), self.target.clone());
        let exec = self.exec.clone();
        Box::pin(async move { Ok(open_in(engine, target, exec).await?) })
    }
}
