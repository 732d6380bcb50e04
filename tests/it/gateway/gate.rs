//! The doors of a gateway, with servers of the tests behind them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use patterm_gateway::backend::Later;
use patterm_gateway::backend::local::{Local, Spawned, Spawner};
use patterm_gateway::http::{Doors, Gatekeeper, Limits, Own, Principal, Scope, Talk, serve};
use patterm_gateway::{Bounds, Gateway, Refusal, RefusalKind, Share, Told, Tools, Wanted};
use patterm_keeper::{Keeper, Program, Size, SpawnError};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use crate::support::Place;

/// Longer than anything here takes; a test that gets there has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The token that is let in.
pub(super) const TOKEN: &str = "a-token-of-the-tests";

/// And another one's.
pub(super) const OTHER_TOKEN: &str = "a-token-of-another";

/// A server as a test wants it.
pub(super) struct Wish {
    pub(super) share: Share,
    pub(super) bounds: Bounds,
    /// What `everything-mcp` is started with.
    pub(super) arguments: &'static [&'static str],
    /// Another program in its place.
    pub(super) argv: Option<Vec<String>>,
}

impl Default for Wish {
    fn default() -> Self {
        Self { share: Share::All, bounds: Bounds::default(), arguments: &[], argv: None }
    }
}

/// The doors, open.
pub(super) struct Gate {
    pub(super) address: SocketAddr,
    pub(super) place: Place,
    pub(super) log: Log,
    keeper: Child,
    end: CancellationToken,
    runtime: Option<JoinHandle<()>>,
}

impl Gate {
    /// One server, `everything`.
    pub(super) fn of(wish: Wish) -> Self {
        let place = Place::new();
        let log = Log::follow(&place.path("project").join("everything.log"));
        let socket = place.path("run").join("gate.sock");
        let mut keeper = place.patterm(&["keeper", "--socket", socket.to_str().unwrap(), "--"]);
        let keeper = keeper.args(["sleep", "1d"]).stdin(Stdio::null()).spawn().unwrap();
        let client = until(|| Keeper::connect(&socket).ok());
        let wanted = wanted(wish, &place, Arc::new(Kept::new(client)));
        let end = CancellationToken::new();
        let ended = end.clone();
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let runtime = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let gateway = Gateway::default();
                gateway.configure(BTreeMap::from([("everything".to_owned(), wanted)]));
                let doors = Doors {
                    gateway: gateway.clone(),
                    own: Arc::new(Nothing),
                    gatekeeper: Arc::new(Tokens),
                    limits: Limits { body_bytes: 8 << 20, ..Limits::default() },
                    hosts: Vec::new(),
                    origins: Vec::new(),
                    audit: None,
                    bots: None,
                };
                serve(listener, doors, ended).await;
                gateway.end().await;
            });
        });
        let address = told.recv_timeout(PATIENCE).unwrap();
        Self { address, place, log, keeper, end, runtime: Some(runtime) }
    }

    /// Where the server is.
    pub(super) fn url(&self) -> String {
        format!("http://{}{}", self.address, Client::PATH)
    }

    /// What `GET /servers` says of the server.
    pub(super) fn status(&self) -> Value {
        let mut status = Client::of(self).get("/servers", &[]).json();
        status["servers"][0].take()
    }
}

impl Gate {
    /// Looks at the server until it stands as wanted.
    pub(super) fn until_status(&self, wanted: impl Fn(&Value) -> bool) {
        until(|| wanted(&self.status()).then_some(()));
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.end.cancel();
        let runtime = self.runtime.take().map(JoinHandle::join);
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        if !std::thread::panicking() {
            runtime.unwrap().unwrap();
        }
    }
}

/// Looks until there is something to see. Only for what gives no event of its own.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < PATIENCE, "it never came");
        std::thread::yield_now();
    }
}

