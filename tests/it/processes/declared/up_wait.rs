//! `patterm up --wait`: what is ready, what failed and why, and what takes too long.

use std::process::Output;

use serde_json::{Value, json};

use super::site::Site;
use super::write;
use crate::support::Place;

/// A project whose file is trusted.
fn trusted(text: &str) -> Place {
    let place = Place::new();
    write(&place, text);
    place.run(&["trust", "--yes"]);
    place
}

/// Runs a verb that may fail: its exit code, standard output and standard error.
fn run(place: &Place, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = place.patterm(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn it_ends_when_everything_is_ready_and_healthy() {
    let site = Site::with(200);
    let file = format!(
        "[processes.migrate]\ncommand = 'sleep 0.1'\nready = {{ exits = true }}\n\
         [processes.db]\ncommand = 'sleep 0.1; echo up; cat'\nready = {{ pattern = '^up' }}\n\
         depends_on = ['migrate']\n\
         [processes.api]\ncommand = 'cat'\ndepends_on = ['db']\n\
         healthy = {{ http = '{}', every_seconds = 0.1 }}\n",
        site.url()
    );
    let place = trusted(&file);
    let (code, printed, errors) = run(&place, &["up", "--wait"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{printed}");
    for row in ["db       waits for migrate", "migrate  is ready", "db       is ready"] {
        assert!(printed.contains(row), "{printed}");
    }
    assert!(printed.ends_with("api      is ready\n"), "{printed}");
    assert!(place.run(&["ps"]).contains("running   healthy"), "its first check was awaited");
    // Nothing is left to do.
    let (code, printed, _) = run(&place, &["up", "--wait", "--json", "api"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(code, Some(0));
    let api = json!([{"name": "api", "process_id": "p1", "state": "ready"}]);
    assert_eq!(printed, api);
}

#[test]
fn it_says_what_failed_and_why() {
    let site = Site::with(500);
    let file = format!(
        "[processes.db]\ncommand = 'exit 3'\nready = {{ port = 1 }}\n\
         [processes.api]\ncommand = 'cat'\ndepends_on = ['db']\n\
         [processes.late]\ncommand = 'cat'\nready = {{ pattern = 'never', timeout_seconds = 0.1 }}\n\
         [processes.sick]\ncommand = 'cat'\n\
         healthy = {{ http = '{}', every_seconds = 0.1, failures = 2 }}\n\
         [processes.loops]\ncommand = 'exit 1'\nready = {{ port = 1 }}\n\
         restart = {{ policy = 'on-failure', limit = 2, delay_seconds = 0.01 }}\n\
         [processes.docs]\ncommand = 'cat'\n",
        site.url()
    );
    let place = trusted(&file);
    let (code, printed, errors) = run(&place, &["up", "--wait"]);
    assert_eq!(code, Some(1), "{printed}");
    for row in [
        "docs   is ready",
        "db     failed: it ended with exit code 3",
        "api    failed: it needs db, which ended with exit code 3",
        "late   failed: it was not ready within 0.1 s",
        "sick   failed: it is unhealthy: http://127.0.0.1",
        "loops  failed: it ended 3 times in a row",
    ] {
        assert!(printed.contains(row), "{row}: {printed}");
    }
    assert!(errors.contains("5 of 6 failed: "), "{errors}");
}

#[test]
fn an_earlier_run_does_not_count_if_a_dependency_fails() {
    let place = trusted(
        "[processes.db]\ncommand = 'test ! -e broken && exec sleep 100 || echo no data'\n\
         ready = { delay_seconds = 0.3 }\n\
         [processes.migrate]\ncommand = 'true'\nready = { exits = true }\ndepends_on = ['db']\n\
         [processes.api]\ncommand = 'cat'\ndepends_on = ['migrate']\n",
    );
    let (code, printed, _) = run(&place, &["up", "--wait", "migrate"]);
    assert_eq!(code, Some(0), "{printed}");
    place.run(&["down"]);
    std::fs::write(place.path("project").join("broken"), "").unwrap();
    let (code, printed, errors) = run(&place, &["up", "--wait"]);
    assert_eq!(code, Some(1), "{printed}");
    for row in [
        "migrate  failed: it needs db, which ended with exit code 0",
        "api      failed: it needs migrate, which needs db, which ended with exit code 0",
    ] {
        assert!(printed.contains(row), "{row}: {printed}");
    }
    assert!(errors.contains("`patterm logs db` shows what db printed"), "{errors}");
    assert!(!place.run(&["ps"]).contains("running"), "nothing was started without its dependency");
    // The command says it at once if nothing can be started.
    let (code, printed, _) = run(&place, &["up", "--wait", "migrate"]);
    assert_eq!(code, Some(1), "{printed}");
}

#[test]
fn it_gives_up_after_its_timeout() {
    let place = trusted(
        "[processes.db]\ncommand = 'cat'\nready = { pattern = 'never' }\n\
         [processes.api]\ncommand = 'cat'\ndepends_on = ['db']\n",
    );
    let (code, printed, errors) = run(&place, &["up", "--wait", "--timeout", "0.2"]);
    assert_eq!(code, Some(3), "{printed}");
    assert!(printed.contains("api  is not ready: waits for db"), "{printed}");
    assert!(errors.contains("2 of 2 not ready within 0.2 s: db, api"), "{errors}");
    assert!(place.run(&["ps"]).contains("running"), "it keeps running");
}
