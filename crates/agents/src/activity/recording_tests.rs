//! Real CLIs' screens, recorded in every state they were brought into, against what is concluded
//! from them: the activity, and what is read out of the prompt box.

use std::path::{Path, PathBuf};

use patterm_screen::{Screen, Size};

use super::ScreenSnapshot;
use super::judge::{asks_now, seen_now};
use crate::presets::{Catalogue, Preset};

/// The table of what is expected, one recording a line.
const EXPECTED: &str = include_str!("recorded.txt");

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/agents/recordings")
}

fn preset(name: &str) -> Preset {
    let mut catalogue = Catalogue::read(None);
    catalogue.presets.remove(name).unwrap().preset.unwrap()
}

/// What is concluded from a recording, as a line of the table.
fn conclude(folder: &str, name: &str, preset: &Preset) -> String {
    let path = recordings().join(folder).join(format!("{name}.bytes"));
    let size = match name.ends_with("160x50") {
        true => Size::new(50, 160),
        false => Size::new(24, 80),
    };
    let mut screen = Screen::new(size);
    screen.feed(&std::fs::read(path).unwrap());
    let snapshot = ScreenSnapshot::of(&screen, Some(preset));
    let activity = seen_now(preset, &snapshot);
    let state =
        activity.map_or_else(|| "nothing".into(), |v| format!("{:?}", v.state).to_lowercase());
    let composer = snapshot.composer.map_or_else(
        || "no prompt".into(),
        |text| format!("prompt {:?}", text.chars().take(30).collect::<String>()),
    );
    format!("{folder:<15} {name:<24} {state:<8} {composer}")
}

#[test]
fn every_recorded_screen_is_read_as_it_was() {
    let mut found = String::new();
    let mut folders: Vec<_> = std::fs::read_dir(recordings()).unwrap().flatten().collect();
    folders.sort_by_key(std::fs::DirEntry::file_name);
    for folder in folders {
        let folder = folder.file_name().into_string().unwrap();
        let preset = preset(folder.split('-').next().unwrap());
        let mut names: Vec<_> = std::fs::read_dir(recordings().join(&folder))
            .unwrap()
            .flatten()
            .filter_map(|file| file.file_name().to_str()?.strip_suffix(".bytes").map(str::to_owned))
            .collect();
        names.sort();
        for name in names {
            found.push_str(&conclude(&folder, &name, &preset));
            found.push('\n');
        }
    }
    let new: Vec<_> = found.lines().filter(|line| !EXPECTED.lines().any(|l| l == *line)).collect();
    assert!(found == EXPECTED, "not in the table:\n{}", new.join("\n"));
}

/// What the reason of a dialog says, by sessions in the sizes in which it was recorded.
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
fn the_reason_of_a_dialog_says_what_is_asked_and_draws_no_border() {
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
fn a_limit_is_told_in_one_line_of_its_own_words() {
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

/// One recorded session of a CLI, in a pane of a size that its name says, and its stops: where in it,
/// what was to be seen there, and the state that follows from that.
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
        // Where the screen says nothing, hooks do.
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
fn quoted_screens_match_no_rule_and_dialogs_menus_and_limits_do_at_all_sizes() {
    let files = std::fs::read_dir(sessions()).unwrap().flatten();
    let names = files
        .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".bytes")?.to_owned()));
    let names: Vec<_> = names.collect();
    assert_eq!(names.len(), 19, "four CLIs in several sizes: {names:?}");
    let wrong: Vec<_> = names.iter().flat_map(|name| check_session(name)).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
