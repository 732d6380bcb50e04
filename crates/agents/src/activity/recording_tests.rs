//! Recorded screens of real CLIs, compared with the activity and the prompt that patterm derives from
//! them.

use std::path::{Path, PathBuf};

use patterm_screen::{Screen, Size};

use super::judge::{asks_now, seen_now};
use super::{ScreenSnapshot, dialog};
use crate::activity_state::AnswerWay;
use crate::presets::{Catalogue, Preset};

/// The file in a folder of recordings that lists the expected states.
const EXPECTED: &str = "expected.txt";

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/agents/recordings")
}

fn preset(name: &str) -> Preset {
    let known = Catalogue::read(None).presets.remove(name);
    let known = known.unwrap_or_else(|| {
        panic!(
            "recordings of `{name}`, but no such preset; a folder is named like its preset, or PRESET-VARIANT, and the \
             name of a preset has no `-`"
        )
    });
    known.preset.unwrap_or_else(|error| panic!("the preset {name}: {error}"))
}

/// The screen of a recording.
fn recorded(path: &Path) -> Screen {
    let size = match path.file_stem().unwrap().to_str().unwrap().ends_with("160x50") {
        true => Size::new(50, 160),
        false => Size::new(24, 80),
    };
    let mut screen = Screen::new(size);
    screen.feed(&std::fs::read(path).unwrap());
    screen
}

/// The file in a folder of recordings that lists what people are shown of its dialogs.
const ASKED_FILE: &str = "asked.txt";

/// The recordings in a folder, by name.
fn names_in(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let names = files
        .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".bytes")?.to_owned()));
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// What to do if a recording no longer fits its preset.
const ADVICE: &str = "If the screens are right and these lines are not, correct the preset. If the lines are right, \
    PATTERM_RECORDINGS=1 cargo nextest run -p patterm-agents recorded writes them.";

/// What people are shown of a recorded dialog.
fn shown_of(path: &Path, preset: &Preset) -> String {
    let snapshot = ScreenSnapshot::of(&recorded(path), Some(preset));
    let at = path.display();
    let seen = seen_now(preset, &snapshot);
    let seen = seen.unwrap_or_else(|| panic!("{at} is named blocked-…, but no rule matches it"));
    let asks = seen.asks.unwrap_or_default();
    let footer = ["Esc to", "esc to", "enter to", "Enter to", "Press enter", "navigate", "ctrl+"];
    assert!(!footer.iter().any(|words| asks.contains(words)), "{at} shows its footer: {asks}");
    assert!(
        asks.ends_with(')'),
        "{at}: patterm finds no options in this dialog, only `{asks}`. Numbered options and lists with a cursor are \
         found; for others, `options` and `quotes` of the rule say where the options and the question are."
    );
    asks
}

/// `PATTERM_RECORDINGS=1` writes the files instead.
#[test]
fn people_are_shown_the_question_and_the_options_of_every_recorded_dialog_and_no_footer() {
    let mut wrong = String::new();
    for folder in folders() {
        let preset = preset(preset_of(&folder));
        let at = recordings().join(&folder);
        let dialogs = names_in(&at).into_iter().filter(|name| name.starts_with("blocked-"));
        let shown: String = dialogs
            .map(|name| {
                format!("{name}: {}\n", shown_of(&at.join(format!("{name}.bytes")), &preset))
            })
            .collect();
        let table = at.join(ASKED_FILE);
        if std::env::var_os("PATTERM_RECORDINGS").is_some() {
            std::fs::write(&table, &shown).unwrap();
        }
        let known = std::fs::read_to_string(&table).unwrap_or_default();
        let new = shown.lines().filter(|line| !known.lines().any(|known| known == *line));
        wrong.extend(new.map(|line| format!("{folder} {line}\n")));
    }
    assert!(wrong.is_empty(), "not in {ASKED_FILE}:\n{wrong}{ADVICE}");
}

