//! Survival: whichever process of patterm is killed, the programs live on, and no byte is lost or
//! duplicated.

use std::time::Duration;

use patterm_wire::Framing;
use patterm_wire::requests::ServerEntry;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::tool_client::{ToolClient, alive, long, until};
use crate::support::{Peer, Place, Rng, Running, running_in};

/// Prints numbers until a file `stop` exists, in bursts with pauses between them.
pub(crate) const COUNTER: &str = "n=0; until [ -e stop ]; do
    m=0; while [ $m -lt 40 ]; do n=$((n + 1)); m=$((m + 1)); echo $n; done
    sleep 0.02; done; echo end $n; exec cat";

/// Queries its terminal repeatedly and counts the replies: four bytes for each, and none without a
/// query. A query that a dying server had read may stay unanswered.
const ASKER: &str = "stty raw -echo min 0 time 2; asked=0; bytes=0
    take() { bytes=$((bytes + $(dd bs=64 count=1 2>/dev/null | wc -c))); }
    until [ -e stop ]; do asked=$((asked + 1)); printf '\\033[5n'; take; done
    take; take; take; stty sane; echo; echo asked $asked, answered $((bytes / 4)); exec cat";

/// No query has two replies.
#[track_caller]
fn check_answers(line: &str) {
    let words = line.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    let [asked, answered] = numbers[..] else { panic!("{line}") };
    assert!(answered > 0 && answered <= asked, "{line}");
}

/// The current server of a place, started if there is none.
pub(super) fn server(place: &Place) -> ServerEntry {
    serde_json::from_str(&place.run(&["serve", "--json"])).unwrap()
}

pub(crate) fn desk_of(place: &Place) -> (ToolClient, Running) {
    let entry = server(place);
    (ToolClient::at(&entry.socket), Running::of(entry.pid))
}

pub(crate) fn kill(process: &Running) {
    process.signal(Signal::KILL);
    process.wait();
}

/// Waits for a random moment, independent of the server's work.
pub(crate) fn moment(rng: &mut Rng) {
    let (_never, nothing) = std::sync::mpsc::sync_channel::<()>(0);
    let pause = Duration::from_micros(rng.within(0..40_000) as u64);
    let _ = nothing.recv_timeout(pause);
}

/// Checks that all numbers from one to the last are there, once and in order.
#[track_caller]
pub(crate) fn check_counted(text: &str) {
    let mut last = 0u64;
    for line in text.lines() {
        if let Some(end) = line.strip_prefix("end ") {
            assert_eq!(end.parse(), Ok(last));
            assert!(last > 0);
            return;
        }
        last += 1;
        assert_eq!(line.parse(), Ok(last), "after {} bytes", text.find(line).unwrap());
    }
    panic!("it never ended");
}

/// The state that must be the same before and after.
fn look(tools: &mut ToolClient, id: &str) -> (Value, Value) {
    let mut status = tools.status(id);
    status["usage"].take();
    // The next server has not seen it print yet.
    status["activity"].take();
    let mut grid = tools.grid(id);
    // A count of changes, not a property of the screen; that it never goes back is tested below.
    status["screen_version"].take();
    grid["screen_version"].take();
    (status, grid)
}

