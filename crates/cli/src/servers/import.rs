//! Servers of an `.mcp.json`, as other clients keep them, in the words of the project file.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context;
use patterm_host::project_file::ProjectFile;
use patterm_store::project::PROJECT_FILE;
use serde_json::{Map, Value};

use crate::said::{one_line, say, shown_path};
use crate::start;
use crate::toml_string::quoted;

/// The file that many clients read.
const MCP_JSON: &str = ".mcp.json";

/// What was found in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// A table of the project file for each server, by its name.
    pub(crate) tables: Vec<(String, String)>,
    /// Servers that cannot be taken, and why.
    pub(crate) left: Vec<String>,
}

/// Adds the servers of a file to the project's.
pub(super) fn run(file: Option<&Path>) -> anyhow::Result<()> {
    let project = start::project_here()?;
    let from = file.map_or_else(|| project.root().join(MCP_JSON), Path::to_owned);
    let text = std::fs::read_to_string(&from)
        .with_context(|| format!("cannot read {}", from.display()))?;
    let mut found =
        read(&text).with_context(|| format!("{} is not what it should be", from.display()))?;
    let path = project.root().join(PROJECT_FILE);
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let known = ProjectFile::parse(&before).map_err(|faults| {
        let faults: Vec<_> =
            faults.iter().map(|fault| format!("{}:{fault}", path.display())).collect();
        anyhow::anyhow!("mend the project file first:\n{}", faults.join("\n"))
    })?;
    found.tables.retain(|(name, _)| {
        let there = known.servers.contains_key(name);
        if there {
            found.left.push(format!("{name}: patterm.toml names a server like that already"));
        }
        !there
    });
    let mut added = String::new();
    if !before.is_empty() && !before.ends_with('\n') {
        added.push('\n');
    }
    for (_, table) in &found.tables {
        let _ = write!(added, "\n{table}");
    }
    let sound = ProjectFile::parse(&format!("{before}{added}")).is_ok();
    anyhow::ensure!(sound, "a fault in patterm: it cannot read the file that it would write");
    if !found.tables.is_empty() {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(&path);
        let written = opened.and_then(|mut file| file.write_all(added.as_bytes()));
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    for line in &found.left {
        say(&one_line(&format!("left out  {line}")));
    }
    for (name, _) in &found.tables {
        say(&format!("added     {name}"));
    }
    match found.tables.is_empty() {
        true => say("nothing was added"),
        false => say(&format!(
            "{} has them; `patterm trust` lets them run. Clients that read {} themselves start their \
             own as well, until it is gone.",
            shown_path(&path),
            shown_path(&from)
        )),
    }
    Ok(())
}

/// The servers of the project's own `.mcp.json`, if it has one that can be read.
pub(crate) fn in_mcp_json(root: &Path) -> Option<Found> {
    read(&std::fs::read_to_string(root.join(MCP_JSON)).ok()?).ok()
}

fn read(text: &str) -> anyhow::Result<Found> {
    let all: Value = serde_json::from_str(text).context("it is no JSON")?;
    // Editors call it `servers`.
    let servers = all.get("mcpServers").or_else(|| all.get("servers"));
    let servers = servers.and_then(Value::as_object).context("it has no `mcpServers`")?;
    let mut found = Found::default();
    for (name, server) in servers {
        let plain = plain(name);
        match server.as_object().context("it is no object").and_then(|server| table(&plain, server))
        {
            Ok(table) => found.tables.push((plain, table)),
            Err(why) => found.left.push(format!("{name}: {why}")),
        }
    }
    Ok(found)
}

/// A name that the project file takes.
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
        anyhow::ensure!(kind != "sse", "it speaks HTTP+SSE of 2024, which is not served");
        let _ = writeln!(text, "url = {}", quoted(url));
        strings(&mut text, "headers", server.get("headers"))?;
        return Ok(text);
    }
    let command = server.get("command").and_then(Value::as_str);
    let command = command.context("it has neither `command` nor `url`")?;
    let mut words = vec![quoted(command)];
    for word in server.get("args").and_then(Value::as_array).into_iter().flatten() {
        words.push(quoted(word.as_str().context("`args` holds something that is no text")?));
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
        let value = value.as_str().with_context(|| format!("`{key}.{name}` is no text"))?;
        pairs.push(format!("{} = {}", quoted(name), quoted(value)));
    }
    let _ = writeln!(text, "{key} = {{ {} }}", pairs.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use patterm_host::project_file::Place;

    use super::*;

    #[test]
    fn servers_of_other_clients() {
        let found = read(
            r#"{"mcpServers": {
                "a b": {"command": "npx", "args": ["-y", "x\"y"], "env": {"K": "${K:-v}"}},
                "web": {"type": "http", "url": "https://x.example/mcp", "headers": {"A": "b"}},
                "old": {"type": "sse", "url": "https://x.example/sse"},
                "none": {}}}"#,
        )
        .unwrap();
        assert_eq!(found.left.len(), 2, "{found:?}");
        let text: String = found.tables.iter().map(|(_, table)| table.as_str()).collect();
        let file = ProjectFile::parse(&text).unwrap();
        let Place::Here { command, .. } = &file.servers["a-b"].place else { panic!("{file:?}") };
        assert_eq!(command, &["npx", "-y", "x\"y"]);
        assert_eq!(file.servers["a-b"].env["K"], "${K:-v}");
        assert!(
            matches!(&file.servers["web"].place, Place::Remote { headers, .. } if headers["A"] == "b")
        );
        assert!(read("[]").is_err() && read("{").is_err());
    }
}
