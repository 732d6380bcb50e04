//! The interface of tools, and the context of a call.

use std::collections::BTreeSet;
use std::sync::Arc;

use patterm_events::{acting, current_actor, in_scope};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::error::{ErrorKind, ToolError};
use super::progress::Progress;
use super::registry::Registry;
use crate::caller::Caller;
use crate::host::Host;
use crate::passed_environment::PassedEnvironment;
use patterm_panes::environment::Environment;

/// A tool: its name, texts, types and implementation.
pub trait Tool: Send + Sync + 'static {
    /// The name that callers use.
    const NAME: &'static str;
    /// A short title for people.
    const TITLE: &'static str;
    /// What a model must know to use it correctly; it is part of every conversation.
    const DESCRIPTION: &'static str;
    /// What `help` adds to that.
    const HELP: &'static str;
    /// What a call changes.
    const EFFECT: Effect;
    /// Whether a client that defers tools shows it to its model from the start.
    const LOADING: Loading;
    /// Its arguments: a struct of optional and required fields, each documented.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// Its answer: a struct.
    type Answer: Serialize + JsonSchema + Send;

    /// Does the work. The future is dropped when the caller cancels: work that must finish
    /// runs in a separate task.
    fn call(
        args: Self::Args,
        call: Call,
    ) -> impl Future<Output = Result<Self::Answer, ToolError>> + Send;
}

/// What a call of a tool changes; clients get it as annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// Adds something; a second call adds more.
    Adds,
    /// Sets something; a second call has no further effect.
    Sets,
    /// Ends or overwrites something.
    Destroys,
}

/// When a client that defers tools (Claude Code does so by default) gives one to its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// From the start: agents need it in every turn.
    Always,
    /// Once the model has searched for it; these words help the search.
    OnSearch(&'static str),
}

/// The context of one call: the project, the caller, and a channel for progress.
#[derive(Debug, Clone)]
pub struct Call {
    /// The project's server.
    pub host: Arc<Host>,
    /// All tools.
    pub tools: Arc<Registry>,
    /// The caller.
    pub caller: Caller,
    /// Progress reports, if the caller asked for them.
    pub progress: Progress,
    /// Cancelled when the caller closed its side: a waiting tool then returns what it has.
    pub ending: CancellationToken,
    /// Limits large answers: a client gets one of them at a time.
    pub large: Arc<Semaphore>,
    /// The environment and folder that its connection passed.
    pub passed: Option<Arc<PassedEnvironment>>,
}

impl Call {
    /// The caller's own environment, for the programs it starts: the one that its connection passed, or
    /// that of the agent's pane.
    pub(super) fn own_environment(&self) -> Option<Environment> {
        if let Some(passed) = &self.passed {
            return Some(passed.variables.clone());
        }
        let process = self.host.panes.processes.get(self.caller.process()?)?;
        Some(self.host.panes.environments.inherited(&process))
    }

    /// The variables that the caller set by name for the programs it starts.
    pub(super) fn set_variables(&self) -> BTreeSet<String> {
        self.passed.as_ref().map(|passed| passed.set.clone()).unwrap_or_default()
    }

    /// The environment of the programs that the caller starts.
    pub(super) fn environment(&self) -> Environment {
        self.own_environment().unwrap_or_else(|| self.host.panes.environments.of_new())
    }

    /// Does work that must finish even if the caller disconnects, in a separate task.
    pub(super) async fn detached<T, F>(
        &self,
        work: impl FnOnce(Arc<Host>) -> F + Send + 'static,
    ) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ToolError>> + Send,
    {
        let host = self.host.clone();
        let task = tokio::spawn(acting(current_actor(), async move { work(host).await }));
        task.await.unwrap_or_else(|e| Err(broken(&e)))
    }

    /// Does blocking work off the thread that serves all connections.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let actor = current_actor();
        let done = tokio::task::spawn_blocking(move || in_scope(actor, work)).await;
        done.map_err(|e| broken(&e))
    }

    /// Does the same for work whose result may be large. A client gets these one at a time,
    /// in the order of its requests, so that one that does not read keeps only one of them
    /// in memory.
    pub(super) async fn large<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let _turn = self.large.acquire().await;
        self.blocking(work).await
    }
}

fn broken(error: &tokio::task::JoinError) -> ToolError {
    ToolError::new(ErrorKind::Internal, format!("internal error in patterm: {error}"))
}
