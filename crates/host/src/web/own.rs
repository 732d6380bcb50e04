//! Patterm's own tools for HTTP clients. The door runs on the gateway's thread, and the tools on the
//! server's own: calls go over, and notices and answers come back in their order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use patterm_gateway::http::{Asked, Own, Principal, Talk};
use patterm_gateway::{Refusal, RefusalKind, Told};
use patterm_wire::error::INVALID_REQUEST;
use patterm_wire::{ErrorObject, Id, Incoming, Message, reply};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::caller::Caller;
use crate::host::Host;
use crate::socket::Dispatch;
use crate::standpoint;
use patterm_store::limits::NOTICES;
use patterm_store::sync::lock;

/// What a client may be behind with what it is told; more is lost to it alone.
const TOLD: usize = 64;

/// An answer goes the way of the notices, so that it cannot overtake one: no JSON begins like this.
const ANSWER_MARK: u8 = 0;

/// The tools, for every token.
pub(super) struct OwnTools {
    pub(super) host: Weak<Host>,
    /// Where tools run.
    pub(super) control: Handle,
    /// Calls in flight, by token.
    pub(super) in_flight: Mutex<HashMap<String, Arc<AtomicUsize>>>,
}

impl Own for OwnTools {
    fn talk(
        &self,
        principal: &Principal,
    ) -> Result<(Arc<dyn Talk>, mpsc::Receiver<Told>), Refusal> {
        let host = self.host.upgrade();
        let host = host.ok_or_else(|| Refusal::new(RefusalKind::Ended, "patterm ends"))?;
        let (notices, heard) = mpsc::channel(NOTICES);
        let (tell, told) = mpsc::channel(TOLD);
        let end = CancellationToken::new();
        let open = Arc::<Mutex<Open>>::default();
        let caller = Caller::Token(principal.name.clone());
        let _on_control = self.control.enter();
        let dispatch =
            Dispatch::new(host.clone(), caller, standpoint::Place::Elsewhere, notices.clone());
        self.control.spawn(hand_back(heard, tell, open.clone(), end.clone()));
        let in_flight = lock(&self.in_flight).entry(principal.name.clone()).or_default().clone();
        let talk = OwnTalk {
            host,
            dispatch: Arc::new(dispatch),
            control: self.control.clone(),
            notices,
            open,
            in_flight,
            _end: end.drop_guard(),
        };
        Ok((Arc::new(talk), told))
    }
}

/// One client.
struct OwnTalk {
    host: Arc<Host>,
    dispatch: Arc<Dispatch>,
    control: Handle,
    notices: mpsc::Sender<Vec<u8>>,
    open: Arc<Mutex<Open>>,
    in_flight: Arc<AtomicUsize>,
    _end: DropGuard,
}

/// What is on its way.
#[derive(Default)]
struct Open {
    next: u64,
    calls: HashMap<u64, Waiting>,
}

struct Waiting {
    id: Id,
    /// The token of its progress, as it stood.
    progress: Option<String>,
    cancel: CancellationToken,
    reply: oneshot::Sender<Vec<u8>>,
}

impl Talk for OwnTalk {
    fn ask<'a>(&'a self, id: &'a Id, method: &'a str, text: String) -> Asked<'a> {
        Box::pin(async move {
            // What verbs ask of a server is not for those outside.
            if method.starts_with("patterm/") {
                return Ok(reply::error(Some(id), &ErrorObject::method_not_found(method)));
            }
            if let Some(why) = patterm_gateway::ambiguity(&text) {
                return Ok(reply::error(Some(id), &ErrorObject::new(INVALID_REQUEST, why)));
            }
            let _place = self.place()?;
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
                cancel,
            };
            self.control.spawn(work.run());
            answer.await.map_err(|_| {
                Refusal::new(RefusalKind::Ended, "it was cancelled, or patterm ended meanwhile")
            })
        })
    }

    fn has_tool(&self, method: &str) -> bool {
        self.dispatch.has_tool(method)
    }

    fn tell(&self, message: &Message<'_>, _text: &str) {
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
        // Its reply goes with it, so that nobody waits.
        if let Some(call) = found.and_then(|number| open.calls.remove(&number)) {
            call.cancel.cancel();
        }
    }
}

impl OwnTalk {
    /// A place among the calls of this token.
    fn place(&self) -> Result<Place, Refusal> {
        let most = self.host.limits.calls_in_flight;
        let place = Place(self.in_flight.clone());
        if place.0.fetch_add(1, Ordering::Relaxed) >= most {
            let message = format!("{most} calls of this token wait for their answers already");
            return Err(Refusal::new(RefusalKind::Limit, message));
        }
        Ok(place)
    }
}

struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Somebody waits for an answer; when he does not any more, the work ends.
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

/// A call on the server's own thread.
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
        let mut marked = vec![ANSWER_MARK];
        marked.extend_from_slice(&self.number.to_be_bytes());
        marked.extend_from_slice(&body);
        let _ = self.notices.send(marked).await;
    }
}

/// Hands notices and answers to whom they belong, as long as the client is there.
async fn hand_back(
    mut heard: mpsc::Receiver<Vec<u8>>,
    tell: mpsc::Sender<Told>,
    open: Arc<Mutex<Open>>,
    end: CancellationToken,
) {
    loop {
        let body = tokio::select! {
            Some(body) = heard.recv() => body,
            () = end.cancelled() => return,
        };
        if let Some((number, answer)) = answered(&body) {
            if let Some(call) = lock(&open).calls.remove(&number) {
                let _ = call.reply.send(answer.to_vec());
            }
            continue;
        }
        let Ok(text) = String::from_utf8(body) else { continue };
        let about = about(&text, &lock(&open));
        let _ = tell.try_send(Told { about, text });
    }
}

fn answered(body: &[u8]) -> Option<(u64, &[u8])> {
    let rest = body.strip_prefix(&[ANSWER_MARK])?;
    let (number, answer) = rest.split_at_checked(size_of::<u64>())?;
    Some((u64::from_be_bytes(number.try_into().ok()?), answer))
}

/// The request that a notice belongs to.
fn about(text: &str, open: &Open) -> Option<Id> {
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
    // As the server writes it again.
    let token: serde_json::Value =
        serde_json::from_str(request.params.meta.progress_token.get()).ok()?;
    Some(token.to_string())
}
