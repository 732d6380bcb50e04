//! Converts the servers of an `.mcp.json`, as other clients use it, to the project file.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context;
use patterm_project::project_file::ProjectFile;
use patterm_store::project::PROJECT_FILE;
use serde_json::{Map, Value};

use crate::print::{one_line, print, printable_path};
use crate::start;
use crate::toml_string::quoted;

/// The file that many clients read.
const MCP_JSON: &str = ".mcp.json";

/// The servers of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportedServers {
    /// A table of the project file for each server, with its name.
    pub(crate) tables: Vec<(String, String)>,
    /// Servers that cannot be imported, and why.
    pub(crate) skipped: Vec<String>,
}

/// Adds the servers of a file to the project file.
pub(super) fn run(file: Option<&Path>) -> anyhow::Result<()> {
    let project = start::project_here()?;
    let from = file.map_or_else(|| project.root().join(MCP_JSON), Path::to_owned);
    let text = std::fs::read_to_string(&from)
        .with_context(|| format!("cannot read {}", from.display()))?;
    let mut found = read(&text).with_context(|| format!("cannot use {}", from.display()))?;
    let path = project.root().join(PROJECT_FILE);
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let known = ProjectFile::parse(&before).map_err(|faults| {
        let faults: Vec<_> =
            faults.iter().map(|fault| format!("{}:{fault}", path.display())).collect();
        anyhow::anyhow!("fix the project file first:\n{}", faults.join("\n"))
    })?;
    found.tables.retain(|(name, _)| {
        let is_declared = known.servers.contains_key(name);
        if is_declared {
            found.skipped.push(format!("{name}: patterm.toml already has a server of this name"));
        }
        !is_declared
    });
    let mut added = String::new();
    if !before.is_empty() && !before.ends_with('\n') {
        added.push('\n');
    }
    for (_, table) in &found.tables {
        let _ = write!(added, "\n{table}");
    }
    let is_valid = ProjectFile::parse(&format!("{before}{added}")).is_ok();
    anyhow::ensure!(is_valid, "a bug in patterm: it cannot read the file that it would write");
    if !found.tables.is_empty() {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(&path);
        let written = opened.and_then(|mut file| file.write_all(added.as_bytes()));
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    for line in &found.skipped {
        print(&one_line(&format!("skipped  {line}")));
    }
    for (name, _) in &found.tables {
        print(&format!("added    {name}"));
    }
    match found.tables.is_empty() {
        true => print("nothing was added"),
        false => print(&format!(
            "they are now in {}; `patterm trust` lets them run. Clients that read {} start their own \
             copies as well, until you remove it.",
            printable_path(&path),
            printable_path(&from)
        )),
    }
    Ok(())
}

/// The servers of the project's own `.mcp.json`, if it can be read.
pub(crate) fn in_mcp_json(root: &Path) -> Option<ImportedServers> {
    read(&std::fs::read_to_string(root.join(MCP_JSON)).ok()?).ok()
}

fn read(text: &str) -> anyhow::Result<ImportedServers> {
    let all: Value = serde_json::from_str(text).context("it is not JSON")?;
    // VS Code calls it `servers`.
    let servers = all.get("mcpServers").or_else(|| all.get("servers"));
    let servers = servers.and_then(Value::as_object).context("it has no `mcpServers`")?;
    let mut found = ImportedServers::default();
    for (name, server) in servers {
        let plain = plain(name);
        let is_taken = found.tables.iter().any(|(known, _)| *known == plain);
        let imported = match is_taken {
            true => Err(anyhow::anyhow!("another server has the name `{plain}`")),
            false => server
                .as_object()
                .context("it is not an object")
                .and_then(|server| valid(table(&plain, server)?)),
        };
        match imported {
            Ok(table) => found.tables.push((plain, table)),
            Err(why) => found.skipped.push(format!("{name}: {why}")),
        }
    }
    Ok(found)
}

/// A table that the project file accepts.
fn valid(table: String) -> anyhow::Result<String> {
    match ProjectFile::parse(&table) {
        Ok(_) => Ok(table),
        Err(faults) => {
            let faults: Vec<_> = faults.into_iter().map(|fault| fault.message).collect();
            anyhow::bail!("{}", faults.join("; "))
        }
    }
}

/// A name that is valid in the project file.
fn plain(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let plain: String = name.chars().map(letter).take(64).collect();
    match plain.trim_start_matches('-') {
        "" => "server".into(),
        plain => plain.to_owned(),
    }
}

fn table(name: &str, server: &Map<String, Value>) -> anyhow::Result<String> {
    let mut text = format!("[servers.{}]\n", quoted(name));
    let kind = server.get("type").and_then(Value::as_str).unwrap_or_default();
    if let Some(url) = server.get("url").and_then(Value::as_str) {
        anyhow::ensure!(
            kind != "sse",
            "it uses the HTTP+SSE transport of 2024, which is not supported"
        );
        let _ = writeln!(text, "url = {}", quoted(url));
        strings(&mut text, "headers", server.get("headers"))?;
        return Ok(text);
    }
    let command = server.get("command").and_then(Value::as_str);
    let command = command.context("it has neither `command` nor `url`")?;
    let mut words = vec![quoted(command)];
    for word in server.get("args").and_then(Value::as_array).into_iter().flatten() {
        words.push(quoted(word.as_str().context("`args` contains something other than strings")?));
    }
    let _ = writeln!(text, "command = [{}]", words.join(", "));
    if let Some(folder) = server.get("cwd").and_then(Value::as_str) {
        let _ = writeln!(text, "directory = {}", quoted(folder));
    }
    strings(&mut text, "env", server.get("env"))?;
    Ok(text)
}

fn strings(text: &mut String, key: &str, value: Option<&Value>) -> anyhow::Result<()> {
    let Some(members) = value.and_then(Value::as_object).filter(|members| !members.is_empty())
    else {
        return Ok(());
    };
    let mut pairs = Vec::new();
    for (name, value) in members {
        let value = value.as_str().with_context(|| format!("`{key}.{name}` is not a string"))?;
        pairs.push(format!("{} = {}", quoted(name), quoted(value)));
    }
    let _ = writeln!(text, "{key} = {{ {} }}", pairs.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use patterm_project::project_file::Location;

    use super::*;

    #[test]
    fn servers_of_other_clients() {
        let found = read(
            r#"{"mcpServers": {
                "a b": {"command": "npx", "args": ["-y", "x\"y"], "env": {"K": "${K:-v}"}},
                "web": {"type": "http", "url": "https://x.example/mcp", "headers": {"A": "b"}},
                "old": {"type": "sse", "url": "https://x.example/sse"},
                "none": {},
                "bots": {"command": "x"},
                "web 1": {"command": "x"}, "web:1": {"command": "y"}}}"#,
        )
        .unwrap();
        assert_eq!(found.skipped.len(), 4, "{found:?}");
        let text: String = found.tables.iter().map(|(_, table)| table.as_str()).collect();
        let file = ProjectFile::parse(&text).unwrap();
        let Location::Local(local) = &file.servers["a-b"].location else { panic!("{file:?}") };
        assert_eq!(local.command, ["npx", "-y", "x\"y"]);
        assert_eq!(file.servers["a-b"].env["K"], "${K:-v}");
        assert!(
            matches!(&file.servers["web"].location, Location::Remote(remote) if remote.headers["A"] == "b")
        );
        assert!(read("[]").is_err() && read("{").is_err());
    }
}
