//! `patterm serve`: starts the server, in the background or in the foreground.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use patterm_host::enclosing_keeper::EnclosingKeeper;
use patterm_host::{Server, Settings, StartError, log};
use patterm_wire::requests::{HttpFlags, OpenHttp, ServerEntry};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::user_settings;
use crate::client::Client;
use crate::hung::{NoAnswer, SIGN_OF_LIFE_METHOD};
use crate::limits::{LogLimit, MessageLimit};
use crate::print::{print, print_json, printable_path, warn};
use crate::start::{self, StartReport};
use crate::systemd;

/// Sets any limit of the server by its name, for example `processes=50,waiters=10`.
const LIMITS_VARIABLE: &str = "PATTERM_LIMITS";

/// Start this project's server in the background
#[derive(Debug, Args)]
pub(crate) struct ServeVerb {
    /// Stay in the foreground and log to standard error
    #[arg(long)]
    foreground: bool,
    /// Print how to reach the server, as JSON
    #[arg(long, conflicts_with = "foreground")]
    json: bool,
    #[command(flatten)]
    http: Http,
    #[command(flatten)]
    limits: MessageLimit,
    #[command(flatten)]
    log: LogLimit,
    /// Detach from the terminal and report on standard output: how the background server is started
    #[arg(long, hide = true, conflicts_with_all = ["foreground", "json"])]
    detached: bool,
    /// Keep running even if nothing uses the server: how systemd's server is started
    #[arg(long, hide = true, requires = "detached")]
    stay: bool,
}

// No doc comment: clap would show it as the help of `serve`.
#[derive(Debug, Args)]
struct Http {
    /// Serve HTTP clients at this address, for example 127.0.0.1:7717; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Allow an address that other machines can reach
    #[arg(long, requires = "http")]
    allow_remote: bool,
    /// Additional host names that HTTP clients may use for this machine
    #[arg(long, value_name = "HOST", value_delimiter = ',', requires = "http")]
    http_hosts: Vec<String>,
    /// Origins whose pages may call it
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', requires = "http")]
    http_origins: Vec<String>,
}

impl Http {
    fn flags(&self) -> Option<HttpFlags> {
        Some(HttpFlags {
            listen: self.http?,
            allow_remote: self.allow_remote,
            hosts: self.http_hosts.clone(),
            origins: self.http_origins.clone(),
        })
    }

    /// The same flags for another process.
    fn arguments(&self) -> Vec<String> {
        let mut flags: Vec<_> = self.http.iter().map(|http| format!("--http={http}")).collect();
        flags.extend(self.allow_remote.then(|| "--allow-remote".to_owned()));
        flags.extend(self.http_hosts.iter().map(|host| format!("--http-hosts={host}")));
        flags.extend(self.http_origins.iter().map(|origin| format!("--http-origins={origin}")));
        flags
    }
}

impl ServeVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run(&self)
    }
}

fn run(options: &ServeVerb) -> anyhow::Result<()> {
    let project = start::project_here()?;
    let mut settings = Settings::from_env(project)?;
    settings.limits.message_bytes =
        options.limits.given()?.unwrap_or(settings.limits.message_bytes);
    settings.limits.log_bytes = options.log.bytes()?.unwrap_or(settings.limits.log_bytes);
    if let Ok(limits) = std::env::var(LIMITS_VARIABLE) {
        let set = settings.limits.set_from(&limits);
        set.map_err(|why| anyhow::anyhow!("{LIMITS_VARIABLE}: {why}"))?;
    }
    settings.http = options.http.flags();
    if options.detached || options.foreground {
        // Before the panes of an earlier server are taken over: each needs three.
        patterm_keeper::descriptors::raise_limit();
    }
    if options.detached {
        settings.ends_unused = !options.stay && !systemd::is_service();
        return detached(settings);
    }
    if options.foreground {
        anyhow::ensure!(
            EnclosingKeeper::of_this_process().is_none(),
            "a server in the foreground of a pane would end with the pane, and its programs would \
             inherit the pane's environment; `patterm serve` starts one outside of all panes"
        );
        log::to_stderr();
        // So that ctrl+c can be distinguished from an end on request.
        return match serve(Server::start(settings)?)? {
            Ended::OnRequest => Ok(()),
            Ended::Interrupted => std::process::exit(INTERRUPTED),
        };
    }
    let mut flags = vec![
        format!("--max-message-bytes={}", settings.limits.message_bytes),
        format!("--max-log-bytes={}", settings.limits.log_bytes),
    ];
    flags.extend(options.http.arguments());
    flags.extend(systemd::is_service().then(|| systemd::STAY.to_owned()));
    let mut entry = match start::start_detached(&settings, &flags)? {
        StartReport::Failed(why) => anyhow::bail!(why),
        StartReport::Serving(entry) => entry,
    };
    must_answer(&entry)?;
    user_settings::hint().inspect(|hint| warn(hint));
    if let Some(http) = &settings.http {
        open_http(http, &mut entry)?;
    }
    if options.json {
        return print_json(&entry);
    }
    let (project, socket) = (printable_path(&entry.project), printable_path(&entry.socket));
    print(&format!("serving {project} (pid {}, {socket})", entry.pid));
    if let Some(http) = entry.http {
        print(&format!(
            "HTTP clients: http://{http}/mcp; `patterm token new NAME` creates a token for one"
        ));
    }
    Ok(())
}

