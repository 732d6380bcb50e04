//! Upgrades from 0.1.0: everything that it runs and stores continues under this build, a failed upgrade returns to
//! it, and it reads the state that this build has written.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use patterm_wire::Framing;
use patterm_wire::requests::ServerEntry;
use serde_json::{Value, json};

use crate::http;
use crate::support::tool_client::{PATIENCE, id_of, until};
use crate::support::{Peer, Place, patterm_binary};

/// Declares a process and a shared server.
const PROJECT_FILE: &str = "
[processes.declared]
command = ['sh', '-c', 'echo declared; exec cat']

[servers.all]
command = ['{{everything}}']
";

/// Prints 1, 2, 3, … until there is a file `stop`, slowly enough that the log keeps everything.
const COUNTER: &str = r#"$| = 1; until (-e "stop") { print ++$n, "\n"; select undef, undef, undef, 0.0005 } print "end\n""#;

/// How many lines a pane prints as fast as it can while the servers change.
const FLOOD: usize = 300_000;

/// A version of patterm in a place.
struct Version<'a> {
    place: &'a Place,
    binary: PathBuf,
}

impl<'a> Version<'a> {
    /// The binary under test.
    fn of_this_build(place: &'a Place) -> Self {
        Self { place, binary: patterm_binary() }
    }

    /// 0.1.0, which the first run builds.
    #[expect(clippy::disallowed_methods, reason = "tests start what they test")]
    fn earlier(place: &'a Place) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("release/earlier");
        let output = Command::new(script).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tests/release/earlier: {errors}");
        let binary = String::from_utf8(output.stdout).unwrap().trim().into();
        Self { place, binary }
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.place.command(&self.binary).args(arguments).output().unwrap()
    }

    /// Runs a verb that must succeed.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {arguments:?}: {errors}", self.binary.display());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Calls a tool that must succeed.
    #[track_caller]
    fn call(&self, tool: &str, arguments: Value) -> Value {
        serde_json::from_str(&self.run(&["call", tool, &arguments.to_string()])).unwrap()
    }

    /// Starts a program; returns its id.
    #[track_caller]
    fn start(&self, name: &str, argv: &[&str]) -> String {
        id_of(&self.call("spawn_process", json!({"name": name, "argv": argv})))
    }

    /// Starts a fake agent and waits until it is ready.
    #[track_caller]
    fn start_agent(&self, name: &str) -> String {
        let id = id_of(&self.call("spawn_agent", json!({"agent": "fake", "name": name})));
        self.until_state(&id, "idle");
        id
    }

    #[track_caller]
    fn until_state(&self, id: &str, state: &str) {
        let status = || self.call("get_process_status", json!({"process_id": id}));
        until(&format!("{id} is {state}"), || {
            (status()["activity"]["state"] == state).then_some(())
        });
    }

    /// Sends a message; returns its number and the state of its receipt.
    #[track_caller]
    fn send(&self, id: &str, message: &str) -> (u64, String) {
        let arguments = json!({"target_process_id": id, "message": message});
        let sent = self.call("send_message", arguments);
        (sent["message_id"].as_u64().unwrap(), text(&sent["receipt"]["state"]))
    }

    /// The state of a message's receipt.
    #[track_caller]
    fn receipt(&self, message: u64) -> String {
        let status = self.call("get_project_status", json!({}));
        let known = status["messages"].as_array().unwrap().iter();
        let mut found = known.filter(|known| known["message_id"] == message);
        text(
            &found.next().unwrap_or_else(|| panic!("no message {message} in {status}"))["receipt"]
                ["state"],
        )
    }

    /// Sets a timer; returns its id.
    #[track_caller]
    fn set_timer(&self, tool: &str, arguments: Value) -> String {
        text(&self.call(tool, arguments)["timer_id"])
    }

    /// The timers by id: what each waits for, and its status.
    #[track_caller]
    fn timers(&self) -> Vec<(String, String, String)> {
        let listed = self.call("timer_list", json!({}))["timers"].take();
        let row = |timer: &Value| {
            (text(&timer["timer_id"]), text(&timer["kind"]), text(&timer["status"]))
        };
        listed.as_array().unwrap().iter().map(row).collect()
    }

    /// The processes: id, name, status and pid.
    #[track_caller]
    fn processes(&self) -> Vec<(String, String, String, Value)> {
        let listed = self.call("list_processes", json!({}))["processes"].take();
        let row = |process: &Value| {
            let id = id_of(process);
            let pid = self.call("get_process_status", json!({"process_id": id}))["pid"].take();
            (id, text(&process["name"]), text(&process["status"]), pid)
        };
        listed.as_array().unwrap().iter().map(row).collect()
    }

