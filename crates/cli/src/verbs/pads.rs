//! `patterm pads` and `patterm pad`: scratchpads, for people and scripts.

use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Args;
use patterm_pads::{NameError, PadName};
use patterm_wire::method::Empty;
use patterm_wire::tools::{
    AppendPad, AppendPadArgs, ListPads, PadInfo, PadList, PadRef, PadRevision, ReadPad, WritePad,
    WritePadArgs,
};
use serde_json::Value;

use super::ls::duration;
use crate::client::Client;
use crate::pad_editor::edit;
use crate::print::{one_line, print, print_content, print_json};

/// List this project's scratchpads
#[derive(Debug, Args)]
pub(crate) struct PadsVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl PadsVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let reply = Client::connect_to_read()?.query::<ListPads>(&Empty {})?;
        if self.json {
            return print_json(&reply.read_as::<PadList<Value>>()?.scratchpads);
        }
        let PadList { scratchpads, more } = reply.result;
        match scratchpads.is_empty() {
            true => print("no scratchpads; `patterm pad NAME --edit` creates one"),
            false => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
                print(&table(&scratchpads, now));
            }
        }
        if let Some(more) = more {
            print(&format!("and {more} more"));
        }
        Ok(())
    }
}

fn table(pads: &[PadInfo], now: u64) -> String {
    let widest = pads.iter().map(|pad| one_line(&pad.name).chars().count()).max();
    let width = widest.unwrap_or(0).max("NAME".len());
    let mut rows =
        vec![format!("{:<width$}  {:>8}  {:>7}  {:<14}  BY", "NAME", "BYTES", "AGE", "REVISION")];
    for pad in pads {
        rows.push(format!(
            "{:<width$}  {:>8}  {:>7}  {:<14}  {}",
            one_line(&pad.name),
            pad.size,
            duration(now.saturating_sub(pad.changed_at / 1_000)),
            one_line(&pad.revision),
            one_line(&pad.changed_by),
        ));
    }
    rows.join("\n")
}

/// Print a scratchpad, edit it, or write it from standard input
#[derive(Debug, Args)]
pub(crate) struct PadVerb {
    /// Its name
    #[arg(value_parser = name)]
    name: PadName,
    /// Open its file in $VISUAL or $EDITOR
    #[arg(short, long, group = "action")]
    edit: bool,
    /// Append standard input to it
    #[arg(long, group = "action")]
    append: bool,
    /// Create it from standard input; with --revision, replace it
    #[arg(long, group = "action")]
    write: bool,
    /// The revision that --write replaces
    #[arg(long, requires = "write")]
    revision: Option<String>,
    /// Print JSON: name, content, revision
    #[arg(long, conflicts_with = "action")]
    json: bool,
}

/// A name that a scratchpad can have.
fn name(text: &str) -> Result<PadName, NameError> {
    text.parse()
}

impl PadVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.edit {
            return edit(&self.name);
        }
        let name = self.name.to_string();
        if self.append {
            let args = AppendPadArgs { name, content: standard_input()? };
            let written = Client::connect()?.call::<AppendPad>(&args)?.result;
            print_written("appended to", &written);
            return Ok(());
        }
        if self.write {
            let (content, expected_revision) = (standard_input()?, self.revision);
            let args = WritePadArgs { name, content, expected_revision };
            let written = Client::connect()?.call::<WritePad>(&args)?.result;
            print_written("wrote", &written);
            return Ok(());
        }
        let reply = Client::connect_to_read()?.query::<ReadPad>(&PadRef { name })?;
        if self.json {
            return print_json(&reply.json);
        }
        print_content(&reply.result.content);
        Ok(())
    }
}

fn standard_input() -> anyhow::Result<String> {
    let mut content = String::new();
    std::io::stdin().read_to_string(&mut content).context("cannot read standard input")?;
    Ok(content)
}

fn print_written(done: &str, pad: &PadRevision) {
    let (name, revision) = (one_line(&pad.name), one_line(&pad.revision));
    print(&format!("{done} {name}, now at revision {revision}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_pads() {
        let pad = |name: &str, size, revision: &str, changed_at, changed_by: &str| PadInfo {
            name: name.into(),
            size,
            revision: revision.into(),
            changed_at,
            changed_by: changed_by.into(),
        };
        let pads = [
            pad("a", 0, "1-e3b0c442", 999_000, "external"),
            pad("the plan", 524_288, "123-0a1b2c3d", 0, "p1 (lead)"),
        ];
        assert_eq!(
            table(&pads, 1_000),
            "NAME         BYTES      AGE  REVISION        BY\n\
             a                0       1s  1-e3b0c442      external\n\
             the plan    524288      16m  123-0a1b2c3d    p1 (lead)"
        );
    }
}
