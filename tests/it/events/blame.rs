//! `patterm blame`: who made a commit, as far as events show it.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{Repository, all, of_type};
use crate::agents::fake;
use crate::support::Place;
use crate::support::tool_client::{id_of, until};

fn blame(repository: &Repository, commit: &str) -> Value {
    serde_json::from_str(&repository.place.run(&["blame", commit, "--json"])).unwrap()
}

#[test]
fn a_commit_of_an_agent_is_told_with_its_turn_prompt_and_answers() {
    let mut place = Place::new();
    fake::settle(&mut place, "");
    // The agent commits during its turn.
    let hook = place.path("hook");
    let text = "#!/bin/sh\ncat >/dev/null\n(while [ ! -e go ]; do sleep 0.05; done
        git commit -qm turned --allow-empty; touch made) </dev/null >/dev/null 2>&1 &\n";
    std::fs::write(&hook, text).unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    place.set("FAKE_HOOK", &hook);
    let mut repository = Repository::in_place(place);
    let spawn = json!({"agent": "fake", "name": "lead"});
    let id = id_of(&repository.tools.ok("spawn_agent", spawn));
    let message = json!({"target_process_id": id, "message": "please work done"});
    let sent = repository.tools.ok("send_message", message)["message_id"].as_u64().unwrap();
    let wait = json!({"types": ["message.delivered"], "since": 1, "timeout_seconds": 60});
    assert_eq!(repository.tools.ok("wait_for_event", wait)["timed_out"], false);
    let wait = json!({"types": ["agent.working"], "since": 1, "timeout_seconds": 60});
    assert_eq!(repository.tools.ok("wait_for_event", wait)["timed_out"], false);
    let project = repository.place.path("project");
    std::fs::write(project.join("go"), "").unwrap();
    until("the commit is made", || project.join("made").exists().then_some(()));
    let hash = repository.git(&["rev-parse", "HEAD"]);
    let event = repository.commit(&hash);
    assert_eq!(event["actor"], json!({"kind": "agent", "process_id": id}));
    std::fs::write(project.join("done"), "").unwrap();
    let wait = json!({"types": ["agent.turn_ended"], "since": 1, "timeout_seconds": 60});
    assert_eq!(repository.tools.ok("wait_for_event", wait)["timed_out"], false);
    let report = blame(&repository, "HEAD");
    let (events, _) = all(&mut repository.tools);
    let number = |kind: &str| of_type(&events, kind)[0]["seq"].clone();
    assert_eq!((&report["commit"], &report["evidence"]), (&json!(hash), &json!("process_tree")));
    let process = json!({"process_id": id, "name": "lead", "kind": "agent", "preset": "fake"});
    assert_eq!(report["process"], process);
    assert_eq!(report["turn"]["began"]["event"], number("agent.working"));
    assert_eq!(report["turn"]["ended"]["event"], number("agent.turn_ended"));
    let prompt = &report["prompt"];
    assert_eq!((&prompt["message_id"], &prompt["kind"]), (&json!(sent), &json!("message")));
    assert_eq!(prompt["from"], json!({"kind": "person", "via": "cli"}));
    let shown = repository.place.run(&["blame", &hash[..10]]);
    for part in ["turned", &format!("made by  {id} (lead, fake)"), "with `git commit` on main"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(shown.contains(&format!("message {sent} from person")), "{shown}");
    // Without a server, from disk.
    repository.place.run(&["kill", "--now"]);
    assert_eq!(blame(&repository, "main")["turn"]["began"], report["turn"]["began"]);
}

#[test]
fn a_commit_without_evidence_has_none_and_the_reason_is_said() {
    let mut repository = Repository::new();
    repository.sh("git commit -qm inside --allow-empty");
    let inside = repository.git(&["rev-parse", "HEAD"]);
    repository.commit(&inside);
    repository.git(&["commit", "-qm", "outside", "--allow-empty"]);
    let report = blame(&repository, "HEAD");
    assert_eq!((&report["evidence"], &report["log_begins_later"]), (&json!("none"), &json!(false)));
    assert_eq!(report.get("actor"), None);
    let shown = repository.place.run(&["blame", "HEAD"]);
    assert!(shown.contains("made by  no evidence") && shown.contains("no git command"), "{shown}");
    // A commit that is older than the log, as its date says.
    let mut old = repository.place.command(std::path::Path::new("git"));
    old.args(["commit", "-qm", "old", "--allow-empty"]);
    assert!(old.env("GIT_COMMITTER_DATE", "2020-02-02T02:02:02Z").status().unwrap().success());
    let shown = repository.place.run(&["blame", "HEAD"]);
    assert!(
        shown.contains("the log of events begins at") && shown.contains("after this commit"),
        "{shown}"
    );
    assert_eq!(blame(&repository, "HEAD")["log_begins_later"], true);
    let unknown = repository.place.patterm(&["blame", "nothing-of-this-name"]).output().unwrap();
    let errors = String::from_utf8_lossy(&unknown.stderr);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(errors.contains("cannot find the commit nothing-of-this-name"), "{errors}");
    // What a person typed before a commit is told, without its content.
    let id = repository.place.run(&["run", "--", "sh"]).trim().to_owned();
    repository.place.run(&["send", &id, "git commit -qm typed --allow-empty; echo it is made"]);
    repository.tools.wait(&id, "^it is made");
    let typed = repository.git(&["rev-parse", "HEAD"]);
    repository.commit(&typed);
    let report = blame(&repository, &typed);
    assert_eq!(report["input"]["by"]["kind"], "person");
    assert_eq!(report["process"]["process_id"], id);
}
