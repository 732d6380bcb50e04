//! Requirements that every engine must meet.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::engine::{CLAIMING, Engine, LABEL, PLAIN, running, until, zombies_below};
use super::harness::{Harness, Serving, call, mark, transport};
use super::image::COMMAND;

/// The label of containers that patterm starts.
const OURS: &str = "patterm.owner";

/// How soon everything must be gone after patterm was killed.
const SWEPT: Duration = Duration::from_secs(10);

/// The number of concurrent callers, and of calls of each.
const CALLERS: u64 = 10;
const CALLS: u64 = 500;

#[track_caller]
fn check(found: (u16, Value), status: u16, word: &str) {
    assert_eq!(found.0, status, "{found:?}");
    assert!(found.1.to_string().contains(word), "{word}: {found:?}");
}

pub(super) fn only_permitted_callers_use_the_server_in_a_container(engine: &dyn Engine) {
    engine.run("box", PLAIN, &[(LABEL, "alpha")]);
    engine.run("nobodys", PLAIN, &[]);
    engine.run("claiming", CLAIMING, &[]);
    engine.run("repeating", CLAIMING, &[(LABEL, "alpha")]);
    engine.run("given", CLAIMING, &[(LABEL, "beta")]);
    engine.run("asleep", PLAIN, &[(LABEL, "alpha")]);
    engine.stop("asleep");
    let harness = Harness::new(engine);
    let serving = harness.serve();
    // A caller without an identity.
    for path in [
        "/bots//containers/box/mcp",
        "/bots/%20/containers/box/mcp",
        "/bots/%20%09/containers/box/mcp",
    ] {
        check(serving.post(path, &call(1, "x", "")), 400, "bot");
    }
    // Containers that do not exist or do not run.
    check(serving.call("alpha", "nothing", "x"), 404, "nothing");
    check(serving.call("alpha", "--help", "x"), 404, "help");
    check(serving.call("alpha", "..%2Fbox", "x"), 404, "box");
    check(serving.call("alpha", "asleep", "x"), 409, "asleep");
    // Containers of others, or of nobody, whatever their image claims.
    check(serving.call("beta", "box", "x"), 403, "beta");
    check(serving.call("alpha", "nobodys", "x"), 403, LABEL);
    check(serving.call("alpha", "claiming", "x"), 403, LABEL);
    check(serving.call("alpha", "repeating", "x"), 403, LABEL);
    check(serving.call("alpha", "given", "x"), 403, LABEL);
    assert_eq!(servers(), 0, "nothing was started");
    // Its owner.
    check(serving.call("alpha", "box", "x"), 200, "pid");
    check(serving.call("beta", "given", "x"), 200, "pid");
    let failed = serving.call("alpha", "box", "fail");
    check(failed, 200, "12345678901234567890");
    let path = transport("alpha", "box");
    let notified = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    check(serving.post(&path, &notified), 202, "null");
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    let greeting = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params});
    check(serving.post(&path, &greeting), 200, r#""id":"a""#);
    check(serving.post(&path, &json!([call(1, "x", "")])), 400, "batch");
    // And still no other caller.
    check(serving.call("beta", "box", "x"), 403, "beta");
    engine.stop("box");
    until("the end of the container is known", || {
        let (status, _) = serving.call("alpha", "box", "x");
        assert!([200, 409].contains(&status), "{status}");
        (status == 409).then_some(())
    });
}

