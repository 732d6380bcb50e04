//! How far a session is: which era its server is of, and the one handshake that serves all callers.

use patterm_wire::{Id, reply};

use super::era::{self, Era};
use super::{Ask, Output, Relay};
use crate::refusal::{Refusal, RefusalKind};

/// Which eras a server serves; `None` where nobody asked it yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Eras {
    pub(crate) modern: Option<bool>,
    pub(crate) legacy: Option<bool>,
}

/// What a server said of itself, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The result of `server/discover`.
    pub(crate) discover: Option<String>,
    /// The result of `initialize`.
    pub(crate) initialize: Option<String>,
}

/// What became of the question whether a server is of the stateless era.
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// It is not asked, whatever comes: it ended the server before.
    pub(super) forbidden: bool,
    /// It was asked in this session.
    asked: bool,
    /// It was not answered in time under this id; a server that was slow to start may yet.
    late: Option<u64>,
}

/// What the session waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was said.
    Silent,
    /// `server/discover` was asked under this id.
    Discovering(u64),
    /// `initialize` was asked under this id.
    Initializing(u64),
    /// It was answered; that it was understood is not written yet, though it may be on its way.
    Initialized { on_its_way: bool },
    /// Whoever is of an era that is known to be served is served.
    Ready,
    /// It is over.
    Closed,
}

/// What a request has to wait for, if for anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    Discover,
    Initialize,
}

impl<R> Relay<R> {
    /// The question of the handshake that the server has not answered, and whether it is the probe:
    /// a server that knows no such request may say nothing at all.
    pub(crate) fn greeting(&self) -> Option<(u64, bool)> {
        match self.stage {
            Stage::Discovering(own) => Some((own, true)),
            Stage::Initializing(own) => Some((own, false)),
            _ => None,
        }
    }

    /// The server has had its time to answer the probe: it is of the older era.
    pub(crate) fn probe_is_over(&mut self, own: u64) {
        if self.stage == Stage::Discovering(own) {
            self.probe.late = Some(own);
            self.discovered(None);
        }
    }

    /// The server is not probed: that ended it before.
    pub(crate) fn forbid_probe(&mut self) {
        self.probe.forbidden = true;
        self.eras.modern = Some(false);
    }

    /// Whether it was seen in this session, or in the one before, what the server makes of the probe.
    pub(crate) fn was_probed(&self) -> bool {
        self.probe.asked || self.probe.forbidden
    }

    /// Whether the server was probed and has answered no handshake: if it ends now, then of that.
    pub(crate) fn dies_of_probe(&self) -> bool {
        self.probe.asked && self.hello == Hello::default() && self.stage != Stage::Closed
    }

    /// The version that the server says it has; `None` before it was greeted.
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

    /// How writing `notifications/initialized` went: if it failed, only that is repeated.
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
            // A caller with a server of its own is met with its own handshake.
            (Era::Legacy, None, None | Some(true)) if self.terms.exclusive && !greeted => {
                Need::Initialize
            }
            (Era::Legacy, None, Some(true)) if greeted => Need::Nothing,
            (_, None, _) => Need::Discover,
            (Era::Modern, Some(true), _) if self.hello.discover.is_some() => Need::Nothing,
            (Era::Modern, Some(true), _) => Need::Discover,
            // A server that has both gets a handshake once somebody needs one.
            (Era::Legacy, _, Some(false)) if self.hello.discover.is_some() => Need::Nothing,
            (Era::Legacy, _, Some(false)) => Need::Discover,
            _ if greeted => Need::Nothing,
            _ => Need::Initialize,
        }
    }

    /// Does what somebody needs, if it is not being done already. `ask` is who needs it.
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
        // A caller with a server of its own is known to it by its own words.
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

    /// Takes an answer that belongs to the handshake; returns whether it did.
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

    /// The answer to the probe comes after the handshake of the older era was begun: it has both.
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
        self.settle("it answers neither `initialize` nor `server/discover` as it should");
    }

    fn not_greeted(&mut self, error: &str) {
        self.stage = Stage::Ready;
        self.eras.legacy = Some(false);
        self.settle(error);
    }

    /// Goes on with who waits, unless the server is of no era at all.
    fn settle(&mut self, why: &str) {
        if self.eras != (Eras { modern: Some(false), legacy: Some(false) }) {
            if self.eras.legacy == Some(false) && self.hello.discover.is_some() {
                self.listen_for_all();
            }
            return self.flush();
        }
        if !self.probe.asked && !self.probe.forbidden {
            // An earlier one was of the older era; this one is another.
            self.eras.modern = None;
            return self.flush();
        }
        // The next call tries again.
        self.eras = Eras::default();
        let message = format!("the server refuses the handshake: {why}");
        self.fail_waiting(&Refusal::new(RefusalKind::Unavailable, message));
    }

    /// Callers of the older era hear of changed lists without asking for it; a stateless server wants
    /// to be asked.
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

    /// A handshake was not answered in time. Returns whether the server is of no use: it is asked for
    /// one only once, and a second one in the same life it would refuse.
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

    /// Lets go on who waited, as far as that is possible now.
    fn flush(&mut self) {
        for ask in std::mem::take(&mut self.waiting) {
            self.proceed(ask);
        }
    }
}
