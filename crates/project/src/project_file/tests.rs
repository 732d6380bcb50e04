//! Parsing of project files: definitions or errors.

use super::*;
use std::time::Duration;

#[track_caller]
fn faults(text: &str) -> Vec<String> {
    match ProjectFile::parse(text) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    assert_eq!(faults(text), [expected], "{text}");
}

#[test]
fn a_file_with_every_table() {
    let file = ProjectFile::parse(
        r#"
        [processes.db]
        command = ["postgres", "-D", "data"]
        ready = { port = 5432 }
        [processes.migrate]
        command = "npm run migrate"
        depends_on = ["db"]
        ready = { exits = true, timeout_seconds = 0.5 }
        [processes.web]
        command = "npm run dev"
        directory = "web"
        environment = { PORT = "3000" }
        autostart = true
        restart = { policy = "on-failure", limit = 3, delay_seconds = 0.25, longest_delay_seconds = 8 }
        watch = ["web/**/*.ts", "*.json"]
        depends_on = ["db", "migrate"]
        ready = { pattern = "ready in \\d+" }
        [agents.claude]
        args = ["--model", "opus"]
        [servers.files]
        command = ["mcp-files"]
        [limits]
        processes = 50
        "#,
    )
    .unwrap();
    assert_eq!(file.in_order(), ["db", "migrate", "web"]);
    assert_eq!(file.processes["db"].argv, ["postgres", "-D", "data"]);
    let web = &file.processes["web"];
    assert_eq!(web.argv, ["sh", "-c", "npm run dev"]);
    assert!(web.autostart && !file.processes["db"].autostart);
    assert_eq!(web.environment["PORT"], "3000");
    let expected = Restart {
        policy: Policy::OnFailure,
        limit: 3,
        delay: Duration::from_millis(250),
        longest: Duration::from_secs(8),
    };
    assert_eq!(web.restart, expected);
    assert_eq!(file.processes["db"].restart, Restart::default());
    assert!(
        matches!(&web.ready.as_ref().unwrap().when, ReadyWhen::Pattern(p) if p.is_match("ready in 7"))
    );
    let migrate = file.processes["migrate"].ready.as_ref().unwrap();
    assert!(matches!(migrate.when, ReadyWhen::Exits));
    assert_eq!(migrate.timeout, Duration::from_millis(500));
    assert_eq!(file.limits["processes"], 50);
    assert_eq!(file.agents["claude"]["args"].as_array().unwrap().len(), 2);
    assert!(file.servers.contains_key("files"));
    assert!(ProjectFile::parse("").unwrap().processes.is_empty());
}

