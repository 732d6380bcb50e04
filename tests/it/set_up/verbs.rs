//! Every verb, checked against the common rules: help, exit codes, JSON, ids, and standard output
//! that is full or closed.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::commit;
use crate::support::Place;

/// What `--json` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Json {
    List,
    Object,
}

/// What is known of a verb.
struct Verb {
    name: &'static str,
    /// Arguments with which it exits by itself without a terminal. ID stands for a process of its
    /// own.
    normal: Option<&'static [&'static str]>,
    /// With these arguments and `--json` it prints this.
    json: Option<(&'static [&'static str], Json)>,
    /// Arguments that are wrong usage.
    wrong: &'static [&'static str],
    /// Its first argument is an ID, and these come after it.
    id: Option<&'static [&'static str]>,
}

const fn verb(name: &'static str, normal: &'static [&'static str]) -> Verb {
    Verb { name, normal: Some(normal), json: None, wrong: &["--nonsense"], id: None }
}

impl Verb {
    const fn json(mut self, arguments: &'static [&'static str], json: Json) -> Self {
        self.json = Some((arguments, json));
        self
    }

    const fn wrong(mut self, arguments: &'static [&'static str]) -> Self {
        self.wrong = arguments;
        self
    }

    const fn of_id(mut self, after: &'static [&'static str]) -> Self {
        self.id = Some(after);
        self
    }

    /// It does not exit by itself, or needs a terminal.
    const fn stays(mut self) -> Self {
        self.normal = None;
        self
    }
}

/// A new verb must be added here, or the first test fails.
const VERBS: &[Verb] = &[
    verb("serve", &[]).json(&[], Json::Object).wrong(&["--json", "--foreground"]),
    verb("kill", &[]).wrong(&["extra"]),
    verb("upgrade", &[]),
    verb("ls", &[]).json(&[], Json::List),
    verb("overview", &[]).json(&[], Json::List),
    verb("run", &["--", "cat"]).json(&["--", "cat"], Json::Object).wrong(&["cat"]),
    verb("agent", &["parrot"]).json(&["parrot"], Json::Object).wrong(&[]),
    verb("agents", &[]).json(&[], Json::List),
    verb("shell", &[]).json(&[], Json::Object).wrong(&["--json", "--attach"]),
    verb("ps", &[]).json(&[], Json::List),
    verb("status", &["ID"]).json(&["ID"], Json::Object).wrong(&[]).of_id(&[]),
    verb("logs", &["ID"]).json(&["ID"], Json::Object).wrong(&["p1", "--json", "--raw"]).of_id(&[]),
    verb("screen", &["ID"]).json(&["ID"], Json::Object).wrong(&[]).of_id(&[]),
    verb("export", &["ID"]).wrong(&["p1", "--force"]).of_id(&[]),
    verb("replay", &["ID"]).stays().wrong(&["p1", "--speed", "0"]),
    verb("search", &["ID", "ready"])
        .json(&["ID", "ready"], Json::Object)
        .wrong(&["p1"])
        .of_id(&["ready"]),
    verb("wait", &["ID", "ready"])
        .json(&["ID", "ready"], Json::Object)
        .wrong(&["p1", "x", "--timeout", "soon"])
        .of_id(&["ready"]),
    verb("send", &["ID", "hello"]).wrong(&["p1"]).of_id(&["hello"]),
    verb("message", &["ID", "hello"])
        .stays()
        .json(&["parrot", "hello"], Json::Object)
        .wrong(&["p1"])
        .of_id(&["hello"]),
    verb("key", &["ID", "enter"]).wrong(&["p1"]).of_id(&["enter"]),
    verb("stop", &["ID"]).wrong(&["p1", "--signal", "99"]).of_id(&[]),
    verb("start", &["ENDED"]).json(&["ENDED"], Json::Object).wrong(&[]).of_id(&[]),
    verb("up", &["--wait"]).json(&[], Json::List).wrong(&["--timeout", "5"]),
    verb("down", &[]).json(&[], Json::List),
    verb("restart", &["ID"]).json(&["ID"], Json::Object).wrong(&["--json"]).of_id(&[]),
    verb("restore", &[]).json(&[], Json::List),
    verb("close", &["ID"]).wrong(&[]).of_id(&[]),
    verb("attach", &[]).stays().wrong(&["--raw"]),
    verb("messages", &[]).json(&[], Json::List),
    verb("events", &[]).json(&[], Json::List).wrong(&["--since", "soon"]),
    verb("blame", &["HEAD"]).json(&["HEAD"], Json::Object).wrong(&[]),
    verb("hooks", &[]).json(&[], Json::List).wrong(&["test"]),
    verb("digest", &[]).json(&[], Json::Object).wrong(&["--since", "soon"]),
    verb("timers", &[]).json(&[], Json::List),
    verb("pads", &[]).json(&[], Json::List),
    verb("pad", &["plan"]).json(&["plan"], Json::Object).wrong(&["plan", "--edit", "--append"]),
    verb("servers", &[]).json(&[], Json::List),
    verb("call", &["whoami"]).wrong(&["whoami", "["]),
    verb("init", &[]).stays(),
    verb("trust", &["--yes"]),
    verb("token", &["ls"]).wrong(&["new"]),
    verb("doctor", &[]).json(&[], Json::List),
    verb("setup", &["claude", "--print"]).wrong(&["nobody"]),
    verb("schema", &[]),
    verb("completions", &["bash"]).wrong(&["nosh"]),
    verb("man", &["man1"]).wrong(&[]),
    verb("mcp-stdio", &[]).stays().wrong(&["--socket"]),
];

