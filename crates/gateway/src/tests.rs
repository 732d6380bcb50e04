//! Servers, sessions and client handles together, with a scripted server in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use patterm_wire::Id;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::watch;

use crate::backend::{Backend, BoxFuture, Channel, ServerControl, ServerExit};
use crate::{
    CachedServer, Caller, ClientHandle, Gateway, GatewayError, GatewayErrorKind, ServerCache,
    ServerChange, ServerLimits, ServerObserver, ServerSpec, ServerState, Share, ToolPatterns,
};

/// What the scripted servers received, and how often one was started.
#[derive(Debug, Default)]
pub(crate) struct ServerLog {
    starts: AtomicU64,
    messages: Mutex<Vec<Value>>,
    wake: tokio::sync::Notify,
}

impl ServerLog {
    pub(crate) fn count(&self, method: &str) -> usize {
        self.messages.lock().unwrap().iter().filter(|m| m["method"] == method).count()
    }

    pub(crate) async fn until(&self, what: impl Fn(&Self) -> bool) {
        while !what(self) {
            self.wake.notified().await;
        }
    }
}

#[derive(Debug, Clone)]
struct ScriptedServer {
    log: Arc<ServerLog>,
    /// It fails to start.
    absent: bool,
}

impl Backend for ScriptedServer {
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>> {
        let server = self.clone();
        Box::pin(async move {
            if server.absent {
                return Err(GatewayError::new(
                    GatewayErrorKind::Unavailable,
                    "there is no such program",
                ));
            }
            server.log.starts.fetch_add(1, Ordering::Relaxed);
            let (input, theirs) = duplex(1 << 16);
            let (output, mine) = duplex(1 << 16);
            let (errors, error_writer) = duplex(1 << 16);
            let (over, ended) = watch::channel(false);
            tokio::spawn(async move {
                run_script(theirs, mine, error_writer, server.log).await;
                over.send_replace(true);
            });
            Ok(Channel {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(errors),
                pid: None,
                control: Box::new(ScriptedControl(ended)),
            })
        })
    }
}

struct ScriptedControl(watch::Receiver<bool>);

impl ServerControl for ScriptedControl {
    fn wait(&self) -> BoxFuture<ServerExit> {
        let mut ended = self.0.clone();
        Box::pin(async move {
            let _ = ended.wait_for(|over| *over).await;
            ServerExit::Code(7)
        })
    }

    fn end(&self) -> BoxFuture<()> {
        Box::pin(std::future::ready(()))
    }
}

/// Serves until its input ends, or until it is told to exit.
async fn run_script(
    input: DuplexStream,
    mut output: DuplexStream,
    mut errors: DuplexStream,
    log: Arc<ServerLog>,
) {
    let mut lines = BufReader::new(input).lines();
    // An answer that is sent after the next message.
    let mut held: Option<Value> = None;
    while let Ok(Some(client)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&client).unwrap();
        if let Some(held) = held.take() {
            output.write_all(format!("{held}\n").as_bytes()).await.unwrap();
        }
        log.messages.lock().unwrap().push(message.clone());
        log.wake.notify_waiters();
        let result = match (message["method"].as_str(), message["params"]["name"].as_str()) {
            (Some("initialize"), _) => {
                let info = json!({"name": "played", "version": "1"});
                json!({"protocolVersion": "2025-06-18", "serverInfo": info})
            }
            (Some("tools/call"), Some("die")) => {
                errors.write_all(b"cannot go on\n").await.unwrap();
                return;
            }
            (Some("tools/call"), Some("hang")) => continue,
            (Some("tools/call"), Some(name @ ("progress" | "later"))) => {
                let token = &message["params"]["_meta"]["progressToken"];
                let params = json!({"progressToken": token, "progress": 1});
                let notification =
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                output.write_all(format!("{notification}\n").as_bytes()).await.unwrap();
                if name == "later" {
                    let result = json!({"done": true});
                    held = Some(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
                    continue;
                }
                json!({"done": true})
            }
            (Some("resources/subscribe"), _) => json!({}),
            (Some("tools/call"), Some("announce")) => {
                let of = &message["params"]["of"];
                let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"of": of}});
                output.write_all(format!("{changed}\n").as_bytes()).await.unwrap();
                json!({})
            }
            (Some("tools/call"), Some("update")) => {
                let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:b"}});
                output.write_all(format!("{updated}\n").as_bytes()).await.unwrap();
                json!({})
            }
            (Some("tools/call"), Some("babble")) => {
                output.write_all(b"debug: here\n").await.unwrap();
                json!({})
            }
            (Some("tools/call"), _) => message["params"].clone(),
            (Some("tools/list"), _) => {
                let look = json!({"name": "look", "annotations": {"readOnlyHint": true}});
                json!({"tools": [look, {"name": "x"}, {"name": "hang"}]})
            }
            (Some("server/discover"), _) => {
                let error = json!({"code": -32601, "message": "what?"});
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
                continue;
            }
            _ => continue,
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

