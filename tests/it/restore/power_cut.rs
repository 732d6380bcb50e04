//! Without a clean shutdown: everything is killed, the machine is restarted, or the server dies
//! during a restore.

use patterm_wire::Method;
use patterm_wire::restore::{EndCause, Restore};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{offered, offers, restore, serve, status_of};
use crate::processes::survival::moment;
use crate::support::tool_client::{ToolClient, until};
use crate::support::{Place, Rng, Running, running_in};

/// Kills all of patterm in a place at once, with its programs.
fn cut_power(place: &Place) {
    let all: Vec<Running> =
        running_in(&place.path("project")).into_iter().filter_map(Running::find).collect();
    // None of them notices the others' end.
    all.iter().for_each(|process| process.signal(Signal::STOP));
    all.iter().for_each(|process| process.signal(Signal::KILL));
    all.iter().for_each(Running::wait);
    assert_eq!(running_in(&place.path("project")), Vec::<u32>::new());
}

fn edit_table(place: &Place, edit: impl FnOnce(&mut Value)) {
    let file = place.state().file("processes.json");
    let mut table: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    edit(&mut table);
    std::fs::write(&file, table.to_string()).unwrap();
}

#[test]
fn processes_that_ran_at_a_power_cut_are_offered() {
    for (rebooted, cause) in [(false, EndCause::Lost), (true, EndCause::Reboot)] {
        let place = Place::new();
        let (_, mut tools) = serve(&place);
        let cat = tools.sh("echo up; exec cat");
        tools.wait(&cat, "up");
        let exited = tools.sh("exit 0");
        tools.ended(&exited);
        let stopped = tools.run(&["cat"]);
        tools.ok("stop_process", json!({"process_id": stopped}));
        cut_power(&place);
        if rebooted {
            // Written in another boot of the machine than the next server runs in.
            edit_table(&place, |table| table["boot"] = json!("another"));
        }
        let (_, mut tools) = serve(&place);
        assert_eq!(status_of(&mut tools, &cat), "lost");
        let found = offers(&place);
        let told: Vec<_> = found.iter().map(|o| (o.id.as_str(), o.cause.clone(), o.at)).collect();
        assert_eq!(told, [(&*cat, cause, None)]);
        restore(&mut tools, json!({}));
        until("both lives", || (tools.raw(&cat).matches("up").count() == 2).then_some(()));
        assert!(offers(&place).is_empty());
    }
}

/// A server that recorded the running processes and died before it ended any of them recorded too
/// much.
#[test]
fn processes_that_kept_running_are_not_offered_although_they_were_recorded() {
    let place = Place::new();
    let (server, mut tools) = serve(&place);
    let cat = tools.run(&["cat"]);
    server.process().signal(Signal::STOP);
    edit_table(&place, |table| {
        table["processes"][0]["interrupted"] = json!({"cause": "kill", "at": 1});
    });
    server.kill();
    let (_, mut tools) = serve(&place);
    assert_eq!(status_of(&mut tools, &cat), "running");
    tools.key(&cat, "ctrl+d");
    tools.ended(&cat);
    assert!(offers(&place).is_empty(), "it ended by itself");
}

fn cats(place: &Place) -> usize {
    let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm"));
    let all = running_in(&place.path("project"));
    all.iter().filter(|pid| name(pid).is_ok_and(|name| name.trim() == "cat")).count()
}

fn running(tools: &mut ToolClient, ids: &[String]) -> usize {
    ids.iter().filter(|id| tools.status(id)["status"] == "running").count()
}

#[test]
fn a_server_that_is_killed_during_a_restore_starts_nothing_twice() {
    let place = Place::new();
    let mut rng = Rng::new(11);
    let (_, mut tools) = serve(&place);
    let ids: Vec<String> = (0..12).map(|_| tools.run(&["cat"])).collect();
    for _ in 0..5 {
        place.run(&["kill"]);
        let (mut server, mut tools) = serve(&place);
        assert_eq!(offered(&place), ids);
        // Two simultaneous decisions take effect once.
        let mut other = ToolClient::at(&server.socket());
        loop {
            tools.ask(Restore::NAME, json!({}));
            other.ask(Restore::NAME, json!({}));
            moment(&mut rng);
            server.kill();
            (server, tools) = serve(&place);
            other = ToolClient::at(&server.socket());
            until("nothing runs unseen", || {
                (cats(&place) == running(&mut tools, &ids)).then_some(())
            });
            if running(&mut tools, &ids) == ids.len() {
                break;
            }
            assert!(
                !offers(&place).is_empty(),
                "processes that are not restored are still offered"
            );
        }
        assert!(offers(&place).is_empty());
    }
}
