//! Adds a member to a JSON file without changing any other byte.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Context;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Change;
use super::clients::{ClientSettings, Form};

/// The name of our entry.
const NAME: &str = "patterm";

fn key_of(client: &ClientSettings) -> &'static str {
    match client.form {
        Form::Json { key, .. } => key,
        Form::Toml => "",
    }
}

/// What is added, as a complete file.
pub(super) fn fragment(client: &ClientSettings, entry: &Value) -> String {
    let whole = json!({ key_of(client): { NAME: entry } });
    serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
}

/// The file with our entry added.
pub(super) fn with_entry(
    before: &str,
    client: &ClientSettings,
    entry: &Value,
) -> anyhow::Result<Change> {
    if before.trim().is_empty() {
        return Ok(Change::To(fragment(client, entry)));
    }
    let key = key_of(client);
    let no_json = "it is not a JSON object, or has comments";
    let top: BTreeMap<String, &RawValue> = serde_json::from_str(before).context(no_json)?;
    let line = |text: &str| text.replace('\n', "\n    ");
    let own = serde_json::to_string_pretty(entry)?;
    let after = match top.get(key) {
        None => {
            let member = format!("\"{key}\": {{\n    \"{NAME}\": {}\n  }}", line(&own));
            insert(before, position(before, before.trim()), &member, "  ", top.is_empty())
        }
        Some(servers) => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(servers.get())
                .with_context(|| format!("`{key}` is not an object"))?;
            match members.get(NAME) {
                Some(known) if serde_json::from_str::<Value>(known.get())? == *entry => {
                    return Ok(Change::None);
                }
                Some(known) => {
                    let at = position(before, known.get());
                    format!("{}{}{}", &before[..at.start], line(&own), &before[at.end..])
                }
                None => {
                    let member = format!("\"{NAME}\": {}", line(&own));
                    let at = position(before, servers.get());
                    insert(before, at, &member, "    ", members.is_empty())
                }
            }
        }
    };
    let mut expected: Value = serde_json::from_str(before)?;
    expected[key][NAME] = entry.clone();
    let is_valid = serde_json::from_str::<Value>(&after).is_ok_and(|after| after == expected);
    anyhow::ensure!(is_valid, "it cannot be changed without changing something else");
    Ok(Change::To(after))
}

/// The position of a part of a text.
fn position(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + part.len()
}

/// The text with a member added at the beginning of an object.
fn insert(text: &str, object: Range<usize>, member: &str, indent: &str, alone: bool) -> String {
    let begin = object.start + 1;
    let rest = match alone {
        true => format!("\n{}", &indent[2..]) + text[begin..].trim_start(),
        false => format!(",{}", &text[begin..]),
    };
    format!("{}\n{indent}{member}{rest}", &text[..begin])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> ClientSettings {
        let form = Form::Json { key: "mcpServers", entry: |_| Value::Null };
        ClientSettings { title: "x", path: "x".into(), form }
    }

    #[track_caller]
    fn check(before: &str, after: &str) {
        let entry = json!({"command": "patterm"});
        let changed = with_entry(before, &client(), &entry).unwrap();
        assert_eq!(changed, Change::To(after.to_owned()), "{before}");
        assert_eq!(
            with_entry(after, &client(), &entry).unwrap(),
            Change::None,
            "the second time changes nothing"
        );
    }

    const NEW: &str = "{\n  \"mcpServers\": {\n    \"patterm\": {\n      \"command\": \"patterm\"\n    }\n  }\n}\n";

    #[test]
    fn no_other_byte_changes() {
        check("", NEW);
        check("{}", NEW.trim_end());
        check(
            "{ \"b\": 1.50,\t\"a\": [1e40]}\n",
            "{\n  \"mcpServers\": {\n    \"patterm\": {\n      \"command\": \"patterm\"\n    }\n  }, \"b\": 1.50,\t\"a\": [1e40]}\n",
        );
    }

    #[test]
    fn the_entry_is_added_to_others_or_replaces_an_older_one() {
        check(
            "{\"mcpServers\": {\"x\": {}}, \"a\": \"é\"}",
            "{\"mcpServers\": {\n    \"patterm\": {\n      \"command\": \"patterm\"\n    },\"x\": {}}, \"a\": \"é\"}",
        );
        check(
            "{\"mcpServers\": {\"patterm\": {\"command\": \"old\"}, \"x\": {}}}",
            "{\"mcpServers\": {\"patterm\": {\n      \"command\": \"patterm\"\n    }, \"x\": {}}}",
        );
        check(
            "{\"mcpServers\": {}}",
            "{\"mcpServers\": {\n    \"patterm\": {\n      \"command\": \"patterm\"\n    }\n  }}",
        );
    }

    #[test]
    fn an_unexpected_file_is_not_changed() {
        let entry = json!({});
        for text in ["[1]", "{\"mcpServers\": []}", "{ // comment\n}", "{\"a\": 1"] {
            assert!(with_entry(text, &client(), &entry).is_err(), "{text}");
        }
    }
}
