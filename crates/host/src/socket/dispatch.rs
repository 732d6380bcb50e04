//! Turns a message into the work that answers it.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use patterm_events::{About, EventError, acting, current_actor, in_scope};
use patterm_gateway::raw;
use patterm_wire::declared::{
    DeclaredNames, DeclaredOutcome, DeclaredResult, Down, Up, WaitUntilReady,
    WaitUntilReadyRequest, WaitUntilReadyResult,
};
use patterm_wire::digest::{Digest, DigestRequest, LookedRequest, NoteLooked, ReadDigest};
use patterm_wire::environment::{CallerEnvironment, PassEnvironment};
use patterm_wire::error::{INTERNAL_ERROR, INVALID_REQUEST};
use patterm_wire::events::{EventLines, EventQuery, ExportEvents, Fact, LogVerdict, VerifyEvents};
use patterm_wire::follow::MessageInfo;
use patterm_wire::hooks::{HookList, HookTest, HookTested, ListHooks, TestHook};
use patterm_wire::method::Empty;
use patterm_wire::past::{PastRequest, PastResult, ReadPast};
use patterm_wire::requests::{
    AnswerDialog, AnswerState, DialogAnswer, DialogAnswered, Dismiss, DismissRequest, Handover,
    Hook, HookEvent, HttpFlags, HttpOpened, MessageText, MessageTexts, Messages, MessagesRequest,
    OpenHttp, OptionRef, ServerEntry, Shutdown, ShutdownBegun, ShutdownRequest, StartRequest,
    StartServer, Token, TokenRequest, TokenResult, Trust, TrustRequest,
};
use patterm_wire::restore::{Restore, RestoreRequest, RestoreResult};
use patterm_wire::servers::{Servers, ServersRequest, ServersResult};
use patterm_wire::usage::{Usage, UsageRequest, UsageResult};
use patterm_wire::{ErrorObject, Id, Malformed, Message, Method, reply};
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
use super::follow::message_info;
use crate::caller::Caller;
use crate::caller_origin::{CallerOrigin, LocateProcess, Origins, PlaceParams, PlaceResult};
use crate::digest;
use crate::greeting::GREETING_REFUSED;
use crate::host::Host;
use crate::mcp::{self, McpService, Notices, RequestParams};
use crate::other_project::OtherProjectStarter;
use crate::passed_environment::PassedEnvironment;
use crate::past::{self, PastError};
use crate::shared_tools::SharedToolsClient;
use crate::tools::{Call, ErrorKind, Progress, Registry, ToolError};
use crate::up::UpError;
use crate::usage;
use crate::web::TokenError;
use patterm_agents::delivery::Delivery;
use patterm_agents::{AnswerOutcome, ChosenOption};
use patterm_panes::process::{Cause, ProcessId};
use patterm_project::project_file::TrustError;

