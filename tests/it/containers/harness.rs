//! The gateway and its endpoints in a separate process, which tests can kill: this binary, run
//! again with a test that serves instead. Its programs run under a real keeper.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use patterm_gateway::backend::BoxFuture;
use patterm_gateway::backend::container::{self, Containers, RunSpec};
use patterm_gateway::backend::local::{Spawned, Spawner};
use patterm_gateway::http::{
    Authenticator, BotServerStatus, BotsConfig, EndpointLimits, HttpConfig, McpPeer, NativeTools,
    PendingResponse, Principal, Scope, serve,
};
use patterm_gateway::{
    Gateway, GatewayError, GatewayErrorKind, Notification, ServerLimits, ServerSpec, Share,
    ToolPatterns,
};
use patterm_keeper::{KeeperConnection, Program, SpawnError};
use patterm_wire::{Id, Message};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::engine::{Engine, LABEL, PLAIN, until};
use super::image::COMMAND;
use crate::support::Place;

/// The configuration of the other process, as JSON.
const SETTINGS: &str = "PATTERM_TEST_STAGE";

/// The files of a harness; a gateway may be killed and replaced by another.
pub(super) struct Harness {
    place: Place,
    settings: Value,
    keeper: Child,
}

impl Harness {
    pub(super) fn new(engine: &dyn Engine) -> Self {
        Self::at(engine.word(), engine.socket())
    }

    fn at(engine: &str, socket: PathBuf) -> Self {
        let place = Place::new();
        let keeper_socket = place.path("run").join("keeper.sock");
        let words = ["keeper", "--socket", keeper_socket.to_str().unwrap(), "--", "true"];
        let mut command = place.patterm(&words);
        let keeper = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        until("the keeper listens", || keeper_socket.exists().then_some(()));
        let settings = json!({
            "engine": engine, "socket": socket, "keeper": keeper_socket,
            "command": [COMMAND, mark()], "namespace": mark(),
            "state": place.path("state"), "runtime": place.path("run"),
        });
        Self { place, settings, keeper }
    }

    /// Admits every bot to containers without a label.
    pub(super) fn allow_unlabelled(mut self) -> Self {
        self.settings["allow_unlabelled"] = true.into();
        self
    }

    /// Starts a gateway.
    pub(super) fn serve(&self) -> Serving {
        let program = std::env::current_exe().unwrap();
        let mut command = self.place.command(&program);
        let test = "containers::harness::an_engine_that_does_not_exist";
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(SETTINGS, self.settings.to_string());
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut ports = lines.map_while(Result::ok).filter_map(|line| {
            line.split_once("PORT ").and_then(|(_, port)| port.trim().parse().ok())
        });
        let port = ports.next().expect("the gateway ended");
        Serving { child, port }
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let socket = PathBuf::from(self.settings["keeper"].as_str().unwrap());
        if let Ok(mut keeper) = KeeperConnection::connect(&socket) {
            let _ = keeper.end();
        }
        let _ = self.keeper.wait();
    }
}

/// A running gateway, until it is killed.
pub(super) struct Serving {
    child: Child,
    port: u16,
}

impl Serving {
    /// Kills it.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn connect(&self) -> Client {
        Client::new(self.port, "t")
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.connect().post(path, body)
    }

    /// Calls a tool of the server in a container.
    pub(super) fn call(&self, bot: &str, container: &str, tool: &str) -> (u16, Value) {
        self.post(&transport(bot, container), &call(1, tool, ""))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A unique number: a sleep duration that identifies this test's servers, and a namespace, because
/// runc keeps the containers of all engines in one folder.
pub(super) fn mark() -> String {
    format!("9{}", std::process::id())
}

/// The address of a container's server.
pub(super) fn transport(bot: &str, container: &str) -> String {
    format!("/bots/{bot}/containers/{container}/mcp")
}

/// A call of a tool.
pub(super) fn call(id: u64, tool: &str, mark: &str) -> Value {
    let params = json!({"name": tool, "arguments": {"mark": mark}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// A connection.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Client {
    pub(super) fn new(port: u16, token: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        Self { stream: BufReader::new(stream), token: token.to_owned() }
    }

    pub(super) fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let (status, body) = self.ask("POST", path, &body.to_string());
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// The content of a file, which must exist.
    pub(super) fn get(&mut self, path: &str) -> String {
        let (status, body) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path}");
        String::from_utf8(body).unwrap()
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, Vec<u8>) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(head.as_bytes()).unwrap();
        let mut status = String::new();
        self.stream.read_line(&mut status).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            match line.trim().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap();
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status.split(' ').nth(1).unwrap().parse().unwrap(), body)
    }
}

