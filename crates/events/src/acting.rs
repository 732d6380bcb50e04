//! Who is acting: the server identifies the caller of a request once, and everything that happens while the request is
//! handled has that caller as its actor. For parts of the server that act on their own, the actor is the system.

use patterm_wire::events::Actor;

tokio::task_local! {
    static ACTOR: Actor;
}

/// Runs a future on behalf of an actor.
pub async fn acting<F: Future>(actor: Actor, future: F) -> F::Output {
    ACTOR.scope(actor, future).await
}

/// Does something on behalf of an actor, on this thread.
pub fn in_scope<T>(actor: Actor, work: impl FnOnce() -> T) -> T {
    ACTOR.sync_scope(actor, work)
}

/// On whose behalf the current task acts.
#[must_use]
pub fn current_actor() -> Actor {
    ACTOR.try_with(Actor::clone).unwrap_or_default()
}
