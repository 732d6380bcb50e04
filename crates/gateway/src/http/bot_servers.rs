//! The servers inside bots' containers: one for each container, shared by all who call, ended when
//! nobody does. Whose a container is, is asked of its engine again and again: names and labels change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex as Quick, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::bots::{Bots, DOOR, Denied};
use crate::backend::container::{Exec, Reach, Target, Trouble, open_in};
use crate::backend::{Backend, Channel, Later};
use crate::{Caller, Gateway, Line, Refusal, ServerStatus, Share, Tools, Wanted};

/// So long what an engine said holds, while the server runs that was started by it: a container that
/// is gone takes it along.
const HOLDS: Duration = Duration::from_secs(2);

/// And so long until it must have begun to run: many come with the first call.
const BEGINS: Duration = Duration::from_millis(200);

/// Letters of a container's id that tell it from another of the same name.
const ID_LETTERS: usize = 16;

/// Names that are remembered; they come from requests.
const NAMES: usize = 1_024;

/// A container that was looked up.
#[derive(Clone)]
struct Found {
    target: Target,
    asked: Instant,
}

/// How the servers in bots' containers stand, for those who look after the project.
#[derive(Clone, Default)]
pub struct BotSessions(Arc<Quick<Vec<Serving>>>);

/// The servers behind one door.
#[derive(Clone)]
struct Serving {
    gateway: Gateway,
    /// Whose each of them is, by its name.
    bots: Arc<Quick<HashMap<String, String>>>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct BotSession {
    /// `bots/BOT/CONTAINER (ID)`.
    pub name: String,
    /// Whose it is.
    pub bot: String,
    /// How it stands.
    pub status: ServerStatus,
}

impl BotSessions {
    /// Those that were started and did not fall asleep, sorted by name.
    #[must_use]
    pub fn status(&self) -> Vec<BotSession> {
        let mut all: Vec<_> = lock(&self.0).iter().flat_map(Serving::status).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Ends one; the next call starts it again. Returns `false` if there is none of that name.
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

/// Who asks the engine for one name; the others wait for its answer.
type Asker = Arc<Mutex<Option<Found>>>;

/// All servers of bots.
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

    /// How they stand.
    pub(super) fn status(&self) -> Vec<BotSession> {
        self.serving.status()
    }

    /// The server in a container, if that is the bot's and runs. Who wants to know why a call failed
    /// asks `anew`.
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

    /// Whose it is comes first: who may not use it need not know how it is.
    fn check(&self, bot: &str, container: &str, target: &Target) -> Result<(), Denied> {
        let label = &self.bots.owner_label;
        match target.labels.get(label) {
            Some(owner) if owner == bot => {}
            // Not one whose label counts for nothing: its image may carry that to choose a bot, and
            // one whose image is gone may be another bot's.
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

    /// A caller's line to a server.
    pub(super) fn line(&self, server: &str, caller: &str) -> Result<Line, Refusal> {
        let caller = Caller { caller: caller.to_owned(), session: String::new() };
        self.serving.gateway.line(server, &caller).map(|(line, _)| line)
    }

    /// Ends all of them.
    pub(super) async fn end(&self) {
        self.serving.gateway.end().await;
        let own = &self.serving.bots;
        lock(&self.bots.sessions.0).retain(|serving| !Arc::ptr_eq(&serving.bots, own));
    }

    fn asker(&self, container: &str) -> Asker {
        let mut names = lock(&self.names);
        if names.len() >= NAMES {
            // Whoever asks in this moment holds its own.
            names.retain(|_, asker| Arc::strong_count(asker) > 1);
        }
        names.entry(container.to_owned()).or_default().clone()
    }

    /// The server in a container, under a name that another container never has. Bots that use the
    /// same container, which has no label, have a server in it each.
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

/// A server in a container that was looked up, by its id: a name may be another's by now.
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
