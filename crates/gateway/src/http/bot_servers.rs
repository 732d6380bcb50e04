//! The servers inside bots' containers: one for each container, shared by all who call, ended when
//! nobody does. Whose a container is, is asked of its engine again and again: names and labels change.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as Quick, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::bots::{Bots, Denied};
use crate::backend::container::{Exec, Reach, Target, Trouble, open_in};
use crate::backend::{Backend, Channel, Later};
use crate::gateway::Line;
use crate::refusal::Refusal;
use crate::relay::Terms;
use crate::server::{Plan, Slot};

/// So long what an engine said holds, while the server runs that was started by it: a container that
/// is gone takes it along.
const HOLDS: Duration = Duration::from_secs(2);

/// And so long until it must have begun to run: many come with the first call.
const BEGINS: Duration = Duration::from_millis(200);

/// Names that are remembered; they come from requests.
const NAMES: usize = 1_024;

/// A container that was looked up.
#[derive(Clone)]
struct Found {
    target: Target,
    slot: Arc<Slot>,
    asked: Instant,
}

/// Who asks the engine for one name; the others wait for its answer.
type Asker = Arc<Mutex<Option<Found>>>;

/// All servers of bots.
pub(super) struct BotServers {
    bots: Bots,
    engine: Arc<dyn Reach>,
    names: Quick<HashMap<String, Asker>>,
    /// By the container's id.
    slots: Quick<HashMap<String, Arc<Slot>>>,
    next_line: AtomicU64,
}

impl BotServers {
    pub(super) fn new(bots: Bots) -> Self {
        let engine = bots.containers.reach(&bots.place);
        let (names, slots) = (Quick::default(), Quick::default());
        Self { bots, engine, names, slots, next_line: AtomicU64::new(0) }
    }

    /// The server in a container, if that is the bot's and runs. Who wants to know why a call failed
    /// asks `anew`.
    pub(super) async fn of(
        &self,
        bot: &str,
        container: &str,
        anew: bool,
    ) -> Result<Arc<Slot>, Denied> {
        let asker = self.asker(container);
        let mut known = asker.lock().await;
        let holds = |found: &Found| {
            let age = found.asked.elapsed();
            !anew && age < HOLDS && (!found.slot.is_asleep() || age < BEGINS)
        };
        let found = match known.as_ref().filter(|found| holds(found)) {
            Some(found) => found.clone(),
            None => {
                *known = None;
                let target = self.engine.find(container.to_owned()).await.inspect_err(|_| {
                    lock(&self.names).remove(container);
                })?;
                self.check(bot, container, &target)?;
                let slot = self.slot(container, &target)?;
                let found = Found { target, slot, asked: Instant::now() };
                *known = Some(found.clone());
                found
            }
        };
        drop(known);
        self.check(bot, container, &found.target)?;
        Ok(found.slot)
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
    pub(super) fn line(&self, container: &str, slot: Arc<Slot>) -> Line {
        let id = self.next_line.fetch_add(1, Ordering::Relaxed);
        Line::new(id, container.to_owned(), slot).0
    }

    /// Ends all of them.
    pub(super) async fn end(&self) {
        let slots: Vec<_> = lock(&self.slots).drain().map(|(_, slot)| slot).collect();
        let ends = slots.into_iter().map(|slot| async move { slot.end("patterm ends").await });
        futures_util::future::join_all(ends).await;
    }

    fn asker(&self, container: &str) -> Asker {
        let mut names = lock(&self.names);
        if names.len() >= NAMES {
            // Whoever asks in this moment holds its own.
            names.retain(|_, asker| Arc::strong_count(asker) > 1);
        }
        names.entry(container.to_owned()).or_default().clone()
    }

    fn slot(&self, container: &str, target: &Target) -> Result<Arc<Slot>, Denied> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(&target.id) {
            return Ok(slot.clone());
        }
        let most = self.bots.bounds.sessions;
        if most != 0 && slots.len() >= most {
            let asleep = slots.iter().find(|(_, slot)| slot.is_asleep());
            let Some(asleep) = asleep.map(|(id, _)| id.clone()) else {
                let message = format!("{most} containers are served already, which is the bound");
                return Err(Denied::Limit(message));
            };
            slots.remove(&asleep);
        }
        let exec = Exec {
            place: self.bots.place.clone(),
            container: container.to_owned(),
            command: self.bots.command.clone(),
            env: Default::default(),
        };
        let engine = self.engine.clone();
        let bounds = self.bots.bounds;
        let slot = Slot::new(Plan {
            name: container.to_owned(),
            backend: Arc::new(InFound { engine, target: target.clone(), exec }),
            terms: Terms {
                exclusive: false,
                roots: "[]".to_owned(),
                in_flight: bounds.in_flight,
                in_flight_of_one: bounds.in_flight_of_one,
            },
            bounds,
        });
        slots.insert(target.id.clone(), slot.clone());
        Ok(slot)
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
