//! From a message to the work that answers it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use patterm_gateway::raw;
use patterm_wire::error::{INTERNAL_ERROR, INVALID_REQUEST};
use patterm_wire::restore::{self, RestoreRequest};
use patterm_wire::servers;
use patterm_wire::{ErrorObject, Id, Malformed, Message, reply};
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, Implementation, InitializeRequestParams, ProtocolVersion, RequestId,
};
use rmcp::service::{RequestContext, RunningService, Service, serve_directly};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::calls::{Calls, Work};
use crate::caller::Caller;
use crate::caller_origin::{CallerOrigin, Origins, PLACE_METHOD, PlaceParams, PlaceResult};
use crate::elsewhere::{Elsewhere, START_METHOD, StartRequest};
use crate::greeting::GREETING_REFUSED;
use crate::host::Host;
use crate::mcp::{self, McpService, Notices, RequestParams};
use crate::shared_tools::SharedToolsClient;
use crate::shutdown::{ShutdownBegun, ShutdownRequest};
use crate::tools::{Call, ErrorKind, Progress, Registry, ToolError};
use crate::web::{HttpFlags, TokenError, TokenRequest};
use patterm_panes::process::Cause;

/// The request with which a person's `patterm kill` ends the server.
pub const SHUTDOWN_METHOD: &str = "patterm/shutdown";

/// The request with which `patterm upgrade` ends the server and nothing in it: the next one takes
/// over.
pub const HANDOVER_METHOD: &str = "patterm/handover";

/// The request with which a hook of an agent's CLI says what it was told.
pub const HOOK_METHOD: &str = "patterm/hook";

/// The request with which a person's `patterm trust` trusts a content of the project file.
pub const TRUST_METHOD: &str = "patterm/trust";

/// The request with which a person's `patterm token` makes, lists and revokes tokens.
pub const TOKEN_METHOD: &str = "patterm/token";

/// The request with which a person's `patterm serve --http` opens the HTTP endpoint of a server that runs.
pub const HTTP_METHOD: &str = "patterm/http";

/// One caller's connection, as far as its messages mean something.
pub(crate) struct Dispatch {
    host: Arc<Host>,
    tools: Arc<Registry>,
    caller: Caller,
    /// Where who connected speaks from.
    origin: CallerOrigin,
    service: Arc<McpService>,
    /// The shared servers, for this caller.
    shared_tools: Arc<SharedToolsClient>,
    /// rmcp's side of the connection: what was negotiated, and the way out for its notices.
    peer: RunningService<RoleServer, Arc<McpService>>,
    notices: mpsc::Sender<Vec<u8>>,
    /// Cancelled when the client ended its side.
    ending: CancellationToken,
    /// The turn for large answers.
    large: Arc<Semaphore>,
}

impl Dispatch {
    pub(crate) fn new(
        host: Arc<Host>,
        tools: Arc<Registry>,
        caller: Caller,
        origin: CallerOrigin,
        notices: mpsc::Sender<Vec<u8>>,
    ) -> Self {
        let shared_tools =
            SharedToolsClient::new(host.clone(), tools.clone(), caller.clone(), notices.clone());
        let (caller_too, shared_too) = (caller.clone(), shared_tools.clone());
        let service = McpService {
            host: host.clone(),
            tools: tools.clone(),
            caller: caller_too,
            shared_tools: shared_too,
        };
        let service = Arc::new(service);
        // Before any handshake, requests are served as this revision.
        let before_handshake = InitializeRequestParams::new(
            ClientCapabilities::default(),
            Implementation::new("unknown", "0"),
        )
        .with_protocol_version(ProtocolVersion::V_2025_06_18);
        let peer =
            serve_directly(service.clone(), Notices(notices.clone()), Some(before_handshake));
        let (ending, large) = (CancellationToken::new(), Arc::new(Semaphore::new(1)));
        Self { host, tools, caller, origin, service, shared_tools, peer, notices, ending, large }
    }

    /// Whether a method is the name of a tool that this caller may find.
    pub(crate) fn has_tool(&self, method: &str) -> bool {
        self.tools.has(method) || self.shared_tools.may_have(method)
    }