fn wanted(wish: Wish, place: &Place, spawner: Arc<dyn Spawner>) -> Wanted {
    let ours = || {
        let log = ["--log".to_owned(), "everything.log".to_owned()];
        let program = [env!("CARGO_BIN_EXE_everything-mcp").to_owned()];
        let arguments = wish.arguments.iter().map(ToString::to_string);
        program.into_iter().chain(log).chain(arguments).collect()
    };
    let program = Program {
        argv: wish.argv.unwrap_or_else(ours),
        env: BTreeMap::from([("PATH".into(), std::env::var("PATH").unwrap())]),
        working_dir: place.path("project"),
        size: Size { rows: 24, columns: 80 },
    };
    Wanted {
        backend: Arc::new(Local { program, spawner }),
        fingerprint: String::new(),
        share: wish.share,
        bounds: wish.bounds,
        roots: r#"[{"uri":"file:///project","name":"project"}]"#.into(),
        tools: Tools::default(),
    }
}

/// The keeper starts the servers, as it does for patterm.
struct Kept(Mutex<(Keeper, u64)>);

impl Kept {
    fn new(keeper: Keeper) -> Self {
        Self(Mutex::new((keeper, 0)))
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl Spawner for Kept {
    fn spawn(&self, program: Program, streams: [OwnedFd; 3]) -> Later<Result<Spawned, SpawnError>> {
        let mut kept = self.0.lock().unwrap();
        kept.1 += 1;
        let name = format!("server-{}", kept.1);
        let streams = [streams[0].as_fd(), streams[1].as_fd(), streams[2].as_fd()];
        let spawned = kept.0.spawn(&name, &program, Some(streams));
        Box::pin(std::future::ready(spawned.map(|pane| Spawned { name, pane })))
    }

    fn forget(&self, name: String) -> Later<()> {
        let _ = self.0.lock().unwrap().0.forget(&name);
        Box::pin(std::future::ready(()))
    }
}

struct Tokens;

impl Gatekeeper for Tokens {
    fn admit(&self, token: &str) -> Option<Principal> {
        let known = [TOKEN, OTHER_TOKEN].contains(&token);
        known.then(|| Principal { name: token.to_owned(), scope: Scope::default() })
    }
}

/// Patterm's own tools are not what is tested here.
struct Nothing;

impl Own for Nothing {
    fn talk(&self, _: &Principal) -> Result<(Arc<dyn Talk>, mpsc::Receiver<Told>), Refusal> {
        Err(Refusal::new(RefusalKind::Unknown, "there is nothing here"))
    }
}

/// What a server wrote down of what it read, over all its lives.
#[derive(Clone)]
pub(super) struct Log(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Log {
    /// A pipe with a name, so that whoever waits is woken by what is written.
    fn follow(path: &Path) -> Self {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // Held open for writing as well: the end of one server is not the end of the log.
        let pipe = File::options().read(true).write(true).open(path).unwrap();
        let log = Self(Arc::default());
        let written = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines() {
                written.0.0.lock().unwrap().push(line.unwrap());
                written.0.1.notify_all();
            }
        });
        log
    }

    /// Waits until so many messages of a method were read, and returns all of them.
    #[track_caller]
    pub(super) fn until(&self, method: &str, times: usize) -> Vec<Value> {
        let lines = self.0.0.lock().unwrap();
        let few = |lines: &mut Vec<String>| of(lines, method).len() < times;
        let (lines, late) = self.0.1.wait_timeout_while(lines, PATIENCE, few).unwrap();
        assert!(!late.timed_out(), "not {times} of {method}; what came: {lines:#?}");
        of(&lines, method)
    }

    /// All that was written, as it was written.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.0.lock().unwrap().clone()
    }

    /// How often a server was started.
    pub(super) fn starts(&self) -> usize {
        self.lines().iter().filter(|line| line.starts_with("{\"started\"")).count()
    }

    /// How many messages of a method were read.
    pub(super) fn count(&self, method: &str) -> usize {
        of(&self.lines(), method).len()
    }
}

/// The messages of one method among those that were read.
fn of(lines: &[String], method: &str) -> Vec<Value> {
    let messages = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message["method"] == method).collect()
}
