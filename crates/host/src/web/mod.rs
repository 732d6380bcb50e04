//! The HTTP endpoint of a project: its address, its tokens, and the audit log of its calls.

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
use audit::{Audit, CallAudit};
use patterm_store::clock::Clock;
use patterm_store::state::{self, StateDir, StateError};
pub use settings::{HttpLimits, HttpSettings};
use tokens::Tokens;
pub use tokens::{TokenError, check_token_name};

/// The flags in effect, kept for the next server if this one dies or is replaced.
const FILE: &str = "http.json";
const VERSION: u32 = 1;

/// Why the endpoint is not open.
#[derive(Debug, Error)]
pub enum WebError {
    /// Other machines could reach it.
    #[error(
        "{0} can be reached from other machines; to allow that, add --allow-remote, or \
         allow_remote = true to [http]"
    )]
    Remote(SocketAddr),
    /// The address is not available.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The flags could not be saved.
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

/// What the endpoint serves.
#[derive(Clone)]
pub(crate) struct HttpContext {
    /// patterm's own tools.
    pub(crate) own: Arc<dyn NativeTools>,
    /// Manages the containers of bots.
    pub(crate) shared: Weak<Shared>,
    /// The runtime of the endpoint and the shared servers.
    pub(crate) runtime: Handle,
    pub(crate) gateway: Gateway,
}

impl std::fmt::Debug for HttpContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpContext")
    }
}

impl Web {
    /// Loads the tokens.
    pub(crate) fn load(state: &StateDir, clock: Clock) -> Result<Self, StateError> {
        Ok(Self {
            tokens: Arc::new(Tokens::load(state, clock)?),
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

    /// Whether the token with this name is still valid.
    pub(crate) fn knows(&self, token: &str) -> bool {
        self.tokens.is_valid(token)
    }

    /// Records a call of a shared tool through an agent's connection.
    pub(crate) fn audit_call(
        &self,
        who: &str,
        server: &str,
        tool: &str,
        params: &str,
    ) -> CallAudit {
        CallAudit::begin(&self.audit, who, server, tool, params)
    }

    /// The address of the endpoint, for watching.
    pub(crate) fn address(&self) -> watch::Receiver<Option<SocketAddr>> {
        self.address.subscribe()
    }

    /// Opens the endpoint according to the flags, or else to those of the last server. An
    /// error with the person's own flags is returned; one with the saved flags is only
    /// logged.
    pub(crate) fn open_with_flags(&self, flags: Option<HttpFlags>) -> Result<(), WebError> {
        if let Some(flags) = flags {
            return self.set_flags(flags).map(drop);
        }
        let Some(kept) = state::read::<HttpFlags>(&self.file, VERSION)? else { return Ok(()) };
        if let Err(error) = self.set_flags(kept) {
            tracing::error!(%error, "cannot reopen the HTTP endpoint");
        }
        Ok(())
    }

    /// Opens the endpoint according to flags; returns its address.
    pub(crate) fn set_flags(&self, flags: HttpFlags) -> Result<SocketAddr, WebError> {
        let mut endpoint = self.endpoint();
        let before = endpoint.flags.replace(flags.clone());
        match self.apply(&mut endpoint) {
            Ok(Some(address)) => {
                // With the actual port, if the flags asked for any.
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

    /// Opens, moves or closes the endpoint according to the settings, unless flags set its
    /// address. Errors are only logged, because the server works without it.
    pub(crate) fn configure(&self, settings: HttpSettings) {
        let mut endpoint = self.endpoint();
        endpoint.settings = settings;
        if let Err(error) = self.apply(&mut endpoint) {
            tracing::error!(%error, "cannot apply the settings of the HTTP endpoint");
        }
    }

    /// Starts to serve the endpoint, now and whenever it is opened.
    pub(crate) fn begin(&self, context: HttpContext) {
        let mut endpoint = self.endpoint();
        endpoint.context = Some(context.clone());
        if let Some(open) = &endpoint.open {
            self.serve(open, &context);
        }
    }

    /// Closes the endpoint. If the server shuts down for good, forgets the flags, too.
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

    /// Writes the pending lines of the audit log.
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
            // The same address with other rules.
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
        let config = HttpConfig {
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
                Ok(listener) => http::serve(listener, config, end).await,
                Err(error) => tracing::error!(%error, "cannot serve the HTTP endpoint"),
            }
        });
    }

    fn endpoint(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