    /// Tells calls that wait that their client ended its side.
    pub(super) fn end(&self) {
        self.ending.cancel();
    }

    /// Serves one message; returns what can be answered at once.
    pub(super) fn message(&self, message: Message<'_>, calls: &mut Calls) -> Option<Vec<u8>> {
        match message {
            Message::Request { id, method, params } => {
                if let Err(error) = self.admit(&id, calls) {
                    return Some(reply::error(Some(&id), &error));
                }
                let cancel = CancellationToken::new();
                let work = self.request(id.clone(), &method, params, cancel.clone());
                calls.start(vec![(id, cancel)], work)
            }
            Message::Notification { method, params } => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.and_then(cancelled_id)
                {
                    calls.cancel(&id);
                }
                None
            }
            // We ask clients nothing, so no answer is ours.
            Message::Response { .. } => None,
        }
    }

    /// Serves a batch, if the negotiated revision has batches.
    pub(super) fn batch(&self, batch: &[&RawValue], calls: &mut Calls) -> Option<Vec<u8>> {
        let refuse =
            |message: String| Some(reply::error(None, &ErrorObject::new(INVALID_REQUEST, message)));
        let revision = self.peer.peer_info().map(|info| info.protocol_version.clone());
        if revision != Some(ProtocolVersion::V_2025_03_26) {
            return refuse("a batch, which only revision 2025-03-26 has".into());
        }
        let most = self.host.limits.batch_messages;
        if batch.len() > most {
            return refuse(format!("a batch of {} messages; at most {most}", batch.len()));
        }
        let mut answers = Vec::new();
        let mut ids: Vec<(Id, CancellationToken)> = Vec::new();
        let works = FuturesUnordered::new();
        for element in batch {
            match Message::from_raw(element) {
                Ok(Message::Request { id, method, params }) => {
                    let twice = ids.iter().any(|(other, _)| *other == id);
                    let admitted = match twice {
                        true => Err(ErrorObject::duplicate_id()),
                        false => self.admit(&id, calls),
                    };
                    if let Err(error) = admitted {
                        answers.push(reply::error(Some(&id), &error));
                        continue;
                    }
                    let cancel = CancellationToken::new();
                    let work = self.request(id.clone(), &method, params, cancel.clone());
                    ids.push((id.clone(), cancel));
                    works.push(async move { work.await.map(|body| (id, body)) });
                }
                Ok(other) => drop(self.message(other, calls)),
                Err(Malformed { id, error }) => answers.push(reply::error(id.as_ref(), &error)),
            }
        }
        let limit = self.host.limits.answer_bytes;
        let together = async move {
            gather(works, &mut answers, limit).await;
            (!answers.is_empty()).then(|| reply::batch(&answers))
        };
        calls.start(ids, Box::pin(together))
    }

    /// Whether a request may be served at all.
    fn admit(&self, id: &Id, calls: &Calls) -> Result<(), ErrorObject> {
        if calls.has(id) {
            return Err(ErrorObject::duplicate_id());
        }
        if !self.caller.is_known(&self.host) {
            let message = "the identity of this connection is revoked: its process was closed";
            return Err(ErrorObject::new(GREETING_REFUSED, message));
        }
        let most = self.host.limits.calls_in_flight;
        if calls.len() >= most {
            let message = format!(
                "{most} calls of this connection wait for their answers; let one end first"
            );
            return Err(ToolError::new(ErrorKind::Limit, message).into_rpc());
        }
        Ok(())
    }

    /// The work that answers a request. A panic in it is this one request's error.
    pub(crate) fn request(
        &self,
        id: Id,
        method: &str,
        params: Option<&RawValue>,
        cancel: CancellationToken,
    ) -> Work {
        if let Some(work) = self.shared(&id, method, params) {
            return Box::pin(async move {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    body = work => Some(body),
                }
            });
        }
        let work = match self.answer(&id, method, params, &cancel) {
            Ok(work) => work,
            Err(error) => {
                return Box::pin(std::future::ready(Some(reply::error(Some(&id), &error))));
            }
        };
        let method = method.to_owned();
        let limit = self.host.limits.answer_bytes;
        Box::pin(async move {
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => return None,
                outcome = AssertUnwindSafe(work).catch_unwind() => outcome,
            };
            let outcome = outcome.unwrap_or_else(|_panic| {
                tracing::error!(method, "a call panicked");
                let message = format!("a fault in patterm while serving {method}; others go on");
                Err(ErrorObject::new(INTERNAL_ERROR, message))
            });
            let fits = |json: String| match mcp::check_size(json.len(), limit) {
                Ok(()) => Ok(json),
                Err(error) => Err(error.into_rpc()),
            };
            Some(match outcome.and_then(fits) {
                Ok(json) => reply::result(&id, &json),
                Err(error) => reply::error(Some(&id), &error),
            })
        })
    }

    /// The work that answers a call of a shared server's tool, if it is one: nothing of it is read
    /// but its name.
    fn shared(
        &self,
        id: &Id,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<impl Future<Output = Vec<u8>> + Send + 'static + use<>> {
        let (name, params) = match method {
            "tools/call" => {
                let params = params?.get();
                (serde_json::from_str(raw::member(params, "name")?).ok()?, params.to_owned())
            }
            // A tool's name is a method too.
            name if self.shared_tools.may_have(name) => {
                let arguments = params.map_or("{}", |params| params.get());
                let params =
                    format!("{{\"name\":{},\"arguments\":{arguments}}}", raw::quoted(name));
                (name.to_owned(), params)
            }
            _ => return None,
        };
        if !self.shared_tools.may_have(&name) {
            return None;
        }
        if let Some(process) = self.caller.agent() {
            let meta = raw::member(&params, "_meta").unwrap_or("{}");
            let text = |name: &str| serde_json::from_str(raw::member(meta, name)?).ok();
            self.host.agents.hear_call(process, text);
        }
        let (shared_tools, id) = (self.shared_tools.clone(), id.clone());
        let limit = self.host.limits.answer_bytes;
        Some(async move {
            let answer = shared_tools.call(id.clone(), name, params).await;
            match mcp::check_size(answer.len(), limit) {
                Ok(()) => answer,
                Err(error) => reply::error(Some(&id), &error.into_rpc()),
            }
        })
    }

    fn answer(
        &self,
        id: &Id,
        method: &str,
        params: Option<&RawValue>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ErrorObject> {
        if method == SHUTDOWN_METHOD || method == HANDOVER_METHOD {
            return Ok(self.shutdown(method == HANDOVER_METHOD, params));
        }
        if method == TRUST_METHOD {
            return Ok(self.trust(params));
        }
        if method == servers::METHOD {
            return Ok(self.servers(params));
        }
        if method == TOKEN_METHOD {
            return Ok(self.token(params));
        }
        if method == HTTP_METHOD {
            return Ok(self.open_endpoint(params));
        }
        if method == restore::METHOD {
            return Ok(self.restore(params));
        }
        if method == HOOK_METHOD {
            return Ok(self.hook(params));
        }
        if method == PLACE_METHOD {
            return Ok(self.tell_origin(params));
        }
        if method == START_METHOD {
            return Ok(self.start(params));
        }
        if method == "tools/list"
            && let Some(id) = self.caller.agent()
        {
            self.host.agents.activities.signals(id).note_tools();
        }
        let mut params = RequestParams::read(params)?;
        if let Some(id) = self.caller.agent() {
            self.host.agents.hear_call(id, |name| params.meta_text(name).map(str::to_owned));
        }
        // Taken, as the contract asks, though this server sends no log messages. The stateless
        // revision has no level to set.
        if method == "logging/setLevel" && !params.is_modern() {
            return Ok(Box::pin(std::future::ready(Ok("{}".into()))));
        }
        let call = self.call(&mut params);
        if self.tools.has(method) {
            return Ok(self.tool(method, params, call));
        }
        let (request, meta) = mcp::ask(method, params)?;
        let mut context = RequestContext::new(request_id(id), self.peer.peer().clone());
        context.ct = cancel.clone();
        context.meta = meta;
        context.extensions.insert(call);
        let service = self.service.clone();
        let shared_tools = (method == "tools/list").then(|| self.shared_tools.clone());
        if method == "initialize" {
            self.shared_tools.note_greeting();
        }
        let method = method.to_owned();
        Ok(Box::pin(async move {
            let result = service.handle_request(request, context).await;
            match result {
                Ok(result) => match shared_tools {
                    Some(shared_tools) => Ok(shared_tools.complete(to_json(&result)?).await),
                    None => to_json(&result),
                },
                Err(error) if error.code.0 == -32601 => Err(ErrorObject::method_not_found(&method)),
                Err(error) => Err(ErrorObject {
                    code: error.code.0.into(),
                    message: error.message.into_owned(),
                    data: error.data,
                }),
            }
        }))
    }

    /// A tool called by its name answers its bare result.
    fn tool(&self, name: &str, params: RequestParams, call: Call) -> Answer {
        let name = name.to_owned();
        let tools = self.tools.clone();
        Box::pin(async move {
            let Some(answer) = tools.call(&name, params.into_members(), call) else {
                return Err(ErrorObject::method_not_found(&name));
            };
            to_json(&answer.await.map_err(ToolError::into_rpc)?)
        })
    }

    fn call(&self, params: &mut RequestParams) -> Call {
        let progress = params.take_progress_token().map(|t| Progress::new(t, self.notices.clone()));
        Call {
            host: self.host.clone(),
            tools: self.tools.clone(),
            caller: self.caller.clone(),
            progress: progress.unwrap_or_default(),
            ending: self.ending.clone(),
            large: self.large.clone(),
        }
    }

    /// Takes a hook's word for the agent whose connection this is.
    fn hook(&self, params: Option<&RawValue>) -> Answer {
        #[derive(Deserialize)]
        struct Told {
            event: String,
            #[serde(default)]
            given: serde_json::Value,
        }
        let told = serde_json::from_str::<Told>(params.map_or("{}", |params| params.get()));
        let answer = match (self.caller.agent(), told) {
            (Some(id), Ok(told)) => {
                self.host.agents.hear_hook(id, &told.event, &told.given);
                let signals = self.host.agents.activities.signals(id);
                return Box::pin(async move {
                    signals.may_return(&told.event).await;
                    Ok("{}".into())
                });
            }
            (None, _) => {
                let message = "only an agent that patterm started has hooks";
                Err(ToolError::new(ErrorKind::NotOwner, message).into_rpc())
            }
            (_, Err(error)) => {
                Err(ErrorObject::invalid_params(format!("`event` is a string: {error}")))
            }
        };
        Box::pin(std::future::ready(answer))
    }

    /// Starts another project's server for somebody in a pane.
    fn start(&self, params: Option<&RawValue>) -> Answer {
        let wish = serde_json::from_str::<StartRequest>(params.map_or("{}", |params| params.get()));
        let elsewhere = Elsewhere {
            panes: self.host.panes.clone(),
            project: self.host.project.clone(),
            program: self.host.program.clone(),
        };
        let is_person = self.is_person();
        Box::pin(async move {
            let mut wish =
                wish.map_err(|e| ErrorObject::invalid_params(format!("`folder` is a path: {e}")))?;
            if !is_person {
                wish.leave_limits_as_they_are();
            }
            let entry = elsewhere.start(wish).await;
            match entry.map_err(|e| ToolError::new(ErrorKind::Unavailable, e).into_rpc())? {
                Some(entry) => to_json(&entry),
                // As an older server says it: the client starts it itself.
                None => Err(ErrorObject::method_not_found(START_METHOD)),
            }
        })
    }

    /// Tells another project's server whether a process runs in a person's pane here.
    fn tell_origin(&self, params: Option<&RawValue>) -> Answer {
        let asked = PlaceParams::read(params.map_or("{}", |params| params.get()));
        let origins = Origins::new(self.host.panes.clone(), &self.host.project);
        Box::pin(async move {
            let person = origins.is_in_a_persons_pane(&asked?.line).await;
            to_json(&PlaceResult { person })
        })
    }

    /// Trusts a content of the project file; only people may.
    fn trust(&self, params: Option<&RawValue>) -> Answer {
        #[derive(Deserialize)]
        struct Seen {
            hash: String,
        }
        let seen = serde_json::from_str::<Seen>(params.map_or("{}", |params| params.get()));
        let host = self.host.clone();
        let work = move || {
            let seen =
                seen.map_err(|e| ErrorObject::invalid_params(format!("`hash` is a string: {e}")))?;
            host.declared
                .trust_project_file(&seen.hash)
                .map_err(|e| ToolError::new(ErrorKind::Unavailable, e.to_string()).into_rpc())
        };
        self.for_a_person("trusts a project file", blocking(work))
    }

    /// Makes, lists or revokes tokens of HTTP clients; only people may.
    fn token(&self, params: Option<&RawValue>) -> Answer {
        let wish =
            serde_json::from_str::<TokenRequest>(params.map_or("null", |params| params.get()));
        let host = self.host.clone();
        let work = async move {
            let wish = wish.map_err(|e| {
                ErrorObject::invalid_params(format!("`params` take new, list or revoke: {e}"))
            })?;
            let done = tokio::task::spawn_blocking(move || host.web.token(wish)).await;
            let done = done.map_err(broken)?.map_err(|e| {
                let kind = match e {
                    TokenError::Unknown { .. } => ErrorKind::NotFound,
                    TokenError::TooMany => ErrorKind::Limit,
                    TokenError::State(_) | TokenError::Random(_) => ErrorKind::Unavailable,
                    _ => ErrorKind::InvalidArgument,
                };
                ToolError::new(kind, e.to_string()).into_rpc()
            })?;
            to_json(&done)
        };
        self.for_a_person("makes or revokes a token", work)
    }

    /// Opens the HTTP endpoint; only people may.
    fn open_endpoint(&self, params: Option<&RawValue>) -> Answer {
        let flags = serde_json::from_str::<HttpFlags>(params.map_or("{}", |params| params.get()));
        let host = self.host.clone();
        let work = async move {
            let flags = flags
                .map_err(|e| ErrorObject::invalid_params(format!("`listen` is an address: {e}")))?;
            let opened = tokio::task::spawn_blocking(move || host.web.set_flags(flags)).await;
            let address = opened
                .map_err(broken)?
                .map_err(|e| ToolError::new(ErrorKind::Unavailable, e.to_string()).into_rpc())?;
            to_json(&serde_json::json!({"http": address}))
        };
        self.for_a_person("opens the HTTP endpoint", work)
    }

    /// Ends the server; only people may.
    fn shutdown(&self, handover: bool, params: Option<&RawValue>) -> Answer {
        let request = serde_json::from_str(params.map_or("{}", |params| params.get()));
        let host = self.host.clone();
        let work = async move {
            let request: ShutdownRequest = request.map_err(|e| {
                ErrorObject::invalid_params(format!("`grace_ms` is a number of milliseconds: {e}"))
            })?;
            let begin = move || {
                tracing::info!(handover, "asked to end");
                host.handover.store(handover, Ordering::Release);
                let begun = match handover {
                    true => ShutdownBegun::default(),
                    false => {
                        host.lifecycle.note_interruption(Cause::Kill);
                        host.ending.request(request)
                    }
                };
                host.shutdown.cancel();
                begun
            };
            to_json(&tokio::task::spawn_blocking(begin).await.map_err(broken)?)
        };
        self.for_a_person("ends the server", work)
    }

    /// How the shared servers stand; only people may have one started anew.
    fn servers(&self, params: Option<&RawValue>) -> Answer {
        let wish = serde_json::from_str::<servers::ServersRequest>(
            params.map_or("{}", |params| params.get()),
        );
        let host = self.host.clone();
        let name = match wish {
            Ok(servers::ServersRequest { restart }) => restart,
            Err(e) => {
                let message = format!("`params` take restart, a string: {e}");
                return Box::pin(std::future::ready(Err(ErrorObject::invalid_params(message))));
            }
        };
        let look = move || to_json(&servers::ServersResult { servers: host.shared.status() });
        let Some(name) = name else { return Box::pin(std::future::ready(look())) };
        let host = self.host.clone();
        self.for_a_person("has a shared server started anew", async move {
            if host.shared.restart(&name) {
                return look();
            }
            let message = format!("there is no shared server `{name}`");
            Err(ToolError::new(ErrorKind::NotFound, message).into_rpc())
        })
    }

    /// Brings back what ran when everything was ended, or lets it rest; only people may.
    fn restore(&self, params: Option<&RawValue>) -> Answer {
        let wish =
            serde_json::from_str::<RestoreRequest>(params.map_or("{}", |params| params.get()));
        let host = self.host.clone();
        let work = async move {
            let wish = wish.map_err(|e| {
                let message = format!("`params` take ids, a list, and decline, a boolean: {e}");
                ErrorObject::invalid_params(message)
            })?;
            let ids = wish.ids.as_deref();
            let processes = match wish.decline {
                true => host.lifecycle.decline(ids),
                false => host.lifecycle.restore(ids).await,
            };
            to_json(&restore::RestoreResult { processes })
        };
        // Whoever asked may go away; it does not stop half-way.
        let detached = async move { tokio::spawn(work).await.map_err(broken)? };
        self.for_a_person("brings back what ran", detached)
    }

    /// Whether what is asked for here can come from a person.
    fn is_person(&self) -> bool {
        self.caller.process().is_none() && self.origin.is_human_origin()
    }

    /// Does what only people may have done.
    fn for_a_person(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<String, ErrorObject>> + Send + 'static,
    ) -> Answer {
        let is_person = self.is_person();
        Box::pin(async move {
            if !is_person {
                let message = format!("only a person {what}; ask for attention instead");
                return Err(ToolError::new(ErrorKind::NotOwner, message).into_rpc());
            }
            work.await
        })
    }
}

