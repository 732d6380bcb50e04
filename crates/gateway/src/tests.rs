//! Servers, sessions and client handles together, with a scripted server in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use patterm_wire::Id;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::watch;

use crate::backend::{Backend, Channel, Later, Life};
use crate::{
    Bounds, Caller, Gateway, Line, Memory, Refusal, RefusalKind, Remembered, Share, Tools, Wanted,
};

/// What the scripted servers received, and how often one was started.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    starts: AtomicU64,
    messages: Mutex<Vec<Value>>,
    bell: tokio::sync::Notify,
}

impl Seen {
    pub(crate) fn count(&self, method: &str) -> usize {
        self.messages.lock().unwrap().iter().filter(|m| m["method"] == method).count()
    }

    pub(crate) async fn until(&self, what: impl Fn(&Self) -> bool) {
        while !what(self) {
            self.bell.notified().await;
        }
    }
}

#[derive(Debug, Clone)]
struct Played {
    seen: Arc<Seen>,
    /// It fails to start.
    absent: bool,
}

impl Backend for Played {
    fn open(&self) -> Later<Result<Channel, Refusal>> {
        let played = self.clone();
        Box::pin(async move {
            if played.absent {
                return Err(Refusal::new(RefusalKind::Unavailable, "there is no such program"));
            }
            played.seen.starts.fetch_add(1, Ordering::Relaxed);
            let (input, theirs) = duplex(1 << 16);
            let (output, mine) = duplex(1 << 16);
            let (errors, said) = duplex(1 << 16);
            let (over, ended) = watch::channel(false);
            tokio::spawn(async move {
                play(theirs, mine, said, played.seen).await;
                over.send_replace(true);
            });
            Ok(Channel {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(errors),
                pid: None,
                life: Box::new(PlayedLife(ended)),
            })
        })
    }
}

struct PlayedLife(watch::Receiver<bool>);

impl Life for PlayedLife {
    fn ended(&self) -> Later<String> {
        let mut ended = self.0.clone();
        Box::pin(async move {
            let _ = ended.wait_for(|over| *over).await;
            "exited with code 7".into()
        })
    }

    fn end(&self) -> Later<()> {
        Box::pin(std::future::ready(()))
    }
}