/// The messages of one caller's connection.
pub(crate) struct Dispatch {
    host: Arc<Host>,
    tools: Arc<Registry>,
    caller: Caller,
    /// Where the client runs.
    origin: CallerOrigin,
    service: Arc<McpService>,
    /// The shared servers, for this caller.
    shared_tools: Arc<SharedToolsClient>,
    /// rmcp's side of the connection: the negotiated revision, and the channel for its notices.
    peer: RunningService<RoleServer, Arc<McpService>>,
    notices: mpsc::Sender<Vec<u8>>,
    /// Cancelled when the client closed its side.
    ending: CancellationToken,
    /// Limits large responses to one at a time.
    large: Arc<Semaphore>,
    /// The environment that the client passed.
    passed: Mutex<Option<Arc<PassedEnvironment>>>,
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
        let passed = Mutex::default();
        Self {
            host,
            tools,
            caller,
            origin,
            service,
            shared_tools,
            peer,
            notices,
            ending,
            large,
            passed,
        }
    }

    /// Whether a method is the name of a tool that this caller may use.
    pub(crate) fn has_tool(&self, method: &str) -> bool {
        self.tools.has(method) || self.shared_tools.may_have(method)
    }

    /// Notifies waiting calls that their client closed its side.
    pub(super) fn end(&self) {
        self.ending.cancel();
    }

    /// Handles one message; returns the response if it is ready at once.
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
            // We send no requests to clients, so no response is for us.
            Message::Response { .. } => None,
        }
    }

    /// Handles a batch, if the negotiated revision has batches.
    pub(super) fn batch(&self, batch: &[&RawValue], calls: &mut Calls) -> Option<Vec<u8>> {
        let refuse =
            |message: String| Some(reply::error(None, &ErrorObject::new(INVALID_REQUEST, message)));
        let revision = self.peer.peer_info().map(|info| info.protocol_version.clone());
        if revision != Some(ProtocolVersion::V_2025_03_26) {
            return refuse("batches are only supported in revision 2025-03-26".into());
        }
        let most = self.host.limits.batch_messages;
        if batch.len() > most {
            return refuse(format!(
                "a batch of {} messages; at most {most} are allowed",
                batch.len()
            ));
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

    /// Whether a request may be handled at all.
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
                "this connection already has {most} calls in flight; wait for one to finish"
            );
            return Err(ToolError::new(ErrorKind::Limit, message).into_rpc());
        }
        Ok(())
    }

    /// The work that answers a request. A panic in it becomes the error of this request.
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
        let work = acting(self.caller.actor(), work);
        Box::pin(async move {
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => return None,
                outcome = AssertUnwindSafe(work).catch_unwind() => outcome,
            };
            let outcome = outcome.unwrap_or_else(|_panic| {
                tracing::error!(method, "a call panicked");
                let message = format!(
                    "internal error in patterm while serving {method}; other calls are not affected"
                );
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

    /// The work that answers a call of a shared server's tool, if it is one. Only the name
    /// is parsed.
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
            // A tool's name is also a method.
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
            self.host.agents.note_call(process, text);
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
        if let Some(answer) = self.own_method(method, params) {
            return Ok(answer);
        }
        if method == "tools/list"
            && let Some(id) = self.caller.agent()
        {
            self.host.agents.activities.signals(id).note_tools();
        }
        let mut params = RequestParams::read(params)?;
        if let Some(id) = self.caller.agent() {
            self.host.agents.note_call(id, |name| params.meta_text(name).map(str::to_owned));
        }
        // Accepted, as MCP requires, although this server sends no log messages. The
        // stateless revision has no such method.
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

    /// A tool that is called as a method returns its bare result.
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
            passed: self.passed(),
        }
    }

    /// The environment that the client has passed so far.
    fn passed(&self) -> Option<Arc<PassedEnvironment>> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answer to one of patterm's own methods; `None` if this is not one.
    fn own_method(&self, name: &str, params: Option<&RawValue>) -> Option<Answer> {
        Some(match name {
            Shutdown::NAME => {
                self.serve::<Shutdown, _>(params, |host, request| end(host, Some(request)))
            }
            Handover::NAME => self.serve::<Handover, _>(params, |host, Empty {}| end(host, None)),
            Messages::NAME => self.serve::<Messages, _>(params, messages),
            Usage::NAME => self.serve::<Usage, _>(params, measure),
            ReadPast::NAME => self.serve::<ReadPast, _>(params, read_past),
            Dismiss::NAME => self.serve::<Dismiss, _>(params, dismiss),
            AnswerDialog::NAME => self.serve::<AnswerDialog, _>(params, answer_dialog),
            Trust::NAME => self.serve::<Trust, _>(params, trust),
            Token::NAME => self.serve::<Token, _>(params, token),
            ExportEvents::NAME => self.serve::<ExportEvents, _>(params, export_events),
            ReadDigest::NAME => self.serve::<ReadDigest, _>(params, read_digest),
            NoteLooked::NAME => self.serve::<NoteLooked, _>(params, note_looked),
            VerifyEvents::NAME => self.serve::<VerifyEvents, _>(params, verify_events),
            ListHooks::NAME => self.serve::<ListHooks, _>(params, list_hooks),
            TestHook::NAME => self.serve::<TestHook, _>(params, test_hook),
            OpenHttp::NAME => self.serve::<OpenHttp, _>(params, open_http),
            Restore::NAME => self.serve::<Restore, _>(params, restore),
            Up::NAME => {
                let (passed, is_person) = (self.passed(), self.is_person());
                self.serve::<Up, _>(params, move |host, request| {
                    up(host, request, passed, is_person)
                })
            }
            Down::NAME => self.serve::<Down, _>(params, down),
            WaitUntilReady::NAME => self.serve::<WaitUntilReady, _>(params, wait_until_ready),
            LocateProcess::NAME => self.serve::<LocateProcess, _>(params, locate),
            Servers::NAME => {
                let is_person = self.is_person();
                self.serve::<Servers, _>(params, move |host, request| {
                    servers(host, request, is_person)
                })
            }
            StartServer::NAME => {
                let is_person = self.is_person();
                self.serve::<StartServer, _>(params, move |host, request| {
                    start_server(host, request, is_person)
                })
            }
            PassEnvironment::NAME => {
                // At once, because later requests on this connection use it.
                let passed = self.pass_environment(params);
                Box::pin(std::future::ready(passed.and_then(|()| to_json(&Empty {}))))
            }
            Hook::NAME => {
                let agent = self.caller.agent().cloned();
                self.serve::<Hook, _>(params, move |host, event| hook(host, event, agent))
            }
            _ => return None,
        })
    }

    /// Serves one of patterm's own methods, if the caller may use it and its parameters are valid.
    fn serve<M: Method, F>(
        &self,
        params: Option<&RawValue>,
        work: impl FnOnce(Arc<Host>, M::Params) -> F + Send + 'static,
    ) -> Answer
    where
        F: Future<Output = Result<M::Result, ErrorObject>> + Send,
        M::Params: Send + 'static,
        M::Result: Send + Sync,
    {
        let allowed = match M::PERSON_ONLY {
            Some(what) => for_a_person(what, self.is_person()),
            None => Ok(()),
        };
        let params = serde_json::from_str::<M::Params>(params.map_or("{}", |params| params.get()));
        let params = params.map_err(|error| {
            let message = format!("the parameters of {} are invalid: {error}", M::NAME);
            ErrorObject::invalid_params(message)
        });
        let host = self.host.clone();
        Box::pin(async move {
            allowed?;
            to_json(&work(host, params?).await?)
        })
    }

    /// Stores the environment for the programs that this connection starts.
    fn pass_environment(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let sent = serde_json::from_str::<CallerEnvironment>(params.map_or("{}", RawValue::get));
        let sent = sent.map_err(|error| {
            // The error's own text is left out: it may quote a value.
            let (name, column) = (PassEnvironment::NAME, error.column());
            let message = format!("the parameters of {name} are invalid at column {column}");
            ErrorObject::invalid_params(message)
        })?;
        let attaches = sent.attaches;
        let passed = PassedEnvironment::read(sent)
            .map_err(|why| ToolError::new(ErrorKind::InvalidArgument, why).into_rpc())?;
        if attaches && self.is_person() {
            self.host.panes.environments.note_attached(&passed.variables);
        }
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(passed));
        Ok(())
    }

    /// Whether the request can come from a person.
    fn is_person(&self) -> bool {
        self.caller.process().is_none() && self.origin.is_human_origin()
    }
}