/// Work that takes a while and answers nothing, off the thread that answers everybody.
async fn blocking(
    work: impl FnOnce() -> Result<(), ErrorObject> + Send + 'static,
) -> Result<String, ErrorObject> {
    tokio::task::spawn_blocking(work).await.map_err(broken)??;
    Ok("{}".into())
}

fn broken(error: tokio::task::JoinError) -> ErrorObject {
    ErrorObject::new(INTERNAL_ERROR, error.to_string())
}

/// Adds what each work answers, as long as all of it together is not longer than clients take.
async fn gather<W>(mut works: FuturesUnordered<W>, answers: &mut Vec<Vec<u8>>, limit: usize)
where
    W: Future<Output = Option<(Id, Vec<u8>)>>,
{
    let mut bytes: usize = answers.iter().map(Vec::len).sum();
    while let Some(answer) = works.next().await {
        let Some((id, mut body)) = answer else { continue };
        if bytes + body.len() > limit {
            let message = format!(
                "the answers of this batch have more than {limit} bytes together; ask for this \
                 one by itself"
            );
            let error = ToolError::new(ErrorKind::Limit, message).with("limit_bytes", limit);
            body = reply::error(Some(&id), &error.into_rpc());
        }
        bytes += body.len();
        answers.push(body);
    }
}

type Answer = std::pin::Pin<Box<dyn Future<Output = Result<String, ErrorObject>> + Send>>;

fn to_json(value: &impl serde::Serialize) -> Result<String, ErrorObject> {
    serde_json::to_string(value)
        .map_err(|e| ErrorObject::new(INTERNAL_ERROR, format!("the answer is no JSON: {e}")))
}

/// The id as rmcp knows ids; only what it marks its own notices with.
fn request_id(id: &Id) -> RequestId {
    serde_json::from_str(id.as_json()).unwrap_or_else(|_| RequestId::String(id.as_json().into()))
}

fn cancelled_id(params: &RawValue) -> Option<Id> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    let cancelled: Cancelled<'_> = serde_json::from_str(params.get()).ok()?;
    Id::from_raw(cancelled.request_id)
}
