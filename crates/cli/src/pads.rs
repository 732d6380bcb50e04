//! `patterm pads` and `patterm pad`: the scratchpads, for people and scripts.

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use patterm_host::pads::{self, PadName};
use patterm_store::state::StateDir;
use serde_json::{Value, json};

use crate::args::{Pad, Pads};
use crate::client::{Client, text};
use crate::ls::duration;
use crate::said::{say, say_content, say_json, shown};
use crate::start;

pub(crate) fn list(options: &Pads) -> anyhow::Result<()> {
    let answer = Client::connect()?.look("scratchpad_list", &json!({}))?;
    let pads = answer["scratchpads"].as_array().cloned().unwrap_or_default();
    if options.json {
        say_json(&answer["scratchpads"])?;
    } else if pads.is_empty() {
        say("no scratchpads; `patterm pad NAME --edit` begins one");
    } else {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        say(&table(&pads, now));
    }
    if let Some(more) = answer["more"].as_u64().filter(|_| !options.json) {
        say(&format!("and {more} more"));
    }
    Ok(())
}

fn table(pads: &[Value], now: u64) -> String {
    let widest = pads.iter().map(|pad| shown(&pad["name"]).chars().count()).max();
    let width = widest.unwrap_or(0).max("NAME".len());
    let mut rows =
        vec![format!("{:<width$}  {:>8}  {:>7}  {:<14}  BY", "NAME", "BYTES", "AGE", "REVISION")];
    for pad in pads {
        let changed = pad["changed_at"].as_u64().unwrap_or(0) / 1_000;
        rows.push(format!(
            "{:<width$}  {:>8}  {:>7}  {:<14}  {}",
            shown(&pad["name"]),
            pad["size"].to_string(),
            duration(now.saturating_sub(changed)),
            shown(&pad["revision"]),
            shown(&pad["changed_by"]),
        ));
    }
    rows.join("\n")
}

pub(crate) fn one(options: &Pad) -> anyhow::Result<()> {
    let name: PadName = options.name.parse().map_err(|e| anyhow::anyhow!("NAME {e}"))?;
    if options.edit {
        return edit(&name);
    }
    if options.append {
        let arguments = json!({"name": name.as_str(), "content": standard_input()?});
        return change("scratchpad_append", &arguments, "appended to");
    }
    if options.write {
        let mut arguments = json!({"name": name.as_str(), "content": standard_input()?});
        if let Some(revision) = &options.revision {
            arguments["expected_revision"] = json!(revision);
        }
        return change("scratchpad_write", &arguments, "wrote");
    }
    let answer = Client::connect()?.look("scratchpad_read", &json!({"name": name.as_str()}))?;
    if options.json {
        return say_json(&answer);
    }
    say_content(&text(&answer["content"]));
    Ok(())
}

fn standard_input() -> anyhow::Result<String> {
    let mut content = String::new();
    std::io::stdin().read_to_string(&mut content).context("cannot read standard input")?;
    Ok(content)
}

fn change(tool: &str, arguments: &Value, done: &str) -> anyhow::Result<()> {
    let answer = Client::connect()?.call(tool, arguments)?;
    say(&format!("{done} {}, now revision {}", shown(&answer["name"]), shown(&answer["revision"])));
    Ok(())
}

/// The same from inside the TUI.
pub(crate) fn edit_named(name: &str) -> anyhow::Result<()> {
    edit(&name.parse().map_err(|e| anyhow::anyhow!("NAME {e}"))?)
}

/// Opens the file itself in the person's editor; then lets the server see what came of it.
fn edit(name: &PadName) -> anyhow::Result<()> {
    let project = start::project_here()?;
    let state = StateDir::from_env(project.key())?;
    let file = pads::file_for_editing(&state, name)?;
    let set = |variable| std::env::var(variable).ok().filter(|editor| !editor.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).with_context(|| {
        format!("neither VISUAL nor EDITOR is set; any editor may open {}", file.display())
    })?;
    let status = editor_on(&editor, &file).status();
    let status = status.with_context(|| format!("cannot start `{editor}`"))?;
    anyhow::ensure!(status.success(), "`{editor}` failed ({status})");
    anyhow::ensure!(file.exists(), "nothing was saved, so there is no scratchpad `{name}`");
    let answer = Client::connect()?.look("scratchpad_read", &json!({"name": name.as_str()}))?;
    say(&format!("{name} is at revision {}", shown(&answer["revision"])));
    Ok(())
}

/// The variables hold a command line, as in `code --wait`.
#[expect(clippy::disallowed_methods, reason = "a person's editor on the person's own terminal")]
fn editor_on(editor: &str, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(file);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_pads() {
        let pads = json!([
            {"name": "a", "size": 0, "revision": "1-e3b0c442", "changed_at": 999_000,
                "changed_by": "external"},
            {"name": "the plan", "size": 524288, "revision": "123-0a1b2c3d", "changed_at": 0,
                "changed_by": "p1 (lead)"},
        ]);
        assert_eq!(
            table(pads.as_array().unwrap(), 1_000),
            "NAME         BYTES      AGE  REVISION        BY\n\
             a                0       1s  1-e3b0c442      external\n\
             the plan    524288      16m  123-0a1b2c3d    p1 (lead)"
        );
    }
}