pub(super) fn containers_without_a_label_are_admitted_if_the_settings_say_so(engine: &dyn Engine) {
    engine.run("box", PLAIN, &[(LABEL, "alpha")]);
    engine.run("unlabelled", PLAIN, &[]);
    engine.run("claiming", CLAIMING, &[]);
    engine.run("repeating", CLAIMING, &[(LABEL, "alpha")]);
    let harness = Harness::new(engine).allow_unlabelled();
    let serving = harness.serve();
    // A label still counts, and an image's claim does not select a bot.
    check(serving.call("beta", "box", "x"), 403, "beta");
    for bot in ["alpha", "beta"] {
        check(serving.call(bot, "claiming", "x"), 403, LABEL);
        check(serving.call(bot, "repeating", "x"), 403, LABEL);
    }
    assert_eq!(servers(), 0, "nothing was started");
    check(serving.call("alpha", "box", "x"), 200, "pid");
    // In a container without a label, every bot has its own server.
    let pid = |bot: &str| {
        let (status, answer) = serving.call(bot, "unlabelled", "x");
        assert_eq!(status, 200, "{answer}");
        answer["result"]["pid"].as_u64().unwrap()
    };
    assert_ne!(pid("alpha"), pid("beta"), "they share nothing");
    assert_eq!(pid("alpha"), pid("alpha"));
    let listed = serving.connect().get("/servers");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let listed = listed["servers"].as_array().unwrap().clone();
    let bots = listed.iter().filter(|server| server["owner"].is_string());
    let bots: Vec<_> = bots
        .map(|server| {
            assert_eq!(server["state"], "running", "{server}");
            let name = server["name"].as_str().unwrap();
            let (name, _) = name.split_once(" (").unwrap();
            (name.to_owned(), server["owner"].as_str().unwrap().to_owned())
        })
        .collect();
    let wanted = [
        ("bots/alpha/box", "alpha"),
        ("bots/alpha/unlabelled", "alpha"),
        ("bots/beta/unlabelled", "beta"),
    ];
    assert_eq!(bots, wanted.map(|(name, bot)| (name.to_owned(), bot.to_owned())), "{listed:?}");
    let metrics = serving.connect().get("/metrics");
    let line = "patterm_server_running{server=\"bots/beta/unlabelled (";
    let running = metrics.lines().find(|found| found.starts_with(line));
    assert!(running.is_some_and(|found| found.ends_with(" 1")), "{metrics}");
}

pub(super) fn ten_callers_at_once(engine: &dyn Engine) {
    engine.run("box", PLAIN, &[(LABEL, "alpha")]);
    let harness = Harness::new(engine);
    let serving = harness.serve();
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let mut client = serving.connect();
                for id in 0..CALLS {
                    let (status, answer) =
                        client.post(&transport("alpha", "box"), &call(id, "x", ""));
                    assert_eq!((status, &answer["id"]), (200, &json!(id)), "{answer}");
                    assert!(answer["result"]["pid"].is_u64(), "{answer}");
                }
            });
        }
    });
    assert_eq!(servers(), 1, "all of them had the same server");
}

/// How many servers of this test are running; the wrapper in front of one does not count, nor does
/// a tool.
fn servers() -> usize {
    let is_server = |pid: &&u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !line.starts_with(b"ctr") && !String::from_utf8_lossy(&line).contains("--heartbeat")
    };
    running(&[COMMAND, &mark()]).iter().filter(is_server).count()
}

pub(super) fn an_engine_that_dies_and_returns(engine: &mut dyn Engine) {
    engine.run("box", PLAIN, &[(LABEL, "alpha")]);
    let harness = Harness::new(engine);
    let serving = harness.serve();
    check(serving.call("alpha", "box", "x"), 200, "pid");
    engine.kill();
    let down = until("the engine is missed", || {
        let (status, body) = serving.call("alpha", "box", "x");
        assert!([200, 502].contains(&status), "{status} {body}");
        (status == 502).then_some(body)
    });
    let socket = engine.socket().display().to_string();
    assert!(down.to_string().contains(&socket), "{down}");
    engine.restart();
    if serving.call("alpha", "box", "x").0 == 409 {
        engine.start("box");
    }
    until("the server answers again", || {
        let (status, body) = serving.call("alpha", "box", "x");
        assert_eq!(status, 200, "{body}");
        body["result"]["pid"].as_u64()
    });
    until("the server of before is gone", || (servers() == 1).then_some(()));
}

pub(super) fn patterm_is_killed_and_leaves_nothing_behind(engine: &dyn Engine) {
    engine.run("box", PLAIN, &[(LABEL, "alpha")]);
    nothing_stays_in(engine, "box");
}