pub(crate) struct Harness {
    pub(crate) gateway: Gateway,
    pub(crate) log: Arc<ServerLog>,
}

impl Harness {
    pub(crate) fn new(share: Share, limits: ServerLimits) -> Self {
        let harness = Self { gateway: Gateway::default(), log: Arc::default() };
        harness.configure("first", share, limits, false);
        harness
    }

    fn configure(&self, fingerprint: &str, share: Share, limits: ServerLimits, absent: bool) {
        let backend = Arc::new(ScriptedServer { log: self.log.clone(), absent });
        let fingerprint = fingerprint.to_owned();
        let spec = ServerSpec {
            backend,
            fingerprint,
            share,
            limits,
            roots: "[]".into(),
            tools: ToolPatterns::default(),
        };
        self.gateway.configure(BTreeMap::from([("played".to_owned(), spec)]));
    }

    fn client(&self, caller: &str) -> Arc<ClientHandle> {
        let caller = Caller { name: caller.into(), session: "1".into() };
        Arc::new(self.gateway.connect("played", &caller).unwrap().0)
    }

    fn starts(&self) -> u64 {
        self.log.starts.load(Ordering::Relaxed)
    }
}

fn call(id: u64, name: &str) -> (Id, String) {
    let params = json!({"name": name, "of": id});
    let text = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    (Id::from_number(id), text.to_string())
}

async fn call_tool(client: &ClientHandle, id: u64, name: &str) -> Value {
    let (id, text) = call(id, name);
    let answered = client.request(&id, "tools/call", text).await;
    serde_json::from_slice(&answered.unwrap_or_else(|error| error.to_response(&id))).unwrap()
}

#[tokio::test]
async fn simultaneous_callers_share_one_start_and_one_handshake() {
    let harness = Harness::new(Share::All, ServerLimits::default());
    let mut calls = Vec::new();
    for caller in 0..20 {
        let client = harness.client(&format!("c{caller}"));
        calls.push(tokio::spawn(async move { call_tool(&client, 1, &format!("n{caller}")).await }));
    }
    for (caller, call) in calls.into_iter().enumerate() {
        let answer = call.await.unwrap();
        assert_eq!(answer["id"], 1);
        assert_eq!(
            answer["result"]["name"],
            format!("n{caller}"),
            "each caller gets its own response"
        );
    }
    assert_eq!((harness.starts(), harness.log.count("initialize")), (1, 1));
    assert_eq!(harness.log.count("notifications/initialized"), 1);
}

