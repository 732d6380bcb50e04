//! Detects what a project could start: scripts, targets, services.

use std::path::Path;

use serde_json::Value;

use super::names::Suggestions;
use super::suggestion::{Suggestion, is_lasting, read, word};
use super::{compose, process_compose, python, workspaces};

/// Everything found in a folder.
pub(super) fn in_folder(root: &Path) -> Vec<Suggestion> {
    let has = |name: &str| root.join(name).is_file();
    let text = |name: &str| read(&root.join(name));
    let mut found = Suggestions::default();
    // First, so that its names stay as they are: its processes name each other.
    for name in ["process-compose.yaml", "process-compose.yml"] {
        if let Some(text) = text(name) {
            // All of them: they depend on each other.
            found.extend_all(process_compose::processes(name, &text));
            break;
        }
    }
    // Procfile.dev is for working on the project, Procfile for running it elsewhere.
    if let Some(text) = text("Procfile.dev") {
        found.extend(services("Procfile.dev", procfile(&text)));
    } else if let Some(text) = text("Procfile") {
        found.extend(services("Procfile", procfile(&text)));
    }
    if let Some(text) = text("package.json") {
        let run = package_manager(&text, &has);
        found.extend(scripts_of("package.json", scripts(&text, run)));
        found.extend(workspaces::packages(root, run));
    }
    if let Some(text) = text("deno.json") {
        found.extend(scripts_of("deno.json", tasks(&text)));
    }
    if let Some(text) = text("Cargo.toml") {
        found.extend(workspaces::crates(root, &text));
        found.extend(scripts_of("Cargo.toml", cargo(&text, root.join("src/main.rs").is_file())));
    }
    if has("go.mod") {
        found.extend(scripts_of("go.mod", vec![("test".to_owned(), "go test ./...".to_owned())]));
    }
    found.extend(python::servers(root));
    // In the order in which GNU make looks for them.
    for name in ["GNUmakefile", "makefile", "Makefile"] {
        if let Some(text) = text(name) {
            found.extend(scripts_of(name, targets(&text)));
            break;
        }
    }
    for name in ["justfile", "Justfile", ".justfile"] {
        if let Some(text) = text(name) {
            found.extend(scripts_of(name, recipes(&text)));
            break;
        }
    }
    for name in ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"] {
        if let Some(text) = text(name) {
            // All of them: they depend on each other.
            found.extend_all(compose::services(name, &text));
            break;
        }
    }
    found.into_inner()
}

/// Names with commands, all of which keep running.
fn services(from: &'static str, pairs: Vec<(String, String)>) -> Vec<Suggestion> {
    pairs.into_iter().map(|(name, command)| Suggestion::new(&name, &command, from)).collect()
}

/// Names with commands: some names say that their commands keep running; the others are tasks.
fn scripts_of(from: &'static str, pairs: Vec<(String, String)>) -> Vec<Suggestion> {
    let new = |(name, command): (String, String)| Suggestion {
        is_comment: !is_lasting(&name),
        ..Suggestion::new(&name, &command, from)
    };
    pairs.into_iter().map(new).collect()
}

/// By `packageManager` in package.json, otherwise by the files that only one of them writes.
fn package_manager(package: &str, has: &impl Fn(&str) -> bool) -> &'static str {
    let known = [
        ("pnpm", "pnpm-lock.yaml", "pnpm run"),
        ("pnpm", "pnpm-workspace.yaml", "pnpm run"),
        ("yarn", "yarn.lock", "yarn run"),
        ("bun", "bun.lock", "bun run"),
        ("bun", "bun.lockb", "bun run"),
    ];
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let named = package["packageManager"].as_str().and_then(|text| text.split('@').next());
    let is_used = |(name, file, _): &&(&str, &str, &str)| match named {
        Some(named) => named == *name,
        None => has(file),
    };
    known.iter().find(is_used).map_or("npm run", |(_, _, run)| run)
}

