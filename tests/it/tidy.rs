//! The repository's own rules: permitted dependencies, the first line of every file, no forgotten
//! tests, and a correct README.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use patterm_host::tools::Registry;
use serde_json::Value;

use crate::support::Place;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "tests ask the tools of the trade")]
fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// All files of the repository, including those not committed yet.
fn files() -> Vec<PathBuf> {
    let listed = output_of("git", &["ls-files", "-co", "--exclude-standard"]);
    let files: Vec<_> = listed.lines().map(PathBuf::from).collect();
    files.into_iter().filter(|file| root().join(file).is_file()).collect()
}

fn text(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(root().join(file)).unwrap()).into_owned()
}

/// The table of ARCHITECTURE.md: which of our crates each crate may use, and what it must not know.
const EDGES: [(&str, &[&str], &[&str]); 18] = [
    ("patterm-wire", &[], &["tokio", "rmcp", "rustix", "tracing"]),
    ("patterm-keeper", &[], &["tokio", "rmcp"]),
    ("patterm-screen", &[], &["tokio", "rmcp", "rustix", "serde_json"]),
    ("patterm-gateway", &["patterm-wire", "patterm-keeper"], &["rmcp", "clap"]),
    ("patterm-store", &["patterm-wire", "patterm-keeper"], &["rmcp", "clap"]),
    (
        "patterm-git",
        &["patterm-wire", "patterm-keeper", "patterm-store"],
        &["tokio", "rmcp", "clap"],
    ),
    ("patterm-events", &["patterm-wire", "patterm-store"], &["rmcp", "clap"]),
    (
        "patterm-panes",
        &[
            "patterm-wire",
            "patterm-keeper",
            "patterm-screen",
            "patterm-store",
            "patterm-events",
            "patterm-git",
        ],
        &["rmcp", "clap", "toml"],
    ),
    (
        "patterm-project",
        &["patterm-wire", "patterm-gateway", "patterm-store", "patterm-panes"],
        &["rmcp", "clap"],
    ),
    (
        // Its tests print into logs, which belong to the keeper's crate.
        "patterm-agents",
        &[
            "patterm-wire",
            "patterm-keeper",
            "patterm-screen",
            "patterm-store",
            "patterm-events",
            "patterm-panes",
            "patterm-project",
        ],
        &["rmcp", "clap"],
    ),
    ("patterm-pads", &["patterm-wire", "patterm-store", "patterm-events"], &["rmcp", "clap"]),
    (
        "patterm-timers",
        &["patterm-wire", "patterm-store", "patterm-events", "patterm-panes"],
        &["rmcp", "clap"],
    ),
    (
        "patterm-hooks",
        &[
            "patterm-wire",
            "patterm-gateway",
            "patterm-store",
            "patterm-events",
            "patterm-panes",
            "patterm-project",
        ],
        &["rmcp", "clap"],
    ),
    (
        "patterm-host",
        &[
            "patterm-wire",
            "patterm-keeper",
            "patterm-screen",
            "patterm-gateway",
            "patterm-store",
            "patterm-events",
            "patterm-git",
            "patterm-panes",
            "patterm-project",
            "patterm-agents",
            "patterm-pads",
            "patterm-timers",
            "patterm-hooks",
        ],
        &["ratatui", "axum", "hyper", "clap"],
    ),
    ("patterm-tui", &["patterm-wire", "patterm-screen"], &["tokio", "rmcp", "axum"]),
    (
        "patterm",
        &[
            "patterm-wire",
            "patterm-keeper",
            "patterm-store",
            "patterm-git",
            "patterm-project",
            "patterm-agents",
            "patterm-pads",
            "patterm-host",
            "patterm-tui",
        ],
        &["rmcp"],
    ),
    (
        "patterm-tests",
        &[
            "patterm-wire",
            "patterm-keeper",
            "patterm-screen",
            "patterm-gateway",
            "patterm-store",
            "patterm-panes",
            "patterm-project",
            "patterm-agents",
            "patterm-host",
        ],
        &[],
    ),
    ("patterm-bench", &["patterm-screen", "patterm-gateway"], &[]),
];

