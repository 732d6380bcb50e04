//! Readiness that is found out with a probe: a URL, a command, a delay.

use serde_json::json;

use super::site::{ENDLESS, ReservedPort, SILENT, Site};
use super::{HANGS, named, nothing_hangs, once, trusted};

#[test]
fn an_http_server_that_answers_is_ready() {
    let reserved = ReservedPort::new();
    let port = reserved.port;
    let (_place, _server, mut tools) = trusted(&format!(
        "[processes.api]\ncommand = ['python3', '-m', 'http.server', '--bind', '127.0.0.1', '{port}']\n\
         ready = {{ http = 'http://127.0.0.1:{port}/patterm.toml', status = 200 }}\n\
         [processes.web]\ncommand = 'cat'\ndepends_on = ['api']\n"
    ));
    let answer = tools.ok("spawn_process", json!({"preset": "web"}));
    assert_eq!(answer["waiting_for"], json!(["api"]), "{answer}");
    once(&mut tools, "web", "running", |web| web["status"] == "running");
    assert_eq!(named(&mut tools, "api").unwrap()["ready"], true);
}

#[test]
fn the_status_decides_and_the_body_is_not_read() {
    let (busy, silent, endless) = (Site::with(503), Site::with(SILENT), Site::with(ENDLESS));
    let redirect = Site::with(302);
    let reserved = ReservedPort::new();
    let unused = reserved.port;
    let process = |name: &str, ready: &str| {
        format!("[processes.{name}]\ncommand = 'cat'\nautostart = true\nready = {{ {ready} }}\n")
    };
    let (_place, _server, mut tools) = trusted(
        &[
            process("busy", &format!("http = '{}', timeout_seconds = 2", busy.url())),
            process("wanted", &format!("http = '{}', status = 503", busy.url())),
            process("redirect", &format!("http = '{}'", redirect.url())),
            process("endless", &format!("http = '{}'", endless.url())),
            process(
                "silent",
                &format!(
                    "http = '{}', try_timeout_seconds = 0.1, timeout_seconds = 2",
                    silent.url()
                ),
            ),
            process("closed", &format!("http = 'http://127.0.0.1:{unused}/', timeout_seconds = 2")),
        ]
        .concat(),
    );
    for name in ["wanted", "redirect", "endless"] {
        once(&mut tools, name, "ready", |process| process["ready"] == true);
    }
    let url = |site: &Site| site.url();
    for (name, problem) in [
        ("busy", format!("it was not ready within 2 s: {} answered with status 503", url(&busy))),
        (
            "silent",
            format!("it was not ready within 2 s: {} did not answer within 0.1 s", url(&silent)),
        ),
        (
            "closed",
            format!("it was not ready within 2 s: http://127.0.0.1:{unused}/ cannot be reached"),
        ),
    ] {
        let process = once(&mut tools, name, "late", |process| process.get("problem").is_some());
        let found = process["problem"].as_str().unwrap();
        assert!(found.starts_with(&problem), "{name}: {found}");
        assert_eq!(process["ready"], false);
    }
}

#[test]
fn a_command_gets_the_environment_and_the_folder_of_the_process() {
    let (place, _server, mut tools) = trusted(
        r#"
        [processes.db]
        command = "read line; touch accepting; cat"
        directory = "data"
        environment = { MARK = "yes" }
        ready = { command = 'test -e accepting && test "$MARK" = yes', every_seconds = 0.1 }
        [processes.web]
        command = "cat"
        autostart = true
        depends_on = ["db"]
        "#,
    );
    // Its folder is missing until now, so it could not be started.
    once(&mut tools, "db", "failed", |db| db["status"] == "failed");
    std::fs::create_dir(place.path("project/data")).unwrap();
    tools.ok("spawn_process", json!({"preset": "web"}));
    let db = once(&mut tools, "db", "running", |db| db["status"] == "running");
    assert_eq!(db["ready"], false, "{db}");
    tools.line(db["process_id"].as_str().unwrap(), "");
    once(&mut tools, "web", "running", |web| web["status"] == "running");
}

#[test]
fn a_process_is_ready_after_its_delay_and_not_before() {
    let (_place, _server, mut tools) = trusted(
        "[processes.soon]\ncommand = 'cat'\nready = { delay_seconds = 0.1 }\nautostart = true\n\
         [processes.late]\ncommand = 'cat'\nready = { delay_seconds = 3600 }\nautostart = true\n\
         [processes.dead]\ncommand = 'exit 1'\nready = { delay_seconds = 3600 }\nautostart = true\n\
         [processes.web]\ncommand = 'cat'\ndepends_on = ['dead']\nautostart = true\n",
    );
    once(&mut tools, "soon", "ready", |soon| soon["ready"] == true);
    let late = named(&mut tools, "late").unwrap();
    assert_eq!((&late["status"], &late["ready"]), (&json!("running"), &json!(false)));
    let web = once(&mut tools, "web", "given up", |web| web.get("problem").is_some());
    assert_eq!(web["problem"], "it needs dead, which ended with exit code 1");
}

#[test]
fn a_command_that_hangs_is_killed_with_its_children_and_tried_again() {
    let (place, _server, mut tools) = trusted(&format!(
        "[processes.web]\ncommand = 'cat'\nautostart = true\n\
         ready = {{ command = \"{HANGS}\", try_timeout_seconds = 1, timeout_seconds = 4 }}\n"
    ));
    let web = once(&mut tools, "web", "late", |web| web.get("problem").is_some());
    let problem = "it was not ready within 4 s: its check did not end within 1 s";
    assert_eq!(web["problem"], problem, "{web}");
    nothing_hangs(&place);
}

#[test]
fn a_check_that_runs_when_its_process_ends_is_killed() {
    let (place, _server, mut tools) = trusted(&format!(
        "[processes.web]\ncommand = 'until [ $(cat pids | wc -l) -ge 3 ]; do sleep 0.01; done; exit 4'\nautostart = true\n\
         ready = {{ command = \"{HANGS}\", try_timeout_seconds = 3600 }}\n"
    ));
    once(&mut tools, "web", "over", |web| web["status"] == "exited");
    nothing_hangs(&place);
}

#[test]
fn a_check_that_prints_without_a_pause_does_not_hang_the_server() {
    let (_place, _server, mut tools) = trusted(
        "[processes.web]\ncommand = 'cat'\nautostart = true\n\
         ready = { command = 'yes', try_timeout_seconds = 0.5, timeout_seconds = 2 }\n",
    );
    let web = once(&mut tools, "web", "late", |web| web.get("problem").is_some());
    let found = web["problem"].as_str().unwrap();
    assert_eq!(found, "it was not ready within 2 s: its check did not end within 0.5 s: y");
}
