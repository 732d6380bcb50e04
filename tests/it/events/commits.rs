//! Commits that programs in panes make: each has one event, with the process that made it.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Repository, all, of_type};
use crate::support::tool_client::{ToolClient, id_of, until};
use crate::support::{Place, Rng};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// How often each commit is recorded.
fn counts(commits: &[Value]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for event in commits {
        *counts.entry(text(&event["data"]["commit"])).or_default() += 1;
    }
    counts
}

#[test]
fn a_commit_has_its_process_files_and_branch() {
    let mut repository = Repository::new();
    let id = repository.sh("echo 1 >a; echo 2 >b; git add .; git commit -qm 'a subject'");
    let hash = repository.git(&["rev-parse", "HEAD"]);
    let event = repository.commit(&hash);
    let data = &event["data"];
    assert_eq!((&event["process_id"], &event["run"]), (&json!(id), &json!(1)));
    assert_eq!(event["actor"], json!({"kind": "person", "via": "view"}));
    let expected = json!({"commit": hash, "subject": "a subject", "branch": "main",
        "repository": repository.place.path("project"), "command": "commit", "files": ["a", "b"],
        "file_count": 2, "insertions": 2, "deletions": 0, "ended_at": data["ended_at"],
        "evidence": "process_tree"});
    assert_eq!(*data, expected);
    assert_eq!(event.get("recovered"), None);
    repository.tools.close(&id);
    let folder = repository.place.state().file("git");
    until("the folder of the run is gone", || {
        std::fs::read_dir(&folder).unwrap().next().is_none().then_some(())
    });
}

