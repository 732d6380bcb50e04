//! The verbs about scratchpads as a person uses them.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use super::tool_client::{file, string};
use crate::support::Place;

/// Runs a verb with this standard input; returns its exit code and output.
fn feed(place: &Place, arguments: &[&str], input: &[u8]) -> (Option<i32>, String) {
    let mut command = place.patterm(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    message(child.wait_with_output().unwrap())
}

fn message(output: Output) -> (Option<i32>, String) {
    let message = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(message).unwrap())
}

fn edit(place: &Place, variable: &str, editor: &str, name: &str) -> (Option<i32>, String) {
    message(place.patterm(&["pad", name, "--edit"]).env(variable, editor).output().unwrap())
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn pads_are_listed_printed_and_fed() {
    let place = Place::new();
    assert_eq!(place.run(&["pads"]), "no scratchpads; `patterm pad NAME --edit` creates one\n");
    assert_eq!(place.run(&["pads", "--json"]), "[]\n");
    let (code, done) = feed(&place, &["pad", "plan", "--write"], b"# Plan\n\n");
    let pad = json_of(&place.run(&["pad", "plan", "--json"]));
    assert_eq!((&pad["name"], &pad["content"]), (&json!("plan"), &json!("# Plan\n\n")));
    let first = string(&pad["revision"]);
    assert_eq!((code, done), (Some(0), format!("wrote plan, now at revision {first}\n")));
    let (code, done) = feed(&place, &["pad", "plan.md", "--append"], b"- no end of line");
    assert!(done.starts_with("appended to plan, now at revision "), "{done}");
    assert_eq!(code, Some(0));
    assert_eq!(place.run(&["pad", "plan"]), "# Plan\n\n- no end of line", "to the byte");
    let (code, refused) = feed(&place, &["pad", "plan", "--write", "--revision", &first], b"x");
    assert_eq!(code, Some(1));
    assert!(refused.contains("is at revision") && refused.contains(&first), "{refused}");
    let now = string(&json_of(&place.run(&["pads", "--json"]))[0]["revision"]);
    let (code, _) = feed(&place, &["pad", "plan", "--write", "--revision", &now], b"new");
    assert_eq!((code, &*place.run(&["pad", "plan"])), (Some(0), "new"));
    let table = place.run(&["pads"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "BYTES", "AGE", "REVISION", "BY"]);
    assert_eq!((rows[1][0], rows[1][1]), ("plan", "3"));
    assert_eq!(rows[1][4..].join(" "), "a person");
}

#[test]
fn a_pad_opens_in_the_persons_editor() {
    let place = Place::new();
    // Editors are command lines, and may save in any way.
    let (code, done) = edit(&place, "EDITOR", "printf 'by hand\\n' | tee", "my plan");
    assert_eq!(code, Some(0), "{done}");
    assert!(
        done.ends_with("my plan is at revision ".to_owned().as_str())
            || done.contains("my plan is at")
    );
    assert_eq!(place.run(&["pad", "my plan"]), "by hand\n");
    let by = |place: &Place| string(&json_of(&place.run(&["pads", "--json"]))[0]["changed_by"]);
    assert_eq!(by(&place), "a person's editor");
    let (code, _) = edit(&place, "VISUAL", "sed -i s/hand/sed/", "my plan");
    assert_eq!((code, &*place.run(&["pad", "my plan"])), (Some(0), "by sed\n"));
    assert_eq!(std::fs::read_to_string(file(&place, "my plan")).unwrap(), "by sed\n");
    let (code, why) = edit(&place, "EDITOR", "false", "my plan");
    assert_eq!(code, Some(1));
    assert!(why.starts_with("patterm: `false` failed"), "{why}");
    let (code, why) = edit(&place, "EDITOR", "true", "other");
    assert_eq!(code, Some(1));
    assert_eq!(why, "patterm: nothing was saved, so there is no scratchpad `other`\n");
    let (code, why) = edit(&place, "EDITOR", " ", "other");
    assert_eq!(code, Some(1));
    assert!(why.contains("neither VISUAL nor EDITOR is set") && why.contains("other.md"), "{why}");
}

#[test]
fn failures_exit_1_and_wrong_usage_2() {
    let place = Place::new();
    for (arguments, code, why) in [
        (&["pad", "none"][..], 1, "patterm: there is no scratchpad `none`; there are none yet\n"),
        (&["pad", "../x"], 2, "error: invalid value '../x' for '<NAME>': takes a plain name"),
        (&["pad", "../x", "--edit"], 2, "error: invalid value '../x'"),
        (&["pad"], 2, "error: "),
        (&["pads", "plan"], 2, "error: "),
        (&["pad", "a", "--edit", "--append"], 2, "error: "),
        (&["pad", "a", "--write", "--json"], 2, "error: "),
        (&["pad", "a", "--revision", "1"], 2, "error: "),
    ] {
        let (exited, message) = feed(&place, arguments, b"");
        assert_eq!(exited, Some(code), "{arguments:?}: {message}");
        assert!(message.starts_with(why), "{arguments:?}: {message}");
    }
    let (code, why) = feed(&place, &["pad", "a", "--append"], b"\xff");
    assert_eq!(code, Some(1));
    assert!(why.contains("cannot read standard input"), "{why}");
    assert_eq!(place.run(&["pads", "--json"]), "[]\n");
}