/// A project with a scratchpad, a project file, a commit, and an agent that only echoes.
fn prepared() -> Place {
    let place = Place::new();
    let settings = place.path("home/.config/patterm");
    std::fs::create_dir_all(&settings).unwrap();
    let preset = "[agents.parrot]\nlike = \"generic\"\ntitle = \"Parrot\"\nprogram = \"cat\"\n";
    std::fs::write(settings.join("config.toml"), preset).unwrap();
    std::fs::write(place.path("project/patterm.toml"), "").unwrap();
    place.run(&["call", "scratchpad_write", r#"{"name": "plan", "content": "first this"}"#]);
    commit(&place, &place.path("project"), "a subject");
    place
}

/// Declares a process, for verbs that start those.
fn declare(place: &Place) {
    let file = "[processes.declared]\ncommand = \"cat\"\n";
    std::fs::write(place.path("project/patterm.toml"), file).unwrap();
    place.run(&["trust", "--yes"]);
}

/// Arguments with the id of a process that was started for them.
fn with_id(place: &Place, verb: &Verb, arguments: &[&str]) -> Vec<String> {
    let mut all = vec![verb.name.to_owned()];
    for argument in arguments {
        all.push(match *argument {
            "ID" => {
                let id = place.run(&["run", "--", "sh", "-c", "echo ready; cat"]).trim().to_owned();
                place.run(&["wait", &id, "ready"]);
                id
            }
            "ENDED" => {
                let id = place.run(&["run", "--", "cat"]).trim().to_owned();
                place.run(&["stop", &id]);
                id
            }
            plain => plain.to_owned(),
        });
    }
    all
}

fn output(place: &Place, arguments: &[impl AsRef<str>], stdout: Option<Stdio>) -> Output {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let mut command = place.patterm(&arguments);
    command.stdin(Stdio::null());
    if let Some(stdout) = stdout {
        command.stdout(stdout).stderr(Stdio::piped());
        return command.spawn().unwrap().wait_with_output().unwrap();
    }
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    assert!(!bytes.contains(&0x1b), "no colours without a terminal");
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_table_has_every_verb() {
    let help = Place::new().run(&["--help"]);
    let verbs = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let is_verb = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let mut listed: Vec<_> = verbs.filter(is_verb).collect();
    let mut known: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
    assert!(
        help.contains("Exit codes: 0 success, 1 failure") && help.contains("An ID may be"),
        "{help}"
    );
}

#[test]
fn every_verb_has_help_and_knows_wrong_usage() {
    let place = Place::new();
    for verb in VERBS {
        let Output { status, stdout, stderr } = output(&place, &[verb.name, "--help"], None);
        let help = text(&stdout);
        assert_eq!((status.code(), &*stderr), (Some(0), &b""[..]), "{}", verb.name);
        assert!(help.contains(&format!("Usage: patterm {}", verb.name)), "{help}");
        // These have their own tests, without an ID or without a terminal.
        let may_be_without = ["attach", "close", "logs", "replay", "restart"].contains(&verb.name);
        assert_eq!(help.contains("--json"), verb.json.is_some(), "{help}");
        assert_eq!(
            help.contains("<ID>") || may_be_without,
            verb.id.is_some() || may_be_without,
            "{help}"
        );
        for wrong in [&["--nonsense"][..], verb.wrong] {
            let arguments = [&[verb.name], wrong].concat();
            let Output { status, stdout, stderr } = output(&place, &arguments, None);
            let reason = text(&stderr);
            assert_eq!((status.code(), &*stdout), (Some(2), &b""[..]), "{arguments:?}: {reason}");
            assert!(reason.starts_with("error: ") && reason.contains("--help"), "{reason}");
        }
    }
    assert!(!place.path("run/patterm").exists(), "nothing was started");
}

#[test]
fn json_output_is_one_value_with_known_fields() {
    let place = prepared();
    declare(&place);
    for verb in VERBS {
        let Some((arguments, shape)) = verb.json else { continue };
        let mut arguments = with_id(&place, verb, arguments);
        arguments.insert(1, "--json".to_owned());
        let Output { status, stdout, stderr } = output(&place, &arguments, None);
        let reason = text(&stderr);
        assert_eq!((status.code(), reason.as_str()), (Some(0), ""), "{arguments:?}");
        let value: Value = serde_json::from_slice(&stdout).unwrap();
        let found = if value.is_array() { Json::List } else { Json::Object };
        assert_eq!(found, shape, "{arguments:?}: {value}");
        assert_eq!(text(&stdout).lines().count(), 1, "one line, for programs that read lines");
    }
}

#[test]
fn every_verb_resolves_ids_the_same_way() {
    let place = Place::new();
    for name in ["web", "website"] {
        place.run(&["run", "--name", name, "--", "sh", "-c", "echo ready; cat"]);
    }
    let expected = BTreeMap::from([
        ("nope", "patterm: there is no process `nope`; the processes are p1 (web), p2 (website)\n"),
        ("we", "patterm: `we` is ambiguous: p1 (web), p2 (website); use an id\n"),
        ("", "patterm: the ID is empty; `patterm ps` lists the processes\n"),
    ]);
    for verb in VERBS {
        let Some(after) = verb.id else { continue };
        for (id, words) in &expected {
            let arguments = [&[verb.name, id], after].concat();
            let Output { status, stdout, stderr } = output(&place, &arguments, None);
            assert_eq!((status.code(), text(&stderr).as_str()), (Some(1), *words), "{arguments:?}");
            assert_eq!(stdout, b"", "{arguments:?}");
        }
    }
    for id in ["p1", "web", "p2", "website", "webs"] {
        place.run(&["status", id]);
    }
}

#[test]
fn a_closed_pipe_is_not_a_failure_and_a_full_disk_is() {
    let place = prepared();
    declare(&place);
    for verb in VERBS {
        let Some(arguments) = verb.normal else { continue };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let arguments_now = with_id(&place, verb, arguments);
        let Output { status, stderr, .. } = output(&place, &arguments_now, Some(writer.into()));
        assert_eq!((status.code(), text(&stderr).as_str()), (Some(0), ""), "{arguments_now:?}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let arguments_now = with_id(&place, verb, arguments);
        let Output { status, stderr, .. } = output(&place, &arguments_now, Some(full.into()));
        let reason = text(&stderr);
        assert_eq!(status.code(), Some(1), "{arguments_now:?}: {reason}");
        assert!(reason.starts_with("patterm: cannot write to standard output: "), "{reason}");
    }
}

#[test]
fn verbs_that_need_a_terminal_say_so_before_they_do_anything() {
    let place = prepared();
    for arguments in [
        &["attach"][..],
        &["attach", "p1"],
        &["run", "--attach", "--", "cat"],
        &["shell", "--attach"],
        &["agent", "parrot", "--attach"],
        &["replay", "p1"],
    ] {
        let Output { status, stderr, .. } = output(&place, arguments, None);
        let reason = text(&stderr);
        assert_eq!(status.code(), Some(1), "{arguments:?}");
        assert!(
            reason.contains("not a terminal") && reason.contains("`patterm screen ID`"),
            "{reason}"
        );
    }
    assert_eq!(place.run(&["ps", "--json"]), "[]\n");
}

#[test]
fn refusals_name_verbs_and_not_tools() {
    let place = Place::new();
    place.run(&["run", "--name", "web", "--", "cat"]);
    place.run(&["stop", "web"]);
    place.run(&["call", "scratchpad_write", r#"{"name": "plan", "content": "first this"}"#]);
    for (arguments, words) in [
        (&["stop", "web"][..], "is not running; use `patterm start` to start it"),
        (&["message", "web", "hi"], "which is not an agent; use `patterm send`"),
        (&["agent", "nope"], "PRESET is `nope`, which is not a preset"),
        (&["run", "--", ""], "COMMAND does not name a program"),
        (
            &["pad", "plan", "--write"],
            "use `patterm pad --write --revision` with its revision to replace it, or use `patterm pad \
             --append` to add to it",
        ),
    ] {
        let reason = super::fails(&place, arguments);
        assert!(reason.contains(words), "{arguments:?}: {reason}");
    }
}

#[test]
fn a_removed_working_directory_is_reported() {
    let place = Place::new();
    let gone = place.folder("gone");
    let script = "rmdir \"$PWD\"; exec \"$0\" \"$1\"";
    for verb in ["ps", "shell", "init", "kill", "doctor"] {
        std::fs::create_dir_all(&gone).unwrap();
        let mut command = place.command(std::path::Path::new("sh"));
        command.args(["-c", script]).arg(place.binary()).arg(verb).current_dir(&gone);
        let Output { status, stderr, .. } = command.output().unwrap();
        assert_eq!(status.code(), Some(1), "{verb}");
        assert!(
            text(&stderr).starts_with("patterm: cannot determine the current folder; "),
            "{verb}"
        );
    }
}

/// If nothing can be written, every verb that needs a server reports why, once, with a fix.
#[test]
fn a_missing_home_folder_is_reported() {
    let mut place = Place::new();
    place.set("XDG_STATE_HOME", "/proc/nowhere");
    for arguments in [&["run", "--", "cat"][..], &["message", "p1", "x"], &["up"]] {
        let reason = super::fails(&place, arguments);
        assert!(reason.contains("cannot make /proc/nowhere/patterm"), "{reason}");
        assert!(reason.ends_with("; `patterm doctor` checks the setup\n"), "{reason}");
        assert_eq!(reason.matches("os error 2").count(), 1, "{reason}");
    }
}