/// Scripts, except those that the package manager runs automatically.
fn scripts(text: &str, run: &str) -> Vec<(String, String)> {
    const AUTOMATIC: [&str; 8] = [
        "install",
        "prepare",
        "publish",
        "prepublish",
        "prepublishOnly",
        "prepack",
        "postpack",
        "dependencies",
    ];
    let package: Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = package["scripts"].as_object().cloned().unwrap_or_default();
    let is_hook = |name: &str| {
        ["pre", "post"].iter().any(|part| {
            name.strip_prefix(part)
                .is_some_and(|rest| scripts.contains_key(rest) || AUTOMATIC.contains(&rest))
        })
    };
    // JSON has no comments, so that people write keys such as `//dev`.
    let is_comment = |name: &str| name.starts_with("//");
    let own = scripts.iter().filter(|(_, script)| script.is_string()).map(|(name, _)| name);
    let own = own.filter(|name| !AUTOMATIC.contains(&name.as_str()) && !is_hook(name));
    own.filter(|name| !is_comment(name))
        .map(|name| (name.clone(), format!("{run} {}", word(name))))
        .collect()
}

fn tasks(text: &str) -> Vec<(String, String)> {
    let config: Value = serde_json::from_str(text).unwrap_or_default();
    let tasks = config["tasks"].as_object().cloned().unwrap_or_default();
    tasks.keys().map(|name| (name.clone(), format!("deno task {}", word(name)))).collect()
}

/// `NAME: COMMAND`, as Foreman reads it.
fn procfile(text: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let (name, command) = line.split_once(':')?;
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        (plain && !name.is_empty()).then(|| (name.to_owned(), command.trim().to_owned()))
    };
    text.lines().filter_map(line).collect()
}

fn cargo(text: &str, has_main: bool) -> Vec<(String, String)> {
    let manifest: toml::Table = text.parse().unwrap_or_default();
    let runs = manifest.contains_key("package") && (has_main || manifest.contains_key("bin"));
    let mut found = Vec::new();
    if runs {
        found.push(("run".to_owned(), "cargo run".to_owned()));
    }
    if manifest.contains_key("package") || manifest.contains_key("workspace") {
        found.push(("test".to_owned(), "cargo test".to_owned()));
    }
    found
}

/// Targets that are words, not files, patterns or special targets.
fn targets(text: &str) -> Vec<(String, String)> {
    /// Lines that declare no targets, even with a colon.
    const DIRECTIVES: [&str; 12] = [
        "define", "else", "export", "ifdef", "ifeq", "ifndef", "ifneq", "include", "override",
        "sinclude", "undefine", "vpath",
    ];
    let mut found: Vec<(String, String)> = Vec::new();
    let (mut continues, mut is_in_define) = (false, false);
    for line in text.lines() {
        let is_continuation = std::mem::replace(&mut continues, line.ends_with('\\'));
        let first = line.split_whitespace().next().unwrap_or_default();
        is_in_define = (is_in_define || first == "define") && first != "endef";
        if is_continuation || is_in_define || DIRECTIVES.contains(&first) {
            continue;
        }
        let Some((head, rest)) = line.split_once(':') else { continue };
        let assigns = head.contains('=') || rest.trim_start_matches(':').starts_with('=');
        if assigns || head.starts_with(['\t', '#', ' ', '-']) || head.contains('$') {
            continue;
        }
        for name in head.split_whitespace() {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            if plain && !name.starts_with('-') && !found.iter().any(|(known, _)| known == name) {
                found.push((name.to_owned(), format!("make {name}")));
            }
        }
    }
    found
}

/// Recipes that run without arguments, except private ones.
fn recipes(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut is_private = false;
    for line in text.lines() {
        if line.starts_with('[') {
            is_private |= line.contains("private");
            continue;
        }
        if let Some(name) = recipe(line).filter(|name| !is_private && !name.starts_with('_')) {
            found.push((name.to_owned(), format!("just {name}")));
        }
        // Comments may stand between an attribute and its recipe.
        is_private &= line.starts_with('#') || line.trim().is_empty();
    }
    found
}

/// The name of the recipe whose first line this is, if all its parameters have defaults or may be missing.
fn recipe(line: &str) -> Option<&str> {
    let line = line.strip_prefix('@').unwrap_or(line);
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))?;
    let (name, rest) = line.split_at(end);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let mut rest = rest.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix(':') {
            return (!after.starts_with('=')).then_some(name);
        }
        rest = optional_parameter(rest)?.trim_start();
    }
}

/// What follows a parameter such as `port="80"` or `*ARGS`; nothing if a value is required.
fn optional_parameter(text: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_$".contains(c);
    if let Some(any) = text.strip_prefix('*') {
        let rest = any.trim_start_matches(is_name);
        return rest.strip_prefix('=').map_or(Some(rest), value);
    }
    let rest = text.strip_prefix('+').unwrap_or(text).trim_start_matches(is_name);
    if rest.len() == text.len() { None } else { value(rest.strip_prefix('=')?) }
}