/// Kills a gateway whose server in a container refuses to exit.
pub(super) fn nothing_stays_in(engine: &dyn Engine, container: &str) {
    let mark = mark();
    let first = engine.first_process(container);
    let harness = Harness::new(engine);
    let serving = harness.serve();
    check(serving.post(&transport("alpha", container), &call(1, "stay", &mark)), 200, "pid");
    until("its child runs", || (!running(&["sleep", &mark]).is_empty()).then_some(()));
    let killed = Instant::now();
    serving.kill();
    until("nothing of it runs", || {
        (running(&["sleep", &mark]).is_empty() && servers() == 0).then_some(())
    });
    // The container's first process never reaps.
    until("no zombie is left", || (zombies_below(first) == 0).then_some(()));
    assert!(killed.elapsed() < SWEPT, "{:?}", killed.elapsed());
    assert!(std::fs::metadata(format!("/proc/{first}")).is_ok(), "the container keeps running");
    // The next one starts from a clean state.
    check(harness.serve().call("alpha", container, "x"), 200, "pid");
}

pub(super) fn a_container_of_our_own(engine: &dyn Engine) {
    // Somebody else's container that looks like ours.
    engine.run("theirs", PLAIN, &[(OURS, "0123456789abcdef")]);
    let ours = || {
        let all = engine.labelled(OURS).into_iter();
        all.filter(|name| name != "theirs").collect::<Vec<_>>()
    };
    let harness = Harness::new(engine);
    let serving = harness.serve();
    let path = "/servers/own/mcp";
    check(serving.post(path, &call(1, "x", "")), 200, "pid");
    let [name] = ours().try_into().unwrap();
    let written = serving.post(path, &call(2, "write", "")).1;
    assert_eq!(written["result"], json!({"wrote": false, "said": "hello"}), "{written}");
    let first = engine.first_process(&name);
    closed(first);
    until("its processes are bounded", || bounded(first).then_some(()));
    // One for each session, removed with it.
    let sessions: Vec<_> = (0..2).map(|_| begin_session(&serving)).collect();
    until("each session has one", || (ours().len() == 3).then_some(()));
    drop(sessions);
    let mark = mark();
    check(serving.post(path, &call(3, "stay", &mark)), 200, "pid");
    serving.kill();
    let killed = Instant::now();
    let serving = harness.serve();
    until("what it left is gone", || ours().is_empty().then_some(()));
    assert!(killed.elapsed() < SWEPT, "{:?}", killed.elapsed());
    assert!(running(&["sleep", &mark]).is_empty());
    assert_eq!(engine.labelled(OURS), ["theirs"], "those of others are left alone");
    check(serving.post(path, &call(4, "x", "")), 200, "pid");
    assert_eq!(ours().len(), 1, "as many as there are sessions");
}

fn begin_session(serving: &Serving) -> Value {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let (status, answer) = serving.post("/servers/each/mcp", &greeting);
    assert_eq!(status, 200, "{answer}");
    answer
}

/// Whether a process is in a cgroup that limits the number of processes.
fn bounded(pid: u32) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let path = |prefix: &str| {
        let of = |line: &str| Some(line.split_once(prefix)?.1.to_owned());
        groups.lines().find_map(of)
    };
    let file = match path(":pids:") {
        Some(path) => format!("/sys/fs/cgroup/pids{path}/pids.max"),
        None => format!("/sys/fs/cgroup{}/pids.max", path("0::").unwrap()),
    };
    std::fs::read_to_string(file).unwrap().trim() == "256"
}

/// A process has no capabilities, no new privileges, and no network except its own loopback.
#[track_caller]
fn closed(pid: u32) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    for line in ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    let devices = std::fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap();
    let devices: Vec<_> = devices.lines().skip(2).filter_map(|l| l.split(':').next()).collect();
    let devices: Vec<_> = devices.into_iter().map(str::trim).filter(|d| *d != "lo").collect();
    assert!(devices.iter().all(|d| d.contains("tunl") || d.contains("sit")), "{devices:?}");
}