#[test]
fn crates_depend_only_on_permitted_crates() {
    let metadata =
        output_of("cargo", &["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let names = |list: &Value| -> BTreeSet<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let ours = names(&metadata["packages"]);
    let known: BTreeSet<String> = EDGES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(ours, known, "every crate has its line in EDGES of tests/it/tidy.rs");
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let (_, may, must_not) = EDGES.iter().find(|(edge, ..)| *edge == name).unwrap();
        let used = names(&package["dependencies"]);
        for other in used.intersection(&ours) {
            assert!(
                may.contains(&other.as_str()),
                "{name} must not use {other}: ARCHITECTURE.md says what each crate does not know. If that is to \
                 change, change the table there and EDGES in tests/it/tidy.rs"
            );
        }
        for banned in *must_not {
            assert!(
                !used.contains(*banned),
                "{name} must not use {banned}: see its line in EDGES of tests/it/tidy.rs"
            );
        }
    }
}

/// No cycles of modules within a crate, no type name in more than two modules, and a current graph in the docs.
#[test]
fn modules_have_no_cycles_and_type_names_are_not_repeated() {
    output_of("python3", &["scripts/figures", "--check"]);
}

#[test]
fn every_crate_keeps_the_workspace_lints_and_only_keeper_may_be_unsafe() {
    let manifests =
        files().into_iter().filter(|f| f.ends_with("Cargo.toml") && f.components().count() > 1);
    for manifest in manifests.filter(|f| !f.starts_with("fuzz")) {
        let keeps = text(&manifest).contains("[lints]\nworkspace = true");
        assert_eq!(
            keeps,
            !manifest.starts_with("crates/keeper"),
            "{}: every manifest but the keeper's has `[lints]` with `workspace = true`",
            manifest.display()
        );
    }
    assert!(text(Path::new("Cargo.toml")).contains("unsafe_code = \"forbid\""));
}

#[test]
fn every_dependency_states_its_purpose() {
    let manifest = text(Path::new("Cargo.toml"));
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let lines = section.lines().skip(1).take_while(|line| !line.starts_with('['));
    let mut seen = 0;
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("patterm-")) {
        let self_evident = line.starts_with("serde = ");
        assert!(
            self_evident || line.contains(" # "),
            "Cargo.toml: a comment at the end of this line must say what the dependency is for: {line}"
        );
        seen += 1;
    }
    assert!(seen > 10);
}

#[test]
fn every_source_file_begins_with_a_description() {
    let sources = files().into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs"));
    let mut seen = 0;
    for source in sources {
        assert!(
            text(&source).starts_with("//! "),
            "{}: the first line must begin with `//! ` and say what the file contains",
            source.display()
        );
        seen += 1;
    }
    assert!(seen > 40);
}

#[test]
fn no_test_file_is_forgotten() {
    let mut declared: BTreeMap<PathBuf, String> = BTreeMap::new();
    for file in files().into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs")) {
        declared.insert(file.clone(), text(&file));
    }
    for file in declared.keys().filter(|f| f.starts_with("tests/it")) {
        let (folder, stem) = (file.parent().unwrap(), file.file_stem().unwrap().to_str().unwrap());
        let (owner, name) = match stem {
            "main" => continue,
            "mod" => (folder.parent().unwrap(), folder.file_name().unwrap().to_str().unwrap()),
            _ => (folder, stem),
        };
        let owners = [owner.join("mod.rs"), owner.join("main.rs"), owner.with_extension("rs")];
        let declares = |owner: &PathBuf| {
            declared.get(owner).is_some_and(|text| {
                text.lines().any(|l| l.trim_end_matches(';').ends_with(&format!("mod {name}")))
            })
        };
        assert!(
            owners.iter().any(declares),
            "{} is never compiled; add `mod {name};` to the file above it",
            file.display()
        );
    }
}

#[test]
fn no_test_is_ignored_or_sleeps() {
    // Split, so that this file does not match itself.
    let banned =
        [concat!("#[ign", "ore"), concat!("thread::sl", "eep"), concat!("time::sl", "eep(")];
    for file in files()
        .into_iter()
        .filter(|f| f.starts_with("tests") && f.extension().is_some_and(|e| e == "rs"))
    {
        for word in banned {
            assert!(
                !text(&file).contains(word),
                "{} has {word}; wait for the event itself (`ToolClient::wait`, or `until` if there is none), and fix \
                 or remove a test instead of ignoring it",
                file.display()
            );
        }
    }
}

