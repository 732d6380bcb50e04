//! Parsing of `ready`, `healthy` and `stop`.

use std::time::Duration;

use super::*;

const WEB: &str = "[processes.web]\ncommand = \"x\"\n";

/// The process `web` with these lines.
#[track_caller]
fn web(lines: &str) -> Definition {
    let mut file = ProjectFile::parse(&format!("{WEB}{lines}\n")).unwrap();
    file.processes.remove("web").unwrap()
}

/// The error of the process `web` with this line, which is the third one.
#[track_caller]
fn refused(line: &str, expected: &str) {
    let faults = ProjectFile::parse(&format!("{WEB}{line}\n")).map(drop).unwrap_err();
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults, [expected], "{line}");
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn every_sign_of_readiness() {
    let ready = |lines: &str| web(&format!("ready = {{ {lines} }}")).ready.unwrap();
    let http = ready("http = 'http://127.0.0.1:3000/up', status = 204, every_seconds = 0.5");
    let ReadyWhen::Succeeds(Probe::Http { url, status }) = &http.when else { panic!("{http:?}") };
    assert_eq!((url.host.as_str(), url.port, url.target.as_str()), ("127.0.0.1", 3000, "/up"));
    assert_eq!((*status, http.every), (Some(204), Some(seconds(0.5))));
    assert_eq!((http.timeout, http.try_timeout), (seconds(60.0), seconds(5.0)));
    let line = ready("command = 'pg_isready -q', try_timeout_seconds = 2, timeout_seconds = 9");
    let ReadyWhen::Succeeds(Probe::Command(argv)) = &line.when else { panic!("{line:?}") };
    assert_eq!(argv, &["sh", "-c", "pg_isready -q"]);
    assert_eq!((line.timeout, line.try_timeout, line.every), (seconds(9.0), seconds(2.0), None));
    let words = ready("command = ['pg_isready', '-q']");
    let ReadyWhen::Succeeds(Probe::Command(argv)) = &words.when else { panic!("{words:?}") };
    assert_eq!(argv, &["pg_isready", "-q"]);
    let delay = ready("delay_seconds = 2.5");
    assert!(matches!(delay.when, ReadyWhen::Delay(delay) if delay == seconds(2.5)));
    let port = ready("port = 80, exits = false");
    assert!(matches!(port.when, ReadyWhen::Succeeds(Probe::Port(80))));
}

#[test]
fn health_checks_and_how_to_stop() {
    let plain = web("");
    assert_eq!((plain.healthy, plain.stop), (None, Stop::default()));
    let healthy = web("healthy = { port = 80 }").healthy.unwrap();
    let expected = Healthy {
        probe: Probe::Port(80),
        every: seconds(10.0),
        try_timeout: seconds(5.0),
        failures: 3,
    };
    assert_eq!(healthy, expected);
    let process = web(
        "healthy = { command = ['true'], every_seconds = 1, try_timeout_seconds = 0.5, failures = 1 }\n\
         restart = { policy = 'on-unhealthy', limit = 2 }\n\
         stop = { signal = 'SIGINT', grace_seconds = 10, command = 'web stop' }",
    );
    let expected = Healthy {
        probe: Probe::Command(vec!["true".into()]),
        every: seconds(1.0),
        try_timeout: seconds(0.5),
        failures: 1,
    };
    assert_eq!(process.healthy, Some(expected));
    assert_eq!(process.restart.policy, Policy::OnUnhealthy);
    let command = ["sh", "-c", "web stop"].map(str::to_owned).to_vec();
    let stop = Stop { signal: Some(2), grace: Some(seconds(10.0)), command: Some(command) };
    assert_eq!(process.stop, stop);
    assert_eq!(web("stop = { signal = 'QUIT' }").stop.signal, Some(3));
}