/// Fails if the server was already running and does not answer.
fn must_answer(entry: &ServerEntry) -> anyhow::Result<()> {
    let Some(stream) = start::connect(&entry.socket)? else { return Ok(()) };
    match Client::over(stream).call_tool(SIGN_OF_LIFE_METHOD, &Value::Null) {
        Err(error) if error.is::<NoAnswer>() => Err(error.context(format!(
            "a server (pid {}) is already running for {}",
            entry.pid,
            printable_path(&entry.project)
        ))),
        _ => Ok(()),
    }
}

/// Opens the HTTP endpoint of a server that was already running.
fn open_http(http: &HttpFlags, entry: &mut ServerEntry) -> anyhow::Result<()> {
    let is_there = |at: SocketAddr| match http.listen.port() {
        0 => at.ip() == http.listen.ip(),
        _ => at == http.listen,
    };
    if entry.http.is_some_and(is_there) {
        return Ok(());
    }
    entry.http = Some(Client::connect()?.call::<OpenHttp>(http)?.result.http);
    Ok(())
}

/// The background server: in its own session, with its output in the log.
fn detached(settings: Settings) -> anyhow::Result<()> {
    // Fails only if this process already leads a session, which is fine.
    let _ = rustix::process::setsid();
    settings.state.ensure()?;
    log::to_file(&settings.log_file())?;
    log::panics();
    let (report, server) = match Server::start(settings) {
        Ok(server) => (StartReport::Serving(server.entry()), Some(server)),
        Err(StartError::Running(entry)) => (StartReport::Serving(*entry), None),
        Err(error) => (StartReport::Failed(error.to_string()), None),
    };
    let mut stdout = std::io::stdout().lock();
    // The process that started us may be gone; the server keeps running anyway.
    let _ = writeln!(stdout, "{}", serde_json::to_string(&report)?);
    let _ = stdout.flush();
    drop(stdout);
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(null)?;
    server.map_or(Ok(()), |server| serve(server).map(drop))
}

/// Threads for blocking work (searches, the keeper): more than there are cores.
const BLOCKING_THREADS: usize = 64;

/// One of them is created at the start, so that the server can report it if the machine has no free threads. They are
/// kept: ending them would wake up an idle server.
const KEEP_ALIVE: Duration = Duration::from_secs(365 * 24 * 3600);

/// The name under which `top` shows them.
const BLOCKING_THREAD_NAME: &str = "patterm-pool";

/// The exit code that shells use for a program ended by ctrl+c: 128 and the signal's number.
const INTERRUPTED: i32 = 130;

/// Why a server ended.
enum Ended {
    /// Over the socket, or by SIGTERM.
    OnRequest,
    /// By SIGINT.
    Interrupted,
}

/// Serves until a signal or a request ends it.
fn serve(server: Server) -> anyhow::Result<Ended> {
    patterm_keeper::memory::return_large_blocks();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(KEEP_ALIVE)
        .thread_name(BLOCKING_THREAD_NAME)
        .build()?;
    runtime.block_on(async {
        tokio::task::spawn_blocking(|| ()).await?;
        let shutdown = server.shutdown();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut served = std::pin::pin!(server.run());
        let mut ended = Ended::OnRequest;
        loop {
            tokio::select! {
                outcome = &mut served => return outcome.map(|()| ended).map_err(Into::into),
                _ = terminate.recv() => shutdown.cancel(),
                _ = interrupt.recv() => {
                    ended = Ended::Interrupted;
                    shutdown.cancel();
                }
            }
        }
    })
}
