//! The state of the handshake: which eras the server supports, and the one handshake that serves
//! all clients.

use patterm_wire::reply;

use super::era::{self, Era};
use super::{ClientRequest, Output, Relay, UpstreamId};
use crate::error::{GatewayError, GatewayErrorKind};

/// Which eras a server supports; `None` if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Eras {
    pub(crate) modern: Option<bool>,
    pub(crate) legacy: Option<bool>,
}

/// The results of the handshake, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerHello {
    /// The result of `server/discover`.
    pub(crate) discover: Option<String>,
    /// The result of `initialize`.
    pub(crate) initialize: Option<String>,
}

/// The probe: whether the server supports the stateless era.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// It is not sent: it ended the server before.
    pub(super) skipped: bool,
    /// It was sent in this session.
    sent: bool,
    /// It timed out under this id; a server that starts slowly may still answer.
    late: Option<UpstreamId>,
}

/// What the session waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HandshakeState {
    /// Nothing was sent.
    Silent,
    /// `server/discover` was sent under this id.
    Discovering(UpstreamId),
    /// `initialize` was sent under this id.
    Initializing(UpstreamId),
    /// It was answered; `notifications/initialized` is not written yet, though it may be queued.
    Initialized { queued: bool },
    /// Clients of every supported era are served.
    Ready,
    /// The session ended.
    Closed,
}

/// What a request must wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    Discover,
    Initialize,
}

impl<R> Relay<R> {
    /// The pending handshake request, and whether it is the probe: a server that does not know the
    /// probe may not answer it.
    pub(crate) fn pending_handshake(&self) -> Option<(UpstreamId, bool)> {
        match self.handshake {
            HandshakeState::Discovering(upstream) => Some((upstream, true)),
            HandshakeState::Initializing(upstream) => Some((upstream, false)),
            _ => None,
        }
    }

    /// The probe timed out: the server is treated as one of the older era.
    pub(crate) fn probe_timed_out(&mut self, upstream: UpstreamId) {
        if self.handshake == HandshakeState::Discovering(upstream) {
            self.probe.late = Some(upstream);
            self.discovered(None);
        }
    }

    /// Skips the probe: it ended the server before.
    pub(crate) fn skip_probe(&mut self) {
        self.probe.skipped = true;
        self.eras.modern = Some(false);
    }

    /// Whether the outcome of the probe is known from this session or the previous one.
    pub(crate) fn was_probed(&self) -> bool {
        self.probe.sent || self.probe.skipped
    }

    /// Whether the server was probed and has answered no handshake: if it exits now, the probe is
    /// the likely cause.
    pub(crate) fn may_end_by_probe(&self) -> bool {
        self.probe.sent
            && self.hello == ServerHello::default()
            && self.handshake != HandshakeState::Closed
    }

    /// The version that the server reports; `None` before the handshake.
    pub(crate) fn version(&self) -> Option<String> {
        let info = match (&self.hello.initialize, &self.hello.discover) {
            (Some(initialize), _) => crate::raw::member(initialize, "serverInfo"),
            (None, discover) => discover.as_deref().and_then(era::server_info),
        };
        serde_json::from_str(crate::raw::member(info?, "version")?).ok()
    }

    /// Whether the server has answered a handshake.
    pub(crate) fn is_handshake_done(&self) -> bool {
        self.hello != ServerHello::default()
    }

    /// Reports whether `notifications/initialized` was written; if not, only that is repeated.
    pub(crate) fn initialized_written(&mut self, well: bool) {
        if !matches!(self.handshake, HandshakeState::Initialized { .. }) {
            return;
        }
        if well {
            self.handshake = HandshakeState::Ready;
            self.restore_subscriptions();
            self.serve_waiting();
        } else {
            self.handshake = HandshakeState::Initialized { queued: false };
        }
    }

    pub(super) fn need(&self, era: Era) -> Need {
        let is_initialized = self.hello.initialize.is_some();
        match (era, self.eras.modern, self.eras.legacy) {
            // The only client of a server does its own handshake.
            (Era::Legacy, None, None | Some(true)) if self.config.exclusive && !is_initialized => {
                Need::Initialize
            }
            (Era::Legacy, None, Some(true)) if is_initialized => Need::Nothing,
            (_, None, _) => Need::Discover,
            (Era::Modern, Some(true), _) if self.hello.discover.is_some() => Need::Nothing,
            (Era::Modern, Some(true), _) => Need::Discover,
            // A server that supports both gets a handshake once a client needs one.
            (Era::Legacy, _, Some(false)) if self.hello.discover.is_some() => Need::Nothing,
            (Era::Legacy, _, Some(false)) => Need::Discover,
            _ if is_initialized => Need::Nothing,
            _ => Need::Initialize,
        }
    }

    /// Starts what a request needs, unless it is in progress already.
    pub(super) fn advance(&mut self, need: Need, request: Option<&ClientRequest<R>>) {
        match (&self.handshake, need) {
            (HandshakeState::Initialized { queued: false }, _) => self.write_initialized(),
            (HandshakeState::Silent | HandshakeState::Ready, Need::Discover) => self.discover(),
            (HandshakeState::Silent | HandshakeState::Ready, Need::Initialize) => {
                self.initialize(request)
            }
            _ => {}
        }
    }