/// Refuses an action that only a person may take, if the caller is not one.
fn for_a_person(what: &str, is_person: bool) -> Result<(), ErrorObject> {
    if is_person {
        return Ok(());
    }
    let message = format!("only a person may {what}; ask for it with request_human_attention");
    Err(ToolError::new(ErrorKind::NotOwner, message).into_rpc())
}

/// Starts to shut the server down; without a request, it hands over to the next server.
async fn end(
    host: Arc<Host>,
    request: Option<ShutdownRequest>,
) -> Result<ShutdownBegun, ErrorObject> {
    let begin = move || {
        let handover = request.is_none();
        tracing::info!(handover, "shutting down");
        host.handover.store(handover, Ordering::Release);
        let begun = match request {
            None => ShutdownBegun::default(),
            Some(request) => {
                host.lifecycle.note_interruption(Cause::Kill);
                host.ending.request(request)
            }
        };
        host.shutdown.cancel();
        begun
    };
    blocking(begin).await
}

/// The messages with their full texts.
async fn messages(host: Arc<Host>, request: MessagesRequest) -> Result<MessageTexts, ErrorObject> {
    let read = move || {
        let deliveries = &host.agents.deliveries;
        let text = |delivery: Delivery| {
            let whole = deliveries.whole_text(&delivery);
            let MessageInfo { id, kind, from, to, at, excerpt, state, evidence } =
                message_info(delivery);
            let is_whole = whole.is_some();
            let text = whole.unwrap_or(excerpt);
            MessageText {
                message_id: id,
                kind,
                from,
                to,
                at,
                text,
                whole: is_whole,
                state,
                evidence,
            }
        };
        let is_asked_for = |message: &MessageText| {
            let of = |id: &String| message.from == *id || message.to == *id;
            request.process_id.as_ref().is_none_or(of)
                && request.message_id.is_none_or(|id| message.message_id == id)
        };
        deliveries.all().into_iter().map(text).filter(is_asked_for).collect()
    };
    Ok(MessageTexts { messages: blocking(read).await? })
}