/// Serves until its input ends, or until it is told to exit.
async fn play(
    input: DuplexStream,
    mut output: DuplexStream,
    mut errors: DuplexStream,
    seen: Arc<Seen>,
) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        seen.messages.lock().unwrap().push(message.clone());
        seen.bell.notify_waiters();
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
            (Some("tools/call"), Some("progress")) => {
                let token = &message["params"]["_meta"]["progressToken"];
                let params = json!({"progressToken": token, "progress": 1});
                let told =
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                output.write_all(format!("{told}\n").as_bytes()).await.unwrap();
                json!({"done": true})
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

pub(crate) struct Stage {
    pub(crate) gateway: Gateway,
    pub(crate) seen: Arc<Seen>,
}

impl Stage {
    pub(crate) fn new(share: Share, bounds: Bounds) -> Self {
        let stage = Self { gateway: Gateway::default(), seen: Arc::default() };
        stage.want("first", share, bounds, false);
        stage
    }

    fn want(&self, fingerprint: &str, share: Share, bounds: Bounds, absent: bool) {
        let backend = Arc::new(Played { seen: self.seen.clone(), absent });
        let fingerprint = fingerprint.to_owned();
        let wanted = Wanted {
            backend,
            fingerprint,
            share,
            bounds,
            roots: "[]".into(),
            tools: Tools::default(),
        };
        self.gateway.configure(BTreeMap::from([("played".to_owned(), wanted)]));
    }

    fn line(&self, caller: &str) -> Arc<Line> {
        let caller = Caller { caller: caller.into(), session: "1".into() };
        Arc::new(self.gateway.line("played", &caller).unwrap().0)
    }

    fn starts(&self) -> u64 {
        self.seen.starts.load(Ordering::Relaxed)
    }
}

fn call(id: u64, name: &str) -> (Id, String) {
    let params = json!({"name": name, "of": id});
    let text = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    (Id::from_number(id), text.to_string())
}

async fn ask(line: &Line, id: u64, name: &str) -> Value {
    let (id, text) = call(id, name);
    let answered = line.ask(&id, "tools/call", text).await;
    serde_json::from_slice(&answered.unwrap_or_else(|refusal| refusal.to_answer(&id))).unwrap()
}

#[tokio::test]
async fn simultaneous_callers_share_one_start_and_one_handshake() {
    let stage = Stage::new(Share::All, Bounds::default());
    let mut calls = Vec::new();
    for caller in 0..20 {
        let line = stage.line(&format!("c{caller}"));
        calls.push(tokio::spawn(async move { ask(&line, 1, &format!("n{caller}")).await }));
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
    assert_eq!((stage.starts(), stage.seen.count("initialize")), (1, 1));
    assert_eq!(stage.seen.count("notifications/initialized"), 1);
}

#[tokio::test]
async fn a_server_that_exited_is_reported_and_restarted() {
    let stage = Stage::new(Share::All, Bounds::default());
    let line = stage.line("a");
    let waiting = stage.line("b");
    ask(&line, 1, "x").await;
    let other = tokio::spawn(async move { ask(&waiting, 1, "hang").await });
    stage.seen.until(|seen| seen.count("tools/call") == 2).await;
    for answer in [ask(&line, 2, "die").await, other.await.unwrap()] {
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("exited with code 7; its last output: cannot go on"), "{answer}");
        assert_eq!(answer["error"]["data"]["kind"], "server_ended");
    }
    assert_eq!(ask(&line, 3, "x").await["result"]["of"], 3);
    assert_eq!(stage.starts(), 2);
    let status = stage.gateway.status();
    assert_eq!((status[0].2.state, status[0].2.restarts), ("running", 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_exiting_is_restarted_with_growing_pauses() {
    let stage = Stage::new(Share::All, Bounds::default());
    let line = stage.line("a");
    ask(&line, 1, "die").await;
    ask(&line, 2, "die").await;
    let answer = ask(&line, 3, "die").await;
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("not restarted for"), "{answer}");
    assert_eq!(stage.starts(), 2, "the call fails without a start");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ask(&line, 4, "x").await["result"]["of"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_to_start_is_reported_and_retried() {
    let stage = Stage::new(Share::All, Bounds::default());
    stage.want("absent", Share::All, Bounds::default(), true);
    let line = stage.line("a");
    let answer = ask(&line, 1, "x").await;
    assert_eq!(answer["error"]["message"], "there is no such program");
    stage.want("there", Share::All, Bounds::default(), false);
    assert_eq!(ask(&stage.line("a"), 1, "x").await["result"]["of"], 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let stage = Stage::new(Share::All, Bounds::default());
    let line = stage.line("a");
    let hanging = line.clone();
    let task = tokio::spawn(async move { ask(&hanging, 1, "hang").await });
    stage.seen.until(|seen| seen.count("tools/call") == 1).await;
    task.abort();
    stage.seen.until(|seen| seen.count("notifications/cancelled") == 1).await;
    // The same holds for all calls of a client that disconnects.
    let gone = line.clone();
    let task = tokio::spawn(async move { ask(&gone, 2, "hang").await });
    stage.seen.until(|seen| seen.count("tools/call") == 2).await;
    task.abort();
    drop(line);
    stage.seen.until(|seen| seen.count("notifications/cancelled") == 2).await;
    assert_eq!(stage.gateway.status()[0].2.in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_cancelled_and_says_timeout() {
    let bounds = Bounds { call: Duration::from_secs(5), ..Bounds::default() };
    let stage = Stage::new(Share::All, bounds);
    let line = stage.line("a");
    let answer = ask(&line, 1, "hang").await;
    assert_eq!(answer["error"]["data"]["kind"], "timeout", "{answer}");
    stage.seen.until(|seen| seen.count("notifications/cancelled") == 1).await;
    assert_eq!(ask(&line, 2, "x").await["result"]["of"], 2, "the server keeps running");
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_stopped_and_restarted_by_the_next_call() {
    let bounds = Bounds { idle: Some(Duration::from_secs(60)), ..Bounds::default() };
    let stage = Stage::new(Share::All, bounds);
    let line = stage.line("a");
    ask(&line, 1, "x").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    ask(&line, 2, "x").await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(stage.gateway.status()[0].2.state, "running");
    tokio::time::sleep(Duration::from_secs(40)).await;
    let status = stage.gateway.status().remove(0).2;
    assert_eq!((status.state, status.last_error), ("asleep", None), "this is not an error");
    assert_eq!(ask(&line, 3, "x").await["result"]["of"], 3);
    assert_eq!(stage.starts(), 2);
}

#[tokio::test]
async fn each_caller_has_its_own_instance_of_an_unshared_server() {
    let stage = Stage::new(Share::Caller, Bounds { sessions: 2, ..Bounds::default() });
    for caller in ["a", "b", "a"] {
        ask(&stage.line(caller), 1, "x").await;
    }
    assert_eq!(stage.starts(), 2);
    let caller = Caller { caller: "c".into(), session: "1".into() };
    let refusal = stage.gateway.line("played", &caller).err().unwrap();
    assert_eq!(refusal.kind, RefusalKind::Limit);
    assert!(stage.gateway.line("nobody", &caller).err().unwrap().message.contains("played"));
}

#[tokio::test]
async fn a_reconfigured_server_finishes_its_calls_and_new_calls_go_to_its_successor() {
    let stage = Stage::new(Share::All, Bounds::default());
    let line = stage.line("a");
    let hanging = line.clone();
    let old = tokio::spawn(async move { ask(&hanging, 1, "hang").await });
    stage.seen.until(|seen| seen.count("tools/call") == 1).await;
    stage.want("second", Share::All, Bounds::default(), false);
    assert_eq!(ask(&stage.line("a"), 2, "x").await["result"]["of"], 2);
    assert_eq!(stage.starts(), 2);
    assert!(!old.is_finished(), "its call is still running");
    stage.gateway.configure(BTreeMap::new());
    assert_eq!(stage.gateway.names(), Vec::<String>::new());
    old.abort();
}

/// What an earlier run of patterm's server knew about the scripted server.
#[derive(Debug, Default)]
struct Known(Mutex<Remembered>);

impl Memory for Known {
    fn recall(&self, server: &str, fingerprint: &str) -> Option<Remembered> {
        assert_eq!((server, fingerprint), ("played", "first"));
        Some(self.0.lock().unwrap().clone())
    }

    fn remember(&self, _: &str, _: &str, change: &mut dyn FnMut(&mut Remembered)) {
        change(&mut self.0.lock().unwrap());
    }

    fn keep_only(&self, servers: &[&str]) {
        assert_eq!(servers, ["played"]);
    }
}

/// One run: how often the server was probed in it, and what is known afterwards.
async fn life_with(known: &Arc<Known>) -> (usize, Option<bool>, Option<String>) {
    let gateway = Gateway::remembering(known.clone());
    let stage = Stage { gateway, seen: Arc::default() };
    stage.want("first", Share::All, Bounds::default(), false);
    assert_eq!(ask(&stage.line("a"), 1, "x").await["result"]["of"], 1);
    stage.gateway.end().await;
    let is_known = || known.0.lock().unwrap().version.as_deref() == Some("1");
    while !is_known() {
        tokio::task::yield_now().await;
    }
    let known = known.0.lock().unwrap();
    (stage.seen.count("server/discover"), known.modern, known.version.clone())
}

#[tokio::test]
async fn a_server_is_probed_once_for_each_version_of_it() {
    let known = Arc::<Known>::default();
    let version = || Some("1".to_owned());
    assert_eq!(life_with(&known).await, (1, Some(false), version()));
    assert_eq!(life_with(&known).await, (0, Some(false), version()));
    // What is known about an older version does not apply to this one.
    known.0.lock().unwrap().version = Some("0".to_owned());
    assert_eq!(life_with(&known).await, (0, None, version()));
    assert_eq!(life_with(&known).await, (1, Some(false), version()));
}

#[tokio::test]
async fn output_that_is_not_protocol_is_counted_and_ignored() {
    let stage = Stage::new(Share::All, Bounds::default());
    let line = stage.line("a");
    assert_eq!(ask(&line, 1, "babble").await["result"], json!({}));
    assert_eq!(ask(&line, 2, "x").await["result"]["of"], 2);
    assert_eq!(stage.gateway.status()[0].2.noise, 1);
}
