//! What a settings file may contain, and the errors for one that is wrong.

use patterm_screen::{Attributes, Colour, Key};

use super::*;
use crate::action::{ACTIONS, Action};

fn key(name: &str) -> Key {
    name.parse().unwrap()
}

fn read(text: &str) -> Settings {
    Settings::read(text).unwrap_or_else(|errors| panic!("{}", errors[0]))
}

/// Checks all errors of a file.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let errors = Settings::read(text).err().unwrap_or_default();
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected);
}

#[test]
fn every_default_key_works_and_none_is_assigned_twice() {
    let keys = Keymap::default();
    for entry in &ACTIONS {
        for (at, name) in entry.keys.iter().enumerate() {
            let does = keys.after_leader(&key(name)).unwrap();
            assert_eq!(does, entry.action.nth(at), "{name}");
        }
        let twice = ACTIONS.iter().filter(|other| other.name == entry.name).count();
        assert_eq!(twice, 1, "{}", entry.name);
    }
    assert_eq!(keys.after.len(), ACTIONS.iter().map(|e| e.keys.len()).sum::<usize>() + 1);
    assert_eq!(keys.after_leader(&key("ctrl+b")), Some(Action::SendLeader));
    assert_eq!(keys.after_leader(&key("shift+p")), Some(Action::Ports), "in either form");
    assert_eq!(keys.after_leader(&key("ctrl+u")), Some(Action::Attention), "ctrl still pressed");
    assert_eq!(keys.after_leader(&key("ctrl+d")), None, "that must not end or leave anything");
    assert_eq!(keys.after_leader(&key("ctrl+x")), None);
    assert_eq!(keys.after_leader(&key("y")), None);
    assert_eq!(keys.press(Action::Restart), "ctrl+b R");
}

#[test]
fn the_readme_lists_every_action_with_its_first_key() {
    let readme = include_str!("../../../../README.md");
    let section = readme.split("## Keys").nth(1).unwrap().split("\n## ").next().unwrap();
    let keys = Keymap::default();
    for entry in &ACTIONS {
        let row = section.lines().find(|line| line.contains(&format!("`{}`", entry.name)));
        let row = row.unwrap_or_else(|| panic!("the README has no {}", entry.name));
        let shown = format!("`{}`", keys.shown(entry).unwrap().replace('|', "\\|"));
        assert!(row.starts_with(&format!("| {shown}")), "{row} has no {shown}");
    }
}

#[test]
fn an_empty_file_changes_nothing() {
    assert_eq!(read(""), Settings::default());
    assert_eq!(read("[keys]\n[direct]\n[theme]\n"), Settings::default());
}

#[test]
fn keys_are_set_added_and_removed() {
    let text = "leader = \"ctrl+a\"\n[keys]\nzoom = \"f\"\nstop = false\n\
        next-process = [\"j\", \"n\"]\ngo-to = [\"f1\", \"f2\"]\n\
        [direct]\n\"alt+left\" = \"previous-pane\"\nf12 = \"stop\"\n";
    let keys = read(text).keys;
    assert!(keys.is_leader(&key("ctrl+a")) && !keys.is_leader(&key("ctrl+b")));
    assert_eq!(keys.after_leader(&key("f")), Some(Action::Zoom));
    assert_eq!(keys.after_leader(&key("z")), None);
    assert_eq!(keys.after_leader(&key("X")), None);
    assert_eq!(keys.after_leader(&key("j")), Some(Action::Next));
    assert_eq!(keys.after_leader(&key("f3")), None, "a setting replaces all default keys");
    assert_eq!(keys.after_leader(&key("f2")), Some(Action::Go(2)));
    assert_eq!(keys.after_leader(&key("ctrl+a")), Some(Action::SendLeader));
    assert_eq!(keys.direct(&key("alt+left")), Some(Action::PaneBefore));
    assert_eq!(keys.direct(&key("left")), None);
    assert_eq!(keys.press(Action::Zoom), "ctrl+a f");
    assert_eq!(keys.press(Action::Stop), "f12");
    let entry = |name| crate::action::named(name).unwrap();
    assert_eq!(keys.shown(entry("go-to")), Some("f1-f2".to_owned()));
    assert_eq!(keys.shown(entry("resize-pane")), Some("ctrl+arrows".to_owned()));
    assert_eq!(keys.shown(entry("layout")), Some("alt+1-5".to_owned()));
    assert_eq!(keys.all(entry("previous-pane")), "O alt+left (no leader)");
    assert_eq!(keys.all(entry("stop")), "f12 (no leader)");
}