/// Returns events as they are stored.
async fn export_events(host: Arc<Host>, query: EventQuery) -> Result<EventLines, ErrorObject> {
    let page = blocking(move || {
        let page = host.events.lines(&query)?;
        Ok((page, *host.events.last().borrow()))
    });
    let (page, last) = page.await?.map_err(unreadable)?;
    Ok(EventLines { lines: page.events, next: page.next, more: page.next <= last })
}

/// Checks the log of events.
async fn verify_events(host: Arc<Host>, Empty {}: Empty) -> Result<LogVerdict, ErrorObject> {
    blocking(move || host.events.verify()).await?.map_err(unreadable)
}

/// Sums up what happened.
async fn read_digest(host: Arc<Host>, request: DigestRequest) -> Result<Digest, ErrorObject> {
    blocking(move || digest::for_person(&host, &request)).await?.map_err(unreadable)
}

/// A person has seen what happened.
async fn note_looked(host: Arc<Host>, request: LookedRequest) -> Result<Empty, ErrorObject> {
    let noted = blocking(move || digest::note_looked(&host, &request)).await?;
    noted.map_err(|e| ToolError::new(ErrorKind::Unavailable, e.to_string()).into_rpc())?;
    Ok(Empty {})
}

fn unreadable(error: EventError) -> ErrorObject {
    ToolError::new(ErrorKind::Unavailable, error.to_string()).into_rpc()
}

/// Measures all processes.
async fn measure(host: Arc<Host>, request: UsageRequest) -> Result<UsageResult, ErrorObject> {
    blocking(move || usage::measure(&host, request)).await
}

/// Shows processes as they were.
async fn read_past(host: Arc<Host>, request: PastRequest) -> Result<PastResult, ErrorObject> {
    blocking(move || past::read(&host, &request)).await?.map_err(|error| match error {
        PastError::TooMuch(_) => ToolError::new(ErrorKind::Limit, error.to_string()).into_rpc(),
        PastError::Events(error) => unreadable(error),
    })
}

/// Dismisses a process's request for attention.
async fn dismiss(host: Arc<Host>, request: DismissRequest) -> Result<Empty, ErrorObject> {
    let id = ProcessId::of(&request.process_id);
    if host.panes.processes.get(&id).is_none() {
        return Err(ToolError::from(host.panes.no_such_process(id.as_str())).into_rpc());
    }
    blocking(move || host.panes.attended(&id)).await?;
    Ok(Empty {})
}

/// Answers a dialog for a person. Runs to the end even if the caller disconnects.
async fn answer_dialog(
    host: Arc<Host>,
    request: DialogAnswer,
) -> Result<DialogAnswered, ErrorObject> {
    let id = ProcessId::of(&request.process_id);
    if host.panes.processes.get(&id).is_none() {
        return Err(ToolError::from(host.panes.no_such_process(id.as_str())).into_rpc());
    }
    let option = match request.option {
        OptionRef::Number(number) => ChosenOption::Number(number),
        OptionRef::Label(label) => ChosenOption::Label(label),
    };
    let work = async move { host.agents.answer_dialog(&id, &request.dialog, &option).await };
    let (state, reason) = match tokio::spawn(acting(current_actor(), work)).await.map_err(broken)? {
        AnswerOutcome::Accepted(evidence) => (AnswerState::Accepted, evidence),
        AnswerOutcome::Unconfirmed(why) => (AnswerState::Unconfirmed, why),
        AnswerOutcome::Refused(why) => (AnswerState::Refused, why),
    };
    Ok(DialogAnswered { state, reason })
}