#[test]
fn commits_of_an_agents_programs_are_the_agents() {
    let place = Place::new();
    std::fs::write(place.path("home/.gitconfig"), super::GIT_SETTINGS).unwrap();
    let server = place.serve_in_process();
    let (lead, token) = server.agent("lead", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    let git = "git -c user.name=n -c user.email=e@example.org";
    let script =
        format!("git init -q && {git} commit -qm x --allow-empty && git rev-parse HEAD && cat");
    let id = agent.sh(&script);
    let hash = agent.wait(&id, "^[0-9a-f]{40}$");
    let event = until("the event", || {
        let (events, _) = all(&mut agent);
        of_type(&events, "git.commit").first().map(|event| (*event).clone())
    });
    assert_eq!(event["data"]["commit"], hash.trim());
    assert_eq!(event["actor"], json!({"kind": "agent", "process_id": lead.id.as_str()}));
    assert_eq!(event["process_id"], id);
}

#[test]
fn amended_rebased_and_merged_commits_are_recorded_once_each() {
    let mut repository = Repository::new();
    repository.sh("one() { echo $1 >$1; git add $1; git commit -qm $1; }
        one a; git commit -q --amend -m a2
        git checkout -qb side; one b; one c
        git checkout -q main; one d
        git checkout -q side; git rebase -q main
        git checkout -q main; git merge -q --no-ff -m merged side
        git cherry-pick --allow-empty --keep-redundant-commits HEAD~1 >/dev/null
        git revert --no-edit HEAD~1 -m 1 >/dev/null
        git checkout -qb ff HEAD~3; git merge -q main
        git switch -q main");
    let written = repository.git(&["log", "-g", "--format=%H %gs", "HEAD"]);
    let old = ["checkout:", "rebase (start)", "rebase (finish)", "merge main: Fast-forward"];
    let is_new = |line: &&str| !old.iter().any(|old| line[41..].starts_with(old));
    let expected: BTreeMap<String, usize> =
        written.lines().filter(is_new).map(|line| (line[..40].to_owned(), 1)).collect();
    assert_eq!(expected.len(), 10, "{written}");
    let commits = until("all commits", || {
        Some(repository.commits()).filter(|commits| commits.len() >= expected.len())
    });
    let counts: BTreeMap<String, usize> =
        counts(&commits).into_iter().map(|(hash, count)| (hash.to_owned(), count)).collect();
    assert_eq!(counts, expected);
    let of = |member: &str| -> Vec<&str> {
        commits.iter().map(|event| text(&event["data"][member])).collect()
    };
    let commands = ["commit", "commit", "commit", "commit", "commit", "rebase", "rebase", "merge"];
    assert_eq!(of("command")[..8], commands);
    assert_eq!(of("command")[8..], ["cherry-pick", "revert"]);
    let branches = ["main", "main", "side", "side", "main", "side", "side", "main", "main", "main"];
    assert_eq!(of("branch"), branches);
    assert!(of("evidence").iter().all(|evidence| *evidence == "process_tree"), "{commits:?}");
    let moved = until("all checkouts", || {
        let (events, _) = all(&mut repository.tools);
        let moved = of_type(&events, "git.branch");
        let moved = moved.iter().map(|event| text(&event["data"]["branch"]).to_owned());
        Some(moved.collect::<Vec<_>>()).filter(|moved| moved.len() >= 6)
    });
    assert_eq!(moved, ["side", "main", "side", "main", "ff", "main"]);
}

#[test]
fn commits_in_a_submodule_and_in_a_linked_worktree_name_their_folders() {
    let mut repository = Repository::new();
    repository.sh("git commit -qm first --allow-empty
        git init -q ../library; git -C ../library commit -qm library --allow-empty
        git submodule --quiet add ../library sub; git commit -qm 'add it'
        cd sub; git commit -qm inside --allow-empty; cd ..
        git worktree add -q -b work ../linked; cd ../linked; git commit -qm apart --allow-empty");
    for (folder, branch) in [("project/sub", "main"), ("linked", "work")] {
        let folder = repository.place.path(folder);
        let hash = repository.git(&["-C", folder.to_str().unwrap(), "rev-parse", "HEAD"]);
        let event = repository.commit(&hash);
        let data = &event["data"];
        assert_eq!(
            (text(&data["repository"]), text(&data["branch"])),
            (folder.to_str().unwrap(), branch)
        );
    }
}

#[test]
fn commits_are_recorded_exactly_once_while_servers_die() {
    let mut repository = Repository::new();
    let mut rng = Rng::new(7);
    let script = "i=0; while [ $i -lt 100 ]; do git commit -qm $i --allow-empty; i=$((i+1)); done; \
        echo all is done; cat";
    let id = repository.place.run(&["run", "--", "sh", "-c", script]).trim().to_owned();
    for _ in 0..6 {
        let process = repository.server.process();
        let millis = rng.within(5..150) as u64;
        let (_never, nothing) = std::sync::mpsc::sync_channel::<()>(0);
        let _ = nothing.recv_timeout(std::time::Duration::from_millis(millis));
        process.signal(Signal::KILL);
        process.wait();
        repository.server = repository.place.serve();
    }
    repository.tools = ToolClient::at(&repository.server.socket());
    repository.tools.wait(&id, "all is done");
    let written = repository.git(&["rev-list", "HEAD"]);
    let made = written.lines().count();
    let commits = until("all commits", || {
        Some(repository.commits()).filter(|commits| counts(commits).len() >= made)
    });
    let counts = counts(&commits);
    assert!(written.lines().all(|hash| counts.get(hash) == Some(&1)), "{counts:?}");
    assert_eq!(counts.len(), made);
    assert!(repository.place.run(&["events", "verify"]).contains("; nothing is damaged"));
}

#[test]
fn a_commit_without_a_server_is_recorded_by_the_next_one() {
    let mut repository = Repository::new();
    let script = "echo ready; while [ ! -e go ]; do sleep 0.05; done; \
        git commit -qm late --allow-empty; touch made; cat";
    let id = repository.place.run(&["run", "--", "sh", "-c", script]).trim().to_owned();
    repository.tools.wait(&id, "ready");
    // It is stopped in the middle of whatever it does.
    let server = repository.server.process();
    server.signal(Signal::STOP);
    std::fs::write(repository.place.path("project/go"), "").unwrap();
    let made = repository.place.path("project/made");
    until("the commit is made", || made.exists().then_some(()));
    server.signal(Signal::KILL);
    server.wait();
    repository.server = repository.place.serve();
    repository.tools = ToolClient::at(&repository.server.socket());
    let hash = repository.git(&["rev-parse", "HEAD"]);
    let event = repository.commit(&hash);
    assert_eq!((&event["process_id"], &event["recovered"]), (&json!(id), &json!(true)));
    assert_eq!(event["data"]["evidence"], "process_tree");
    assert!(text(&event["data"]["ended_at"]) < text(&event["time"]), "{event}");
}

#[test]
fn traces_that_a_user_wants_elsewhere_stay_the_users() {
    let mut repository = Repository::new();
    let traces = repository.place.folder("traces");
    let variable = format!("GIT_TRACE2_EVENT={}", traces.display());
    let script = "git commit -qm mine --allow-empty; echo \"[$GIT_TRACE2_EVENT]\"; cat";
    let id = id_of(
        &serde_json::from_str::<Value>(
            &repository.place.run(&["run", "--json", "--env", &variable, "--", "sh", "-c", script]),
        )
        .unwrap(),
    );
    let line = repository.tools.wait(&id, r"^\[.*\]$");
    assert_eq!(line.trim(), format!("[{}]", traces.display()));
    assert!(std::fs::read_dir(&traces).unwrap().count() > 0);
    // A setting counts as well.
    let settings = format!("{}[trace2]\neventTarget = {}\n", super::GIT_SETTINGS, traces.display());
    let home = repository.place.folder("other-home");
    std::fs::write(home.join(".gitconfig"), settings).unwrap();
    let variable = format!("HOME={}", home.display());
    let arguments = ["run", "--env", &variable, "--", "sh", "-c", script];
    let other = repository.place.run(&arguments).trim().to_owned();
    assert_eq!(repository.tools.wait(&other, r"^\[.*\]$").trim(), "[]");
    // Neither is recorded; a commit after them is.
    repository.sh("git commit -qm later --allow-empty");
    let hash = repository.git(&["rev-parse", "HEAD"]);
    repository.commit(&hash);
    assert_eq!(repository.commits().len(), 1);
    let report: Value =
        serde_json::from_str(&repository.place.run(&["blame", "HEAD~1", "--json"])).unwrap();
    assert_eq!(report["evidence"], "none");
}

#[test]
fn the_folder_of_a_pane_is_neither_remembered_nor_passed_on() {
    let mut repository = Repository::new();
    let patterm = repository.place.binary();
    let script = format!(
        "echo \"outer [$GIT_TRACE2_EVENT]\"; {} run -- sh -c 'echo \"inner [$GIT_TRACE2_EVENT]\"; cat'; cat",
        patterm.display()
    );
    repository.place.run(&["run", "--", "sh", "-c", &script]);
    let folder = |name: &str| repository.place.state().file("git").join(name).display().to_string();
    let (first, second) = (folder("p1.1"), folder("p2.1"));
    let shown = |tools: &mut ToolClient, id: &str| {
        let arguments = json!({"process_id": id, "since_offset": 0, "max_bytes": 1 << 20});
        // It may not have begun yet.
        let output = tools.call("get_process_raw_output", arguments);
        output.map(|output| text(&output["text"]).to_owned()).unwrap_or_default()
    };
    until("the first folder", || shown(&mut repository.tools, "p1").contains(&first).then_some(()));
    until("a second process", || (repository.tools.ids().len() == 2).then_some(()));
    until("its folder", || shown(&mut repository.tools, "p2").contains(&second).then_some(()));
    for stored in std::fs::read_dir(repository.place.state().file("environments")).unwrap() {
        let content = std::fs::read(stored.unwrap().path()).unwrap();
        let content = String::from_utf8_lossy(&content);
        assert!(!content.contains("GIT_TRACE2") && !content.contains("PATTERM_GIT"), "{content:?}");
    }
}
