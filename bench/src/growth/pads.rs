//! Scratchpads: many of them, and a long one.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Growth, LINEAR, SAME, cost};
use crate::session::{Tools, Workspace};

const SIZES: [usize; 3] = [10, 100, 1_000];

/// More than the default limit.
const LIMITS: (&str, &str) = ("PATTERM_LIMITS", "pads=2000");

/// Bytes of each of many, and of the one that grows.
const SMALL: usize = 1_000;
const LONG: [usize; 3] = [5_000, 50_000, 500_000];

const INDEX: &str = "the whole index is written; the default limit is 500";

const ROUNDS: usize = 15;

pub(super) fn measure() -> anyhow::Result<Vec<Growth>> {
    let what = |part: &str| format!("pads of 1 kB, 10, 100, 1,000: {part}");
    let mut create = Growth::of(what("creating one"), LINEAR).because(INDEX);
    let mut write = Growth::of(what("overwriting one"), LINEAR).because(INDEX);
    let mut append = Growth::of(what("appending to one"), LINEAR).because(INDEX);
    let mut read = Growth::of(what("reading one"), SAME);
    let mut list = Growth::of(what("scratchpad_list"), LINEAR)
        .because("every file is checked, because a person may have edited it");
    let environment = HashMap::from([(LIMITS.0.to_owned(), LIMITS.1.to_owned())]);
    let workspace = Workspace::serving_with(&[], "", |_| Ok(environment))?;
    let mut tools = workspace.connect()?;
    let server = [workspace.server];
    let content = "word ".repeat(SMALL / 5);
    let mut count = 0;
    let mut make = |tools: &mut Tools| {
        count += 1;
        let arguments = json!({"name": format!("pad {count}"), "content": content});
        tools.call("scratchpad_write", &arguments).map(|_| count)
    };
    for size in SIZES {
        while make(&mut tools)? < size - ROUNDS.min(size - 1) {}
        create.push(&cost(&server, ROUNDS, |_| make(&mut tools).map(drop))?);
        measure_one(workspace.server, &mut tools, "pad 1", [&mut write, &mut append, &mut read])?;
        list.push(&cost(&server, ROUNDS, |_| tools.call("scratchpad_list", &json!({})).map(drop))?);
    }
    Ok(vec![create, write, append, read, list])
}

pub(super) fn measure_size() -> anyhow::Result<Vec<Growth>> {
    let what = |part: &str| format!("one pad, 5, 50, 500 kB: {part}");
    let mut write = Growth::of(what("overwriting it"), LINEAR);
    let mut append = Growth::of(what("appending to it"), LINEAR);
    let mut read = Growth::of(what("reading it"), LINEAR);
    let workspace = Workspace::new()?;
    let mut tools = workspace.connect()?;
    for size in LONG {
        let name = format!("pad of {size}");
        let content = "word ".repeat(size / 5);
        tools.call("scratchpad_write", &json!({"name": name, "content": content}))?;
        measure_one(workspace.server, &mut tools, &name, [&mut write, &mut append, &mut read])?;
    }
    Ok(vec![write, append, read])
}

/// Operations on one scratchpad.
fn measure_one(
    server: u32,
    tools: &mut Tools,
    name: &str,
    [write, append, read]: [&mut Growth; 3],
) -> anyhow::Result<()> {
    let server = [server];
    let pad = tools.call("scratchpad_read", &json!({"name": name}))?;
    let (content, mut revision): (Value, Value) = (pad["content"].clone(), pad["revision"].clone());
    write.push(&cost(&server, ROUNDS, |_| {
        let arguments = json!({"name": name, "content": content, "expected_revision": revision});
        revision = tools.call("scratchpad_write", &arguments)?["revision"].take();
        Ok(())
    })?);
    let more = json!({"name": name, "content": "a few words more\n"});
    append.push(&cost(&server, ROUNDS, |_| tools.call("scratchpad_append", &more).map(drop))?);
    let name = json!({"name": name});
    read.push(&cost(&server, ROUNDS, |_| tools.call("scratchpad_read", &name).map(drop))?);
    Ok(())
}