/// What follows the value of a default.
fn value(text: &str) -> Option<&str> {
    match text.chars().next()? {
        quote @ ('"' | '\'') => text[1..].split_once(quote).map(|(_, rest)| rest),
        '(' => text.split_once(')').map(|(_, rest)| rest),
        _ => Some(text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "-_".contains(c))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[(&str, &str)]) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = in_folder(dir.path());
        let found: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.command.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_empty_folder_suggests_nothing() {
        check(&[], &[]);
        check(&[("package.json", "{"), ("Cargo.toml", "["), ("deno.json", "[1]")], &[]);
    }

    #[test]
    fn scripts_of_a_package() {
        let package = r#"{"scripts": {"dev": "vite", "test:unit": "vitest", "pretest:unit": "x",
            "prepare": "husky", "it's": "y", "//dev": "starts vite", "list": []}}"#;
        check(
            &[("package.json", package), ("pnpm-lock.yaml", "")],
            &[
                ("dev", "pnpm run dev"),
                ("it-s", r"pnpm run 'it'\''s'"),
                ("test-unit", "pnpm run test:unit"),
            ],
        );
    }

    #[test]
    fn a_procfile_comes_first_and_duplicate_names_get_a_prefix() {
        check(
            &[
                ("Procfile", "web: bundle exec rails s -p $PORT\n# x: y\nworker:sidekiq\n"),
                ("package.json", r#"{"scripts": {"web": "x"}}"#),
                ("compose.yml", "services:\n  db:\n    image: postgres\n"),
            ],
            &[
                ("web", "bundle exec rails s -p $PORT"),
                ("worker", "sidekiq"),
                ("package.json-web", "npm run web"),
                ("db", "docker compose up --no-deps db"),
            ],
        );
    }

    #[test]
    fn targets_that_are_words() {
        let makefile = ".PHONY: all test\nCC := gcc\nA = b:c\nall: main.o\nmain.o: main.c\n\tcc\n\
            test lint: all\n%.o: %.c\n\techo x: y\nall: more\nB ::= x\n-include x:y\n$(info a: b)\n\
            C = d \\\ne:f\ndefine g\nh: i\nendef\nifeq (j:k, l)\nendif\n";
        check(
            &[
                ("Makefile", makefile),
                (
                    "justfile",
                    "set x := 'y'\nbuild: dep\n  cc\nrun name:\n@ci:\nserve port=\"80\" *ARGS: build\n\
                     [private]\n# hidden\nsecret:\n_help:\nx := 'a:b'\n",
                ),
            ],
            &[
                ("all", "make all"),
                ("test", "make test"),
                ("lint", "make lint"),
                ("build", "just build"),
                ("ci", "just ci"),
                ("serve", "just serve"),
            ],
        );
    }

    #[test]
    fn what_ends_by_itself_is_a_task() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("Makefile", "clean:\n\trm -f x\nserve:\n\tx\nwatch-css:\n");
        write("package.json", r#"{"scripts": {"deploy": "x", "dev:web": "y", "startup": "z"}}"#);
        write("Procfile", "migrate: x\n");
        let found = in_folder(dir.path());
        let lasting = found.iter().filter(|one| !one.is_comment).map(|one| one.name.as_str());
        assert_eq!(lasting.collect::<Vec<_>>(), ["migrate", "dev-web", "serve", "watch-css"]);
    }

    #[test]
    fn the_package_manager_is_the_one_that_the_project_names() {
        let package = |more: &str| format!(r#"{{{more}"scripts": {{"dev": "x"}}}}"#);
        let yarn = package(r#""packageManager": "yarn@4.1.0","#);
        check(&[("package.json", &yarn), ("pnpm-lock.yaml", "")], &[("dev", "yarn run dev")]);
        let npm = package(r#""packageManager": "npm@11.0.0","#);
        check(&[("package.json", &npm), ("yarn.lock", "")], &[("dev", "npm run dev")]);
        let pnpm = [("package.json", &*package("")), ("pnpm-workspace.yaml", "packages: []\n")];
        check(&pnpm, &[("dev", "pnpm run dev")]);
    }

    #[test]
    fn a_crate_and_a_workspace() {
        let package = ("Cargo.toml", "[package]\nname = \"x\"\n");
        check(&[package, ("src/main.rs", "")], &[("run", "cargo run"), ("test", "cargo test")]);
        check(&[package], &[("test", "cargo test")]);
        check(&[("Cargo.toml", "[workspace]\n")], &[("test", "cargo test")]);
    }

    #[test]
    fn python_servers_are_found_by_the_file_that_creates_them() {
        check(
            &[("main.py", "from fastapi import FastAPI\n\napp: FastAPI = FastAPI(title=\"x\")\n")],
            &[("api", "uvicorn main:app --reload")],
        );
        check(
            &[("app/__init__.py", "web = Flask(__name__)\n"), ("uv.lock", "")],
            &[("flask", "uv run flask --app app:web run --debug")],
        );
        check(&[("manage.py", "")], &[("django", "python manage.py runserver")]);
        // Only what has a name at the top level can be served.
        check(&[("main.py", "def make():\n    app = FastAPI()\n")], &[]);
    }

    #[test]
    fn members_of_workspaces_run_in_their_folders() {
        let member = r#"{"scripts": {"dev": "vite", "build": "tsc"}}"#;
        check(
            &[
                ("package.json", r#"{"workspaces": ["apps/*"], "scripts": {"lint": "x"}}"#),
                ("apps/web/package.json", member),
                ("apps/README.md", ""),
                ("yarn.lock", ""),
            ],
            &[("lint", "yarn run lint"), ("web-dev", "yarn run dev")],
        );
        check(
            &[
                ("package.json", "{}"),
                (
                    "pnpm-workspace.yaml",
                    "packages:\n  - 'packages/*'\n  - \"docs\"\n  - '!packages/old'\nother: x\n",
                ),
                ("packages/api/package.json", member),
                ("packages/old/package.json", member),
                ("docs/package.json", member),
                ("pnpm-lock.yaml", ""),
            ],
            &[("docs-dev", "pnpm run dev"), ("api-dev", "pnpm run dev")],
        );
        check(
            &[
                ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
                ("crates/cli/Cargo.toml", "[package]\nname = \"tool\"\n"),
                ("crates/cli/src/main.rs", ""),
                ("crates/lib/Cargo.toml", "[package]\nname = \"lib\"\n"),
            ],
            &[("tool", "cargo run -p tool"), ("test", "cargo test")],
        );
    }

    #[test]
    fn names_that_look_like_ids_get_another_one() {
        check(
            &[
                ("Procfile", "p1: sleep 1\n"),
                ("Justfile", "p1:\n  x\n"),
                ("compose.yaml", "services:\n  p2:\n    image: x\n  my web:\n    image: x\n"),
            ],
            &[
                ("p1-service", "sleep 1"),
                ("Justfile-p1-service", "just p1"),
                ("p2-service", "docker compose up --no-deps p2"),
                ("my-web", "docker compose up --no-deps 'my web'"),
            ],
        );
    }

    #[test]
    fn services_and_procfile_for_development() {
        let compose = "name: x\nservices:\n  # the data\n  db:\n    image: postgres\n    ports:\n\
            \x20     - 5432:5432\n  \"cache\":\n    image: redis\nvolumes:\n  data:\n";
        check(
            &[
                ("compose.yaml", compose),
                ("Procfile", "web: prod\n"),
                ("Procfile.dev", "web: dev\n"),
            ],
            &[
                ("web", "dev"),
                ("db", "docker compose up --no-deps db"),
                ("cache", "docker compose up --no-deps cache"),
            ],
        );
        check(&[("compose.yaml", "include: x\n")], &[("compose", "docker compose up")]);
    }

    #[test]
    fn a_compose_service_keeps_its_dependencies_and_port() {
        let dir = tempfile::tempdir().unwrap();
        let text = "services:\n  web:\n    depends_on:\n      db:\n        condition: service_healthy\n    ports:\n\
            \x20     - \"127.0.0.1:8080:80/tcp\"\n  job:\n    depends_on:\n      - db\n      - web\n\
            \x20   profiles: [\"tools\"]\n  db:\n    ports:\n      - 5432\n";
        std::fs::write(dir.path().join("compose.yaml"), text).unwrap();
        let found = in_folder(dir.path());
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_str(), one.port, one.is_comment, one.setting_lines().join("")))
            .collect();
        let expected = [
            ("web", Some(8080), false, "depends_on = [\"db\"]".to_owned()),
            ("job", None, true, "depends_on = [\"db\", \"web\"]".to_owned()),
            ("db", None, false, String::new()),
        ];
        assert_eq!(found, expected);
    }
}
