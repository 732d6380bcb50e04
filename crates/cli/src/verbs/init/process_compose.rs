//! Processes of a process-compose file, with the settings that patterm has too.

use patterm_project::project_file::ProjectFile;

use super::suggestion::Suggestion;
use super::write::project_file;
use super::yaml::Yaml;
use crate::toml_string::quoted;

/// The signals that a process-compose file names by their numbers.
const SIGNALS: [(&str, &str); 7] = [
    ("1", "SIGHUP"),
    ("2", "SIGINT"),
    ("3", "SIGQUIT"),
    ("9", "SIGKILL"),
    ("10", "SIGUSR1"),
    ("12", "SIGUSR2"),
    ("15", "SIGTERM"),
];

/// One suggestion for each process.
pub(super) fn processes(file: &'static str, text: &str) -> Vec<Suggestion> {
    let file_text = Yaml::parse(text);
    let Some(all) = file_text.get("processes") else { return Vec::new() };
    let mut suggestions: Vec<_> = all
        .members()
        .iter()
        .filter_map(|(name, process)| {
            let command = process.text(&["command"])?;
            let directory = process.text(&["working_dir"]).filter(|folder| !folder.is_empty());
            Some(Suggestion {
                directory: directory.map(str::to_owned),
                settings: settings(name, process, all),
                ..Suggestion::new(name, command, file)
            })
        })
        .collect();
    // A setting that patterm refuses must not keep people from the rest.
    if ProjectFile::parse(&project_file(&suggestions, &[])).is_err() {
        for suggestion in &mut suggestions {
            suggestion.settings.clear();
            suggestion.why = format!("{file} has more settings, which could not be taken over");
        }
    }
    suggestions
}

/// The settings beside command and folder, as lines of TOML.
fn settings(name: &str, process: &Yaml, all: &Yaml) -> Vec<String> {
    let needs = process.get("depends_on").map(Yaml::members).unwrap_or_default();
    let needs: Vec<_> = needs.iter().map(|(other, _)| quoted(other)).collect();
    let lines = [
        environment(process),
        (!needs.is_empty()).then(|| format!("depends_on = [{}]", needs.join(", "))),
        ready(name, process, all).map(|ready| format!("ready = {{ {ready} }}")),
        probe(process, "liveness_probe").map(|probe| format!("healthy = {{ {probe} }}")),
        restart(process),
        stop(process),
    ];
    lines.into_iter().flatten().collect()
}

fn environment(process: &Yaml) -> Option<String> {
    let pairs = process.get("environment")?.texts().into_iter();
    let pairs: Vec<_> = pairs
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)))
        .collect();
    (!pairs.is_empty()).then(|| format!("environment = {{ {} }}", pairs.join(", ")))
}

/// When it is ready: its probe, its line, or its end if others wait for that.
fn ready(name: &str, process: &Yaml, all: &Yaml) -> Option<String> {
    if let Some(probe) = probe(process, "readiness_probe") {
        return Some(probe);
    }
    if let Some(line) = process.text(&["ready_log_line"]) {
        return Some(format!("pattern = {}", quoted(&escaped(line))));
    }
    let awaits_end = |(_, other): &(String, Yaml)| {
        let condition = other.text(&["depends_on", name, "condition"]);
        condition.is_some_and(|condition| condition.starts_with("process_completed"))
    };
    all.members().iter().any(awaits_end).then(|| "exits = true".to_owned())
}

/// A text as a regular expression.
fn escaped(text: &str) -> String {
    let escape = |c: char| if "\\.+*?()|[]{}^$#&-~".contains(c) { vec!['\\', c] } else { vec![c] };
    text.chars().flat_map(escape).collect()
}

fn probe(process: &Yaml, kind: &str) -> Option<String> {
    let probe = process.get(kind)?;
    let check = match (probe.get("http_get"), probe.text(&["exec", "command"])) {
        (Some(http), _) => {
            let part = |key, default| http.text(&[key]).unwrap_or(default);
            let (host, port) = (part("host", "127.0.0.1"), part("port", "80"));
            match part("scheme", "http") {
                "http" => {
                    let path = part("path", "/");
                    format!("http = {}", quoted(&format!("http://{host}:{port}{path}")))
                }
                _ => format!("port = {port}"),
            }
        }
        (None, Some(command)) => format!("command = {}", quoted(command)),
        (None, None) => return None,
    };
    let number = |key: &str, ours: &str| {
        let number = probe.text(&[key])?.parse::<u32>().ok().filter(|number| *number > 0)?;
        Some(format!("{ours} = {number}"))
    };
    let failures = number("failure_threshold", "failures").filter(|_| kind == "liveness_probe");
    let every = number("period_seconds", "every_seconds");
    let parts: Vec<_> = [Some(check), every, failures].into_iter().flatten().collect();
    Some(parts.join(", "))
}

