//! Texts of entries.

use patterm_wire::digest::DigestEntry;
use patterm_wire::events::{Actor, EventRecord};
use serde_json::Value;

/// Characters of a text that comes from elsewhere: a line on a wide terminal.
const TEXT_CHARS: usize = 160;

/// Characters of a name.
const NAME_CHARS: usize = 40;

/// Options of a dialog that are quoted.
const OPTIONS: usize = 4;

/// Characters of a commit's hash.
const HASH_CHARS: usize = 10;

/// An entry at the place of an event.
pub(super) fn entry(event: &EventRecord, text: String) -> DigestEntry {
    DigestEntry {
        seq: event.seq,
        time: event.time.clone(),
        kind: event.kind.clone(),
        process_id: event.process_id.clone(),
        run: event.run,
        offset: event.offset,
        text,
        ms: None,
    }
}

/// A text on one line, without its end if it is too long.
pub(super) fn short(text: &str) -> String {
    cut(text, TEXT_CHARS)
}

/// A name on one line.
pub(super) fn short_name(name: &str) -> String {
    cut(name, NAME_CHARS)
}

fn cut(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// Who did something, with the names of processes.
pub(super) fn actor_name(actor: &Actor, name_of: impl Fn(&str) -> String) -> String {
    match actor {
        Actor::Agent { process_id } => name_of(process_id),
        Actor::Timer { timer_id } => format!("timer {}", short_name(timer_id)),
        other => short_name(&other.to_string()),
    }
}

/// What a dialog asks.
pub(super) fn question(reason: &str, question: Option<&str>, options: &[String]) -> String {
    let asked = question.filter(|question| !question.trim().is_empty()).unwrap_or(reason);
    let mut offered: Vec<String> =
        options.iter().take(OPTIONS).map(|option| short_name(option)).collect();
    if options.len() > OPTIONS {
        offered.push("…".to_owned());
    }
    match offered.is_empty() {
        true => short(asked),
        false => format!("{} [{}]", short(asked), offered.join(" / ")),
    }
}

/// How a run ended.
pub(super) fn ending(code: Option<i32>, signal: Option<i32>, error: Option<&str>) -> String {
    match (error, code, signal) {
        (Some(error), ..) => format!("ended: {}", short(error)),
        (_, _, Some(signal)) => format!("was ended by signal {signal}"),
        (_, Some(code), _) => format!("exited with code {code}"),
        _ => "exited".to_owned(),
    }
}

/// How many files a commit changes: its event may name only the first.
pub(super) fn file_count(event: &EventRecord) -> u64 {
    let named = event.data.get("files").and_then(Value::as_array).map_or(0, |files| files.len());
    let counted = event.data.get("file_count").and_then(Value::as_u64);
    counted.unwrap_or(0).max(named as u64)
}

/// A commit.
pub(super) fn commit(
    event: &EventRecord,
    hash: &str,
    subject: Option<&str>,
    branch: Option<&str>,
) -> String {
    let hash: String = hash.chars().take(HASH_CHARS).collect();
    let subject = subject.map(|subject| format!(" {}", short(subject))).unwrap_or_default();
    let branch = branch.map(|branch| format!(" on {}", short_name(branch))).unwrap_or_default();
    let files = match file_count(event) {
        0 => String::new(),
        1 => ", 1 file".to_owned(),
        files => format!(", {files} files"),
    };
    let is_by_time = event.data.get("evidence").is_some_and(|evidence| evidence == "time");
    let doubt = if is_by_time { " (known by its time only)" } else { "" };
    format!("commit {hash}{subject}{branch}{files}{doubt}")
}

/// How often something happened, if more than once.
pub(super) fn times(count: u64) -> String {
    if count > 1 { format!(" {count} times") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_have_one_line_and_an_end() {
        assert_eq!(short(" a\n  b\tc "), "a b c");
        let long = "ä".repeat(TEXT_CHARS + 1);
        assert_eq!(short(&long), format!("{}…", "ä".repeat(TEXT_CHARS)));
        let options: Vec<String> = (1..=5).map(|number| number.to_string()).collect();
        assert_eq!(question("why", Some(" "), &options), "why [1 / 2 / 3 / 4 / …]");
        assert_eq!(question("why", Some("Go?"), &[]), "Go?");
        assert_eq!(ending(None, Some(9), None), "was ended by signal 9");
    }

    #[test]
    fn a_commit_says_what_its_event_says() {
        let of = |data: Value| {
            let data = data.as_object().cloned().unwrap_or_default();
            let event = EventRecord { data, ..EventRecord::default() };
            commit(&event, "0123456789abcdef", Some("fix it"), Some("main"))
        };
        let text = "commit 0123456789 fix it on main";
        assert_eq!(of(json!({})), text);
        assert_eq!(of(json!({"files": ["a"]})), format!("{text}, 1 file"));
        let many = json!({"files": ["a", "b"], "file_count": 200, "evidence": "time"});
        assert_eq!(of(many), format!("{text}, 200 files (known by its time only)"));
    }
}
