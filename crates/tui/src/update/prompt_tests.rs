//! An agent beside a pane, and prompts of several lines.

use serde_json::{Value, json};

use super::*;
use crate::model::Mode;
use crate::sample::Sample;

/// The arguments of the agents that are started.
fn started(effects: &[Effect]) -> Vec<(Value, bool)> {
    let calls = effects.iter().filter_map(|effect| match effect {
        Effect::Call { method: "spawn_agent", params, purpose: CallPurpose::Start(pane) } => {
            Some((params.clone(), pane.is_some()))
        }
        _ => None,
    });
    calls.collect()
}

#[test]
fn an_agent_beside_a_pane_starts_in_the_folder_of_its_process() {
    let mut sample = Sample::new(160, 40);
    sample.type_in("\x02A\r");
    let effects = sample.type_in("one\x0atwo\x1b\rthree\r").to_vec();
    let arguments =
        json!({"agent": "claude", "agent_instructions": "one\ntwo\nthree", "folder_of": "p1"});
    assert_eq!(started(&effects), [(arguments, true)]);
    assert_eq!(sample.model.panes.len(), 2, "it gets a pane of its own");
    assert_eq!(sample.model.mode, Mode::Typing);
}

#[test]
fn an_agent_in_this_pane_starts_in_the_folder_of_the_terminal() {
    let mut sample = Sample::new(160, 40);
    sample.type_in("\x02a\r");
    let effects = sample.type_in("\r").to_vec();
    assert_eq!(started(&effects), [(json!({"agent": "claude"}), false)]);
}

#[test]
fn lines_of_a_prompt_are_edited_at_the_end() {
    let mut sample = Sample::new(160, 40);
    sample.type_in("\x02A\r");
    let mut text = |keys: &str| {
        sample.type_in(keys);
        match &sample.model.mode {
            Mode::Line { text, .. } => text.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(text("one two\x0athree four"), "one two\nthree four");
    assert_eq!(text("\x17"), "one two\nthree ", "a word");
    assert_eq!(text("\x15"), "one two\n", "a line");
    assert_eq!(text("\x7f\x7f"), "one tw", "the end of the line, and a letter");
    assert_eq!(text("\x1b[200~o\r\nand\rmore\x1b[201~"), "one two\nand\nmore", "a paste");
    assert_eq!(text("\x1b[13;2u"), "one two\nand\nmore\n", "shift+enter");
}