#[test]
fn the_server_is_killed_while_panes_count() {
    let place = Place::new();
    let mut rng = Rng::new(3);
    let (mut tools, mut process) = desk_of(&place);
    let ids: Vec<String> = (0..4).map(|_| tools.sh(COUNTER)).collect();
    let mut proxy =
        ToolClient::new(Peer::through(&mut place.patterm(&["mcp-stdio"]), Framing::Newline));
    let asking = tools.sh(ASKER);
    let ids = [ids, vec![asking.clone()]].concat();
    let pids: Vec<u64> = ids.iter().map(|id| tools.status(id)["pid"].as_u64().unwrap()).collect();
    assert_eq!(proxy.ids(), ids);
    let pad = tools.ok("scratchpad_append", json!({"name": "plan", "content": "as it was"}));
    let timer = json!({"seconds": 86_400, "body": "later", "owner_process_id": ids[0]});
    let timer = tools.ok("timer_set", timer)["timer_id"].clone();
    let times = if long() { 1_000 } else { 200 };
    let mut offsets = vec![0; ids.len()];
    for _ in 0..times {
        moment(&mut rng);
        kill(&process);
        (tools, process) = desk_of(&place);
        for ((id, pid), offset) in ids.iter().zip(&pids).zip(&mut offsets) {
            let status = tools.status(id);
            assert_eq!((&status["status"], &status["pid"]), (&json!("running"), &json!(pid)));
            let now = status["output_offset"].as_u64().unwrap();
            assert!(now >= *offset, "offsets never go back");
            *offset = now;
        }
        // A proxy finds the next server, whatever it was asked before.
        assert_eq!(proxy.ids(), ids);
        let read = tools.ok("scratchpad_read", json!({"name": "plan"}));
        assert_eq!((&read["content"], &read["revision"]), (&json!("as it was"), &pad["revision"]));
        let timers = tools.ok("timer_list", json!({}));
        assert_eq!(timers["timers"][0]["timer_id"], timer, "{timers}");
    }
    std::fs::write(place.path("project/stop"), "").unwrap();
    let ids = &ids[..4];
    check_answers(&tools.wait(&asking, r"^asked \d+, answered \d+$"));
    for id in ids {
        tools.wait(id, r"^end \d+$");
    }
    let before: Vec<_> = ids.iter().map(|id| look(&mut tools, id)).collect();
    kill(&process);
    (tools, _) = desk_of(&place);
    for (id, before) in ids.iter().zip(&before) {
        assert_eq!(look(&mut tools, id), *before);
        check_counted(&tools.raw(id));
        tools.line(id, "still typed into");
        tools.wait(id, "still typed into");
    }
}

/// Lines of each flood: a few megabytes, so that it lasts longer than the server.
const FLOOD: u64 = 500_000;

#[test]
fn no_byte_of_a_flood_is_lost_when_the_server_is_killed() {
    let place = Place::new();
    let mut rng = Rng::new(11);
    let (mut tools, mut process) = desk_of(&place);
    for _ in 0..if long() { 500 } else { 20 } {
        let id = tools.sh(&format!("seq {FLOOD}; echo end {FLOOD}"));
        moment(&mut rng);
        kill(&process);
        (tools, process) = desk_of(&place);
        tools.wait(&id, r"^end \d+$");
        check_counted(&tools.raw(&id));
        tools.close(&id);
    }
}

/// A process that was being started at that moment either runs and is known, or does not exist.
#[test]
fn the_server_is_killed_while_it_starts_programs() {
    let place = Place::new();
    let mut rng = Rng::new(7);
    let (mut tools, mut process) = desk_of(&place);
    for turn in 0..20 {
        let ids = tools.ids();
        for _ in 0..3 {
            tools.ask("spawn_process", json!({"argv": ["cat"]}));
        }
        if let Some(id) = ids.first() {
            tools.ask("restart_process", json!({"process_id": id}));
        }
        let (_never, nothing) = std::sync::mpsc::sync_channel::<()>(0);
        let _ = nothing.recv_timeout(Duration::from_micros(rng.within(0..15_000) as u64));
        kill(&process);
        (tools, process) = desk_of(&place);
        let mut running = 0;
        for id in tools.ids() {
            match tools.status(&id)["status"].as_str().unwrap() {
                "running" => {
                    running += 1;
                    tools.line(&id, "typed");
                    tools.wait(&id, "typed");
                }
                "lost" | "stopped" | "exited" => {}
                other => panic!("{id} is {other}"),
            }
        }
        let cats = || {
            let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm"));
            let all = running_in(&place.path("project"));
            all.iter().filter(|pid| name(pid).is_ok_and(|name| name.trim() == "cat")).count()
        };
        until("nothing runs unseen", || (cats() == running).then_some(()));
        if turn % 5 == 4 {
            for id in tools.ids() {
                tools.close(&id);
            }
        }
    }
}