#[test]
fn the_version_has_a_changelog_section() {
    let version = patterm_host::VERSION;
    let changelog = text(Path::new("CHANGELOG.md"));
    let newest = changelog.lines().filter_map(|line| line.strip_prefix("## "));
    let mut newest = newest.filter(|heading| *heading != "Unreleased");
    let heading = newest.next().unwrap_or_default();
    let date = heading.strip_prefix(&format!("{version} · ")).unwrap_or_default();
    let digits = date.split('-').map(|part| part.parse::<u32>().is_ok());
    assert!(
        digits.eq([true; 3]),
        "CHANGELOG.md: the first heading after Unreleased is {heading:?}; for version {version} it must be \
         `{version} · YYYY-MM-DD`"
    );
}

#[test]
fn nothing_names_this_machine_or_a_registry() {
    let banned = [
        concat!("/ro", "ot/"),
        concat!("/wo", "rk/"),
        concat!("registry.", "npmjs"),
        concat!("pypi.", "org"),
        concat!("static.", "crates.io"),
        concat!("deb.", "debian"),
    ];
    for file in files() {
        for word in banned {
            assert!(
                !text(&file).contains(word),
                "{} has {word}, which exists only on some machines; use a path or an address that all have",
                file.display()
            );
        }
    }
}

/// Words of a document's code blocks and inline code.
fn code(document: &str) -> Vec<String> {
    document.split('`').skip(1).step_by(2).map(|code| code.trim().to_owned()).collect()
}

