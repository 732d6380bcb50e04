//! The state of the handshake: which eras the server supports, and the one handshake that serves
//! all clients.

use patterm_wire::{Id, reply};

use super::era::{self, Era};
use super::{Ask, Output, Relay};
use crate::refusal::{Refusal, RefusalKind};

/// Which eras a server supports; `None` if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Eras {
    pub(crate) modern: Option<bool>,
    pub(crate) legacy: Option<bool>,
}

/// The results of the handshake, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The result of `server/discover`.
    pub(crate) discover: Option<String>,
    /// The result of `initialize`.
    pub(crate) initialize: Option<String>,
}

/// The probe: whether the server supports the stateless era.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// It is not sent: it ended the server before.
    pub(super) forbidden: bool,
    /// It was sent in this session.
    asked: bool,
    /// It timed out under this id; a server that starts slowly may still answer.
    late: Option<u64>,
}

/// What the session waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was sent.
    Silent,
    /// `server/discover` was sent under this id.
    Discovering(u64),
    /// `initialize` was sent under this id.
    Initializing(u64),
    /// It was answered; `notifications/initialized` is not written yet, though it may be queued.
    Initialized { on_its_way: bool },
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
    pub(crate) fn greeting(&self) -> Option<(u64, bool)> {
        match self.stage {
            Stage::Discovering(own) => Some((own, true)),
            Stage::Initializing(own) => Some((own, false)),
            _ => None,
        }
    }

    /// The probe timed out: the server is treated as one of the older era.
    pub(crate) fn probe_is_over(&mut self, own: u64) {
        if self.stage == Stage::Discovering(own) {
            self.probe.late = Some(own);
            self.discovered(None);
        }
    }

    /// Skips the probe: it ended the server before.
    pub(crate) fn forbid_probe(&mut self) {
        self.probe.forbidden = true;
        self.eras.modern = Some(false);
    }

    /// Whether the outcome of the probe is known from this session or the previous one.
    pub(crate) fn was_probed(&self) -> bool {
        self.probe.asked || self.probe.forbidden
    }

    /// Whether the server was probed and has answered no handshake: if it exits now, the probe is
    /// the likely cause.
    pub(crate) fn dies_of_probe(&self) -> bool {
        self.probe.asked && self.hello == Hello::default() && self.stage != Stage::Closed
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
    pub(crate) fn is_greeted(&self) -> bool {
        self.hello != Hello::default()
    }

    /// Reports whether `notifications/initialized` was written; if not, only that is repeated.
    pub(crate) fn initialized_written(&mut self, well: bool) {
        if !matches!(self.stage, Stage::Initialized { .. }) {
            return;
        }
        if well {
            self.stage = Stage::Ready;
            self.flush();
        } else {
            self.stage = Stage::Initialized { on_its_way: false };
        }
    }

    pub(super) fn need(&self, era: Era) -> Need {
        let greeted = self.hello.initialize.is_some();
        match (era, self.eras.modern, self.eras.legacy) {
            // The only client of a server does its own handshake.
            (Era::Legacy, None, None | Some(true)) if self.terms.exclusive && !greeted => {
                Need::Initialize
            }
            (Era::Legacy, None, Some(true)) if greeted => Need::Nothing,
            (_, None, _) => Need::Discover,
            (Era::Modern, Some(true), _) if self.hello.discover.is_some() => Need::Nothing,
            (Era::Modern, Some(true), _) => Need::Discover,
            // A server that supports both gets a handshake once a client needs one.
            (Era::Legacy, _, Some(false)) if self.hello.discover.is_some() => Need::Nothing,
            (Era::Legacy, _, Some(false)) => Need::Discover,
            _ if greeted => Need::Nothing,
            _ => Need::Initialize,
        }
    }

    /// Starts what a request needs, unless it is in progress already.
    pub(super) fn advance(&mut self, need: Need, ask: Option<&Ask<R>>) {
        match (&self.stage, need) {
            (Stage::Initialized { on_its_way: false }, _) => self.write_initialized(),
            (Stage::Silent | Stage::Ready, Need::Discover) => self.discover(),
            (Stage::Silent | Stage::Ready, Need::Initialize) => self.initialize(ask),
            _ => {}
        }
    }

    fn discover(&mut self) {
        let own = self.own_id();
        self.probe.asked = true;
        self.stage = Stage::Discovering(own);
        let params = format!("{{\"_meta\":{{{}}}}}", era::stateless_meta(None));
        let id = Id::from_number(own);
        self.write_bytes(reply::request(&id, "server/discover", Some(&params)));
    }

    fn initialize(&mut self, ask: Option<&Ask<R>>) {
        let own = self.own_id();
        self.stage = Stage::Initializing(own);
        let id = Id::from_number(own);
        // The server learns the capabilities of its only client.
        let theirs = ask.filter(|ask| self.terms.exclusive && ask.method == "initialize");
        let theirs = theirs.and_then(|ask| crate::raw::member(&ask.text, "params"));
        let ours = || {
            format!(
                "{{\"protocolVersion\":\"{}\",\"capabilities\":{{\"roots\":{{}}}},\
                 \"clientInfo\":{}}}",
                era::LEGACY,
                era::own_info()
            )
        };
        let params = theirs.map_or_else(ours, str::to_owned);
        self.write_bytes(reply::request(&id, "initialize", Some(&params)));
    }

    fn write_initialized(&mut self) {
        self.stage = Stage::Initialized { on_its_way: true };
        let text = reply::notification("notifications/initialized", None);
        let text = String::from_utf8_lossy(&text).into_owned();
        self.out.push(Output::WriteInitialized(text));
    }

    /// Handles a response of the handshake; returns whether it was one.
    pub(super) fn greeted(&mut self, own: u64, outcome: Result<&str, &str>) -> bool {
        match self.stage {
            Stage::Discovering(id) if id == own => self.discovered(outcome.ok()),
            Stage::Initializing(id) if id == own => match outcome {
                Ok(result) => {
                    self.hello.initialize = Some(result.to_owned());
                    self.eras.legacy = Some(true);
                    self.write_initialized();
                }
                Err(error) => self.not_greeted(error),
            },
            _ if self.probe.late == Some(own) => {
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
        self.stage = Stage::Ready;
        if modern {
            self.hello.discover = result.map(str::to_owned);
        }
        self.settle("it does not answer `initialize` or `server/discover` correctly");
    }

    fn not_greeted(&mut self, error: &str) {
        self.stage = Stage::Ready;
        self.eras.legacy = Some(false);
        self.settle(error);
    }

    /// Continues with the queued requests, unless the server supports neither era.
    fn settle(&mut self, why: &str) {
        if self.eras != (Eras { modern: Some(false), legacy: Some(false) }) {
            if self.eras.legacy == Some(false) && self.hello.discover.is_some() {
                self.listen_for_all();
            }
            return self.flush();
        }
        if !self.probe.asked && !self.probe.forbidden {
            // An earlier server at this name was of the older era; this one is not.
            self.eras.modern = None;
            return self.flush();
        }
        // The next call tries again.
        self.eras = Eras::default();
        let message = format!("the handshake failed: {why}");
        self.fail_waiting(&Refusal::new(RefusalKind::Unavailable, message));
    }

    /// Clients of the older era get notifications about changed lists without asking; a stateless
    /// server must be asked.
    fn listen_for_all(&mut self) {
        if self.own_listening.is_some() {
            return;
        }
        let own = self.own_id();
        self.own_listening = Some(own);
        let lists = "\"toolsListChanged\":true,\"promptsListChanged\":true,\
                     \"resourcesListChanged\":true";
        let meta = era::stateless_meta(None);
        let params = format!("{{\"notifications\":{{{lists}}},\"_meta\":{{{meta}}}}}");
        let id = Id::from_number(own);
        self.write_bytes(reply::request(&id, "subscriptions/listen", Some(&params)));
    }

    /// `initialize` timed out. Returns whether the server is unusable: it accepts `initialize` only
    /// once.
    pub(crate) fn greeting_is_late(&mut self, own: u64) -> bool {
        if self.stage != Stage::Initializing(own) {
            return false;
        }
        if self.hello.discover.is_none() {
            return true;
        }
        self.not_greeted("it does not answer `initialize`");
        false
    }

    fn fail_waiting(&mut self, refusal: &Refusal) {
        let error = refusal.to_error();
        for ask in std::mem::take(&mut self.waiting) {
            self.refuse(ask, &error);
        }
    }

    /// Handles the queued requests, as far as possible now.
    fn flush(&mut self) {
        for ask in std::mem::take(&mut self.waiting) {
            self.proceed(ask);
        }
    }
}
