//! Processes of a process-compose file, with the settings that patterm has too.

use super::suggestion::{Setting, Suggestion};
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

/// The settings of a process that are taken over, with those of their own settings that are. `description` and the like
/// do not change what runs.
const KNOWN: [(&str, &[&str]); 13] = [
    ("command", &[]),
    ("description", &[]),
    ("working_dir", &[]),
    ("disabled", &[]),
    // Every process has a terminal.
    ("is_tty", &[]),
    ("namespace", &[]),
    ("environment", &[]),
    ("depends_on", &[]),
    ("ready_log_line", &[]),
    ("readiness_probe", &["http_get", "exec", "period_seconds"]),
    ("liveness_probe", &["http_get", "exec", "period_seconds", "failure_threshold"]),
    ("availability", &["restart", "max_restarts", "backoff_seconds"]),
    ("shutdown", &["signal", "timeout_seconds", "command"]),
];

/// The namespace of processes without one.
const NO_NAMESPACE: &str = "default";

/// One suggestion for each process.
pub(super) fn processes(file: &'static str, text: &str) -> Vec<Suggestion> {
    let file_text = Yaml::parse(text);
    let Some(all) = file_text.get("processes") else { return Vec::new() };
    let everywhere = file_text.get("environment").map(pairs).unwrap_or_default();
    let one = |(name, process): &(String, Yaml)| suggestion(file, name, process, all, &everywhere);
    all.members().iter().filter_map(one).collect()
}

fn suggestion(
    file: &'static str,
    name: &str,
    process: &Yaml,
    all: &Yaml,
    everywhere: &[(String, String)],
) -> Option<Suggestion> {
    let command = process.text(&["command"])?;
    let settings = Settings { name, process, all, everywhere };
    let directory = process.text(&["working_dir"]).filter(|folder| !folder.is_empty());
    let namespace = process.text(&["namespace"]).filter(|name| *name != NO_NAMESPACE);
    let is_disabled = is_disabled(process);
    let left_out = settings.left_out();
    let mut why = Vec::new();
    if is_disabled {
        why.push(format!("{file} disables {name}"));
    }
    if !left_out.is_empty() {
        why.push(format!("not taken over from {file}: {}", left_out.join(", ")));
    }
    Some(Suggestion {
        directory: directory.map(str::to_owned),
        settings: settings.lines().into_iter().map(|(_, line)| line).collect(),
        group: namespace.map(str::to_owned),
        is_comment: is_disabled,
        why: why.join("; "),
        ..Suggestion::new(name, command, file)
    })
}

fn is_disabled(process: &Yaml) -> bool {
    process.text(&["disabled"]).is_some_and(|disabled| matches!(disabled, "true" | "yes" | "on"))
}

/// What a process has in addition to its command and folder.
struct Settings<'y> {
    name: &'y str,
    process: &'y Yaml,
    all: &'y Yaml,
    /// Variables of all processes.
    everywhere: &'y [(String, String)],
}

impl Settings<'_> {
    /// The settings, each with the key it was found at.
    fn lines(&self) -> Vec<(&'static str, Setting)> {
        let Self { name, process, all, everywhere } = self;
        let needs = |name: &String| {
            let other = all.get(name);
            other.is_none_or(|other| !is_disabled(other))
        };
        let needs: Vec<_> = dependencies(process).into_iter().filter(needs).collect();
        let ready = ready(name, process, all)
            .map(|(from, ready)| (from, Setting::Line(format!("ready = {{ {ready} }}"))));
        let healthy =
            probe(process, "liveness_probe").map(|probe| format!("healthy = {{ {probe} }}"));
        let named = |key, line: Option<String>| line.map(|line| (key, Setting::Line(line)));
        let lines = [
            named("environment", environment(process, everywhere)),
            (!needs.is_empty()).then_some(("depends_on", Setting::DependsOn(needs))),
            ready,
            named("liveness_probe", healthy),
            named("availability", restart(process)),
            named("shutdown", stop(process)),
        ];
        lines.into_iter().flatten().collect()
    }

    /// The settings that are not taken over, by the names that the file has for them.
    fn left_out(&self) -> Vec<String> {
        let lines = self.lines();
        let mut left_out = Vec::new();
        for (key, value) in self.process.members() {
            let Some((_, parts)) = KNOWN.iter().find(|(known, _)| known == key) else {
                left_out.push(key.clone());
                continue;
            };
            let has_line = lines.iter().any(|(from, _)| from == key);
            let needs_line = !parts.is_empty() || key == "depends_on" || key == "environment";
            let does_nothing = key == "availability"
                && matches!(value.text(&["restart"]), Some("no" | "never" | "false"));
            if value.is_unread() || (needs_line && !has_line && !does_nothing) {
                left_out.push(key.clone());
                continue;
            }
            let disabled = dependencies(self.process).into_iter().filter(|other| {
                key == "depends_on" && self.all.get(other).is_some_and(is_disabled)
            });
            left_out.extend(disabled.map(|other| format!("depends_on.{other} (it is disabled)")));
            let extra = value.members().iter().filter(|_| !parts.is_empty());
            let extra = extra.filter(|(part, _)| !parts.contains(&part.as_str()));
            left_out.extend(extra.map(|(part, _)| format!("{key}.{part}")));
        }
        left_out
    }
}

/// The processes that a process depends on.
fn dependencies(process: &Yaml) -> Vec<String> {
    let Some(needs) = process.get("depends_on") else { return Vec::new() };
    let named = needs.members().iter().map(|(name, _)| name.clone());
    named.chain(needs.texts().into_iter().map(str::to_owned)).collect()
}