#[test]
fn the_commands_in_the_documents_exist() {
    let place = Place::new();
    let help = place.run(&["--help"]);
    let mut verbs = 0;
    for document in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"] {
        for code in code(&text(Path::new(document))) {
            for line in code.lines() {
                let words: Vec<_> = line.trim_start_matches("$ ").split_whitespace().collect();
                match words.as_slice() {
                    ["patterm", verb, ..] if verb.starts_with(|c: char| c.is_ascii_lowercase()) => {
                        let known = help.contains(&format!("\n  {verb}"));
                        assert!(known, "{document}: `patterm --help` has no `{verb}`: {line}");
                        verbs += 1;
                    }
                    [script, ..] if script.starts_with("scripts/") => {
                        assert!(root().join(script).is_file(), "{document}: no such file: {line}");
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(verbs > 5);
}

#[test]
fn the_paths_in_the_documents_exist() {
    let documents = files().into_iter().filter(|file| file.extension().is_some_and(|e| e == "md"));
    let folders = ["crates/", "tests/", "docs/", "scripts/", "bench/", "fuzz/"];
    let mut seen = 0;
    for document in documents {
        let text = text(&document);
        let here = document.parent().unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let links =
            links.filter(|link| !link.contains("://") && !link.contains(char::is_whitespace));
        let links = links.map(|link| here.join(link.split('#').next().unwrap_or_default()));
        let names =
            code(&text).into_iter().filter(|code| folders.iter().any(|f| code.starts_with(f)));
        let names = names.filter(|name| !name.contains(['*', '<', ' ', '…', '$']));
        let names =
            names.filter(|name| !name.contains(char::is_uppercase) || name.ends_with(".md"));
        for path in links.chain(names.map(PathBuf::from)) {
            assert!(
                root().join(&path).exists(),
                "{} names {}, which does not exist",
                document.display(),
                path.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

/// Modules are written as `CRATE/MODULE`: `panes/data_plane/reader` is `crates/panes/src/data_plane/reader.rs`.
#[test]
fn the_modules_named_in_the_architecture_exist() {
    let architecture = text(Path::new("ARCHITECTURE.md"));
    let mut seen = 0;
    for name in code(&architecture) {
        let Some((of, module)) = name.split_once('/') else { continue };
        let sources = root().join("crates").join(of).join("src");
        if !sources.is_dir() {
            continue;
        }
        let exists =
            sources.join(format!("{module}.rs")).is_file() || sources.join(module).is_dir();
        assert!(
            exists,
            "ARCHITECTURE.md names `{name}`, but there is neither crates/{of}/src/{module}.rs nor such a folder"
        );
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn the_examples_in_contributing_are_the_ones_that_are_tested() {
    let contributing = text(Path::new("CONTRIBUTING.md"));
    for (language, name) in
        [("rust", "count_lines.rs"), ("toml", "preset.toml"), ("rust", "count_timers.rs")]
    {
        let example = text(&Path::new("docs/examples").join(name));
        let block = format!("```{language}\n{example}```\n");
        assert!(
            contributing.contains(&block),
            "CONTRIBUTING.md must contain docs/examples/{name} as it is; copy it there"
        );
    }
}

#[test]
fn the_readme_lists_all_verbs_flags_and_tools() {
    let readme = text(Path::new("README.md"));
    let place = Place::new();
    for verb in place.run(&["--help"]).lines().filter_map(|line| line.strip_prefix("  ")) {
        let verb = verb.split_whitespace().next().unwrap_or_default();
        if verb.starts_with(|c: char| c.is_ascii_lowercase()) {
            assert!(
                readme.contains(&format!("| `patterm {verb}")),
                "README.md: \"Verbs\" has no row for `patterm {verb}`"
            );
        }
    }
    for flag in
        place.run(&["mcp-stdio", "--help"]).split_whitespace().filter(|w| w.starts_with("--"))
    {
        assert!(
            flag == "--help" || readme.contains(flag),
            "README.md: \"How MCP clients connect\" does not mention {flag}"
        );
    }
    let section = readme.split("## Tools").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let (rows, tools): (Vec<_>, Registry) = (rows.collect(), Registry::standard());
    let tools: Vec<_> = tools.names().collect();
    assert_eq!(
        rows, tools,
        "README.md: the rows of \"Tools\" (left) are not the tools of `Registry::standard` (right), in that order"
    );
}

/// Every test that the page about faults names: everything that is written as a module path.
#[test]
fn the_tests_named_in_the_fault_list_exist() {
    let page = text(Path::new("docs/faults.md"));
    let sources: Vec<(PathBuf, String)> = files()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|e| e == "rs"))
        .map(|file| (file.clone(), text(&file)))
        .collect();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|---"));
    let mut named = 0;
    for line in rows.chain(page.split("## Fuzzing").skip(1)) {
        let is_name = |name: &String| {
            name.contains(['_', ':'])
                && name.chars().all(|c| c.is_alphanumeric() || "_:".contains(c))
        };
        for name in code(line).into_iter().filter(is_name) {
            let (modules, test) = name.rsplit_once("::").unwrap_or(("", &name));
            let (module, function) = (modules.rsplit("::").next().unwrap(), format!("fn {test}("));
            let has = |(file, text): &(PathBuf, String)| {
                let path = file.to_string_lossy();
                let file_fits = modules.is_empty()
                    || path.contains(&format!("/{module}.rs"))
                    || path.contains(&format!("/{module}/"))
                    || text.contains(&format!("mod {module} {{"));
                file_fits && text.contains(&function)
            };
            assert!(
                sources.iter().any(has),
                "docs/faults.md names the test {name}, which does not exist"
            );
            named += 1;
        }
    }
    assert!(named > 60, "{named}");
}

/// Every test that the threat model names: words of code with several underscores.
#[test]
fn the_tests_named_in_the_threat_model_exist() {
    let page = text(Path::new("SECURITY.md"));
    let sources = files().into_iter().filter(|file| file.extension().is_some_and(|e| e == "rs"));
    let sources: String = sources.map(|file| text(&file)).collect();
    let is_test = |name: &String| {
        name.matches('_').count() > 2 && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let tests: Vec<_> = code(&page).into_iter().filter(is_test).collect();
    for test in &tests {
        assert!(
            sources.contains(&format!("fn {test}(")),
            "SECURITY.md names the test {test}, which does not exist"
        );
    }
    assert!(tests.len() > 20, "{tests:?}");
}
