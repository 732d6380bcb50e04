//! `patterm serve`: the server by hand, in the background or the foreground.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use patterm_host::enclosing_keeper::EnclosingKeeper;
use patterm_host::registry::Entry;
use patterm_host::web::HttpFlags;
use patterm_host::{HTTP_METHOD, Server, Settings, StartError, log};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Serve;
use crate::client::Client;
use crate::said::{say, say_json, shown_path};
use crate::start::{self, Report};

/// Sets any limit of the server by its name, for example `processes=50,waiters=10`.
const LIMITS_VARIABLE: &str = "PATTERM_LIMITS";

pub(crate) fn run(options: &Serve) -> anyhow::Result<()> {
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
        // Before the panes of an earlier server are taken over: each takes three.
        patterm_keeper::descriptors::raise_limit();
    }
    if options.detached {
        return detached(settings);
    }
    if options.foreground {
        anyhow::ensure!(
            EnclosingKeeper::of_this_process().is_none(),
            "a server in the foreground of a pane would end with that pane, and its programs would \
             inherit the pane's environment; `patterm serve` starts one outside of panes"
        );
        log::to_stderr();
        // Whoever pressed ctrl+c, and a script, can tell that from an end that was asked for.
        return match serve(Server::start(settings)?)? {
            Ended::Told => Ok(()),
            Ended::Interrupted => std::process::exit(INTERRUPTED),
        };
    }
    let mut flags = vec![
        format!("--max-message-bytes={}", settings.limits.message_bytes),
        format!("--max-log-bytes={}", settings.limits.log_bytes),
    ];
    flags.extend(options.http.again());
    let mut entry = match start::start_detached(&settings, &flags)? {
        Report::Failed(why) => anyhow::bail!(why),
        Report::Serving(entry) => entry,
    };
    if let Some(http) = &settings.http {
        open_door(http, &mut entry)?;
    }
    if options.json {
        return say_json(&entry);
    }
    let (project, socket) = (shown_path(&entry.project), shown_path(&entry.socket));
    say(&format!("serving {project} (pid {}, {socket})", entry.pid));
    if let Some(http) = entry.http {
        say(&format!("HTTP clients: http://{http}/mcp; `patterm token new NAME` lets one in"));
    }
    Ok(())
}

/// A server that was there already opens its door now.
fn open_door(http: &HttpFlags, entry: &mut Entry) -> anyhow::Result<()> {
    let is_there = |at: SocketAddr| match http.listen.port() {
        0 => at.ip() == http.listen.ip(),
        _ => at == http.listen,
    };
    if entry.http.is_some_and(is_there) {
        return Ok(());
    }
    let mut opened = Client::connect()?.call(HTTP_METHOD, &serde_json::to_value(http)?)?;
    entry.http = serde_json::from_value(opened["http"].take())?;
    Ok(())
}

/// The server that stays: in a session of its own, its words in the log.
fn detached(settings: Settings) -> anyhow::Result<()> {
    // Fails only where this process leads a session already, which is just as well.
    let _ = rustix::process::setsid();
    settings.state.ensure()?;
    log::to_file(&settings.log_file())?;
    log::panics();
    let (report, server) = match Server::start(settings) {
        Ok(server) => (Report::Serving(server.entry()), Some(server)),
        Err(StartError::Running(entry)) => (Report::Serving(*entry), None),
        Err(error) => (Report::Failed(error.to_string()), None),
    };
    let mut stdout = std::io::stdout().lock();
    // Whoever started us may be gone already; the server serves all the same.
    let _ = writeln!(stdout, "{}", serde_json::to_string(&report)?);
    let _ = stdout.flush();
    drop(stdout);
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nowhere)?;
    server.map_or(Ok(()), |server| serve(server).map(drop))
}

/// Threads for what takes a while (searches, the keeper): more than there are cores to search with.
const BLOCKING_THREADS: usize = 64;

/// One of them is made at the start and stays: a machine that has no thread left must not keep the
/// server from saying so.
const KEEP_ALIVE: Duration = Duration::from_secs(365 * 24 * 3600);

/// What shells say of a program that ctrl+c ended: 128 and the signal's number.
const INTERRUPTED: i32 = 130;

/// Why a server ended.
enum Ended {
    /// Over the socket, or by SIGTERM.
    Told,
    /// By SIGINT.
    Interrupted,
}

/// Serves until told to end, by a signal or over the socket.
fn serve(server: Server) -> anyhow::Result<Ended> {
    patterm_keeper::memory::return_large_blocks();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(KEEP_ALIVE)
        .build()?;
    runtime.block_on(async {
        tokio::task::spawn_blocking(|| ()).await?;
        let shutdown = server.shutdown();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut served = std::pin::pin!(server.run());
        let mut ended = Ended::Told;
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
