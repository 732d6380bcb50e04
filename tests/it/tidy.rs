//! The repository keeps its own rules: who may depend on whom, what every file begins with, that no
//! test is forgotten, and that what the README says exists.

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

/// All files that belong to the repository, those not yet committed included.
fn files() -> Vec<PathBuf> {
    let listed = output_of("git", &["ls-files", "-co", "--exclude-standard"]);
    let files: Vec<_> = listed.lines().map(PathBuf::from).collect();
    files.into_iter().filter(|file| root().join(file).is_file()).collect()
}

fn text(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(root().join(file)).unwrap()).into_owned()
}

/// The table of ARCHITECTURE.md: which of our crates each may use, and what it must not know.
const EDGES: [(&str, &[&str], &[&str]); 15] = [
    ("patterm-wire", &[], &["tokio", "rmcp", "rustix", "tracing"]),
    ("patterm-keeper", &[], &["tokio", "rmcp"]),
    ("patterm-screen", &[], &["tokio", "rmcp", "rustix", "serde_json"]),
    ("patterm-gateway", &["patterm-wire", "patterm-keeper"], &["rmcp", "clap"]),
    ("patterm-store", &["patterm-wire", "patterm-keeper"], &["rmcp", "clap"]),
    (
        "patterm-panes",
        &["patterm-keeper", "patterm-screen", "patterm-store"],
        &["rmcp", "clap", "toml"],
    ),
    (
        "patterm-project",
        &["patterm-wire", "patterm-gateway", "patterm-store", "patterm-panes"],
        &["rmcp", "clap"],
    ),
    (
        "patterm-agents",
        &["patterm-screen", "patterm-store", "patterm-panes", "patterm-project"],
        &["rmcp", "clap"],
    ),
    ("patterm-pads", &["patterm-store"], &["rmcp", "clap"]),
    ("patterm-timers", &["patterm-store", "patterm-panes"], &["rmcp", "clap"]),
    (
        "patterm-host",
        &[
            "patterm-wire",
            "patterm-keeper",
            "patterm-screen",
            "patterm-gateway",
            "patterm-store",
            "patterm-panes",
            "patterm-project",
            "patterm-agents",
            "patterm-pads",
            "patterm-timers",
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
fn crates_know_only_whom_they_may() {
    let metadata =
        output_of("cargo", &["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let names = |list: &Value| -> BTreeSet<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let ours = names(&metadata["packages"]);
    let known: BTreeSet<String> = EDGES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(ours, known, "every crate has its line in EDGES");
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let (_, may, must_not) = EDGES.iter().find(|(edge, ..)| *edge == name).unwrap();
        let used = names(&package["dependencies"]);
        for other in used.intersection(&ours) {
            assert!(may.contains(&other.as_str()), "{name} must not use {other}");
        }
        for banned in *must_not {
            assert!(!used.contains(*banned), "{name} must not use {banned}");
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
        assert_eq!(keeps, !manifest.starts_with("crates/keeper"), "{}", manifest.display());
    }
    assert!(text(Path::new("Cargo.toml")).contains("unsafe_code = \"forbid\""));
}

#[test]
fn every_dependency_says_what_it_is_for() {
    let manifest = text(Path::new("Cargo.toml"));
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let lines = section.lines().skip(1).take_while(|line| !line.starts_with('['));
    let mut seen = 0;
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("patterm-")) {
        let self_evident = line.starts_with("serde = ");
        assert!(self_evident || line.contains(" # "), "no reason: {line}");
        seen += 1;
    }
    assert!(seen > 10);
}

#[test]
fn every_source_file_opens_with_what_lives_there() {
    let sources = files().into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs"));
    let mut seen = 0;
    for source in sources {
        assert!(text(&source).starts_with("//! "), "{}", source.display());
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
        assert!(owners.iter().any(declares), "{} is in no module", file.display());
    }
}

#[test]
fn no_test_is_ignored_and_none_sleeps() {
    // Written apart, so that this file does not find itself.
    let banned =
        [concat!("#[ign", "ore"), concat!("thread::sl", "eep"), concat!("time::sl", "eep(")];
    for file in files()
        .into_iter()
        .filter(|f| f.starts_with("tests") && f.extension().is_some_and(|e| e == "rs"))
    {
        for word in banned {
            assert!(!text(&file).contains(word), "{} has {word}", file.display());
        }
    }
}

#[test]
fn the_version_has_its_place_in_the_changelog() {
    let version = patterm_host::VERSION;
    let changelog = text(Path::new("CHANGELOG.md"));
    let newest = changelog.lines().filter_map(|line| line.strip_prefix("## "));
    let mut newest = newest.filter(|heading| *heading != "Unreleased");
    let heading = newest.next().unwrap_or_default();
    let date = heading.strip_prefix(&format!("{version} · ")).unwrap_or_default();
    let digits = date.split('-').map(|part| part.parse::<u32>().is_ok());
    assert!(digits.eq([true; 3]), "the first heading is {heading:?}, the version is {version}");
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
            assert!(!text(&file).contains(word), "{} has {word}", file.display());
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
                        assert!(help.contains(&format!("\n  {verb}")), "{document}: {line}");
                        verbs += 1;
                    }
                    [script, ..] if script.starts_with("scripts/") => {
                        assert!(root().join(script).is_file(), "{document}: {line}");
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
            assert!(root().join(&path).exists(), "{}: {}", document.display(), path.display());
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn the_example_in_contributing_is_the_one_that_is_compiled() {
    let example = text(Path::new("docs/examples/count_lines.rs"));
    let block = format!("```rust\n{example}```\n");
    assert!(text(Path::new("CONTRIBUTING.md")).contains(&block), "docs/examples/count_lines.rs");
}

#[test]
fn the_verbs_flags_and_tools_of_the_readme_are_all_there_are() {
    let readme = text(Path::new("README.md"));
    let place = Place::new();
    for verb in place.run(&["--help"]).lines().filter_map(|line| line.strip_prefix("  ")) {
        let verb = verb.split_whitespace().next().unwrap_or_default();
        if verb.starts_with(|c: char| c.is_ascii_lowercase()) {
            assert!(readme.contains(&format!("| `patterm {verb}")), "verb {verb}");
        }
    }
    for flag in
        place.run(&["mcp-stdio", "--help"]).split_whitespace().filter(|w| w.starts_with("--"))
    {
        assert!(flag == "--help" || readme.contains(flag), "flag {flag}");
    }
    let section = readme.split("## Tools").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert!(rows.eq(Registry::standard().names()), "the README's table of tools");
}

/// Every name of a test in the page about faults: all that is written as a path of modules.
#[test]
fn the_tests_that_show_the_faults_exist() {
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
            assert!(sources.iter().any(has), "no test {name}");
            named += 1;
        }
    }
    assert!(named > 60, "{named}");
}