/// Trusts the project file with the content that the person has seen.
async fn trust(host: Arc<Host>, request: TrustRequest) -> Result<Empty, ErrorObject> {
    let trust = move || {
        host.declared.trust_project_file(&request.hash)?;
        host.events.record(About::project(), Fact::ProjectFileTrusted { hash: request.hash });
        Ok::<_, TrustError>(())
    };
    let trusted = blocking(trust).await?;
    trusted.map_err(|e| ToolError::new(ErrorKind::Unavailable, e.to_string()).into_rpc())?;
    Ok(Empty {})
}

/// Lists the hooks.
async fn list_hooks(host: Arc<Host>, Empty {}: Empty) -> Result<HookList, ErrorObject> {
    Ok(HookList { hooks: host.hooks.list() })
}

/// Passes a sample event to a hook.
async fn test_hook(host: Arc<Host>, request: HookTest) -> Result<HookTested, ErrorObject> {
    let tested = host.hooks.test(&request.name).await;
    let tested = tested.map_err(|e| ToolError::new(ErrorKind::NotFound, e.to_string()).into_rpc());
    Ok(HookTested { tested: tested? })
}

/// Creates, lists or revokes tokens of HTTP clients.
async fn token(host: Arc<Host>, request: TokenRequest) -> Result<TokenResult, ErrorObject> {
    blocking(move || host.web.token(request)).await?.map_err(|error| {
        let kind = match error {
            TokenError::Unknown { .. } => ErrorKind::NotFound,
            TokenError::TooMany => ErrorKind::Limit,
            TokenError::State(_) | TokenError::Random(_) => ErrorKind::Unavailable,
            _ => ErrorKind::InvalidArgument,
        };
        ToolError::new(kind, error.to_string()).into_rpc()
    })
}

/// Opens the HTTP endpoint.
async fn open_http(host: Arc<Host>, flags: HttpFlags) -> Result<HttpOpened, ErrorObject> {
    let opened = blocking(move || host.web.set_flags(flags)).await?;
    let http =
        opened.map_err(|e| ToolError::new(ErrorKind::Unavailable, e.to_string()).into_rpc())?;
    Ok(HttpOpened { http })
}

/// Restores processes, or declines to. Runs to the end even if the caller disconnects.
async fn restore(host: Arc<Host>, request: RestoreRequest) -> Result<RestoreResult, ErrorObject> {
    let work = async move {
        let ids = request.ids.as_deref();
        match request.decline {
            true => host.lifecycle.decline(ids),
            false => host.lifecycle.restore(ids).await,
        }
    };
    let processes = tokio::spawn(acting(current_actor(), work)).await.map_err(broken)?;
    Ok(RestoreResult { processes })
}

/// Starts declared processes. Runs to the end even if the caller disconnects.
async fn up(
    host: Arc<Host>,
    request: DeclaredNames,
    passed: Option<Arc<PassedEnvironment>>,
    is_person: bool,
) -> Result<DeclaredResult, ErrorObject> {
    let work = async move {
        let environment = passed.as_ref().map(|passed| passed.given(is_person));
        host.lifecycle.up(&request.names, environment).await
    };
    declared_result(tokio::spawn(acting(current_actor(), work)).await.map_err(broken)?)
}

/// Stops declared processes; also runs to the end.
async fn down(host: Arc<Host>, request: DeclaredNames) -> Result<DeclaredResult, ErrorObject> {
    let work = async move { host.lifecycle.down(&request.names).await };
    declared_result(tokio::spawn(acting(current_actor(), work)).await.map_err(broken)?)
}

/// The longest wait for declared processes, as for a line of output.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// Waits until declared processes are ready or have failed.
async fn wait_until_ready(
    host: Arc<Host>,
    request: WaitUntilReadyRequest,
) -> Result<WaitUntilReadyResult, ErrorObject> {
    let timeout = Duration::try_from_secs_f64(request.timeout_seconds).map_err(|error| {
        ErrorObject::invalid_params(format!("`timeout_seconds` is invalid: {error}"))
    })?;
    let wait = host.lifecycle.wait_until_ready(&request.names, timeout.min(LONGEST_WAIT));
    let waited = tokio::select! {
        biased;
        waited = wait => waited,
        () = host.shutdown.cancelled() => {
            let error = ToolError::interrupted(host.end(), "not everything was ready so far");
            return Err(error.into_rpc());
        }
    };
    waited.map(|processes| WaitUntilReadyResult { processes }).map_err(up_error)
}

