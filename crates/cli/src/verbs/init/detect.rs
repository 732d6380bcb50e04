//! Detects what a project could start: scripts, targets, services.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

/// Bytes read from a file: no list of commands is longer.
const FILE_BYTES: u64 = 1 << 20;

/// Suggestions per file: more would not help.
const MOST: usize = 20;

/// Characters of a name, as in the project file.
const NAME_CHARS: usize = 64;

/// A process that the project file could declare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suggestion {
    pub(super) name: String,
    pub(super) command: String,
    /// The file it was found in.
    pub(super) from: &'static str,
}

/// Everything found in a folder.
pub(super) fn in_folder(root: &Path) -> Vec<Suggestion> {
    let has = |name: &str| root.join(name).is_file();
    let text = |name: &str| read(&root.join(name));
    let mut found = Suggestions::default();
    if let Some(text) = text("Procfile") {
        found.add_all("Procfile", procfile(&text));
    }
    if let Some(text) = text("package.json") {
        found.add_all("package.json", scripts(&text, package_manager(&has)));
    }
    if let Some(text) = text("deno.json") {
        found.add_all("deno.json", tasks(&text));
    }
    if let Some(text) = text("Cargo.toml") {
        found.add_all("Cargo.toml", cargo(&text, root.join("src/main.rs").is_file()));
    }
    if has("go.mod") {
        found.add("go.mod", "test", "go test ./...");
    }
    if has("manage.py") {
        found.add("manage.py", "django", "python manage.py runserver");
    }
    for name in ["Makefile", "makefile", "GNUmakefile"] {
        if let Some(text) = text(name) {
            found.add_all("Makefile", targets(&text));
            break;
        }
    }
    for name in ["justfile", "Justfile"] {
        if let Some(text) = text(name) {
            found.add_all("justfile", recipes(&text));
            break;
        }
    }
    for name in ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"] {
        if has(name) {
            found.add("docker compose", "compose", "docker compose up");
            break;
        }
    }
    found.0
}

fn read(path: &Path) -> Option<String> {
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(FILE_BYTES.min(meta.len())).read_to_string(&mut text).ok()?;
    Some(text)
}

#[derive(Default)]
struct Suggestions(Vec<Suggestion>);

impl Suggestions {
    fn add_all(&mut self, from: &'static str, pairs: Vec<(String, String)>) {
        for (name, command) in pairs.into_iter().take(MOST) {
            self.add(from, &name, &command);
        }
    }

    /// A name that is taken gets the file's name in front.
    fn add(&mut self, from: &'static str, name: &str, command: &str) {
        let plain = plain_name(name);
        let taken = |name: &str| self.0.iter().any(|known| known.name == name);
        let name = match taken(&plain) {
            true => plain_name(&format!("{from}-{plain}")),
            false => plain,
        };
        if !name.is_empty() && !taken(&name) && !command.trim().is_empty() {
            self.0.push(Suggestion { name, command: command.trim().to_owned(), from });
        }
    }
}

/// A name that is valid in the project file.
fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(NAME_CHARS).collect();
    name.trim_matches('-').to_owned()
}

/// A word, quoted for a shell if necessary.
fn word(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    match !text.is_empty() && text.chars().all(safe) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn package_manager(has: &impl Fn(&str) -> bool) -> &'static str {
    let known = [
        ("pnpm-lock.yaml", "pnpm run"),
        ("yarn.lock", "yarn run"),
        ("bun.lock", "bun run"),
        ("bun.lockb", "bun run"),
    ];
    known.iter().find(|(file, _)| has(file)).map_or("npm run", |(_, run)| run)
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
    let own = scripts.keys().filter(|name| !AUTOMATIC.contains(&name.as_str()) && !is_hook(name));
    own.map(|name| (name.clone(), format!("{run} {}", word(name)))).collect()
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
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let Some((head, rest)) = line.split_once(':') else { continue };
        let assigns = head.contains('=') || rest.starts_with(['=', ':']);
        for name in
            head.split_whitespace().filter(|_| !assigns && !head.starts_with(['\t', '#', ' ']))
        {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            if plain && !found.iter().any(|(known, _)| known == name) {
                found.push((name.to_owned(), format!("make {name}")));
            }
        }
    }
    found
}

/// Recipes without arguments.
fn recipes(text: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let name = name.trim_start_matches('@');
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && name.starts_with(|c: char| c.is_ascii_alphabetic());
        (plain && !rest.starts_with('=')).then(|| (name.to_owned(), format!("just {name}")))
    };
    text.lines().filter_map(line).collect()
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
            "prepare": "husky", "it's": "y"}}"#;
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
                ("compose", "docker compose up"),
            ],
        );
    }

    #[test]
    fn targets_that_are_words() {
        let makefile = ".PHONY: all test\nCC := gcc\nA = b:c\nall: main.o\nmain.o: main.c\n\tcc\n\
            test lint: all\n%.o: %.c\n\techo x: y\nall: more\nB ::= x\n";
        check(
            &[
                ("Makefile", makefile),
                ("justfile", "set x := 'y'\nbuild: dep\n  cc\nrun name:\n@ci:\n"),
            ],
            &[
                ("all", "make all"),
                ("test", "make test"),
                ("lint", "make lint"),
                ("build", "just build"),
                ("ci", "just ci"),
            ],
        );
    }

    #[test]
    fn a_crate_and_a_workspace() {
        let package = ("Cargo.toml", "[package]\nname = \"x\"\n");
        check(&[package, ("src/main.rs", "")], &[("run", "cargo run"), ("test", "cargo test")]);
        check(&[package], &[("test", "cargo test")]);
        check(&[("Cargo.toml", "[workspace]\n")], &[("test", "cargo test")]);
    }
}