#[test]
fn errors_have_a_position_and_a_hint() {
    let refused_in = |line: &str, expected: &str| {
        refused(&format!("[processes.web]\ncommand = \"x\"\n{line}\n"), expected);
    };
    refused("[processes.web\n", "1:15: unclosed table, expected `]`");
    refused(
        "[proceses.web]\ncommand = \"x\"\n",
        "1:2: unknown key `proceses`; did you mean `processes`?",
    );
    refused(
        "port = 1\n",
        "1:1: unknown key `port`; the keys are processes, groups, agents, servers, bots, http, hooks, limits, \
         remember_environment, update_environment",
    );
    refused(
        "[processes.web]\n",
        "1:12: `processes.web` has no `command`; it must be a string or a non-empty array of strings",
    );
    refused(
        "[processes.web]\ncomand = \"x\"\ncommand = \"y\"",
        "2:1: unknown key `comand` in `processes.web`; did you mean `command`?",
    );
    refused(
        "[processes.web]\ncommand = 1",
        "2:11: `processes.web.command` must be a string or a non-empty array of strings, not 1",
    );
    refused(
        "[processes.web]\ncommand = []",
        "2:11: `processes.web.command` must be a non-empty array of strings, not an empty array",
    );
    refused(
        "[processes.web]\ncommand = [\"a\", 2]",
        "2:17: `processes.web.command[1]` must be a string, not 2; put it in quotes: \"2\"",
    );
    refused("[processes.web]\ncommand = \" \"", "2:11: the command does not name a program");
    refused(
        "[processes.web]\ncommand = \"a\\u0000\"",
        "2:11: a command cannot contain NUL characters",
    );
    refused(
        "[processes.\"a b\"]\ncommand = \"x\"",
        "1:12: `a b` is not a valid name: use 1 to 64 letters, digits, dots, dashes and underscores",
    );
    refused(
        "[processes.p7]\ncommand = \"x\"",
        "1:12: `p7` looks like a process's id, such as p1 or 1; give the process another name",
    );
    refused("processes = 1", "1:13: `processes` must be a table, not 1");
    refused_in(
        "environment = { PORT = 3000 }",
        "3:24: `processes.web.environment.PORT` must be a string, not 3000; put it in quotes: \"3000\"",
    );
    refused_in(
        "environment = { \"A=B\" = \"x\" }",
        "3:25: `A=B` is not a valid environment variable: `=` in its name and NUL are not allowed",
    );
    refused_in(
        "autostart = \"yes\"",
        "3:13: `processes.web.autostart` must be true or false, not \"yes\"",
    );
    refused_in(
        "restart = \"on-failur\"",
        "3:11: `processes.web.restart` must be one of \"never\", \"on-unhealthy\", \"on-failure\", \"always\", not \"on-failur\"; did you mean \"on-failure\"?",
    );
    refused_in(
        "restart = { limit = 3 }",
        "3:1: `processes.web.restart` has no `policy`; it must be one of \"never\", \"on-unhealthy\", \"on-failure\", \"always\"",
    );
    refused_in(
        "restart = { policy = \"always\", limit = 0 }",
        "3:40: `processes.web.restart.limit` must be a whole number from 1 to 1000, not 0",
    );
    refused_in(
        "restart = { policy = \"always\", delay_seconds = -1 }",
        "3:48: `processes.web.restart.delay_seconds` must be a number of seconds from 0 to 3600, not -1",
    );
    refused_in(
        "restart = { policy = \"always\", delay_seconds = 9, longest_delay_seconds = 1 }",
        "3:75: the longest delay is shorter than the first one",
    );
    refused_in(
        "watch = \"src\"",
        "3:9: `processes.web.watch` must be an array of strings, not \"src\"",
    );
    refused_in(
        "watch = [\"a\", \"../b/*\"]",
        "3:15: `../b/*` must be relative to the project and must not contain `..`",
    );
    refused_in(
        "watch = [\"[\"]",
        "3:10: `[` is not a valid glob pattern: unclosed character class; missing ']'",
    );
    refused_in("depends_on = [\"wbe\"]", "3:15: there is no process `wbe`");
    refused_in("depends_on = [\"web\"]", "3:15: `web` cannot depend on itself");
    refused_in(
        "ready = {}",
        "3:9: `processes.web.ready` must have exactly one of `http`, `command`, `port`, `pattern`, \
         `exits = true` and `delay_seconds`",
    );
    refused_in(
        "ready = { port = 70000 }",
        "3:18: `processes.web.ready.port` must be a whole number from 1 to 65535, not 70000",
    );
    refused_in(
        "ready = { portt = 1 }",
        "3:11: unknown key `portt` in `processes.web.ready`; did you mean `port`?",
    );
    refused_in(
        "ready = { pattern = \"a(\" }",
        "3:21: the pattern does not compile: unclosed group",
    );
    refused(
        "[processes.web]\ncommand=\"x\"\n[processes.db]\ncommand=\"x\"\ndepends_on=[\"wbe\"]",
        "5:13: there is no process `wbe`; did you mean `web`?",
    );
    refused(
        "[limits]\nproceses = 1",
        "2:1: unknown key `proceses` in `limits`; did you mean `processes`?",
    );
    refused(
        "[limits]\nprocesses = 0",
        &format!("2:13: `limits.processes` must be a whole number from 1 to {}, not 0", i64::MAX),
    );
    refused(
        "[agents.x]\nprogramm = \"x\"",
        "2:1: unknown key `programm` in `agents.x`; did you mean `program`?",
    );
    refused("[servers]\nx = 1", "2:5: `servers.x` must be a table, not 1");
}