#[test]
fn waiting_callers_are_told_when_the_server_dies() {
    let place = Place::new();
    let (mut tools, process) = desk_of(&place);
    let id = tools.run(&["cat"]);
    let waiting = json!({"process_id": id, "pattern": "never", "timeout_seconds": 600});
    let mut proxy =
        ToolClient::new(Peer::through(&mut place.patterm(&["mcp-stdio"]), Framing::Newline));
    proxy.ids();
    proxy.ask("wait_for_pattern", waiting);
    // In flight: the server answers in order what it can answer at once.
    proxy.ask("whoami", json!({}));
    proxy.receive().unwrap();
    kill(&process);
    let refusal = proxy.receive().unwrap_err();
    assert!(refusal.message.contains("server"), "{refusal:?}");
    assert_eq!(proxy.ids(), [id], "the same proxy, the next server");
}

/// Without any request: the keeper alone restarts the server.
#[test]
fn the_keeper_starts_the_server_again() {
    let place = Place::new();
    let (mut tools, process) = desk_of(&place);
    let id = tools.run(&["cat"]);
    kill(&process);
    until("a server", || {
        let listed: Vec<ServerEntry> = serde_json::from_str(&place.run(&["ls", "--json"])).unwrap();
        listed.into_iter().find(|entry| entry.project == place.project().root())
    });
    let (mut tools, _) = desk_of(&place);
    assert_eq!(tools.status(&id)["status"], "running");
}

#[test]
fn an_exit_while_no_server_runs_is_known_to_the_next() {
    let place = Place::new();
    let (mut tools, process) = desk_of(&place);
    let id = tools.sh("echo up; while [ ! -e go ]; do sleep 0.01; done; echo last words; exit 6");
    tools.wait(&id, "up");
    let pid = u32::try_from(tools.status(&id)["pid"].as_u64().unwrap()).unwrap();
    let program = Running::of(pid);
    kill(&process);
    std::fs::write(place.path("project/go"), "").unwrap();
    program.wait();
    let (mut tools, process) = desk_of(&place);
    let status = tools.ended(&id);
    assert_eq!((&status["status"], &status["exit"]), (&json!("exited"), &json!({"code": 6})));
    assert_eq!(tools.rows(&id), ["up", "last words"]);
    kill(&process);
    let (mut tools, _) = desk_of(&place);
    assert_eq!(tools.rows(&id), ["up", "last words"], "and to the one after");
    assert_eq!(tools.status(&id)["exit"], json!({"code": 6}));
    tools.ok("start_process", json!({"process_id": id}));
    tools.wait(&id, "last words");
}

/// Programs query the terminal. A replay must not send a reply again.
#[test]
fn no_query_is_answered_twice() {
    let place = Place::new();
    let (mut tools, mut process) = desk_of(&place);
    let id = tools.sh("stty raw -echo; printf '\\033[6n\\033[c'; exec cat -v");
    tools.wait(&id, r"\^\[\[1;1R\^\[\[\?[\d;]+c");
    let raw = tools.raw(&id);
    for turn in 1..=3 {
        kill(&process);
        (tools, process) = desk_of(&place);
        tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "|"}));
        tools.wait(&id, &format!(r"\|{{{turn}}}"));
    }
    assert_eq!(tools.raw(&id), format!("{raw}|||"));
}

