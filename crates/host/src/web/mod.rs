//! The HTTP endpoint of a project: whether it is open and where, who may come in, and what is noted of
//! their calls.

mod audit;
mod settings;
mod tokens;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use patterm_gateway::Gateway;
use patterm_gateway::http::{self, Authenticator, HttpConfig, NativeTools};
use patterm_wire::requests::{HttpFlags, TokenRequest, TokenResult};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::shared::Shared;
use audit::{Audit, Noting};
use patterm_store::state::{self, StateDir, StateError};
pub use settings::{HttpLimits, HttpSettings};
pub use tokens::TokenError;
use tokens::Tokens;

/// What the flags asked for: kept for the server that follows one that died or was replaced.
const FILE: &str = "http.json";
const VERSION: u32 = 1;

/// Why the endpoint is not open.
#[derive(Debug, Error)]
pub enum WebError {
    /// Others than this machine could reach it.
    #[error(
        "{0} can be reached from other machines; if that is meant, add --allow-remote, or \
         allow_remote = true to [http]"
    )]
    Remote(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// What was asked for could not be kept.
    #[error(transparent)]
    State(#[from] StateError),
}

/// The endpoint.
#[derive(Debug)]
pub(crate) struct Web {
    tokens: Arc<Tokens>,
    audit: Arc<Audit>,
    file: PathBuf,
    endpoint: Mutex<Endpoint>,
    address: watch::Sender<Option<SocketAddr>>,
}

#[derive(Debug, Default)]
struct Endpoint {
    flags: Option<HttpFlags>,
    settings: HttpSettings,
    open: Option<Listener>,
    context: Option<HttpContext>,
}

/// The open endpoint.
#[derive(Debug)]
struct Listener {
    settings: HttpSettings,
    listener: TcpListener,
    address: SocketAddr,
    end: CancellationToken,
}

/// What is behind it.
#[derive(Clone)]
pub(crate) struct HttpContext {
    /// Patterm's own tools.
    pub(crate) own: Arc<dyn NativeTools>,
    /// Has bots' containers.
    pub(crate) shared: Weak<Shared>,
    /// Where the endpoint and the shared servers run.
    pub(crate) runtime: Handle,
    pub(crate) gateway: Gateway,
}

impl std::fmt::Debug for HttpContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hall")
    }
}

impl Web {
    /// Reads who may come in.
    pub(crate) fn load(state: &StateDir) -> Result<Self, StateError> {
        Ok(Self {
            tokens: Arc::new(Tokens::load(state)?),
            audit: Arc::new(Audit::new(state)),
            file: state.file(FILE),
            endpoint: Mutex::default(),
            address: watch::Sender::new(None),
        })
    }

    /// Creates, lists or revokes tokens.
    pub(crate) fn token(&self, request: TokenRequest) -> Result<TokenResult, TokenError> {
        let mut result = TokenResult::default();
        match request {
            TokenRequest::New(grant) => result.token = Some(self.tokens.add(grant)?),
            TokenRequest::List => result.tokens = Some(self.tokens.list()),
            TokenRequest::Revoke(name) => self.tokens.revoke(&name)?,
        }
        Ok(result)
    }

    /// Whether the token of this name is good still.
    pub(crate) fn knows(&self, token: &str) -> bool {
        self.tokens.is_valid(token)
    }

    /// Notes a call of a shared tool that came by a connection of our own.
    pub(crate) fn noting(&self, who: &str, server: &str, tool: &str, params: &str) -> Noting {
        Noting::begin(&self.audit, who, server, tool, params)
    }

    /// Where the endpoint is, and changes of it.
    pub(crate) fn address(&self) -> watch::Receiver<Option<SocketAddr>> {
        self.address.subscribe()
    }

    /// Opens the endpoint as flags ask, or, without any, as those of a server that died did. What a person
    /// asks for now must be had; what was asked for then is tried.
    pub(crate) fn open_as_asked(&self, flags: Option<HttpFlags>) -> Result<(), WebError> {
        if let Some(flags) = flags {
            return self.set_flags(flags).map(drop);
        }
        let Some(kept) = state::read::<HttpFlags>(&self.file, VERSION)? else { return Ok(()) };
        if let Err(error) = self.set_flags(kept) {
            tracing::error!(%error, "the HTTP endpoint stays closed");
        }
        Ok(())
    }