    fn discover(&mut self) {
        let upstream = self.next_upstream_id();
        self.probe.sent = true;
        self.handshake = HandshakeState::Discovering(upstream);
        let params = format!("{{\"_meta\":{{{}}}}}", era::stateless_meta(None));
        let id = upstream.to_id();
        self.write_bytes(reply::request(&id, "server/discover", Some(&params)));
    }

    fn initialize(&mut self, request: Option<&ClientRequest<R>>) {
        let upstream = self.next_upstream_id();
        self.handshake = HandshakeState::Initializing(upstream);
        let id = upstream.to_id();
        // The server learns the capabilities of its only client.
        let theirs =
            request.filter(|request| self.config.exclusive && request.method == "initialize");
        let theirs = theirs.and_then(|request| crate::raw::member(&request.text, "params"));
        let ours = || {
            format!(
                "{{\"protocolVersion\":\"{}\",\"capabilities\":{{\"roots\":{{}}}},\
                 \"clientInfo\":{}}}",
                era::LEGACY,
                era::client_info()
            )
        };
        let params = theirs.map_or_else(ours, str::to_owned);
        self.write_bytes(reply::request(&id, "initialize", Some(&params)));
    }

    fn write_initialized(&mut self) {
        self.handshake = HandshakeState::Initialized { queued: true };
        let text = reply::notification("notifications/initialized", None);
        let text = String::from_utf8_lossy(&text).into_owned();
        self.out.push(Output::WriteInitialized(text));
    }

    /// Handles a response of the handshake; returns whether it was one.
    pub(super) fn receive_handshake(
        &mut self,
        upstream: UpstreamId,
        outcome: Result<&str, &str>,
    ) -> bool {
        match self.handshake {
            HandshakeState::Discovering(id) if id == upstream => self.discovered(outcome.ok()),
            HandshakeState::Initializing(id) if id == upstream => match outcome {
                Ok(result) => {
                    self.hello.initialize = Some(result.to_owned());
                    self.eras.legacy = Some(true);
                    self.write_initialized();
                }
                Err(error) => self.initialize_failed(error),
            },
            _ if self.probe.late == Some(upstream) => {
                self.probe.late = None;
                self.discovered_late(outcome.ok());
            }
            _ => return false,
        }
        true
    }

    /// The probe was answered after the older handshake was sent: the server supports both.
    fn discovered_late(&mut self, result: Option<&str>) {
        if let Some(result) = result.filter(|result| era::is_modern(result)) {
            self.eras.modern = Some(true);
            self.hello.discover = Some(result.to_owned());
        }
    }

    fn discovered(&mut self, result: Option<&str>) {
        let modern = result.is_some_and(era::is_modern);
        self.eras.modern = Some(modern);
        self.handshake = HandshakeState::Ready;
        if modern {
            self.hello.discover = result.map(str::to_owned);
        }
        self.continue_or_fail("it does not answer `initialize` or `server/discover` correctly");
    }

    fn initialize_failed(&mut self, error: &str) {
        self.handshake = HandshakeState::Ready;
        self.eras.legacy = Some(false);
        self.continue_or_fail(error);
    }

    /// Continues with the queued requests, unless the server supports neither era.
    fn continue_or_fail(&mut self, why: &str) {
        if self.eras != (Eras { modern: Some(false), legacy: Some(false) }) {
            if self.eras.legacy == Some(false) && self.hello.discover.is_some() {
                self.subscribe_for_all();
            }
            return self.serve_waiting();
        }
        if !self.probe.sent && !self.probe.skipped {
            // An earlier server at this name was of the older era; this one is not.
            self.eras.modern = None;
            return self.serve_waiting();
        }
        // The next call tries again.
        self.eras = Eras::default();
        let message = format!("the handshake failed: {why}");
        self.fail_waiting(&GatewayError::new(GatewayErrorKind::Unavailable, message));
    }

    /// Clients of the older era get notifications about changed lists without asking; a stateless
    /// server must be asked.
    fn subscribe_for_all(&mut self) {
        if self.own_subscription.is_some() {
            return;
        }
        let upstream = self.next_upstream_id();
        self.own_subscription = Some(upstream);
        let lists = "\"toolsListChanged\":true,\"promptsListChanged\":true,\
                     \"resourcesListChanged\":true";
        let meta = era::stateless_meta(None);
        let params = format!("{{\"notifications\":{{{lists}}},\"_meta\":{{{meta}}}}}");
        let id = upstream.to_id();
        self.write_bytes(reply::request(&id, "subscriptions/listen", Some(&params)));
    }

    /// `initialize` timed out. Returns whether the server is unusable: it accepts `initialize` only
    /// once.
    pub(crate) fn initialize_timed_out(&mut self, upstream: UpstreamId) -> bool {
        if self.handshake != HandshakeState::Initializing(upstream) {
            return false;
        }
        if self.hello.discover.is_none() {
            return true;
        }
        self.initialize_failed("it does not answer `initialize`");
        false
    }

    fn fail_waiting(&mut self, error: &GatewayError) {
        let error = error.to_error_object();
        for request in std::mem::take(&mut self.waiting) {
            self.refuse(request, &error);
        }
    }

    /// Handles the queued requests, as far as possible now.
    fn serve_waiting(&mut self) {
        for request in std::mem::take(&mut self.waiting) {
            self.proceed(request);
        }
    }
}
