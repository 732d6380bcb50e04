//! The servers inside bots' containers: one for each container, shared by all who call, ended when
//! nobody does. Whose a container is, is asked of its engine again and again: names and labels change.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex as Quick, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::bots::{Bots, Denied};
use crate::backend::container::{Exec, Reach, Target, Trouble, open_in};
use crate::backend::{Backend, Channel, Later};
use crate::{Caller, Gateway, Line, Refusal, Share, Tools, Wanted};

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
    /// The server in it.
    server: String,
    asked: Instant,
}

/// Who asks the engine for one name; the others wait for its answer.
type Asker = Arc<Mutex<Option<Found>>>;

/// All servers of bots.
pub(super) struct BotServers {
    bots: Bots,
    engine: Arc<dyn Reach>,
    names: Quick<HashMap<String, Asker>>,
    gateway: Gateway,
}

impl BotServers {
    pub(super) fn new(bots: Bots) -> Self {
        let engine = bots.containers.reach(&bots.place);
        Self { bots, engine, names: Quick::default(), gateway: Gateway::default() }
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
            !anew && age < HOLDS && (self.gateway.is_awake(&found.server) || age < BEGINS)
        };
        let found = match known.as_ref().filter(|found| holds(found)) {
            Some(found) => found.clone(),
            None => {
                *known = None;
                let target = self.engine.find(container.to_owned()).await.inspect_err(|_| {
                    lock(&self.names).remove(container);
                })?;
                self.check(bot, container, &target)?;
                let server = self.server(container, &target)?;
                let found = Found { target, server, asked: Instant::now() };
                *known = Some(found.clone());
                found
            }
        };
        drop(known);
        self.check(bot, container, &found.target)?;
        Ok(found.server)
    }

    /// Whose it is comes first: who may not use it need not know how it is.
    fn check(&self, bot: &str, container: &str, target: &Target) -> Result<(), Denied> {
        let label = &self.bots.owner_label;
        if target.labels.get(label).map(String::as_str) != Some(bot) {
            let (bot, container, label) = (bot.to_owned(), container.to_owned(), label.clone());
            return Err(Denied::Foreign { bot, container, label });
        }
        match target.is_running {
            true => Ok(()),
            false => Err(Trouble::Stopped(container.to_owned()).into()),
        }
    }

    /// A caller's line to a server.
    pub(super) fn line(&self, server: &str, caller: &str) -> Result<Line, Refusal> {
        let caller = Caller { caller: caller.to_owned(), session: String::new() };
        self.gateway.line(server, &caller).map(|(line, _)| line)
    }

    /// Ends all of them.
    pub(super) async fn end(&self) {
        self.gateway.end().await;
    }

    fn asker(&self, container: &str) -> Asker {
        let mut names = lock(&self.names);
        if names.len() >= NAMES {
            // Whoever asks in this moment holds its own.
            names.retain(|_, asker| Arc::strong_count(asker) > 1);
        }
        names.entry(container.to_owned()).or_default().clone()
    }

    /// The server in a container, under a name that another container never has.
    fn server(&self, container: &str, target: &Target) -> Result<String, Denied> {
        let id: String = target.id.chars().take(ID_LETTERS).collect();
        let name = format!("{container} ({id})");
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
        let added = self.gateway.add(&name, self.bots.bounds.sessions, made);
        added.map_err(|refusal| Denied::Limit(refusal.message))?;
        Ok(name)
    }
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