    /// Writes a scratchpad twice; returns its revisions.
    #[track_caller]
    fn write_pad(&self) -> [String; 2] {
        let arguments = json!({"name": "plan", "content": "one"});
        let first = text(&self.call("scratchpad_write", arguments)["revision"]);
        let arguments = json!({"name": "plan", "content": "two", "expected_revision": first});
        let second = text(&self.call("scratchpad_write", arguments)["revision"]);
        [first, second]
    }

    /// Checks that the scratchpad has its content and its revision, and refuses the one before.
    #[track_caller]
    fn check_pad(&self, [first, second]: &[String; 2]) {
        let pad = self.call("scratchpad_read", json!({"name": "plan"}));
        assert_eq!((&pad["content"], &pad["revision"]), (&json!("two"), &json!(second)), "{pad}");
        let stale = json!({"name": "plan", "content": "lost", "expected_revision": first});
        let refused = self.output(&["call", "scratchpad_write", &stale.to_string()]);
        assert!(!refused.status.success(), "{refused:?}");
    }

    /// The state of the project file.
    #[track_caller]
    fn project_file(&self) -> String {
        text(&self.call("get_project_status", json!({}))["project_file"]["state"])
    }

    /// Everything that a process has printed.
    #[track_caller]
    fn printed(&self, id: &str) -> String {
        self.run(&["logs", id, "--raw"])
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// A place with the fake agent's preset and the project file.
fn place() -> Place {
    let mut place = Place::new();
    place.set("FAKE_LOG", place.path("fake.log"));
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/fake-agent");
    let settings =
        include_str!("../../agents/fake.toml").replace("{{program}}", agent.to_str().unwrap());
    let folder = place.path("home/.config/patterm");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let file = PROJECT_FILE.replace("{{everything}}", env!("CARGO_BIN_EXE_everything-mcp"));
    std::fs::write(place.path("project/patterm.toml"), file).unwrap();
    place
}

/// The turns of the fake agents.
fn turns(place: &Place) -> Vec<String> {
    let log = std::fs::read_to_string(place.path("fake.log")).unwrap_or_default();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How many turns end with this text.
fn turns_with(place: &Place, text: &str) -> usize {
    turns(place).iter().filter(|turn| turn.ends_with(text)).count()
}

/// The bytes that 0.1.0 may lose when it ends in the middle of a read: the kernel reads a terminal in pieces of
/// this size.
const LOST_BY_0_1_0: usize = 64;

/// Checks that the output is the numbers from 1, each once, and then `end`; returns the last number. One piece may
/// be missing: 0.1.0 loses it if it reaches a new page of its log while it ends. This build does not
/// (`processes::survival::no_byte_of_a_flood_is_lost_when_the_server_is_killed`).
#[track_caller]
fn check_count(printed: &str) -> usize {
    let numbers = printed.strip_suffix("end\r\n").unwrap();
    let last = numbers.lines().next_back().unwrap().parse().unwrap();
    let complete: String = (1..=last).map(|number| format!("{number}\r\n")).collect();
    let missing = complete.len().checked_sub(numbers.len()).expect("nothing is printed twice");
    assert!(missing <= LOST_BY_0_1_0, "{missing} bytes are missing");
    let pairs = numbers.bytes().zip(complete.bytes());
    let at = pairs.take_while(|(printed, counted)| printed == counted).count();
    assert_eq!(numbers[at..], complete[at + missing..], "from byte {at}");
    last
}

/// A tool of the shared server, called through a proxy.
#[track_caller]
fn call_shared(proxy: &mut Peer, id: u64) {
    let answer = proxy.answer(id, "tools/call", json!({"name": "all__whoami", "arguments": {}}));
    assert!(answer["result"]["content"].is_array(), "{answer}");
}

#[test]
fn nothing_is_lost() {
    let place = place();
    let (old, new) = (Version::earlier(&place), Version::of_this_build(&place));
    let serving = old.run(&["serve", "--http", "127.0.0.1:0", "--json"]);
    let server: ServerEntry = serde_json::from_str(&serving).unwrap();
    assert_eq!(server.patterm, "0.1.0");
    old.run(&["trust", "--yes"]);
    let token = old.run(&["token", "new", "client"]).trim().to_owned();
    let address = server.http.unwrap();
    assert_eq!(http::whoami(address, &token), (200, json!("client")));
    let mut proxy = place.command(&old.binary);
    let mut proxy = Peer::through(proxy.arg("mcp-stdio"), Framing::Newline);
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    proxy.answer("hello", "initialize", hello);
    proxy.notify("notifications/initialized", json!({}));
    call_shared(&mut proxy, 1);

    let shell = old.start("shell", &["sh"]);
    let draft =
        json!({"process_id": shell, "kind": "text", "text": "echo $((6*7))", "submit": false});
    old.call("send_input", draft);
    until("the draft", || old.run(&["screen", &shell]).contains("6*7").then_some(()));
    let ended = old.start("ended", &["sh", "-c", "echo last words; exit 3"]);
    until("its end", || old.run(&["ps"]).contains("exited").then_some(()));
    let revisions = old.write_pad();

    let (busy, timed) = (old.start_agent("busy"), old.start_agent("timed"));
    old.send(&busy, "work gate");
    old.until_state(&busy, "working");
    let messages = ["first", "second"].map(|message| old.send(&busy, message));
    assert!(messages.iter().all(|(_, state)| state == "queued"), "{messages:?}");
    let idle = json!({"watched": [busy], "body": "after the rest", "owner_process_id": timed});
    let idle = old.set_timer("timer_fire_when_idle_all", idle);
    let delay = |seconds: u32, body: &str| {
        let timer = json!({"seconds": seconds, "body": body, "owner_process_id": timed});
        old.set_timer("timer_set", timer)
    };
    let paused = delay(10, "after the pause");
    old.call("timer_pause", json!({"timer_id": paused}));
    let pending = delay(15, "after the delay");

    let counter = old.start("counter", &["perl", "-e", COUNTER]);
    old.run(&["wait", &counter, "^100"]);
    let processes = old.processes();
    assert!(processes.iter().any(|(_, name, ..)| name == "declared"), "{processes:?}");
    let seq = format!("seq {FLOOD}; echo end");
    let flood = old.start("flood", &["sh", "-c", &seq]);

    let said = new.run(&["upgrade"]);
    assert!(said.contains("replaced patterm 0.1.0") && said.contains("keeps running"), "{said}");

    let kind = |timer: &str, kind: &str, status: &str| {
        (timer.to_owned(), kind.to_owned(), status.to_owned())
    };
    assert_eq!(
        new.timers(),
        [
            kind(&idle, "idle_all", "pending"),
            kind(&paused, "delay", "paused"),
            kind(&pending, "delay", "pending")
        ]
    );
    let mut now = new.processes();
    now.retain(|(id, ..)| *id != flood);
    assert_eq!(now, processes, "every process has its id, name, status and pid");
    assert_eq!(new.run(&["screen", &ended]).trim(), "last words");
    assert_eq!(new.project_file(), "trusted");
    new.check_pad(&revisions);
    assert_eq!(http::whoami(address, &token), (200, json!("client")));
    call_shared(&mut proxy, 2);

    new.run(&["key", &shell, "enter"]);
    new.run(&["wait", &shell, "^42"]);
    for (message, _) in &messages {
        assert_eq!(new.receipt(*message), "queued");
    }
    std::fs::write(place.path("project/gate"), "").unwrap();
    for (message, _) in &messages {
        until("the message is delivered", || (new.receipt(*message) == "delivered").then_some(()));
    }
    new.call("timer_resume", json!({"timer_id": paused}));
    for timer in ["after the rest", "after the pause", "after the delay"] {
        until(timer, || (turns_with(&place, timer) > 0).then_some(()));
    }
    for text in ["first", "second", "after the rest", "after the pause", "after the delay"] {
        assert_eq!(turns_with(&place, text), 1, "{text}: {:?}", turns(&place));
    }
    assert_eq!(new.timers(), []);

    std::fs::write(place.path("project/stop"), "").unwrap();
    for id in [&counter, &flood] {
        new.run(&["wait", id, "^end", "--timeout", &PATIENCE.as_secs().to_string()]);
    }
    check_count(&new.printed(&counter));
    assert_eq!(check_count(&new.printed(&flood)), FLOOD);

    // The keeper is still that of 0.1.0: it starts, restarts and ends programs for this build.
    let later = new.start("later", &["cat"]);
    new.run(&["restart", &shell]);
    new.run(&["close", &later]);
    drop(proxy);
    new.run(&["kill"]);
    // The keeper is still that of 0.1.0, which confirms the end before it exits.
    let project = place.path("project");
    until("everything has ended", || crate::support::running_in(&project).is_empty().then_some(()));
}

#[test]
fn an_upgrade_that_fails_returns_to_it() {
    let mut place = place();
    let old = Version::earlier(&place);
    old.run(&["serve", "--json"]);
    let id = old.start("kept", &["cat"]);
    let revisions = old.write_pad();
    let timer = json!({"seconds": 600, "body": "later", "owner_process_id": id});
    let timer = old.set_timer("timer_set", timer);
    let before = (old.processes(), old.timers());
    let binary = old.binary.clone();
    let check = |place: &Place, said: &str| {
        let old = Version { place, binary: binary.clone() };
        let pid = super::server(place).pid;
        let running = std::fs::read_link(format!("/proc/{pid}/exe"));
        assert_eq!(running.ok().as_ref(), Some(&binary), "the server has pid {pid}");
        let again = format!("patterm 0.1.0 is running again (pid {pid})");
        assert!(said.contains(&again), "{said}");
        assert_eq!((old.processes(), old.timers()), before, "{timer}");
        old.check_pad(&revisions);
        old.run(&["send", &id, "still here"]);
        old.run(&["wait", &id, "^still here"]);
    };

    // The server of this build refuses to start.
    place.set("PATTERM_LIMITS", "no_such_limit=1");
    let refused = Version::of_this_build(&place).output(&["upgrade"]);
    assert!(!refused.status.success(), "{refused:?}");
    place.set("PATTERM_LIMITS", "");
    check(&place, &String::from_utf8_lossy(&refused.stderr));

    // This build's binary vanishes after the old server has ended.
    let said = super::upgrade_by_a_removed_binary(&place);
    check(&place, &said);
}

#[test]
fn it_reads_the_state_of_this_build() {
    let place = place();
    let (old, new) = (Version::earlier(&place), Version::of_this_build(&place));
    let serving = new.run(&["serve", "--http", "127.0.0.1:0", "--json"]);
    let server: ServerEntry = serde_json::from_str(&serving).unwrap();
    new.run(&["trust", "--yes"]);
    let token = new.run(&["token", "new", "client"]).trim().to_owned();
    let (cat, agent) = (new.start("cat", &["cat"]), new.start_agent("agent"));
    let (message, _) = new.send(&agent, "hello");
    until("the message is delivered", || (new.receipt(message) == "delivered").then_some(()));
    let revisions = new.write_pad();
    let watches = json!({"watched": [cat], "body": "later", "owner_process_id": agent});
    new.set_timer("timer_fire_on_exit", watches.clone());
    new.set_timer("timer_fire_when_idle_any", watches);
    let delay = json!({"seconds": 600, "body": "later", "owner_process_id": agent});
    let paused = new.set_timer("timer_set", delay.clone());
    new.call("timer_pause", json!({"timer_id": paused}));
    let delay = new.set_timer("timer_set", delay);
    let names = |version: &Version<'_>| -> Vec<(String, String)> {
        version.processes().into_iter().map(|(id, name, ..)| (id, name)).collect()
    };
    let (before, set) = (names(&new), new.timers());
    new.run(&["kill"]);

    old.run(&["serve", "--http", &server.http.unwrap().to_string(), "--json"]);
    assert_eq!(super::server(&place).patterm, "0.1.0");
    assert_eq!(names(&old), before);
    let timers = old.timers();
    let status = |id: &str| {
        timers.iter().find(|(known, ..)| known == id).map(|(.., status)| status.as_str())
    };
    assert_eq!((status(&paused), status(&delay)), (Some("paused"), Some("pending")), "{timers:?}");
    old.check_pad(&revisions);
    assert_eq!(old.receipt(message), "delivered");
    assert_eq!(old.project_file(), "trusted");
    assert_eq!(http::whoami(server.http.unwrap(), &token), (200, json!("client")));
    // And again.
    new.run(&["upgrade"]);
    assert_eq!(names(&new), before);
    // 0.1.0 treats a timer that waits for an exit as one that waits for idle processes.
    let status_of = |timers: Vec<(String, String, String)>| -> Vec<(String, String)> {
        timers.into_iter().map(|(id, _, status)| (id, status)).collect()
    };
    assert_eq!(status_of(new.timers()), status_of(set));
    new.check_pad(&revisions);
}
