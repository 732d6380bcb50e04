//! What a hook does with an event.

use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use patterm_panes::process::ProcessId;
use patterm_panes::{HookCommand, Panes, SideCommandError};
use patterm_project::project_file::{HookAction, HookDefinition, HookRequest};

use crate::failure::HookFailure;
use crate::headers;
use crate::message::HookMessage;
use crate::post::Poster;

/// A future that can move between threads.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What hooks need from the rest of the server.
pub(crate) trait HookContext: Debug + Send + Sync {
    /// The label of a process.
    fn process_name(&self, id: &str) -> Option<String>;

    /// Whether a process is shown in a view.
    fn is_viewed(&self, id: &str) -> bool;

    /// Runs a command to its end.
    fn run(&self, command: HookCommand) -> BoxFuture<'_, Result<(), HookFailure>>;

    /// Sends a JSON text.
    fn post<'a>(
        &'a self,
        request: &'a HookRequest,
        env_file: Option<&'a Path>,
        body: String,
        patience: Duration,
    ) -> BoxFuture<'a, Result<(), HookFailure>>;
}

/// The server's processes, and the network.
#[derive(Debug)]
pub(crate) struct ServerContext {
    pub(crate) panes: Arc<Panes>,
    pub(crate) poster: Poster,
}

impl HookContext for ServerContext {
    fn process_name(&self, id: &str) -> Option<String> {
        self.panes.processes.get(&ProcessId::of(id)).map(|process| process.name)
    }

    fn is_viewed(&self, id: &str) -> bool {
        let run = self.panes.run_of(&ProcessId::of(id));
        run.is_some_and(|run| run.views().unseen_from().is_none())
    }

    fn run(&self, command: HookCommand) -> BoxFuture<'_, Result<(), HookFailure>> {
        Box::pin(async move { self.panes.run_hook(command).await.map_err(|error| failed(&error)) })
    }

    fn post<'a>(
        &'a self,
        request: &'a HookRequest,
        env_file: Option<&'a Path>,
        body: String,
        patience: Duration,
    ) -> BoxFuture<'a, Result<(), HookFailure>> {
        Box::pin(async move {
            let headers = headers::read(&self.panes, &request.headers, env_file).await?;
            self.poster.post(&request.url, headers, body, patience).await
        })
    }
}

fn failed(error: &SideCommandError) -> HookFailure {
    HookFailure {
        reason: format!("its command {}", error.without_output()),
        details: format!("its command {error}"),
        may_pass: false,
    }
}

/// Passes an event on, once.
pub(crate) async fn perform(
    context: &dyn HookContext,
    hook: &HookDefinition,
    message: &HookMessage,
) -> Result<(), HookFailure> {
    match &hook.action {
        HookAction::Run(arguments) => {
            let argv = message.argv(arguments);
            let command = HookCommand {
                argv: argv.map_err(|error| HookFailure::lasting(error.to_string()))?,
                env_file: hook.env_file.clone(),
                variables: message.variables(),
                input: (message.body() + "\n").into_bytes(),
                patience: hook.timeout,
            };
            context.run(command).await
        }
        HookAction::Post(request) => {
            let env_file = hook.env_file.as_deref();
            context.post(request, env_file, message.body(), hook.timeout).await
        }
    }
}

/// The name of a project for people: that of its folder.
pub(crate) fn project_name(root: &Path) -> String {
    root.file_name().unwrap_or(root.as_os_str()).to_string_lossy().into_owned()
}