/// Run by [`Harness::serve`], it is a gateway; run as a test, it checks one whose engine does not
/// exist.
#[test]
fn an_engine_that_does_not_exist() {
    if let Ok(settings) = std::env::var(SETTINGS) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(be_a_gateway(&serde_json::from_str(&settings).unwrap()));
    }
    for engine in ["docker", "podman", "containerd"] {
        let harness = Harness::at(engine, "/nowhere/engine.sock".into());
        let serving = harness.serve();
        let (status, body) = serving.call("alpha", "box", "x");
        assert_eq!(status, 502, "{body}");
        let reason = body["error"]["message"].as_str().unwrap();
        assert!(reason.contains("/nowhere/engine.sock"), "{reason}");
    }
}

async fn be_a_gateway(settings: &Value) {
    let text = |name: &str| settings[name].as_str().unwrap().to_owned();
    let place = container::EngineEndpoint {
        engine: serde_json::from_value(settings["engine"].clone()).unwrap(),
        socket: Some(text("socket").into()),
        namespace: Some(text("namespace")),
        fifo_dir: None,
    };
    let keeper = KeeperConnection::connect(text("keeper").as_ref()).unwrap();
    let spawner = Arc::new(Keeps { keeper: Mutex::new(keeper), next: Mutex::new(0) });
    let (state, runtime) = (text("state"), text("runtime"));
    let containers = Containers::new(state.as_ref(), runtime.as_ref(), spawner).unwrap();
    let end = CancellationToken::new();
    tokio::spawn(containers.clone().keep_swept(end.clone()));
    let gateway = Gateway::default();
    let own = RunSpec {
        env: BTreeMap::from([("SAID".to_owned(), "hello".to_owned())]),
        ..RunSpec::with_defaults(place.clone(), PLAIN)
    };
    let wanted = |backend, share| ServerSpec {
        backend,
        fingerprint: String::new(),
        share,
        limits: ServerLimits::default(),
        roots: "[]".into(),
        tools: ToolPatterns::default(),
    };
    gateway.configure(BTreeMap::from([
        ("own".to_owned(), wanted(containers.own(own.clone()), Share::All)),
        ("each".to_owned(), wanted(containers.own(own), Share::Session)),
    ]));
    let bots = BotsConfig {
        containers,
        endpoint: place,
        command: serde_json::from_value(settings["command"].clone()).unwrap(),
        owner_label: LABEL.into(),
        allow_unlabelled: settings["allow_unlabelled"] == true,
        servers: BotServerStatus::default(),
        limits: ServerLimits::default(),
    };
    let transports = HttpConfig {
        gateway,
        native_tools: Arc::new(NoTools),
        authenticator: Arc::new(Anybody),
        audit: None,
        limits: EndpointLimits::default(),
        hosts: Vec::new(),
        origins: Vec::new(),
        bots: Some(bots),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut stdout = std::io::stdout();
    writeln!(stdout, "PORT {port}").unwrap();
    serve(listener, transports, end).await;
}

struct Anybody;

impl Authenticator for Anybody {
    fn authenticate(&self, _: &str) -> Option<Principal> {
        Some(Principal { name: "t".into(), scope: Scope::default(), expires_at: None })
    }
}

/// patterm's own tools, which are not tested here.
struct NoTools;

impl NativeTools for NoTools {
    fn connect(
        &self,
        _: &Principal,
    ) -> Result<(Arc<dyn McpPeer>, mpsc::Receiver<Notification>), GatewayError> {
        Err(GatewayError::new(GatewayErrorKind::Unknown, "not here"))
    }
}

impl McpPeer for NoTools {
    fn request<'a>(&'a self, _: &'a Id, _: &'a str, _: String) -> PendingResponse<'a> {
        Box::pin(std::future::ready(Err(GatewayError::new(GatewayErrorKind::Unknown, "not here"))))
    }

    fn notify(&self, _: &Message<'_>, _: &str) {}
}

/// Programs of a keeper.
struct Keeps {
    keeper: Mutex<KeeperConnection>,
    next: Mutex<u64>,
}

impl std::fmt::Debug for Keeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keeps")
    }
}

impl Spawner for Keeps {
    fn spawn(
        &self,
        program: Program,
        streams: [OwnedFd; 3],
    ) -> BoxFuture<Result<Spawned, SpawnError>> {
        let name = {
            let mut next = self.next.lock().unwrap();
            *next += 1;
            // Cleanup tools that an earlier one started may still be running.
            format!("shared {} {next}", std::process::id())
        };
        let streams = [streams[0].as_fd(), streams[1].as_fd(), streams[2].as_fd()];
        let started = self.keeper.lock().unwrap().spawn(&name, &program, Some(streams));
        Box::pin(std::future::ready(started.map(|pane| Spawned { name, pane: Arc::new(pane) })))
    }

    fn forget(&self, name: String) -> BoxFuture<()> {
        let _ = self.keeper.lock().unwrap().forget(&name);
        Box::pin(std::future::ready(()))
    }
}