#[test]
fn reassigning_a_key_leaves_an_action_to_the_palette_unless_it_is_essential() {
    let keys = read("[keys]\nzoom = \"%\"\nscroll = \"n\"").keys;
    assert_eq!(keys.after_leader(&key("%")), Some(Action::Zoom));
    assert_eq!(keys.after_leader(&key("n")), Some(Action::Scrollback));
    assert_eq!(keys.press(Action::NextPage), "`next-page`", "it has lost its only key");
    check(
        "[keys]\nzoom = \"d\"",
        &[
            "tui.toml:2:8: `d` is assigned to `zoom` but is the only key of `detach`; assign another key \
           to `detach`, or set `detach = false`",
        ],
    );
    assert_eq!(read("[keys]\nzoom = \"d\"\ndetach = false").keys.press(Action::Zoom), "ctrl+b d");
    check(
        "[keys]\nzoom = \"f\"\nscroll = [\"g\", \"f\"]",
        &["tui.toml:3:16: `f` is assigned to both `zoom` and `scroll`"],
    );
    check(
        "[direct]\n\"ctrl+b\" = \"zoom\"\n\"alt+x\" = \"zoom\"\n\"alt+X\" = \"stop\"",
        &["tui.toml:2:1: `ctrl+b` is assigned to both `leader` and `zoom`"],
    );
}

#[test]
fn a_list_with_the_wrong_number_of_keys_is_an_error() {
    for name in ["go-to-pane", "resize-pane", "resize-pane-more"] {
        for (keys, count) in
            [("\"h\"", 1), ("[\"H\", \"J\", \"K\"]", 3), ("[\"H\", \"J\", \"K\", \"L\", \"M\"]", 5)]
        {
            let at = format!("tui.toml:2:{}", name.len() + 4);
            let why = "takes a list of 4 keys, for left, down, up and right, but this has";
            check(&format!("[keys]\n{name} = {keys}"), &[&format!("{at}: `{name}` {why} {count}")]);
        }
        for right in ["false", "[]", "[\"H\", \"J\", \"K\", \"A\"]"] {
            read(&format!("[keys]\n{name} = {right}"));
        }
    }
    let keys = ["1", "2", "3", "4", "5", "6"].map(|key| format!("\"alt+{key}\""));
    check(
        &format!("[keys]\nlayout = [{}]", keys.join(", ")),
        &["tui.toml:2:10: `layout` takes at most 5 keys, but this list has 6"],
    );
    assert_eq!(
        read("[keys]\nlayout = [\"E\"]").keys.shown(crate::action::named("layout").unwrap()),
        Some("E".to_owned())
    );
}

#[test]
fn choices_are_words() {
    assert_eq!(read("sizes = \"smallest\"").sizes, SizePolicy::Smallest);
    assert_eq!(read("sizes = \"last\"").sizes, SizePolicy::Last);
    assert_eq!(read("").sizes, SizePolicy::Last);
    check("sizes = \"x\"", &["tui.toml:1:9: this must be \"last\" or \"smallest\""]);
    check("sizes = 1", &["tui.toml:1:9: this must be \"last\" or \"smallest\""]);
    assert_eq!(read("layout = \"shared\"").layout, LayoutPolicy::Shared);
    assert_eq!((read("").digest_minutes, read("digest_minutes = 0").digest_minutes), (5, 0));
    assert_eq!(read("split = \"shell\"").split, SplitPolicy::Shell);
    assert_eq!(read("ended_shells = \"leave-if-0\"").ended_shells, EndedShells::LeaveIfZero);
    check(
        "ended_shells = \"never\"",
        &["tui.toml:1:16: this must be \"leave\", \"leave-if-0\" or \"keep\""],
    );
}

