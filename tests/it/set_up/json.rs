//! docs/json.md shows what each verb prints with `--json`, and this compares the two: a member that is added,
//! removed or of another type shows up here. `PATTERM_JSON=1 cargo nextest run set_up::json` rewrites the
//! examples; the text around them is kept.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::commit;
use crate::support::Place;
use crate::support::tool_client::until;

/// The verbs that print JSON, as they are documented, in an order in which they work.
const EXAMPLES: &[&[&str]] = &[
    &["serve", "--json"],
    &["up", "--json"],
    &["run", "--json", "--name", "web", "--", "sh", "-c", "echo ready; cat"],
    &["wait", "web", "ready", "--json"],
    &["search", "web", "ready", "--json"],
    &["screen", "web", "--json"],
    &["logs", "web", "--json"],
    &["logs", "web", "--tail", "1", "--json"],
    &["status", "web", "--json"],
    &["ps", "--json"],
    &["ls", "--json"],
    &["overview", "--json"],
    &["restart", "web", "--json"],
    &["start", "ended", "--json"],
    &["agent", "parrot", "--json"],
    &["agents", "--json"],
    &["shell", "--json"],
    &["events", "--type", "pad.created", "--json"],
    &["blame", "HEAD", "--json"],
    &["hooks", "--json"],
    &["digest", "--json"],
    &["timers", "--json"],
    &["pads", "--json"],
    &["pad", "plan", "--json"],
    &["servers", "--json"],
    &["token", "ls", "--json"],
    &["message", "parrot", "hello", "--json"],
    &["messages", "--json"],
    &["restore", "--json"],
    &["doctor", "--json"],
    &["down", "--json"],
    &["up", "assets", "--wait", "--json"],
];

/// A project in which every verb has something to print.
fn prepared() -> Place {
    let place = Place::new();
    let settings = place.path("home/.config/patterm");
    std::fs::create_dir_all(&settings).unwrap();
    let mine = "[agents.parrot]\nlike = \"generic\"\ntitle = \"Parrot\"\nprogram = \"cat\"\n\
        [[hooks]]\non = [\"agent.blocked\"]\nrun = [\"notify-send\", \"--\", \"{name}\", \"{summary}\"]\n";
    std::fs::write(settings.join("config.toml"), mine).unwrap();
    let declared = "[processes.db]\ncommand = \"cat\"\nready = { pattern = \"never\" }\n\
        [processes.api]\ncommand = \"cat\"\ndepends_on = [\"db\"]\n\
        [processes.assets]\ncommand = \"true\"\nready = { exits = true }\n\
        [servers.search]\ncommand = [\"search-mcp\"]\n";
    std::fs::write(place.path("project/patterm.toml"), declared).unwrap();
    place.run(&["trust", "--yes"]);
    place.run(&["call", "scratchpad_write", r#"{"name": "plan", "content": "first this"}"#]);
    place.run(&["token", "new", "ci", "--servers", "patterm", "--expires-days", "30"]);
    place.run(&["run", "--name", "ended", "--", "cat"]);
    place.run(&["stop", "ended"]);
    commit_in_a_pane(&place);
    // Something that needs the person.
    place.run(&["run", "--name", "failed", "--", "false"]);
    until("it has failed", || {
        let status: Value =
            serde_json::from_str(&place.run(&["status", "failed", "--json"])).ok()?;
        (status["status"] == "exited").then_some(())
    });
    let id = place.run(&["agent", "parrot", "--name", "timed"]);
    let timer = json!({"seconds": 3600, "body": "look", "owner_process_id": id.trim()});
    place.run(&["call", "timer_set", &timer.to_string()]);
    place
}

/// Makes a commit that has an event.
fn commit_in_a_pane(place: &Place) {
    commit(place, &place.path("project"), "first");
    let git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"];
    let made = ["commit", "--quiet", "--allow-empty", "-m", "second"];
    place.run(&[&["run", "--name", "committer", "--"][..], &git, &made].concat());
    until("the event about the commit", || {
        place.run(&["events", "--type", "git.commit"]).contains("second").then_some(())
    });
    place.run(&["close", "committer"]);
}

/// The types of a value's members. Of a list, those of its last element: of agents, that is one whose CLI is found
/// on every machine.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let shaped = members.iter().map(|(name, value)| (name.clone(), shape(value)));
            Value::Object(shaped.collect::<Map<_, _>>())
        }
        Value::Array(values) => json!([values.last().map(shape)]),
        Value::String(_) => json!("string"),
        Value::Number(_) => json!("number"),
        Value::Bool(_) => json!("boolean"),
        Value::Null => json!("null"),
    }
}

fn document() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md")
}

/// A command line as the document names it.
fn heading(arguments: &[&str]) -> String {
    let quoted = |word: &&str| match word.contains(' ') {
        true => format!("'{word}'"),
        false => (*word).to_owned(),
    };
    let words: Vec<_> = arguments.iter().map(quoted).collect();
    format!("## `patterm {}`", words.join(" "))
}

#[test]
fn the_examples_have_the_shape_of_what_is_printed() {
    let place = prepared();
    let mut text = std::fs::read_to_string(document()).unwrap();
    let rewrite = std::env::var_os("PATTERM_JSON").is_some();
    let home = place.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    for arguments in EXAMPLES {
        let printed = place.run(arguments).replace(&home, "/home/you");
        let value: Value = serde_json::from_str(&printed).unwrap();
        let heading = heading(arguments);
        let at = text.find(&heading).unwrap_or_else(|| panic!("docs/json.md has no {heading}"));
        let begin = at + text[at..].find("```json\n").expect("an example") + "```json\n".len();
        let end = begin + text[begin..].find("```").expect("the end of an example");
        if rewrite {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            text.replace_range(begin..end, &format!("{pretty}\n"));
            continue;
        }
        let documented: Value = serde_json::from_str(&text[begin..end])
            .unwrap_or_else(|error| panic!("{heading}: {error}"));
        assert_eq!(shape(&value), shape(&documented), "{heading}: {printed}");
    }
    if rewrite {
        std::fs::write(document(), text).unwrap();
    }
}