#[test]
fn every_option_of_every_recorded_dialog_can_be_chosen() {
    let mut wrong = Vec::new();
    for folder in folders() {
        let preset = preset(preset_of(&folder));
        let at = recordings().join(&folder);
        for name in names_in(&at).into_iter().filter(|name| name.starts_with("blocked-")) {
            let screen = recorded(&at.join(format!("{name}.bytes")));
            let snapshot = ScreenSnapshot::of(&screen, Some(&preset));
            let Some(dialog) = asks_now(&preset, &snapshot).and_then(|asks| asks.dialog) else {
                wrong.push(format!("{folder} {name}: no dialog"));
                continue;
            };
            let options = preset.rules[&dialog.rule].options.as_ref();
            let highlighted = options.and_then(|options| dialog::highlighted(&screen, options));
            // The first option is highlighted before a key is pressed.
            let is_seen =
                !dialog.ways.contains(&Some(AnswerWay::LeftRight)) || highlighted == Some(0);
            if dialog.ways.contains(&None) || !is_seen {
                wrong.push(format!("{folder} {name}: {:?}, {highlighted:?}", dialog.ways));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "`answer` of the preset's rule says how to choose an option:\n{}",
        wrong.join("\n")
    );
}

/// The state and the prompt that a recording shows, as a line of the expected states.
fn conclude(path: &Path, name: &str, preset: &Preset) -> String {
    let snapshot = ScreenSnapshot::of(&recorded(path), Some(preset));
    let activity = seen_now(preset, &snapshot);
    let state =
        activity.map_or_else(|| "nothing".into(), |v| format!("{:?}", v.state).to_lowercase());
    let composer = snapshot.composer.map_or_else(
        || "no prompt".into(),
        |text| format!("prompt {:?}", text.chars().take(30).collect::<String>()),
    );
    format!("{name:<24} {state:<8} {composer}")
}

/// The folders of recordings: `NAME` or `NAME-VARIANT`, where NAME is the preset.
fn folders() -> Vec<String> {
    let folders = std::fs::read_dir(recordings()).unwrap().flatten();
    let mut names: Vec<_> =
        folders.map(|folder| folder.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn preset_of(folder: &str) -> &str {
    folder.split('-').next().unwrap()
}

/// `PATTERM_RECORDINGS=1` writes the expected states instead; the diff shows what changed.
#[test]
fn every_recorded_screen_has_the_expected_state() {
    let mut wrong = String::new();
    for folder in folders() {
        let preset = preset(preset_of(&folder));
        let at = recordings().join(&folder);
        let conclusions = names_in(&at)
            .into_iter()
            .map(|name| conclude(&at.join(format!("{name}.bytes")), &name, &preset) + "\n");
        let found: String = conclusions.collect();
        let table = at.join(EXPECTED);
        if std::env::var_os("PATTERM_RECORDINGS").is_some() {
            std::fs::write(&table, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&table).unwrap_or_default();
        let new = found.lines().filter(|line| !expected.lines().any(|known| known == *line));
        new.for_each(|line| wrong.push_str(&format!("{folder}: not expected: {line}\n")));
        let gone = expected.lines().filter(|line| !found.lines().any(|known| known == *line));
        gone.for_each(|line| wrong.push_str(&format!("{folder}: expected:     {line}\n")));
    }
    assert!(wrong.is_empty(), "{wrong}{ADVICE}");
}

#[test]
fn the_example_preset_reads_the_screens_that_it_describes() {
    let text = include_str!("../../../../docs/examples/preset.toml");
    let preset: Preset = toml::from_str(text).unwrap();
    let seen = |rows: &str| {
        let mut screen = Screen::new(Size::new(10, 60));
        screen.feed(rows.as_bytes());
        let snapshot = ScreenSnapshot::of(&screen, Some(&preset));
        let activity = seen_now(&preset, &snapshot).unwrap();
        (format!("{:?}", activity.state), snapshot.composer, activity.asks)
    };
    let prompt = |text: &str| Some(text.to_owned());
    assert_eq!(seen("Hello.\r\n> \r\n? for help"), ("Idle".into(), prompt(""), None));
    let draft = "Hello.\r\n> fix it\r\n? for help";
    assert_eq!(seen(draft), ("Idle".into(), prompt("fix it"), None));
    let working = "Thinking (esc to stop)\r\n> \r\n? for help";
    assert_eq!(seen(working), ("Working".into(), prompt(""), None));
    let asks = Some("Run `make`? (y | n)".to_owned());
    assert_eq!(seen("Run `make`? [y/n]"), ("Blocked".into(), None, asks));
}

/// Without rules, a preset claims nothing that a recording could refute.
#[test]
fn every_built_in_preset_that_reads_the_screen_has_recordings() {
    let folders = folders();
    for (name, known) in Catalogue::read(None).presets {
        let preset = known.preset.unwrap();
        if preset.rules.is_empty() && preset.composer.is_none() {
            continue;
        }
        let own: Vec<_> = folders.iter().filter(|folder| preset_of(folder) == name).collect();
        assert!(
            !own.is_empty(),
            "tests/agents/recordings/{name} does not exist; tests/agents/README.md says how to record a CLI"
        );
        let states: String = own
            .iter()
            .map(|folder| {
                std::fs::read_to_string(recordings().join(folder).join(EXPECTED))
                    .unwrap_or_else(|error| panic!("{folder}/{EXPECTED}: {error}. {ADVICE}"))
            })
            .collect();
        for state in ["idle", "working", "blocked"] {
            let has = states.lines().any(|line| line.split_whitespace().nth(1) == Some(state));
            assert!(has, "no recording of {name} shows that it is {state}; at least one must");
        }
    }
}

/// Parts of the reason of a dialog, by session and recorded size.
const ASKED: [(&str, &[&str], &str, &[&str]); 9] = [
    ("claude", &NARROW, "permission", &["approve Bash: npm test --workspace=packages/host"]),
    ("claude", &NARROW, "question", &["answer: Which color do you like best?"]),
    ("claude", &NARROW, "hooks", &["`Hooks`"]),
    (
        "codex",
        &NARROW,
        "permission",
        &["`touch made`", "`Would you like to run the following command?`"],
    ),
    (
        "gemini",
        &NARROW,
        "permission",
        &["`Shell npm test --workspace=pack", "`Allow execution of [Shell]?`"],
    ),
    ("gemini", &NARROW, "theme", &["`Select Theme`"]),
    ("opencode", &OLDER, "permission", &["`touch made`", "`Shell command`"]),
    ("opencode", &OLDER, "question", &["?`"]),
    ("opencode", &["80x24"], "menu-model", &["`Select model`"]),
];
const NARROW: [&str; 2] = ["60x30", "45x30"];
const OLDER: [&str; 3] = ["120x40", "80x24", "40x24"];

#[test]
fn the_reason_of_a_dialog_quotes_its_question_without_borders() {
    let mut wrong = Vec::new();
    for (cli, sizes, what, words) in ASKED {
        for size in sizes {
            let (screen, preset) = at_stop(&format!("{cli}-{size}"), what);
            let activity = seen_now(&preset, &ScreenSnapshot::of(&screen, Some(&preset))).unwrap();
            let reason = activity.reason;
            let all = words.iter().all(|words| reason.contains(words));
            if !all || reason.contains(['─', '│', '┃', '╰', '▀']) {
                let rows = screen.rows().join("\n");
                wrong.push(format!("{cli} {size} {what}: {reason}\n{rows}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The screen of a recorded session at one of its stops.
fn at_stop(name: &str, what: &str) -> (Screen, Preset) {
    let (cli, size) = name.split_once('-').unwrap();
    let (columns, rows) = size.split_once('x').unwrap();
    let bytes = std::fs::read(sessions().join(format!("{name}.bytes"))).unwrap();
    let stops = std::fs::read_to_string(sessions().join(format!("{name}.txt"))).unwrap();
    let stop = stops.lines().find(|stop| stop.split(' ').nth(1) == Some(what)).unwrap();
    let to: usize = stop.split(' ').next().unwrap().parse().unwrap();
    let mut screen = Screen::new(Size::new(rows.parse().unwrap(), columns.parse().unwrap()));
    screen.feed(&bytes[..to]);
    (screen, preset(cli))
}

#[test]
fn the_reason_of_a_limit_is_one_line_of_the_clis_own_words() {
    let reason = |name: &str, what: &str| {
        let (screen, preset) = at_stop(name, what);
        seen_now(&preset, &ScreenSnapshot::of(&screen, Some(&preset))).unwrap().reason
    };
    for size in ["120x40", "80x24", "40x24"] {
        let codex = reason(&format!("codex-{size}"), "limit");
        assert!(codex.starts_with("it says `You’ve hit your usage limit"), "{codex}");
        assert!(!codex.contains(":// "), "{codex}");
        let asks = reason(&format!("gemini-{size}"), "limit");
        assert!(asks.starts_with("it asks whether to try again: `Usage limit reached"), "{asks}");
        let stopped = reason(&format!("gemini-{size}"), "limit-stopped");
        assert!(stopped.starts_with("it says `") && stopped.len() < 250, "{stopped}");
        assert!(!stopped.contains(['▄', '✕']), "{stopped}");
    }
}

/// Checks one recorded session of a CLI. Its name states the size of the pane; each stop has an
/// offset, what the screen shows there, and the expected state.
fn check_session(name: &str) -> Vec<String> {
    let folder = sessions();
    let (cli, size) = name.split_once('-').unwrap();
    let (columns, rows) = size.split_once('x').unwrap();
    let preset = preset(cli);
    let bytes = std::fs::read(folder.join(format!("{name}.bytes"))).unwrap();
    let stops = std::fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
    let mut screen = Screen::new(Size::new(rows.parse().unwrap(), columns.parse().unwrap()));
    let (mut wrong, mut from) = (Vec::new(), 0);
    for stop in stops.lines() {
        let [to, what, expected] = stop.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let to = to.parse().unwrap();
        screen.feed(&bytes[from..to]);
        from = to;
        let snapshot = ScreenSnapshot::of(&screen, Some(&preset));
        let activity = seen_now(&preset, &snapshot);
        // Without evidence on the screen, hooks decide.
        let state =
            activity.as_ref().map_or("idle".into(), |v| format!("{:?}", v.state).to_lowercase());
        let asks = asks_now(&preset, &snapshot).is_some();
        let is_dialog = expected == "blocked" || what == "limit" && cli == "gemini";
        if state != expected || asks != is_dialog {
            wrong.push(format!(
                "{name} {what}: {activity:?}, asks {asks}\n{}",
                screen.rows().join("\n")
            ));
        }
        if expected == "limited" && cli == "codex" {
            let until = activity.and_then(|activity| activity.limited_until);
            assert!(until.is_some_and(|until| until.ends_with(" PM")), "{name} {what}");
        }
    }
    wrong
}

fn sessions() -> PathBuf {
    recordings().join("../sessions")
}

#[test]
fn dialogs_menus_and_limits_match_at_all_sizes_and_quoted_screens_never() {
    let files = std::fs::read_dir(sessions()).unwrap().flatten();
    let names = files
        .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".bytes")?.to_owned()));
    let names: Vec<_> = names.collect();
    assert!(names.len() >= 19, "four CLIs in several sizes: {names:?}");
    let wrong: Vec<_> = names.iter().flat_map(|name| check_session(name)).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