fn declared_result(
    done: Result<Vec<DeclaredOutcome>, UpError>,
) -> Result<DeclaredResult, ErrorObject> {
    done.map(|processes| DeclaredResult { processes }).map_err(up_error)
}

fn up_error(error: UpError) -> ErrorObject {
    let kind = match error {
        UpError::Unknown(_) => ErrorKind::NotFound,
        _ => ErrorKind::Unavailable,
    };
    ToolError::new(kind, error.to_string()).into_rpc()
}

/// Whether a process runs in a person's pane here; another project's server asks this.
async fn locate(host: Arc<Host>, request: PlaceParams) -> Result<PlaceResult, ErrorObject> {
    request.check()?;
    let origins = Origins::new(host.panes.clone(), &host.project);
    Ok(PlaceResult { person: origins.is_in_a_persons_pane(&request.line).await })
}

/// Lists the shared servers; a person may restart one.
async fn servers(
    host: Arc<Host>,
    request: ServersRequest,
    is_person: bool,
) -> Result<ServersResult, ErrorObject> {
    if let Some(name) = request.restart {
        for_a_person("restart a shared server", is_person)?;
        if !host.shared.restart(&name) {
            let message = format!("there is no shared server `{name}`");
            return Err(ToolError::new(ErrorKind::NotFound, message).into_rpc());
        }
    }
    Ok(ServersResult { servers: host.shared.status() })
}

/// Starts another project's server for a client in a pane. Only a person may set its limits.
async fn start_server(
    host: Arc<Host>,
    request: StartRequest,
    is_person: bool,
) -> Result<ServerEntry, ErrorObject> {
    let request = match is_person {
        true => request,
        false => StartRequest { message_bytes: None, log_bytes: None, ..request },
    };
    let starter = OtherProjectStarter {
        panes: host.panes.clone(),
        project: host.project.clone(),
        program: host.program.clone(),
    };
    let entry = starter.start(request).await;
    let entry = entry.map_err(|e| ToolError::new(ErrorKind::Unavailable, e).into_rpc())?;
    // The response of an older server: the client starts it itself.
    entry.ok_or_else(|| ErrorObject::method_not_found(StartServer::NAME))
}

/// Passes a hook's event on to the agent's activity.
async fn hook(
    host: Arc<Host>,
    event: HookEvent,
    agent: Option<ProcessId>,
) -> Result<Empty, ErrorObject> {
    let Some(id) = agent else {
        let message = "only an agent that patterm started has hooks";
        return Err(ToolError::new(ErrorKind::NotOwner, message).into_rpc());
    };
    host.agents.handle_hook(&id, &event.event, &event.data, event.at_ms);
    host.agents.activities.signals(&id).may_return(&event.event).await;
    Ok(Empty {})
}

/// Runs blocking work off the thread that serves all connections.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorObject> {
    let actor = current_actor();
    tokio::task::spawn_blocking(move || in_scope(actor, work)).await.map_err(broken)
}

fn broken(error: tokio::task::JoinError) -> ErrorObject {
    ErrorObject::new(INTERNAL_ERROR, error.to_string())
}

/// Collects the responses of a batch, up to the size limit of clients.
async fn gather<W>(mut works: FuturesUnordered<W>, answers: &mut Vec<Vec<u8>>, limit: usize)
where
    W: Future<Output = Option<(Id, Vec<u8>)>>,
{
    let mut bytes: usize = answers.iter().map(Vec::len).sum();
    while let Some(answer) = works.next().await {
        let Some((id, mut body)) = answer else { continue };
        if bytes + body.len() > limit {
            let message = format!(
                "the responses of this batch have more than {limit} bytes together; send this \
                 request by itself"
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
    serde_json::to_string(value).map_err(|e| {
        ErrorObject::new(INTERNAL_ERROR, format!("failed to serialize the result: {e}"))
    })
}

/// The id in rmcp's form; rmcp only uses it to label its notices.
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
