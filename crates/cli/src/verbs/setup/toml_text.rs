//! Adds a table to a TOML file without changing any other byte.

use anyhow::Context;
use toml::{Table, Value};

use super::Change;

const SERVERS: &str = "mcp_servers";
const NAME: &str = "patterm";

/// What is added.
pub(super) fn fragment(program: &str) -> String {
    let program = program.replace('\\', "\\\\").replace('"', "\\\"");
    format!("[{SERVERS}.{NAME}]\ncommand = \"{program}\"\nargs = [\"mcp-stdio\"]\n")
}

/// The file with our table added at its end.
pub(super) fn with_entry(before: &str, program: &str) -> anyhow::Result<Change> {
    let mut table: Table = before.parse().context("it is not TOML")?;
    let own: Table = fragment(program).parse().context("this program's path cannot be written")?;
    let entry = own[SERVERS][NAME].clone();
    let servers = table.entry(SERVERS).or_insert_with(|| Value::Table(Table::new()));
    let servers = servers.as_table_mut().with_context(|| format!("`{SERVERS}` is not a table"))?;
    match servers.insert(NAME.into(), entry.clone()) {
        Some(known) if known == entry => return Ok(Change::None),
        Some(_) => anyhow::bail!("it has a different `{SERVERS}.{NAME}`"),
        None => {}
    }
    let gap = match before.trim().is_empty() {
        true => "",
        false if before.ends_with('\n') => "\n",
        false => "\n\n",
    };
    let after = format!("{before}{gap}{}", fragment(program));
    let is_valid = after.parse::<Table>().is_ok_and(|after| after == table);
    anyhow::ensure!(is_valid, "it cannot be changed without changing something else");
    Ok(Change::To(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_added_at_the_end_once() {
        let new = "[mcp_servers.patterm]\ncommand = \"patterm\"\nargs = [\"mcp-stdio\"]\n";
        for (before, gap) in
            [("", ""), ("# mine\nmodel = \"x\"\n[mcp_servers.a]\ncommand = \"a\"", "\n\n")]
        {
            let after = format!("{before}{gap}{new}");
            assert_eq!(with_entry(before, "patterm").unwrap(), Change::To(after.clone()));
            assert_eq!(with_entry(&after, "patterm").unwrap(), Change::None);
        }
    }

    #[test]
    fn an_unexpected_file_is_not_changed() {
        for text in [
            "a",
            "mcp_servers = 1",
            "mcp_servers = { a = { command = \"a\" } }",
            "[mcp_servers.patterm]\ncommand = \"other\"\n",
        ] {
            assert!(with_entry(text, "patterm").is_err(), "{text}");
        }
    }
}
