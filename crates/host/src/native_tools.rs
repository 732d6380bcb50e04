//! patterm's own tools for HTTP clients. The HTTP endpoint runs on the gateway's thread, and
//! the tools on the server's thread: calls are passed on, and notices and responses come back
//! in order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use patterm_events::EventLog;
use patterm_gateway::http::{self, McpPeer, PendingResponse, Principal};
use patterm_gateway::{GatewayError, GatewayErrorKind, Notification};
use patterm_wire::error::INVALID_REQUEST;
use patterm_wire::events::EventQuery;
use patterm_wire::{ErrorObject, Id, Incoming, Message, reply};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::caller::Caller;
use crate::caller_origin;
use crate::host::Host;
use crate::socket::Dispatch;
use crate::tools::Registry;
use patterm_store::limits::NOTICES;
use patterm_store::sync::lock;

/// Notifications that may wait for a client; further ones are dropped.
const NOTIFICATIONS: usize = 64;

/// Marks a response in the channel of notices, which it shares so that it cannot overtake one.
/// No JSON begins with this byte.
const RESPONSE_MARK: u8 = 0;

/// The tools, for the clients of all tokens.
pub(crate) struct NativeTools {
    host: Weak<Host>,
    tools: Arc<Registry>,
    /// The runtime on which tools run.
    control: Handle,
    /// Calls in flight, by token.
    in_flight: Mutex<HashMap<String, Arc<AtomicUsize>>>,
}

impl NativeTools {
    pub(crate) fn new(host: Weak<Host>, tools: Arc<Registry>, control: Handle) -> Self {
        Self { host, tools, control, in_flight: Mutex::default() }
    }
}

impl http::NativeTools for NativeTools {
    fn events(&self, since: Option<u64>) -> Option<Box<dyn http::EventFeed>> {
        let host = self.host.upgrade()?;
        let last = host.events.last();
        let next = since.unwrap_or(*last.borrow() + 1);
        let (events, end) = (host.events.clone(), host.shutdown.clone());
        Some(Box::new(HttpEvents { events, last, next, end }))
    }

    fn connect(
        &self,
        principal: &Principal,
    ) -> Result<(Arc<dyn McpPeer>, mpsc::Receiver<Notification>), GatewayError> {
        let host = self.host.upgrade();
        let host = host.ok_or_else(|| {
            GatewayError::new(GatewayErrorKind::Ended, "patterm is shutting down")
        })?;
        let (notices, incoming) = mpsc::channel(NOTICES);
        let (notifier, notifications) = mpsc::channel(NOTIFICATIONS);
        let end = CancellationToken::new();
        let open = Arc::<Mutex<Open>>::default();
        let caller = Caller::Token(principal.name.clone());
        let _on_control = self.control.enter();
        let dispatch = Dispatch::new(
            host.clone(),
            self.tools.clone(),
            caller,
            caller_origin::CallerOrigin::Elsewhere,
            notices.clone(),
        );
        self.control.spawn(route_notices(incoming, notifier, open.clone(), end.clone()));
        let in_flight = lock(&self.in_flight).entry(principal.name.clone()).or_default().clone();
        let peer = NativePeer {
            host,
            dispatch: Arc::new(dispatch),
            control: self.control.clone(),
            notices,
            open,
            in_flight,
            _end: end.drop_guard(),
        };
        Ok((Arc::new(peer), notifications))
    }
}

/// The events for an HTTP client.
struct HttpEvents {
    events: EventLog,
    last: watch::Receiver<u64>,
    /// The number of the next one.
    next: u64,
    end: CancellationToken,
}

impl http::EventFeed for HttpEvents {
    fn next(&mut self) -> http::PendingEvents<'_> {
        Box::pin(async move {
            let next = self.next;
            tokio::select! {
                () = self.end.cancelled() => return None,
                new = self.last.wait_for(|last| *last >= next) => drop(new.ok()?),
            }
            let query = EventQuery { since: Some(next), ..EventQuery::default() };
            let events = self.events.clone();
            let page = tokio::task::spawn_blocking(move || events.lines(&query)).await.ok()?;
            let page =
                page.inspect_err(|error| tracing::error!(%error, "cannot read events")).ok()?;
            self.next = page.next;
            let numbered = |json: String| {
                let event = serde_json::from_str::<Numbered>(&json).ok()?;
                Some((event.seq, json))
            };
            Some(page.events.into_iter().filter_map(numbered).collect())
        })
    }
}

/// The number of an event.
#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

/// One client.
struct NativePeer {
    host: Arc<Host>,
    dispatch: Arc<Dispatch>,
    control: Handle,
    notices: mpsc::Sender<Vec<u8>>,
    open: Arc<Mutex<Open>>,
    in_flight: Arc<AtomicUsize>,
    _end: DropGuard,
}

/// The calls in flight.
#[derive(Default)]
struct Open {
    next: u64,
    calls: HashMap<u64, Waiting>,
}

struct Waiting {
    id: Id,
    /// Its progress token, as the client wrote it.
    progress: Option<String>,
    cancel: CancellationToken,
    reply: oneshot::Sender<Vec<u8>>,
}