#[test]
fn errors_have_their_position_and_what_is_allowed() {
    check("leader = \"ctrl+b", &["tui.toml:1:17: invalid basic string, expected `\"`"]);
    check(
        "lead = 1",
        &[
            "tui.toml:1:1: unknown key `lead`; known are leader, sizes, split, ended_shells, layout, \
           digest_minutes, keys, direct, theme",
        ],
    );
    let whole = "this must be a whole number from 0 to 10080";
    for wrong in ["-1", "10081", "1.5", "\"5\"", "99999999999999999999"] {
        check(&format!("digest_minutes = {wrong}"), &[&format!("tui.toml:1:18: {whole}")]);
    }
    let names: Vec<_> = ACTIONS.iter().map(|entry| entry.name).collect();
    let no_action = format!("there is no action `zom`; the actions are {}", names.join(", "));
    check("[keys]\nzom = \"f\"", &[&format!("tui.toml:2:1: {no_action}")]);
    check("[direct]\nf1 = \"zom\"", &[&format!("tui.toml:2:6: {no_action}")]);
    check(
        "[keys]\nzoom = 7",
        &["tui.toml:2:8: `zoom` takes a key like \"z\", a list of keys, or false for none"],
    );
    check(
        "leader = \"b\"",
        &[
            "tui.toml:1:10: programs could no longer get `b`; use a key with ctrl+, alt+ or super+, or \
           one of f1 to f20",
        ],
    );
    check(
        "keys = 1\n[theme]\naccent = \"pink\"\nbar = { background = 256 }\nx = 1",
        &[
            "tui.toml:1:8: `keys` must be a table: [keys]",
            "tui.toml:3:10: this must be a colour: black, red, green, yellow, blue, magenta, cyan, \
             white, or one of these with bright-, 0 to 255, \"#rrggbb\" or \"none\"",
            "tui.toml:4:22: this must be a colour: black, red, green, yellow, blue, magenta, cyan, \
             white, or one of these with bright-, 0 to 255, \"#rrggbb\" or \"none\"",
            "tui.toml:5:1: unknown key `x` in [theme]; known are text, dim, strong, accent, bad, bar, \
             selected, working, idle, blocked, failed",
        ],
    );
    let unknown = Settings::read("[keys]\nzoom = \"hyper+x\"").unwrap_err();
    assert!(unknown[0].to_string().starts_with("tui.toml:2:8: there is no key \"hyper+x\"; known"));
}

#[test]
fn colours_are_names_numbers_or_rgb() {
    let text = "[theme]\naccent = \"bright-blue\"\nworking = 208\ndim = \"#123456\"\nbad = \"none\"\n\
        bar = \"green\"\nselected = { text = \"black\", background = \"yellow\" }";
    let theme = read(text).theme;
    assert_eq!(theme.accent.foreground, Colour::Indexed(12));
    assert_eq!(theme.working.foreground, Colour::Indexed(208));
    assert_eq!(theme.dim.foreground, Colour::Rgb(0x12, 0x34, 0x56));
    assert!(!theme.dim.attributes.contains(Attributes::DIM));
    assert_eq!(theme.bad.foreground, Colour::Default);
    assert!(theme.bar.attributes.contains(Attributes::INVERSE));
    assert_eq!(theme.selected.background, Colour::Indexed(3));
    assert!(!theme.selected.attributes.contains(Attributes::INVERSE));
}

#[test]
fn no_text_makes_it_panic() {
    const PIECES: [&str; 14] = [
        "leader",
        "=",
        "\"ctrl+b\"",
        "[keys]",
        "\n",
        "zoom",
        "[",
        "]",
        "{",
        "}",
        "false",
        "1",
        "[theme]\nbar",
        "\u{1b}",
    ];
    arbtest::arbtest(|u| {
        let mut text = String::new();
        while !u.is_empty() {
            text.push_str(u.choose(&PIECES)?);
            if u.ratio(1, 4)? {
                text.push(u.arbitrary()?);
            }
        }
        let _ = Settings::read(&text);
        Ok(())
    });
}