fn restart(process: &Yaml) -> Option<String> {
    let number = |key| {
        let number = process.text(&["availability", key])?.parse::<u32>().ok();
        number.filter(|number| *number > 0)
    };
    let policy = match process.text(&["availability", "restart"])? {
        "always" => "always",
        "on_failure" => "on-failure",
        _ => return None,
    };
    let limit = number("max_restarts").map(|limit| format!(", limit = {limit}"));
    let delay = number("backoff_seconds").map(|delay| format!(", delay_seconds = {delay}"));
    Some(match (limit, delay) {
        (None, None) => format!("restart = \"{policy}\""),
        (limit, delay) => {
            let more = limit.unwrap_or_default() + &delay.unwrap_or_default();
            format!("restart = {{ policy = \"{policy}\"{more} }}")
        }
    })
}

fn stop(process: &Yaml) -> Option<String> {
    let stop = process.get("shutdown")?;
    let signal = stop.text(&["signal"]);
    let signal = SIGNALS.iter().find(|(number, _)| Some(*number) == signal);
    let grace = stop.text(&["timeout_seconds"]).and_then(|grace| grace.parse::<u32>().ok());
    let parts = [
        signal.map(|(_, name)| format!("signal = \"{name}\"")),
        grace.map(|grace| format!("grace_seconds = {grace}")),
        stop.text(&["command"]).map(|command| format!("command = {}", quoted(command))),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("stop = {{ {} }}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
version: "0.5"
processes:
  db:
    command: "postgres -D data"
    readiness_probe:
      exec:
        command: pg_isready
      period_seconds: 2
    shutdown:
      signal: 2
      timeout_seconds: 10
  migrate:
    command: ./migrate.sh
    depends_on:
      db:
        condition: process_healthy
  api:
    command: npm start
    working_dir: api
    environment:
      - "PORT=4000"
      - MODE=dev=1
    depends_on:
      migrate:
        condition: process_completed_successfully
    readiness_probe:
      http_get:
        host: 127.0.0.1
        scheme: http
        path: /health
        port: 4000
    liveness_probe:
      http_get:
        port: 4000
      failure_threshold: 2
    availability:
      restart: on_failure
      max_restarts: 3
      backoff_seconds: 2
  worker:
    command: npm run worker
    ready_log_line: "listening (all)"
    availability:
      restart: always
"#;

    #[test]
    fn settings_that_patterm_has_are_taken_over() {
        let found = processes("process-compose.yaml", FILE);
        let settings =
            |name: &str| found.iter().find(|one| one.name == name).unwrap().settings.join("\n");
        assert_eq!(
            settings("db"),
            "ready = { command = \"pg_isready\", every_seconds = 2 }\n\
             stop = { signal = \"SIGINT\", grace_seconds = 10 }"
        );
        assert_eq!(settings("migrate"), "depends_on = [\"db\"]\nready = { exits = true }");
        assert_eq!(
            settings("api"),
            "environment = { \"PORT\" = \"4000\", \"MODE\" = \"dev=1\" }\n\
             depends_on = [\"migrate\"]\n\
             ready = { http = \"http://127.0.0.1:4000/health\" }\n\
             healthy = { http = \"http://127.0.0.1:4000/\", failures = 2 }\n\
             restart = { policy = \"on-failure\", limit = 3, delay_seconds = 2 }"
        );
        assert_eq!(
            settings("worker"),
            "ready = { pattern = \"listening \\\\(all\\\\)\" }\nrestart = \"always\""
        );
        assert_eq!(found[2].directory.as_deref(), Some("api"));
        let file = ProjectFile::parse(&project_file(&found, &[])).unwrap();
        assert_eq!(file.in_order(), ["db", "migrate", "worker", "api"]);
    }

    #[test]
    fn settings_that_patterm_refuses_are_left_out() {
        let text = "processes:\n  a:\n    command: cat\n    depends_on:\n      gone:\n        condition: x\n";
        let found = processes("process-compose.yaml", text);
        assert_eq!((found[0].command.as_str(), found[0].settings.len()), ("cat", 0));
        assert!(found[0].why.contains("could not be taken over"));
        assert!(processes("process-compose.yaml", "processes: 7").is_empty());
    }
}
