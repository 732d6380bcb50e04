//! Members of workspaces: npm, pnpm and yarn packages, and crates.

use std::path::Path;

use serde_json::Value;

use super::suggestion::{Suggestion, read, word};

/// Scripts of a member that keep running; other scripts are suggested only for the whole workspace.
const LASTING: [&str; 4] = ["dev", "start", "serve", "watch"];

/// The maximum number of members to inspect: a longer list of suggestions would not help.
const MOST_MEMBERS: usize = 50;

/// The scripts of the packages of a JavaScript workspace.
pub(super) fn packages(root: &Path, run: &str) -> Vec<Suggestion> {
    let mut found = Vec::new();
    for member in folders(root, &package_patterns(root)) {
        let Some(text) = read(&root.join(&member).join("package.json")) else { continue };
        let package: Value = serde_json::from_str(&text).unwrap_or_default();
        for script in LASTING.iter().filter(|script| package["scripts"][**script].is_string()) {
            let folder = member.rsplit('/').next().unwrap_or(&member);
            found.push(Suggestion {
                why: format!("the workspace has the package {member} with the script `{script}`"),
                directory: Some(member.clone()),
                ..Suggestion::new(
                    &format!("{folder}-{script}"),
                    &format!("{run} {script}"),
                    "the workspace",
                )
            });
        }
    }
    found
}

/// The patterns of package.json or pnpm-workspace.yaml.
fn package_patterns(root: &Path) -> Vec<String> {
    let package = read(&root.join("package.json")).unwrap_or_default();
    let package: Value = serde_json::from_str(&package).unwrap_or_default();
    let listed = package["workspaces"].as_array().or(package["workspaces"]["packages"].as_array());
    let mut patterns: Vec<String> =
        listed.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    let yaml = read(&root.join("pnpm-workspace.yaml")).unwrap_or_default();
    let packages = yaml.lines().skip_while(|line| line.trim_end() != "packages:").skip(1);
    for line in packages.take_while(|line| line.trim().is_empty() || line.trim().starts_with('-')) {
        let name = line.trim().trim_start_matches('-').trim().trim_matches(['"', '\'']);
        patterns.extend((!name.is_empty()).then(|| name.to_owned()));
    }
    patterns
}

/// The programs of a cargo workspace.
pub(super) fn crates(root: &Path, manifest: &str) -> Vec<Suggestion> {
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    let members = manifest.get("workspace").and_then(|workspace| workspace.get("members"));
    let members = members.and_then(toml::Value::as_array);
    let patterns: Vec<String> =
        members.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    let mut found = Vec::new();
    for member in folders(root, &patterns) {
        let text = read(&root.join(&member).join("Cargo.toml")).unwrap_or_default();
        let manifest: toml::Table = text.parse().unwrap_or_default();
        let name = manifest.get("package").and_then(|package| package.get("name"));
        let Some(name) = name.and_then(toml::Value::as_str) else { continue };
        let has_main = root.join(&member).join("src/main.rs").is_file();
        if has_main || manifest.contains_key("bin") {
            found.push(Suggestion {
                why: format!("the crate {member} of the workspace has a program"),
                ..Suggestion::new(name, &format!("cargo run -p {}", word(name)), "Cargo.toml")
            });
        }
    }
    found
}

/// The folders that match patterns such as `apps/*`, except those that match patterns such as `!apps/old`. Only a
/// trailing `*` is supported.
fn folders(root: &Path, patterns: &[String]) -> Vec<String> {
    let (excluded, included): (Vec<_>, Vec<_>) =
        patterns.iter().cloned().partition(|pattern| pattern.starts_with('!'));
    let excluded: Vec<_> = excluded.iter().map(|pattern| pattern[1..].to_owned()).collect();
    let excluded = matching(root, &excluded);
    let mut found = matching(root, &included);
    found.retain(|folder| !excluded.contains(folder));
    found.truncate(MOST_MEMBERS);
    found
}

fn matching(root: &Path, patterns: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for pattern in patterns.iter().filter(|pattern| !pattern.contains("..")) {
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        match pattern.trim_end_matches("/**").strip_suffix("/*").or(pattern.strip_suffix("/**")) {
            Some(parent) => {
                let entries = std::fs::read_dir(root.join(parent)).into_iter().flatten().flatten();
                let folders = entries.filter(|entry| entry.path().is_dir());
                let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
                found.extend(names.map(|name| format!("{parent}/{name}")));
            }
            None if root.join(pattern).is_dir() => found.push(pattern.to_owned()),
            None => {}
        }
    }
    found.sort();
    found.dedup();
    found
}