/// Variables, which are a list of `NAME=value` or a mapping.
fn pairs(variables: &Yaml) -> Vec<(String, String)> {
    let listed = variables.texts().into_iter().filter_map(|pair| pair.split_once('='));
    let listed = listed.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mapped = variables.members().iter();
    let mapped =
        mapped.filter_map(|(name, value)| Some((name.clone(), value.text(&[])?.to_owned())));
    listed.chain(mapped).collect()
}

/// The variables of a process; its own come after those of all processes.
fn environment(process: &Yaml, everywhere: &[(String, String)]) -> Option<String> {
    let own = process.get("environment").map(pairs).unwrap_or_default();
    let is_own = |name: &str| own.iter().any(|(known, _)| known == name);
    let others = everywhere.iter().filter(|(name, _)| !is_own(name));
    let all = others.chain(&own);
    let all: Vec<_> =
        all.map(|(name, value)| format!("{} = {}", quoted(name), quoted(value))).collect();
    (!all.is_empty()).then(|| format!("environment = {{ {} }}", all.join(", ")))
}

/// When it is ready: its probe, its line, or its end if others wait for that. With the key it was found at.
fn ready(name: &str, process: &Yaml, all: &Yaml) -> Option<(&'static str, String)> {
    if let Some(probe) = probe(process, "readiness_probe") {
        return Some(("readiness_probe", probe));
    }
    if let Some(line) = process.text(&["ready_log_line"]) {
        return Some(("ready_log_line", format!("pattern = {}", quoted(&escaped(line)))));
    }
    let awaits_end = |(_, other): &(String, Yaml)| {
        let condition = other.text(&["depends_on", name, "condition"]);
        condition.is_some_and(|condition| condition.starts_with("process_completed"))
    };
    all.members().iter().any(awaits_end).then(|| ("depends_on", "exits = true".to_owned()))
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
            // Without a port that can be read there is nothing to check.
            let port = http.text(&["port"])?.parse::<u16>().ok()?;
            let host = part("host", "127.0.0.1");
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
    use patterm_project::project_file::ProjectFile;

    use super::super::names::Suggestions;
    use super::super::write::project_file;
    use super::*;

    /// The processes of a file, as they are written.
    fn written(text: &str) -> Vec<Suggestion> {
        let mut suggestions = Suggestions::default();
        suggestions.extend_all(processes("process-compose.yaml", text));
        suggestions.into_inner()
    }

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
        let found = written(FILE);
        let settings = |name: &str| {
            found.iter().find(|one| one.name == name).unwrap().setting_lines().join("\n")
        };
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

    const FLOW: &str = r#"
environment: ["LEVEL=info", "PORT=1"]
processes:
  db:
    command: postgres
    namespace: backend
    readiness_probe: {http_get: {host: 127.0.0.1, port: 5544}, initial_delay_seconds: 3}
    shutdown: {signal: 2, timeout_seconds: 7}
  api:
    command: npm start
    namespace: backend
    environment: {PORT: 4000}
    depends_on: {db: {condition: process_healthy}, old: {condition: process_started}}
    availability: {restart: always}
    liveness_probe: {http_get: {path: /}}
    entrypoint: [sh]
    shutdown: *stop
  old:
    command: ./old
    disabled: true
"#;

    #[test]
    fn flow_style_is_read_and_what_is_left_out_is_named() {
        let found = written(FLOW);
        let [db, api, old] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            db.setting_lines().join("\n"),
            "environment = { \"LEVEL\" = \"info\", \"PORT\" = \"1\" }\n\
             ready = { http = \"http://127.0.0.1:5544/\" }\n\
             stop = { signal = \"SIGINT\", grace_seconds = 7 }"
        );
        assert_eq!(
            db.why,
            "not taken over from process-compose.yaml: readiness_probe.initial_delay_seconds"
        );
        assert_eq!(
            api.setting_lines().join("\n"),
            "environment = { \"LEVEL\" = \"info\", \"PORT\" = \"4000\" }\n\
             depends_on = [\"db\"]\nrestart = \"always\""
        );
        assert_eq!(
            api.why,
            "not taken over from process-compose.yaml: depends_on.old (it is disabled), liveness_probe, \
             entrypoint, shutdown"
        );
        assert_eq!((old.is_comment, old.why.as_str()), (true, "process-compose.yaml disables old"));
        let text = project_file(&found, &[]);
        assert!(text.contains("# [processes.old]\n# command = \"./old\"\n"), "{text}");
        let file = ProjectFile::parse(&text).unwrap();
        assert_eq!(file.in_order(), ["db", "api"], "what is disabled is not started");
        assert_eq!(file.groups["backend"], ["db", "api"]);
    }

    #[test]
    fn settings_that_patterm_refuses_are_left_out() {
        let text = "processes:\n  a:\n    command: cat\n    environment: {\"A B=\": 1}\n    depends_on:\n\
            \x20     gone:\n        condition: x\n  b:\n    command: cat\n    availability: {restart: always}\n";
        let found = written(text);
        assert_eq!((found[0].command.as_str(), found[0].settings.len()), ("cat", 0));
        assert!(found[0].why.contains("could not be taken over"), "{found:?}");
        assert_eq!(found[1].setting_lines(), ["restart = \"always\""]);
        assert!(written("processes: 7").is_empty());
    }

    #[test]
    fn names_that_look_like_ids_are_replaced_where_they_are_used() {
        let text = "processes:\n  p1:\n    command: db\n    namespace: p2\n  web:\n    command: x\n    depends_on:\n\
            \x20     p1:\n        condition: process_started\n";
        let found = written(text);
        assert_eq!(found[1].setting_lines(), ["depends_on = [\"p1-service\"]"]);
        let file = ProjectFile::parse(&project_file(&found, &[])).unwrap();
        assert_eq!(file.in_order(), ["p1-service", "web"]);
        assert_eq!(file.groups["p2-service"], ["p1-service"]);
    }
}
