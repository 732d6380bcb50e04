//! The unit for systemd, under a real manager of the user's: what it starts lives as long as it should,
//! and ends as it should.

use super::stage::Stage;

const UNIT: &str = "unit=$(systemd-escape --path --template=patterm@.service ~/project)";

#[test]
fn a_server_that_systemd_starts_is_ended_well() {
    let mut stage = Stage::installed();
    stage.begin_manager();
    stage.does(UNIT);
    assert_eq!(stage.does("systemd-analyze --user verify \"$unit\""), "");
    stage.does("systemctl --user enable --now \"$unit\"");
    assert_eq!(stage.does("patterm ls --json | jq length").trim(), "1");
    stage.does("patterm run --name dev -- npm run dev && patterm wait dev 'ready in'");
    let within = stage.does("systemctl --user status \"$unit\" | cat");
    assert!(within.contains("npm run dev"), "what it starts is in its group: {within}");

    // The end of one server is not the end of it all.
    stage.does("kill -9 $(patterm ls --json | jq '.[0].pid')");
    stage.does("patterm status dev --json | jq --exit-status '.status == \"running\"'");
    stage.does("patterm upgrade");
    assert_eq!(stage.does("systemctl --user is-active \"$unit\"").trim(), "active");
    stage.does("patterm status dev --json | jq --exit-status '.status == \"running\"'");

    stage.does("systemctl --user stop \"$unit\"");
    assert_eq!(stage.does("patterm ls --json").trim(), "[]");
    assert_nothing_runs(&mut stage);
    stage.does("systemctl --user start \"$unit\"");
    let back = stage.does("patterm restart --bring-back");
    assert!(back.contains("dev started again"), "{back}");

    // A log-out: the manager ends, and what it started.
    stage.does("systemctl --user exit; wait");
    assert_nothing_runs(&mut stage);
    let said = stage.does("patterm ps");
    assert!(said.contains("1 process ran when everything was ended"), "{said}");
}

/// A zombie runs nothing, and others' programs cannot be seen.
#[track_caller]
fn assert_nothing_runs(stage: &mut Stage) {
    let left = stage.does("readlink /proc/[0-9]*/exe || true");
    assert!(!left.contains("patterm") && !left.contains("perl"), "{left}");
}
