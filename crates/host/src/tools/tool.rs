//! What a tool is, and what it is given when it is called.

use std::sync::Arc;

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

/// A tool: its name, its words, its types, and what it does.
pub trait Tool: Send + Sync + 'static {
    /// The name callers use.
    const NAME: &'static str;
    /// A short title for people.
    const TITLE: &'static str;
    /// What a model must know to use it right; it is read with every conversation.
    const DESCRIPTION: &'static str;
    /// What `help` says beyond that.
    const HELP: &'static str;
    /// What a call changes.
    const EFFECT: Effect;
    /// Whether a client that defers tools shows it to its model from the start.
    const LOADING: Loading;
    /// Its arguments: a struct of optional and required fields, each documented.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// Its answer: a struct.
    type Answer: Serialize + JsonSchema + Send;

    /// Does it. The future is dropped when the caller cancels: what must not stop half-way runs
    /// in a task of its own.
    fn call(
        args: Self::Args,
        call: Call,
    ) -> impl Future<Output = Result<Self::Answer, ToolError>> + Send;
}

/// What a call of a tool changes, as clients are told in its annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// Adds something; a second call adds more.
    Adds,
    /// Sets something; a second call changes nothing more.
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

/// One call: on what, by whom, and how to tell the caller that it goes on.
#[derive(Debug, Clone)]
pub struct Call {
    /// The project's state.
    pub host: Arc<Host>,
    /// All tools.
    pub tools: Arc<Registry>,
    /// Who calls.
    pub caller: Caller,
    /// Reports to a caller that asked for them.
    pub progress: Progress,
    /// Cancelled when the caller ended its side: a tool that waits then answers what it has.
    pub ending: CancellationToken,
    /// The turn for large answers: its client has one of them at a time.
    pub large: Arc<Semaphore>,
}

impl Call {
    /// Does something that must not stop half-way, though its caller may go away: in a task of its
    /// own.
    pub(super) async fn detached<T, F>(
        &self,
        work: impl FnOnce(Arc<Host>) -> F + Send + 'static,
    ) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ToolError>> + Send,
    {
        let host = self.host.clone();
        let task = tokio::spawn(async move { work(host).await });
        task.await.unwrap_or_else(|e| Err(broken(&e)))
    }

    /// Does something that takes a while, off the thread that answers everybody.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        tokio::task::spawn_blocking(work).await.map_err(|e| broken(&e))
    }

    /// The same for work whose result may be large. A client gets one of these after the other, in the
    /// order in which it asked: one that does not read keeps no more than that in memory.
    pub(super) async fn large<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let _turn = self.large.acquire().await;
        self.blocking(work).await
    }
}

fn broken(error: &tokio::task::JoinError) -> ToolError {
    ToolError::new(ErrorKind::Internal, format!("a fault in patterm: {error}"))
}