#[tokio::test]
async fn a_server_that_exited_is_reported_and_restarted() {
    let harness = Harness::new(Share::All, ServerLimits::default());
    let client = harness.client("a");
    let waiting = harness.client("b");
    call_tool(&client, 1, "x").await;
    let other = tokio::spawn(async move { call_tool(&waiting, 1, "hang").await });
    harness.log.until(|log| log.count("tools/call") == 2).await;
    for answer in [call_tool(&client, 2, "die").await, other.await.unwrap()] {
        let message_text = answer["error"]["message"].as_str().unwrap();
        assert!(
            message_text.contains("exited with code 7; its last output: cannot go on"),
            "{answer}"
        );
        assert_eq!(answer["error"]["data"]["kind"], "server_ended");
    }
    assert_eq!(call_tool(&client, 3, "x").await["result"]["of"], 3);
    assert_eq!(harness.starts(), 2);
    let status = harness.gateway.status();
    assert_eq!((status[0].2.state, status[0].2.restarts), (ServerState::Running, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_exiting_is_restarted_with_growing_pauses() {
    let harness = Harness::new(Share::All, ServerLimits::default());
    let client = harness.client("a");
    call_tool(&client, 1, "die").await;
    call_tool(&client, 2, "die").await;
    let answer = call_tool(&client, 3, "die").await;
    let message_text = answer["error"]["message"].as_str().unwrap();
    assert!(message_text.contains("not restarted for"), "{answer}");
    assert_eq!(harness.starts(), 2, "the call fails without a start");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(call_tool(&client, 4, "x").await["result"]["of"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_to_start_is_reported_and_retried() {
    let harness = Harness::new(Share::All, ServerLimits::default());
    harness.configure("absent", Share::All, ServerLimits::default(), true);
    let client = harness.client("a");
    let answer = call_tool(&client, 1, "x").await;
    assert_eq!(answer["error"]["message"], "there is no such program");
    harness.configure("there", Share::All, ServerLimits::default(), false);
    assert_eq!(call_tool(&harness.client("a"), 1, "x").await["result"]["of"], 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let harness = Harness::new(Share::All, ServerLimits::default());
    let client = harness.client("a");
    let hanging = client.clone();
    let task = tokio::spawn(async move { call_tool(&hanging, 1, "hang").await });
    harness.log.until(|log| log.count("tools/call") == 1).await;
    task.abort();
    harness.log.until(|log| log.count("notifications/cancelled") == 1).await;
    // The same holds for all calls of a client that disconnects.
    let gone = client.clone();
    let task = tokio::spawn(async move { call_tool(&gone, 2, "hang").await });
    harness.log.until(|log| log.count("tools/call") == 2).await;
    task.abort();
    drop(client);
    harness.log.until(|log| log.count("notifications/cancelled") == 2).await;
    assert_eq!(harness.gateway.status()[0].2.in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_cancelled_and_says_timeout() {
    let limits = ServerLimits { call_timeout: Duration::from_secs(5), ..ServerLimits::default() };
    let harness = Harness::new(Share::All, limits);
    let client = harness.client("a");
    let answer = call_tool(&client, 1, "hang").await;
    assert_eq!(answer["error"]["data"]["kind"], "timeout", "{answer}");
    harness.log.until(|log| log.count("notifications/cancelled") == 1).await;
    assert_eq!(call_tool(&client, 2, "x").await["result"]["of"], 2, "the server keeps running");
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_stopped_and_restarted_by_the_next_call() {
    let limits =
        ServerLimits { idle_timeout: Some(Duration::from_secs(60)), ..ServerLimits::default() };
    let harness = Harness::new(Share::All, limits);
    let client = harness.client("a");
    call_tool(&client, 1, "x").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    call_tool(&client, 2, "x").await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(harness.gateway.status()[0].2.state, ServerState::Running);
    tokio::time::sleep(Duration::from_secs(40)).await;
    let status = harness.gateway.status().remove(0).2;
    assert_eq!(
        (status.state, status.last_error),
        (ServerState::Asleep, None),
        "this is not an error"
    );
    assert_eq!(call_tool(&client, 3, "x").await["result"]["of"], 3);
    assert_eq!(harness.starts(), 2);
}

#[tokio::test]
async fn each_caller_has_its_own_instance_of_an_unshared_server() {
    let harness =
        Harness::new(Share::Caller, ServerLimits { instances: 2, ..ServerLimits::default() });
    for caller in ["a", "b", "a"] {
        call_tool(&harness.client(caller), 1, "x").await;
    }
    assert_eq!(harness.starts(), 2);
    let caller = Caller { name: "c".into(), session: "1".into() };
    let error = harness.gateway.connect("played", &caller).err().unwrap();
    assert_eq!(error.kind, GatewayErrorKind::Limit);
    assert!(harness.gateway.connect("nobody", &caller).err().unwrap().message.contains("played"));
}

#[tokio::test]
async fn a_reconfigured_server_finishes_its_calls_and_new_calls_go_to_its_successor() {
    let harness = Harness::new(Share::All, ServerLimits::default());
    let client = harness.client("a");
    let hanging = client.clone();
    let old = tokio::spawn(async move { call_tool(&hanging, 1, "hang").await });
    harness.log.until(|log| log.count("tools/call") == 1).await;
    harness.configure("second", Share::All, ServerLimits::default(), false);
    assert_eq!(call_tool(&harness.client("a"), 2, "x").await["result"]["of"], 2);
    assert_eq!(harness.starts(), 2);
    assert!(!old.is_finished(), "its call is still running");
    harness.gateway.configure(BTreeMap::new());
    assert_eq!(harness.gateway.names(), Vec::<String>::new());
    old.abort();
}

/// What an earlier run of patterm's server knew about the scripted server.
#[derive(Debug, Default)]
struct TestCache(Mutex<CachedServer>);

impl ServerCache for TestCache {
    fn load(&self, server: &str, fingerprint: &str) -> Option<CachedServer> {
        assert_eq!((server, fingerprint), ("played", "first"));
        Some(self.0.lock().unwrap().clone())
    }

    fn update(&self, _: &str, _: &str, change: &mut dyn FnMut(&mut CachedServer)) {
        change(&mut self.0.lock().unwrap());
    }

    fn retain(&self, servers: &[&str]) {
        assert_eq!(servers, ["played"]);
    }
}

/// What happened to servers.
#[derive(Debug, Default)]
struct SeenChanges(Mutex<Vec<(Option<String>, ServerChange)>>);

impl ServerObserver for SeenChanges {
    fn changed(&self, server: &str, owner: Option<&str>, change: ServerChange) {
        assert_eq!(server, "played");
        self.0.lock().unwrap().push((owner.map(str::to_owned), change));
    }
}

#[tokio::test]
async fn the_host_learns_what_happens_to_servers() {
    let (seen, known) = (Arc::<SeenChanges>::default(), Arc::<TestCache>::default());
    let gateway = Gateway::new(known, seen.clone());
    let harness = Harness { gateway, log: Arc::default() };
    harness.configure("absent", Share::Caller, ServerLimits::default(), true);
    let client = harness.client("a");
    for id in 1..=2 {
        assert!(!call_tool(&client, id, "x").await["error"].is_null());
    }
    harness.configure("first", Share::Caller, ServerLimits::default(), false);
    assert_eq!(call_tool(&harness.client("a"), 1, "x").await["result"]["of"], 1);
    harness.gateway.end().await;
    let changes = std::mem::take(&mut *seen.0.lock().unwrap());
    let owners = changes.iter().all(|(owner, _)| owner.as_deref() == Some("a"));
    let changes: Vec<_> = changes.into_iter().map(|(_, change)| change).collect();
    let [failed, started, stopped] = &changes[..] else { panic!("{changes:?}") };
    assert!(owners && matches!(failed, ServerChange::Failed(_)), "{failed:?}");
    assert_eq!((started, stopped), (&ServerChange::Started, &ServerChange::Stopped));
}

/// One run: how often the server was probed in it, and what is known afterwards.
async fn run_with(known: &Arc<TestCache>) -> (usize, Option<bool>, Option<String>) {
    let gateway = Gateway::new(known.clone(), Arc::new(SeenChanges::default()));
    let harness = Harness { gateway, log: Arc::default() };
    harness.configure("first", Share::All, ServerLimits::default(), false);
    assert_eq!(call_tool(&harness.client("a"), 1, "x").await["result"]["of"], 1);
    harness.gateway.end().await;
    let is_known = || known.0.lock().unwrap().version.as_deref() == Some("1");
    while !is_known() {
        tokio::task::yield_now().await;
    }
    let known = known.0.lock().unwrap();
    (harness.log.count("server/discover"), known.modern, known.version.clone())
}

#[tokio::test]
async fn a_server_is_probed_once_for_each_version_of_it() {
    let known = Arc::<TestCache>::default();
    let version = || Some("1".to_owned());
    assert_eq!(run_with(&known).await, (1, Some(false), version()));
    assert_eq!(run_with(&known).await, (0, Some(false), version()));
    // What is known about an older version does not apply to this one.
    known.0.lock().unwrap().version = Some("0".to_owned());
    assert_eq!(run_with(&known).await, (0, None, version()));
    assert_eq!(run_with(&known).await, (1, Some(false), version()));
}

#[tokio::test]
async fn output_that_is_not_protocol_is_counted_and_ignored() {
    let harness = Harness::new(Share::All, ServerLimits::default());
    let client = harness.client("a");
    assert_eq!(call_tool(&client, 1, "babble").await["result"], json!({}));
    assert_eq!(call_tool(&client, 2, "x").await["result"]["of"], 2);
    assert_eq!(harness.gateway.status()[0].2.noise, 1);
}

#[tokio::test]
async fn a_client_that_only_listens_survives_the_restart_of_its_server() {
    let harness = Harness::new(Share::All, ServerLimits::default());
    let caller = |name: &str| Caller { name: name.into(), session: "1".into() };
    let (listener, mut notifications) =
        harness.gateway.connect("played", &caller("listener")).unwrap();
    let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "a:b"}});
    let id = Id::from_number(1);
    listener.request(&id, "resources/subscribe", subscribe.to_string()).await.unwrap();
    let other = harness.client("other");
    call_tool(&other, 1, "die").await;
    // By the next call, after a crash, and by a restart on request.
    for (starts, name) in [(2, "after its death"), (3, "on request")] {
        if starts == 3 {
            assert!(harness.gateway.restart("played"));
        }
        call_tool(&other, 2, "update").await;
        assert_eq!(
            (harness.starts(), harness.log.count("resources/subscribe")),
            (starts, starts as usize)
        );
        let told = notifications.recv().await.unwrap();
        assert!(told.text.contains("notifications/resources/updated"), "{name}: {}", told.text);
    }
    drop(listener);
    harness.log.until(|log| log.count("resources/unsubscribe") == 1).await;
}
