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
    let (busy, silent) = (Site::with(503), Site::with(SILENT));
    // A listener that was there before does not count.
    let ports = [ReservedPort::new(), ReservedPort::new(), ReservedPort::new()];
    let later = |at: usize| format!("http://127.0.0.1:{}/health", ports[at].port);
    let reserved = ReservedPort::new();
    let unused = reserved.port;
    let process = |name: &str, ready: &str| {
        format!("[processes.{name}]\ncommand = 'cat'\nautostart = true\nready = {{ {ready} }}\n")
    };
    let (_place, _server, mut tools) = trusted(
        &[
            process("busy", &format!("http = '{}', timeout_seconds = 2", busy.url())),
            process("wanted", &format!("http = '{}', status = 503", later(0))),
            process("redirect", &format!("http = '{}'", later(1))),
            process("endless", &format!("http = '{}'", later(2))),
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
    let names = ["wanted", "redirect", "endless"];
    for name in names {
        once(&mut tools, name, "running", |process| process["status"] == "running");
    }
    let _sites: Vec<_> = std::iter::zip(&ports, [503, 302, ENDLESS])
        .map(|(reserved, answer)| Site::at(reserved.port, answer))
        .collect();
    for name in names {
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
fn a_stranger_who_listened_before_does_not_make_a_process_ready() {
    let stranger = Site::with(200);
    let (place, _server, mut tools) = trusted(&format!(
        "[processes.web]\ncommand = 'cat'\nautostart = true\n\
         ready = {{ http = '{}', timeout_seconds = 2 }}\n",
        stranger.url()
    ));
    let web = once(&mut tools, "web", "late", |web| {
        web["problem"].as_str().is_some_and(|problem| problem.starts_with("it was not ready"))
    });
    let problem = web["problem"].as_str().unwrap();
    let who = format!("port {} was already served by pid {} (", stranger.port, std::process::id());
    assert!(problem.contains(&who), "{problem}");
    assert!(problem.ends_with(" before this process was started"), "{problem}");
    assert_eq!(web["ready"], false);
    // `up --wait` and `ps` say the same.
    let up = place.patterm(&["up", "--wait"]).output().unwrap();
    assert_eq!(up.status.code(), Some(1));
    assert!(String::from_utf8(up.stdout).unwrap().contains(&who));
}

#[test]
fn a_listener_that_replaces_a_stranger_counts_whoever_holds_it() {
    let reserved = ReservedPort::new();
    let port = reserved.port;
    let stranger = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (_place, _server, mut tools) = trusted(&format!(
        "[processes.web]\ncommand = 'cat'\nautostart = true\n\
         ready = {{ http = 'http://127.0.0.1:{port}/', try_timeout_seconds = 0.1 }}\n\
         restart = 'always'\n"
    ));
    once(&mut tools, "web", "running", |web| web["status"] == "running");
    drop(stranger);
    // As a container's: none of the process's own children has it.
    let _container = Site::at(port, 200);
    once(&mut tools, "web", "ready", |web| web["ready"] == true);
    // It has answered for an earlier run, so it counts for the next one.
    let id = named(&mut tools, "web").unwrap()["process_id"].clone();
    tools.ok("restart_process", json!({"process_id": id}));
    let is_next = |web: &serde_json::Value| web["ready"] == true && web["runs"] != 1;
    once(&mut tools, "web", "ready again", is_next);
}

#[test]
fn another_process_of_the_project_is_no_stranger() {
    let reserved = ReservedPort::new();
    let port = reserved.port;
    let (_place, _server, mut tools) = trusted(&format!(
        "[processes.proxy]\ncommand = ['python3', '-m', 'http.server', '--bind', '127.0.0.1', '{port}']\n\
         autostart = true\nready = {{ port = {port} }}\n\
         [processes.worker]\ncommand = 'cat'\nautostart = true\ndepends_on = ['proxy']\n\
         ready = {{ http = 'http://127.0.0.1:{port}/patterm.toml' }}\n"
    ));
    once(&mut tools, "worker", "ready", |worker| worker["ready"] == true);
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