#[test]
fn clients_are_killed_and_nobody_else_notices() {
    let place = Place::new();
    let mut rng = Rng::new(5);
    let (mut tools, process) = desk_of(&place);
    let id = tools.sh(COUNTER);
    // Together with those over HTTP and on terminals, which have their own tests: 500.
    let times = if long() { 2_500 } else { 300 };
    for turn in 0..times {
        let mut client =
            ToolClient::new(Peer::through(&mut place.patterm(&["mcp-stdio"]), Framing::Newline));
        match turn % 3 {
            0 => {
                client.ask("wait_for_pattern", json!({"process_id": id, "pattern": "never"}));
            }
            1 => {
                client.ask("get_process_raw_output", json!({"process_id": id}));
            }
            _ => assert_eq!(client.ids(), [&*id]),
        }
        moment(&mut rng);
        client.peer.signal(Signal::KILL);
        client.peer.wait();
    }
    assert!(!process.is_gone(), "the same server");
    std::fs::write(place.path("project/stop"), "").unwrap();
    tools.wait(&id, r"^end \d+$");
    check_counted(&tools.raw(&id));
}

/// The keeper of a place.
fn keeper(place: &Place) -> u32 {
    let mut keepers = running_in(&place.path("project")).into_iter().filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // Its inits are forks of it with another name.
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"keeper") && name.trim() != "patterm-init"
    });
    let keeper = keepers.next().expect("a keeper");
    assert_eq!(keepers.next(), None, "one keeper");
    keeper
}

#[test]
fn the_keeper_is_killed_and_replaced_and_nothing_is_lost() {
    let place = Place::new();
    let (mut tools, mut process) = desk_of(&place);
    let mut ids = vec![tools.sh(COUNTER), tools.sh(COUNTER)];
    for _ in 0..3 {
        let old = keeper(&place);
        kill(&Running::of(old));
        // Immediately: programs live, and new ones start.
        ids.push(tools.sh(COUNTER));
        for id in &ids {
            assert_eq!(tools.status(id)["status"], "running");
        }
        assert_ne!(keeper(&place), old);
        // The new keeper keeps all of them when the server dies.
        kill(&process);
        (tools, process) = desk_of(&place);
        assert_eq!(tools.ids(), ids);
        for id in &ids {
            assert_eq!(tools.status(id)["status"], "running", "{id}");
        }
    }
    // Also without a call that needs it.
    let old = keeper(&place);
    kill(&Running::of(old));
    until("another keeper", || {
        let others = running_in(&place.path("project")).into_iter();
        others.filter(|pid| *pid != old).find(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"keeper") && name.trim() != "patterm-init"
        })
    });
    until("the server says so", || {
        let log = std::fs::read_to_string(place.state().file("server.log")).unwrap();
        log.contains("the keeper died").then_some(())
    });
    std::fs::write(place.path("project/stop"), "").unwrap();
    for id in &ids {
        tools.wait(id, r"^end \d+$");
        check_counted(&tools.raw(id));
    }
    let closed = tools.close(&ids[0]);
    assert_eq!(closed, [ids[0].clone()]);
    place.run(&["kill"]);
    assert_eq!(running_in(&place.path("project")), Vec::<u32>::new());
}

#[test]
fn keeper_and_server_are_killed_together_and_the_loss_is_reported() {
    let place = Place::new();
    let (mut tools, process) = desk_of(&place);
    let id = tools.sh("echo up; exec cat");
    tools.wait(&id, "up");
    let program = Running::of(tools.status(&id)["pid"].as_u64().unwrap().try_into().unwrap());
    let keeper = Running::of(keeper(&place));
    process.signal(Signal::STOP);
    kill(&keeper);
    kill(&process);
    program.wait();
    let (mut tools, _) = desk_of(&place);
    assert_eq!(tools.status(&id)["status"], "lost");
    assert_eq!(tools.rows(&id), ["up"], "its output is there");
    tools.ok("start_process", json!({"process_id": id}));
    tools.wait(&id, "up");
}