    /// Opens the endpoint as flags ask; the address it has then.
    pub(crate) fn set_flags(&self, flags: HttpFlags) -> Result<SocketAddr, WebError> {
        let mut endpoint = self.endpoint();
        let before = endpoint.flags.replace(flags.clone());
        match self.apply(&mut endpoint) {
            Ok(Some(address)) => {
                // With the port that it got, where it asked for any.
                let flags = HttpFlags { listen: address, ..flags };
                state::write(&self.file, VERSION, &flags)?;
                if let (Some(open), listen) = (&mut endpoint.open, flags.listen) {
                    open.settings.listen = Some(listen);
                }
                endpoint.flags = Some(flags);
                Ok(address)
            }
            Ok(None) => Ok(SocketAddr::from(([127, 0, 0, 1], 0))),
            Err(error) => {
                endpoint.flags = before;
                Err(error)
            }
        }
    }

    /// Opens, moves or closes the endpoint as settings say now, unless flags say where it is. What cannot
    /// be is logged: the server serves all the same.
    pub(crate) fn configure(&self, settings: HttpSettings) {
        let mut endpoint = self.endpoint();
        endpoint.settings = settings;
        if let Err(error) = self.apply(&mut endpoint) {
            tracing::error!(%error, "the HTTP endpoint is not as its settings say");
        }
    }

    /// Begins to serve behind the endpoint, now and whenever it is opened.
    pub(crate) fn begin(&self, context: HttpContext) {
        let mut endpoint = self.endpoint();
        endpoint.context = Some(context.clone());
        if let Some(open) = &endpoint.open {
            self.serve(open, &context);
        }
    }

    /// Closes the endpoint. Where the server ends for good, so does what its flags asked for.
    pub(crate) fn end(&self, for_good: bool) {
        let mut endpoint = self.endpoint();
        if let Some(open) = endpoint.open.take() {
            open.end.cancel();
        }
        endpoint.context = None;
        if for_good {
            let _ = std::fs::remove_file(&self.file);
        }
    }

    /// Writes what waits for the audit log.
    pub(crate) fn finish_audit(&self) {
        self.audit.finish();
    }

    fn apply(&self, endpoint: &mut Endpoint) -> Result<Option<SocketAddr>, WebError> {
        let settings = endpoint.settings.with(endpoint.flags.as_ref());
        self.audit.keep_arguments(settings.audit_arguments);
        let Some(listen) = settings.listen else {
            if let Some(open) = endpoint.open.take() {
                open.end.cancel();
            }
            self.address.send_replace(None);
            return Ok(None);
        };
        if let Some(open) = endpoint.open.as_ref().filter(|open| open.settings == settings) {
            return Ok(Some(open.address));
        }
        if !listen.ip().is_loopback() && !settings.allow_remote {
            return Err(WebError::Remote(listen));
        }
        let failed = |source| WebError::Listen { address: listen, source };
        let listener = match &endpoint.open {
            // The same address under other rules.
            Some(open) if open.address == listen => open.listener.try_clone(),
            _ => TcpListener::bind(listen),
        };
        let listener = listener.map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let open = Listener { settings, listener, address, end: CancellationToken::new() };
        if let Some(context) = &endpoint.context {
            self.serve(&open, context);
        }
        if let Some(before) = endpoint.open.replace(open) {
            before.end.cancel();
        }
        tracing::info!(%address, "the HTTP endpoint is open");
        self.address.send_replace(Some(address));
        Ok(Some(address))
    }

    fn serve(&self, open: &Listener, context: &HttpContext) {
        let doors = HttpConfig {
            gateway: context.gateway.clone(),
            native_tools: context.own.clone(),
            authenticator: self.tokens.clone(),
            audit: Some(self.audit.clone()),
            limits: open.settings.limits.in_effect(),
            hosts: open.settings.hosts_at(open.address),
            origins: open.settings.origins.clone(),
            bots: context.shared.upgrade().and_then(|shared| shared.bots()),
        };
        let (listener, end) = (open.listener.try_clone(), open.end.clone());
        context.runtime.spawn(async move {
            match listener.and_then(tokio::net::TcpListener::from_std) {
                Ok(listener) => http::serve(listener, doors, end).await,
                Err(error) => tracing::error!(%error, "the HTTP endpoint cannot be served"),
            }
        });
    }

    fn endpoint(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