#[test]
fn several_errors_are_sorted_by_position() {
    let found = faults("[processes.web]\ncommand = 1\nautostart = 2\n[procesess]\n");
    let places: Vec<_> = found.iter().map(|fault| &fault[..4]).collect();
    assert_eq!(places, ["2:11", "3:13", "4:2:"]);
}

#[test]
fn servers_run_in_one_place_each() {
    let begins = |text: &str, expected: &str| {
        let faults = ProjectFile::parse(text).unwrap_err();
        assert!(faults[0].to_string().starts_with(expected), "{text}\n{faults:?}");
    };
    begins("[servers.x]\ncommand=['a']\nurl='https://x'", "2:9: `command` can be combined with");
    begins(
        "[servers.x]\nimage='a'\ncontainer='b'",
        "1:10: `servers.x` can run in one place only; keep one of container, image",
    );
    begins("[servers.bots]\nurl='https://x'", "1:10: `bots` is reserved");
    begins(
        "[servers.x]\nshare='all'",
        "1:10: `servers.x` does not name a program; set `command`, `image` or `url`",
    );
    begins(
        "[servers.x]\ncommand=['a']\nnetwork=true",
        "3:9: `network` can be combined with `image`, but not with `command`",
    );
    begins(
        "[servers.x]\nvia=['ssh','{target}']\ncommand=['a']",
        "2:5: `via` contains `{target}`, but `target` is not set",
    );
    begins("[servers.x]\nurl='ftp://x'", "2:5: a URL must begin with");
    begins("[servers.x]\nimage='a'\nmounts=['x']", "3:9: `x` is not a mount");
    begins("[bots]\nengine='docker'", "1:2: `bots` has no `command`");
    begins("[http]\nlisten='80'", "2:8: `80` is not an address with a port");
    begins("[http]\nlisten='0.0.0.0:80'", "2:8: other machines can reach 0.0.0.0:80");
    let text = "[servers.x]\nimage='a'\nmounts=['./d:/d:rw','e:/e']\nengine='podman'";
    let file = ProjectFile::parse(text).unwrap();
    let Location::Image(image) = &file.servers["x"].location else { panic!("{file:?}") };
    assert_eq!(image.engine.name, EngineName::Podman);
    assert!(image.mounts[0].writable && !image.mounts[1].writable);
    // Empty values are the same as missing keys.
    let empty = "[servers.x]\ncommand=['a']\nmounts=[]\nheaders={}";
    assert!(ProjectFile::parse(empty).is_ok());
    let text = "[servers.x]\nvia=['ssh','{target}','--']\ntarget='a b'\ncommand=['c d']";
    let file = ProjectFile::parse(text).unwrap();
    let Location::Local(local) = &file.servers["x"].location else { panic!("{file:?}") };
    assert_eq!(local.command, ["ssh", "a b", "--", "c d"]);
}

#[test]
fn a_dependency_cycle_is_named() {
    let text = "[processes.a]\ncommand='x'\ndepends_on=['b']\n[processes.b]\ncommand='x'\ndepends_on=['c']\n\
        [processes.c]\ncommand='x'\ndepends_on=['a']\n";
    refused(text, "3:12: these processes depend on each other: a → b → c → a");
}

#[test]
fn errors_contain_no_control_characters() {
    refused(
        "\"a\\u001b[31m\" = 1",
        "1:1: unknown key `a\\u{1b}[31m`; the keys are processes, groups, agents, servers, bots, http, hooks, limits, \
         remember_environment, update_environment",
    );
}

#[test]
fn the_json_schema_has_every_key() {
    let schema = schema();
    let process = &schema["properties"]["processes"]["additionalProperties"];
    let keys: Vec<_> = process["properties"].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "autostart",
            "command",
            "depends_on",
            "directory",
            "env_file",
            "environment",
            "healthy",
            "ready",
            "restart",
            "stop",
            "watch"
        ]
    );
    assert_eq!(process["required"], serde_json::json!(["command"]));
}