#[test]
fn kill_ends_everything_and_leaves_nothing() {
    let place = Place::new();
    let (mut tools, process) = desk_of(&place);
    let id = tools.sh("trap '' HUP INT TERM
        (setsid sh -c '(trap \"\" HUP INT TERM; while :; do sleep 1000; done) &' &)
        setsid sleep 1000 & echo up; while :; do sleep 1000; done");
    tools.wait(&id, "up");
    tools.run(&["cat"]);
    let pids = running_in(&place.path("project"));
    assert!(pids.len() >= 7, "server, keeper, two inits, programs: {pids:?}");
    place.run(&["kill"]);
    assert!(process.is_gone());
    assert!(!pids.iter().any(|pid| alive(*pid)), "nothing is left when the verb returns");
    assert_eq!(running_in(&place.path("project")), Vec::<u32>::new());
    let (mut tools, _) = desk_of(&place);
    assert_eq!(tools.status(&id)["status"], "stopped");
    assert_eq!(tools.rows(&id), ["up"]);
}

/// Its programs exist although the server does not.
#[test]
fn kill_ends_the_programs_of_a_dead_server_too() {
    let place = Place::new();
    let (mut tools, process) = desk_of(&place);
    let id = tools.run(&["cat"]);
    let program = Running::of(tools.status(&id)["pid"].as_u64().unwrap().try_into().unwrap());
    kill(&process);
    let printed = place.run(&["kill"]);
    assert!(printed.starts_with("ended the server of "), "{printed}");
    assert!(program.is_gone());
    assert_eq!(running_in(&place.path("project")), Vec::<u32>::new());
    assert_eq!(place.run(&["kill"]), "no server is running for this project\n");
}

#[test]
fn a_damaged_table_is_set_aside_and_running_programs_get_new_entries() {
    let place = Place::new();
    let (mut tools, process) = desk_of(&place);
    let closed = tools.run(&["cat"]);
    let id = tools.run(&["cat"]);
    tools.close(&closed);
    tools.line(&id, "typed before");
    tools.wait(&id, "^typed before$");
    until("the echo and the line", || (tools.rows(&id).len() == 2).then_some(()));
    let program = Running::of(tools.status(&id)["pid"].as_u64().unwrap().try_into().unwrap());
    let table = place.state().file("processes.json");
    process.signal(Signal::STOP);
    std::fs::write(&table, "{\"version\":1,\"proc").unwrap();
    kill(&process);
    let (mut tools, _) = desk_of(&place);
    // Its entry is lost; the program continues in a new one, made from the running process.
    assert_eq!(tools.ids(), [id.as_str()]);
    let status = tools.status(&id);
    assert_eq!((&status["status"], &status["name"]), (&json!("running"), &json!("cat")));
    assert_eq!(status["argv"], json!(["cat"]));
    assert_eq!(tools.rows(&id), ["typed before", "typed before"], "with its output");
    tools.line(&id, "typed after");
    tools.wait(&id, "^typed after$");
    assert!(!program.is_gone());
    let kept = std::fs::read_dir(table.parent().unwrap())
        .unwrap()
        .flatten()
        .find(|file| file.file_name().to_string_lossy().starts_with("processes.json.damaged-"));
    assert_eq!(std::fs::read(kept.unwrap().path()).unwrap(), b"{\"version\":1,\"proc");
    let log = std::fs::read_to_string(place.state().file("server.log")).unwrap();
    assert!(log.contains("damaged"), "{log}");
    let next = tools.run(&["cat"]);
    assert!(next != id && next != closed, "an id is never used again");
    assert_eq!(tools.close(&id), [id]);
    program.wait();
}

#[test]
fn the_keeper_starts_a_server_again_whose_binary_was_removed() {
    let place = Place::new();
    let moved = place.path("patterm-that-moves");
    std::fs::copy(place.binary(), &moved).unwrap();
    let started = place.command(&moved).args(["run", "--name", "kept", "--", "cat"]).status();
    assert!(started.unwrap().success());
    let (mut tools, process) = desk_of(&place);
    let pid = tools.status("kept")["pid"].clone();
    std::fs::remove_file(&moved).unwrap();
    kill(&process);
    let (mut tools, _) = desk_of(&place);
    assert_eq!(tools.status("kept")["pid"], pid);
    place.run(&["kill"]);
}
