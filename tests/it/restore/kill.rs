//! `patterm kill`, a signal, and the person's decision afterwards.

use patterm_wire::Method;
use patterm_wire::restore::{EndCause, Restore, RestoreMode};
use rustix::process::Signal;
use serde_json::json;

use super::{offered, offers, restore, serve, status_of};
use crate::support::Place;
use crate::support::tool_client::{id_of, until};

#[test]
fn processes_that_ran_at_a_kill_are_offered_and_restored_unchanged() {
    let place = Place::new();
    let (_, mut tools) = serve(&place);
    let shell = id_of(&tools.ok("spawn_process", json!({"kind": "terminal", "name": "mine"})));
    let folder = place.folder("project/deep");
    let command = id_of(&tools.ok(
        "spawn_process",
        json!({"argv": ["sh", "-c", "echo $COLOUR in $PWD; exec cat"], "name": "dev",
            "env": {"COLOUR": "green"}, "working_dir": "deep"}),
    ));
    tools.wait(&command, "green in");
    let exited = tools.sh("exit 3");
    tools.ended(&exited);
    let stopped = tools.run(&["cat"]);
    tools.ok("stop_process", json!({"process_id": stopped}));
    let closed = tools.run(&["cat"]);
    tools.close(&closed);
    let argv = tools.status(&command)["argv"].clone();
    place.run(&["kill"]);

    let (_, mut tools) = serve(&place);
    let found = offers(&place);
    let ids: Vec<_> = found.iter().map(|offer| offer.id.as_str()).collect();
    assert_eq!(ids, [&shell, &command]);
    for offer in &found {
        assert_eq!(
            (offer.how.clone(), offer.cause.clone(), &offer.reason),
            (RestoreMode::Again, EndCause::Kill, &None)
        );
        assert!(offer.at.is_some());
    }
    let listed = place.run(&["ps"]);
    assert!(listed.contains("2 processes were running when everything was ended"), "{listed}");
    assert_eq!(tools.status(&shell)["can_be_brought_back"], true);
    assert_eq!(status_of(&mut tools, &shell), "stopped", "nothing is started unasked");

    let printed = place.run(&["restore"]);
    assert_eq!(printed, format!("{shell:<6} mine started again\n{command:<6} dev started again\n"));
    for id in [&shell, &command] {
        let status = tools.status(id);
        assert_eq!((&status["status"], &status["runs"]), (&json!("running"), &json!(2)), "{id}");
    }
    assert_eq!(tools.status(&command)["argv"], argv);
    let folder = folder.canonicalize().unwrap();
    let line = format!("green in {}", folder.display());
    until("its second words", || (tools.raw(&command).matches(&line).count() == 2).then_some(()));
    assert_eq!(status_of(&mut tools, &exited), "exited");
    assert_eq!(status_of(&mut tools, &stopped), "stopped");
    assert!(offers(&place).is_empty());
    assert!(!place.run(&["ps"]).contains("ran when everything"));
    assert_eq!(place.run(&["restart", "--bring-back"]), "nothing to restore\n");
}

#[test]
fn declined_processes_stay_removed() {
    let place = Place::new();
    let (_, mut tools) = serve(&place);
    let ids: Vec<String> = (0..3).map(|_| tools.run(&["cat"])).collect();
    place.run(&["kill"]);
    let (_, mut tools) = serve(&place);
    let declined = restore(&mut tools, json!({"ids": [ids[0]], "decline": true}));
    assert_eq!(declined.len(), 1);
    assert_eq!(offered(&place), ids[1..]);
    // Undecided is not declined, however many servers come and go.
    place.run(&["kill"]);
    let (server, _) = serve(&place);
    assert_eq!(offered(&place), ids[1..]);
    server.kill();
    let (_, mut tools) = serve(&place);
    assert_eq!(offered(&place), ids[1..]);
    let back = restore(&mut tools, json!({"ids": [ids[2], ids[0], "p99"]}));
    let how: Vec<_> =
        back.iter().map(|back| (back.process_id.as_str(), back.how.clone())).collect();
    assert_eq!(
        how,
        [(&*ids[0], RestoreMode::Not), ("p99", RestoreMode::Not), (&*ids[2], RestoreMode::Again)]
    );
    restore(&mut tools, json!({"decline": true}));
    assert!(offers(&place).is_empty());
    place.run(&["kill"]);
    assert_eq!(offered(&place), [ids[2].clone()], "only what ran since");
    let (_, mut tools) = serve(&place);
    assert_eq!(tools.ids(), ids, "the entries stay");
    // Starting a process by hand is a decision, and so is closing one.
    tools.ok("start_process", json!({"process_id": ids[2]}));
    assert!(offers(&place).is_empty());
}

#[test]
fn a_failed_restore_stops_no_other_and_stays_offered() {
    let place = Place::new();
    let (_, mut tools) = serve(&place);
    let folder = place.folder("project/gone");
    let gone = id_of(&tools.ok("spawn_process", json!({"argv": ["cat"], "working_dir": "gone"})));
    let cat = tools.run(&["cat"]);
    place.run(&["kill"]);
    std::fs::remove_dir(&folder).unwrap();
    let (_, mut tools) = serve(&place);
    let output = place.patterm(&["restore"]).output().unwrap();
    let (printed, errors) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    let (printed, errors) = (printed.unwrap(), errors.unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        printed.contains("cat not started: ") && printed.contains("cat-2 started again"),
        "{printed}"
    );
    assert!(errors.contains("1 of 2 processes could not be restored"), "{errors}");
    assert_eq!(status_of(&mut tools, &cat), "running");
    assert_eq!(offered(&place), [&*gone]);
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(restore(&mut tools, json!({}))[0].how, RestoreMode::Again);
    assert_eq!(status_of(&mut tools, &gone), "running");
}

#[test]
fn processes_are_also_offered_after_a_signal_ended_the_server() {
    let place = Place::new();
    let (server, mut tools) = serve(&place);
    let cat = tools.run(&["cat"]);
    // At a logout everything is terminated, and some processes are faster.
    let fast = tools.run(&["cat"]);
    let pid = u32::try_from(tools.status(&fast)["pid"].as_u64().unwrap()).unwrap();
    crate::support::Running::of(pid).signal(Signal::TERM);
    tools.ended(&fast);
    server.end_with(Signal::TERM);
    let found = offers(&place);
    let causes: Vec<_> =
        found.iter().map(|offer| (offer.id.as_str(), offer.cause.clone())).collect();
    assert_eq!(causes, [(&*cat, EndCause::Signal), (&*fast, EndCause::Signal)]);
}

#[test]
fn an_upgrade_ends_nothing_and_offers_nothing() {
    let place = Place::new();
    let (_, mut tools) = serve(&place);
    let cat = tools.run(&["cat"]);
    place.run(&["upgrade"]);
    let (_, mut tools) = serve(&place);
    tools.key(&cat, "ctrl+d");
    tools.ended(&cat);
    assert!(offers(&place).is_empty());
}

#[test]
fn invalid_restore_requests_are_reported() {
    let place = Place::new();
    let (_, mut tools) = serve(&place);
    for params in [json!({"ids": "p1"}), json!({"decline": 1}), json!({"all": true})] {
        let refusal = tools.call(Restore::NAME, params).unwrap_err();
        assert!(
            refusal.message.contains("the parameters of patterm/bring_back are invalid"),
            "{refusal:?}"
        );
    }
    let output = place.patterm(&["restart"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