impl McpPeer for NativePeer {
    fn request<'a>(&'a self, id: &'a Id, method: &'a str, text: String) -> PendingResponse<'a> {
        Box::pin(async move {
            // The methods of verbs are not for HTTP clients.
            if method.starts_with("patterm/") {
                return Ok(reply::error(Some(id), &ErrorObject::method_not_found(method)));
            }
            if let Some(why) = patterm_gateway::ambiguity(&text) {
                return Ok(reply::error(Some(id), &ErrorObject::new(INVALID_REQUEST, why)));
            }
            let _permit = self.permit()?;
            let (reply, answer) = oneshot::channel();
            let cancel = CancellationToken::new();
            let waiting = Waiting {
                id: id.clone(),
                progress: progress_token(&text),
                cancel: cancel.clone(),
                reply,
            };
            let number = lock(&self.open).add(waiting);
            let _call = Call { open: &self.open, number };
            let work = Work {
                dispatch: self.dispatch.clone(),
                notices: self.notices.clone(),
                number,
                id: id.clone(),
                method: method.to_owned(),
                text,
                cancel: cancel.clone(),
            };
            self.control.spawn(work.run());
            answer.await.map_err(|_| match cancel.is_cancelled() {
                true => GatewayError::new(
                    GatewayErrorKind::Cancelled,
                    "the client cancelled this request",
                ),
                false => GatewayError::new(GatewayErrorKind::Ended, "patterm is shutting down"),
            })
        })
    }

    fn has_tool(&self, method: &str) -> bool {
        self.dispatch.has_tool(method)
    }

    fn notify(&self, message: &Message<'_>, _text: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let Message::Notification { method, params: Some(params) } = message else { return };
        if method != "notifications/cancelled" {
            return;
        }
        let cancelled = serde_json::from_str::<Cancelled<'_>>(params.get()).ok();
        let Some(id) = cancelled.and_then(|cancelled| Id::from_raw(cancelled.request_id)) else {
            return;
        };
        let mut open = lock(&self.open);
        let found = open.calls.iter().find(|(_, call)| call.id == id).map(|(number, _)| *number);
        // Dropping its reply ends the wait; by then it must be known why.
        if let Some(call) = found.and_then(|number| open.calls.remove(&number)) {
            call.cancel.cancel();
            drop(call);
        }
    }
}

impl NativePeer {
    /// Reserves one of the calls in flight of this token.
    fn permit(&self) -> Result<Permit, GatewayError> {
        let most = self.host.limits.calls_in_flight;
        let permit = Permit(self.in_flight.clone());
        if permit.0.fetch_add(1, Ordering::Relaxed) >= most {
            let message =
                format!("this token already has {most} calls in flight; wait for one to finish");
            return Err(GatewayError::new(GatewayErrorKind::Limit, message));
        }
        Ok(permit)
    }
}

struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A client that waits for a response; dropping it cancels the call.
struct Call<'a> {
    open: &'a Mutex<Open>,
    number: u64,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(call) = lock(self.open).calls.remove(&self.number) {
            call.cancel.cancel();
        }
    }
}

impl Open {
    fn add(&mut self, waiting: Waiting) -> u64 {
        self.next += 1;
        self.calls.insert(self.next, waiting);
        self.next
    }
}

/// A call on the server's thread.
struct Work {
    dispatch: Arc<Dispatch>,
    notices: mpsc::Sender<Vec<u8>>,
    number: u64,
    id: Id,
    method: String,
    text: String,
    cancel: CancellationToken,
}

impl Work {
    async fn run(self) {
        let work = match Incoming::parse(self.text.as_bytes()) {
            Ok(Incoming::One(Message::Request { params, .. })) => {
                self.dispatch.request(self.id, &self.method, params, self.cancel)
            }
            _ => return,
        };
        let Some(body) = work.await else { return };
        let mut marked = vec![RESPONSE_MARK];
        marked.extend_from_slice(&self.number.to_be_bytes());
        marked.extend_from_slice(&body);
        let _ = self.notices.send(marked).await;
    }
}

/// Routes notices and responses to their receivers, until the client disconnects.
async fn route_notices(
    mut incoming: mpsc::Receiver<Vec<u8>>,
    notifier: mpsc::Sender<Notification>,
    open: Arc<Mutex<Open>>,
    end: CancellationToken,
) {
    loop {
        let body = tokio::select! {
            Some(body) = incoming.recv() => body,
            () = end.cancelled() => return,
        };
        if let Some((number, answer)) = parse_response(&body) {
            if let Some(call) = lock(&open).calls.remove(&number) {
                let _ = call.reply.send(answer.to_vec());
            }
            continue;
        }
        let Ok(text) = String::from_utf8(body) else { continue };
        let request_id = request_of(&text, &lock(&open));
        let _ = notifier.try_send(Notification { request_id, text });
    }
}

fn parse_response(body: &[u8]) -> Option<(u64, &[u8])> {
    let rest = body.strip_prefix(&[RESPONSE_MARK])?;
    let (number, answer) = rest.split_at_checked(size_of::<u64>())?;
    Some((u64::from_be_bytes(number.try_into().ok()?), answer))
}

/// The request to which a notice belongs.
fn request_of(text: &str, open: &Open) -> Option<Id> {
    #[derive(Deserialize)]
    struct Notice<'a> {
        #[serde(borrow)]
        params: NoticeParams<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct NoticeParams<'a> {
        #[serde(borrow)]
        progress_token: &'a RawValue,
    }
    let notice: Notice<'_> = serde_json::from_str(text).ok()?;
    let token = notice.params.progress_token.get();
    let call = open.calls.values().find(|call| call.progress.as_deref() == Some(token))?;
    Some(call.id.clone())
}

fn progress_token(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Meta<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta<'a> {
        #[serde(borrow)]
        progress_token: &'a RawValue,
    }
    let request: Request<'_> = serde_json::from_str(text).ok()?;
    // Normalized, as the server writes it.
    let token: serde_json::Value =
        serde_json::from_str(request.params.meta.progress_token.get()).ok()?;
    Some(token.to_string())
}
