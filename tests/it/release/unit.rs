//! The systemd unit, under a real user manager: its server lives as long as it should, and stops
//! cleanly.

use super::harness::Harness;

const UNIT: &str = "unit=$(systemd-escape --path --template=patterm@.service ~/project)";

#[test]
fn a_server_that_systemd_starts_is_stopped_cleanly() {
    let mut harness = Harness::installed();
    harness.begin_manager();
    harness.does(UNIT);
    assert_eq!(harness.does("systemd-analyze --user verify \"$unit\""), "");
    harness.does("systemctl --user enable --now \"$unit\"");
    assert_eq!(harness.does("patterm ls --json | jq length").trim(), "1");
    harness.does("patterm run --name dev -- npm run dev && patterm wait dev 'ready in'");
    let within = harness.does("systemctl --user status \"$unit\" | cat");
    assert!(within.contains("npm run dev"), "what it starts is in its group: {within}");

    // The end of one server does not end everything.
    harness.does("kill -9 $(patterm ls --json | jq '.[0].pid')");
    harness.does("patterm status dev --json | jq --exit-status '.status == \"running\"'");
    harness.does("patterm upgrade");
    assert_eq!(harness.does("systemctl --user is-active \"$unit\"").trim(), "active");
    harness.does("patterm status dev --json | jq --exit-status '.status == \"running\"'");

    harness.does("systemctl --user stop \"$unit\"");
    assert_eq!(harness.does("patterm ls --json").trim(), "[]");
    assert_nothing_runs(&mut harness);
    harness.does("systemctl --user start \"$unit\"");
    let back = harness.does("patterm restore");
    assert!(back.contains("dev started again"), "{back}");

    // A logout ends the manager and everything that it started.
    harness.does("systemctl --user exit; wait");
    assert_nothing_runs(&mut harness);
    let printed = harness.does("patterm ps");
    assert!(printed.contains("1 process was running when everything was ended"), "{printed}");
}

/// Zombies do not count, and other users' programs cannot be seen.
#[track_caller]
fn assert_nothing_runs(harness: &mut Harness) {
    let left = harness.does("readlink /proc/[0-9]*/exe || true");
    assert!(!left.contains("patterm") && !left.contains("perl"), "{left}");
}