#[test]
fn errors_in_ready() {
    let one_of = "`processes.web.ready` must have exactly one of `http`, `command`, `port`, `pattern`, \
        `exits = true` and `delay_seconds`";
    refused(
        "ready = { http = 'http://x/', command = 'true' }",
        &format!("3:9: {one_of}, not `http` and `command`"),
    );
    refused(
        "ready = { port = 1, pattern = 'x', delay_seconds = 1 }",
        &format!("3:9: {one_of}, not `port` and `pattern` and `delay_seconds`"),
    );
    refused("ready = { timeout_seconds = 1 }", &format!("3:9: {one_of}"));
    refused(
        "ready = { http = '127.0.0.1:3000' }",
        "3:18: `127.0.0.1:3000` is not an HTTP URL; write one such as http://127.0.0.1:3000/health",
    );
    refused(
        "ready = { http = 'https://x/' }",
        "3:18: `https://x/` uses https, which probes do not support; use http, or `command` with a program \
         such as curl",
    );
    refused(
        "ready = { http = 3000 }",
        "3:18: `processes.web.ready.http` must be a string, not 3000; put it in quotes: \"3000\"",
    );
    refused(
        "ready = { http = 'http://x/', status = 99 }",
        "3:40: `processes.web.ready.status` must be a whole number from 100 to 599, not 99",
    );
    refused(
        "ready = { port = 80, status = 200 }",
        "3:31: `status` has no effect with `port`; remove it",
    );
    refused(
        "ready = { pattern = 'x', every_seconds = 1 }",
        "3:42: `every_seconds` has no effect with `pattern`; remove it",
    );
    refused(
        "ready = { port = 80, try_timeout_seconds = 1 }",
        "3:44: `try_timeout_seconds` has no effect with `port`; remove it",
    );
    refused(
        "ready = { delay_seconds = 90, timeout_seconds = 60 }",
        "3:49: `timeout_seconds` has no effect with `delay_seconds`; remove it",
    );
    refused(
        "ready = { delay_seconds = -1 }",
        "3:27: `processes.web.ready.delay_seconds` must be a number of seconds from 0 to 3600, not -1",
    );
    refused(
        "ready = { port = 80, every_seconds = 0 }",
        "3:38: `processes.web.ready.every_seconds` must be at least 0.1 seconds, not 0",
    );
    refused("ready = { command = ' ' }", "3:21: the command does not name a program");
    refused(
        "ready = { command = [] }",
        "3:21: `processes.web.ready.command` must be a non-empty array of strings, not an empty array",
    );
    refused(
        "ready = { delay = 1 }",
        "3:11: unknown key `delay` in `processes.web.ready`; the keys are http, status, command, port, \
         try_timeout_seconds, pattern, exits, delay_seconds, timeout_seconds, every_seconds",
    );
}

#[test]
fn errors_in_healthy_and_stop() {
    let one_of = "`processes.web.healthy` must have exactly one of `http`, `command` and `port`";
    refused("healthy = {}", &format!("3:11: {one_of}"));
    refused(
        "healthy = { http = 'http://x/', port = 1 }",
        &format!("3:11: {one_of}, not `http` and `port`"),
    );
    refused(
        "healthy = { pattern = 'x' }",
        "3:13: unknown key `pattern` in `processes.web.healthy`; the keys are http, status, command, port, \
         try_timeout_seconds, every_seconds, failures",
    );
    refused(
        "healthy = { port = 1, failures = 0 }",
        "3:34: `processes.web.healthy.failures` must be a whole number from 1 to 1000, not 0",
    );
    refused(
        "healthy = { port = 1, every_seconds = -3 }",
        "3:39: `processes.web.healthy.every_seconds` must be a number of seconds from 0 to 3600, not -3",
    );
    refused(
        "healthy = { command = 'x', try_timeout_seconds = 0.01 }",
        "3:50: `processes.web.healthy.try_timeout_seconds` must be at least 0.1 seconds, not 0.01",
    );
    refused(
        "restart = 'on-unhealthy'",
        "3:11: a process without `healthy` is never unhealthy; add `healthy`, or use \"on-failure\"",
    );
    refused(
        "healthy = { port = 1 }\nready = { exits = true }",
        "3:11: a process that is ready when it has exited cannot be healthy; remove it",
    );
    refused(
        "stop = { signal = 'SIGITN' }",
        "3:19: `processes.web.stop.signal` must be one of \"SIGTERM\", \"SIGINT\", \"SIGQUIT\", \"SIGHUP\", \
         \"SIGKILL\", \"SIGUSR1\", \"SIGUSR2\", \"SIGWINCH\", \"TERM\", \"INT\", \"QUIT\", \"HUP\", \"KILL\", \
         \"USR1\", \"USR2\", \"WINCH\", not \"SIGITN\"; did you mean \"SIGINT\"?",
    );
    refused(
        "stop = { grace_seconds = -1 }",
        "3:26: `processes.web.stop.grace_seconds` must be a number of seconds from 0 to 3600, not -1",
    );
    refused(
        "stop = { grace = 1 }",
        "3:10: unknown key `grace` in `processes.web.stop`; the keys are signal, grace_seconds, command",
    );
    refused("stop = { command = [''] }", "3:20: the command does not name a program");
}

#[test]
fn a_person_sees_every_command_and_url_before_trusting_them() {
    let text = format!(
        "{WEB}ready = {{ http = 'http://x/up', status = 200 }}\n\
         healthy = {{ command = \"curl \\u001b[2K x\", every_seconds = 3 }}\n\
         stop = {{ command = 'web stop', grace_seconds = 9 }}\nrestart = 'on-unhealthy'\n\
         [processes.db]\ncommand = 'db'\nready = {{ delay_seconds = 2 }}\nstop = {{ signal = 'INT' }}\n"
    );
    let shown = describe(&ProjectFile::parse(&text).unwrap());
    for line in [
        "  ready when   http://x/up answers with status 200\n",
        "  healthy if   sh -c 'curl \\u{1b}[2K x' exits with code 0, checked every 3 s\n",
        "  stopped by   sh -c 'web stop', killed after 9 s\n",
        "  restarts     when it is unhealthy, up to 5 times in a row\n",
        "  ready when   it has been running for 2 s\n",
        "  stopped by   SIGINT\n",
    ] {
        assert!(shown.contains(line), "{line}\nis not in\n{shown}");
    }
}
