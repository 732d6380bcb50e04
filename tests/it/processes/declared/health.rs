//! The health of a process that runs, and restarts of one that is unhealthy.

use serde_json::json;

use super::site::Site;
use super::{HANGS, id, named, nothing_hangs, once, trust, trusted, write};

#[test]
fn the_health_of_a_process_follows_its_checks() {
    let site = Site::with(200);
    let file = format!(
        "[processes.api]\ncommand = 'cat'\nautostart = true\n\
         healthy = {{ http = '{}', every_seconds = 0.1, failures = 2 }}\n\
         [processes.web]\ncommand = 'cat'\ndepends_on = ['api']\n",
        site.url()
    );
    let (place, _server, mut tools) = trusted(&file);
    let api = once(&mut tools, "api", "healthy", |api| api["health"] == "healthy");
    assert_eq!((&api["ready"], api.get("problem")), (&json!(true), None));
    assert!(place.run(&["ps"]).contains("running   healthy"));
    site.answer(500);
    let api = once(&mut tools, "api", "unhealthy", |api| api["health"] == "unhealthy");
    let problem = format!("it is unhealthy: {} answered with status 500", site.url());
    assert_eq!((&api["problem"], &api["ready"]), (&json!(problem), &json!(false)));
    assert_eq!(api["runs"], 1, "it is not restarted by default");
    let listed = place.run(&["ps"]);
    assert!(listed.contains("running   unhealthy") && listed.contains(&problem), "{listed}");
    assert!(place.run(&["status", "api"]).contains("health: unhealthy"));
    // What depends on it waits until it is well again.
    let up = place.run(&["up", "web"]);
    assert!(up.contains("web  waits for api"), "{up}");
    site.answer(204);
    once(&mut tools, "web", "running", |web| web["status"] == "running");
    assert_eq!(named(&mut tools, "api").unwrap()["health"], "healthy");
    // The file no longer asks for checks.
    write(&place, "[processes.api]\ncommand = 'cat'\n[processes.web]\ncommand = 'cat'\n");
    trust(&place, &mut tools);
    once(&mut tools, "api", "no longer checked", |api| api.get("health").is_none());
    write(&place, &file);
    trust(&place, &mut tools);
    once(&mut tools, "api", "checked again", |api| api["health"] == "healthy");
    let api = id(&mut tools, "api");
    tools.ok("stop_process", json!({"process_id": api}));
    assert_eq!(tools.status(&api).get("health"), None);
}

#[test]
fn an_unhealthy_process_is_restarted_and_not_forever() {
    let (_place, _server, mut tools) = trusted(
        "[processes.sick]\ncommand = \"trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done\"\n\
         autostart = true\nready = { pattern = 'up' }\n\
         healthy = { command = 'echo no answer; exit 1', every_seconds = 0.1, failures = 2 }\n\
         restart = { policy = 'on-unhealthy', limit = 2, delay_seconds = 0.01 }\n",
    );
    let sick = once(&mut tools, "sick", "left alone", |sick| {
        sick["problem"]
            .as_str()
            .is_some_and(|why| why.ends_with("no longer restarted automatically"))
    });
    assert_eq!((&sick["runs"], &sick["restarts"]), (&json!(3), &json!(2)));
    assert_eq!((&sick["status"], &sick["health"]), (&json!("running"), &json!("unhealthy")));
    let why = "it is unhealthy: its check exited with code 1: no answer; it was also unhealthy";
    assert!(sick["problem"].as_str().unwrap().starts_with(why), "{sick}");
}

#[test]
fn a_restart_of_an_unhealthy_process_is_announced_and_can_be_cancelled() {
    let (place, _server, mut tools) = trusted(
        "[processes.sick]\ncommand = 'cat'\nautostart = true\nrestart = { policy = 'on-failure', delay_seconds = 3000 }\n\
         healthy = { port = 1, every_seconds = 0.1, failures = 1 }\n",
    );
    let sick = once(&mut tools, "sick", "ended", |sick| sick.get("next_restart_in").is_some());
    assert_eq!((&sick["status"], &sick["restarts"]), (&json!("exited"), &json!(1)));
    let why = sick["why_not_running"].as_str().unwrap();
    let expected = "it was unhealthy: it does not listen on port 1; restarts in ";
    assert!(why.starts_with(expected), "{why}");
    assert_eq!(sick.get("health"), None);
    assert!(place.run(&["ps"]).contains("restarts in"));
    let sick = id(&mut tools, "sick");
    tools.ok("stop_process", json!({"process_id": sick}));
    assert_eq!(tools.status(&sick).get("next_restart_in"), None);
}

#[test]
fn a_check_that_hangs_fails_and_is_killed_with_its_children() {
    let (place, _server, mut tools) = trusted(&format!(
        "[processes.web]\ncommand = 'cat'\nautostart = true\n\
         healthy = {{ command = \"{HANGS}\", every_seconds = 0.1, try_timeout_seconds = 1, failures = 2 }}\n"
    ));
    let web = once(&mut tools, "web", "unhealthy", |web| web["health"] == "unhealthy");
    assert_eq!(web["problem"], "it is unhealthy: its check did not end within 1 s");
    let web = id(&mut tools, "web");
    tools.ok("stop_process", json!({"process_id": web}));
    nothing_hangs(&place);
}
