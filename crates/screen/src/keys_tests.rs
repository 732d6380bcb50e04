//! Keys, pastes and typed text as bytes.

use arbtest::arbtest;

use crate::{Key, Modes, paste, type_text};

fn modes(change: impl FnOnce(&mut Modes)) -> Modes {
    let mut modes = Modes::default();
    change(&mut modes);
    modes
}

#[track_caller]
fn check(modes: &Modes, expected: &[(&str, &str)]) {
    for (name, bytes) in expected {
        let key: Key = name.parse().unwrap();
        let sent = String::from_utf8(key.encode(modes)).unwrap();
        assert_eq!(sent, *bytes, "{name}");
    }
}

#[test]
fn keys_as_they_always_were() {
    check(
        &Modes::default(),
        &[
            ("enter", "\r"),
            ("Return", "\r"),
            ("escape", "\x1b"),
            ("tab", "\t"),
            ("shift+tab", "\x1b[Z"),
            ("backspace", "\x7f"),
            ("ctrl+backspace", "\x08"),
            ("alt+backspace", "\x1b\x7f"),
            ("delete", "\x1b[3~"),
            ("space", " "),
            ("ctrl+space", "\0"),
            ("up", "\x1b[A"),
            ("shift+up", "\x1b[1;2A"),
            ("ctrl+right", "\x1b[1;5C"),
            ("home", "\x1b[H"),
            ("end", "\x1b[F"),
            ("page-up", "\x1b[5~"),
            ("PageDown", "\x1b[6~"),
            ("ctrl+page_down", "\x1b[6;5~"),
            ("f1", "\x1bOP"),
            ("shift+f1", "\x1b[1;2P"),
            ("f5", "\x1b[15~"),
            ("f12", "\x1b[24~"),
            ("ctrl+c", "\x03"),
            ("ctrl+C", "\x03"),
            ("ctrl+[", "\x1b"),
            ("ctrl+?", "\x7f"),
            ("alt+enter", "\x1b\r"),
            ("alt+x", "\x1bx"),
            ("ctrl+alt+c", "\x1b\x03"),
            ("a", "a"),
            ("shift+a", "A"),
            ("é", "é"),
            ("+", "+"),
            ("ctrl++", "+"),
            ("plus", "+"),
            ("漢", "漢"),
        ],
    );
}

#[test]
fn keys_in_the_spellings_that_models_use() {
    let same = [
        ("ctrl+c", &["C-c", "c-c", "ctrl-c", "Ctrl-C", "Ctrl+C", "control-c", "^C", "^c"][..]),
        ("up", &["ArrowUp", "arrow_up", "Up", "UpArrow"]),
        ("left", &["ArrowLeft", "arrow-left"]),
        ("enter", &["Enter", "Return", "ENTER"]),
        ("escape", &["Escape", "Esc", "esc"]),
        ("shift+tab", &["S-Tab", "shift-tab", "BTab", "Shift+Tab", "backtab"]),
        ("alt+x", &["M-x", "A-x", "alt-x", "Meta+x"]),
        ("ctrl+alt+x", &["C-M-x", "ctrl-alt-x"]),
        ("page-up", &["PageUp", "page_up", "PgUp", "PPage"]),
        ("ctrl+-", &["ctrl--", "C--"]),
        ("backspace", &["BSpace", "Backspace"]),
        ("-", &["minus"]),
    ];
    let kitty = modes(|m| m.kitty_keyboard = 1);
    for (name, spellings) in same {
        for modes in [&Modes::default(), &kitty] {
            let bytes = |name: &str| name.parse::<Key>().unwrap().encode(modes);
            for spelling in spellings {
                assert_eq!(bytes(spelling), bytes(name), "{spelling}");
            }
        }
    }
    let bytes = "^[".parse::<Key>().unwrap().encode(&Modes::default());
    assert_eq!(bytes, b"\x1b");
    for name in ["x-y", "ctrl-", "C-", "^", "-", "hyper+c", "ctrl+nothing"] {
        let known = name.parse::<Key>().is_ok();
        assert_eq!(known, name.chars().count() == 1, "{name}");
    }
}

#[test]
fn arrows_follow_the_application_mode() {
    let modes = modes(|m| m.application_cursor = true);
    check(&modes, &[("up", "\x1bOA"), ("home", "\x1bOH"), ("ctrl+up", "\x1b[1;5A")]);
}

#[test]
fn the_kitty_keyboard() {
    let some = modes(|m| (m.kitty_keyboard, m.application_cursor) = (1, true));
    check(
        &some,
        &[
            ("a", "a"),
            ("A", "A"),
            ("enter", "\r"),
            ("shift+enter", "\x1b[13;2u"),
            ("alt+enter", "\x1b[13;3u"),
            ("escape", "\x1b[27u"),
            ("shift+tab", "\x1b[9;2u"),
            ("ctrl+c", "\x1b[99;5u"),
            ("ctrl+shift+c", "\x1b[99;6u"),
            ("alt+x", "\x1b[120;3u"),
            ("up", "\x1b[A"),
            ("f1", "\x1b[P"),
            ("f3", "\x1b[13~"),
            ("backspace", "\x7f"),
        ],
    );
    let all = modes(|m| m.kitty_keyboard = 1 | 4 | 8 | 16);
    check(&all, &[("a", "\x1b[97;;97u"), ("A", "\x1b[97:65;2;65u"), ("enter", "\x1b[13u")]);
}

#[test]
fn modify_other_keys() {
    let one = modes(|m| m.modify_other_keys = 1);
    check(
        &one,
        &[("ctrl+c", "\x03"), ("shift+enter", "\x1b[27;2;13~"), ("ctrl+1", "\x1b[27;5;49~")],
    );
    let two = modes(|m| m.modify_other_keys = 2);
    check(&two, &[("ctrl+c", "\x1b[27;5;99~"), ("a", "a"), ("up", "\x1b[A")]);
}

#[test]
fn a_key_that_is_none_gets_a_list() {
    for name in ["", "entr", "hyper+x", "f0", "f21", "ctrl+", "\x1b", "\n"] {
        let error = name.parse::<Key>().unwrap_err().to_string();
        assert!(error.contains("page-up") && error.contains("f1"), "{name:?}: {error}");
    }
}

/// What of a text may be pasted, written down a second time and otherwise.
fn allowed_paste(text: &str) -> String {
    let text = text.replace("\x1b[200~", "").replace("\x1b[201~", "");
    let text = text.replace("\r\n", "\r").replace('\n', "\r");
    text.chars().filter(|c| matches!(c, '\r' | '\t') || !c.is_control()).collect()
}

#[test]
fn pastes() {
    let plain = Modes::default();
    let marked = modes(|m| m.bracketed_paste = true);
    assert_eq!(paste("a\nb\r\nc\rd\te", &plain), b"a\rb\rc\rd\te");
    assert_eq!(paste("a\x1b[201~rm\x03\n", &marked), b"\x1b[200~arm\r\x1b[201~");
    assert_eq!(paste("\x1b[20\x1b[201~1~x", &marked), b"\x1b[200~[201~x\x1b[201~");
    assert_eq!(paste("\u{9b}201~é漢\0", &marked), "\x1b[200~201~é漢\x1b[201~".as_bytes());
}

#[test]
fn a_hundred_thousand_pastes_send_exactly_the_sanctioned_bytes() {
    const PIECES: [&str; 16] = [
        "a",
        "\x1b",
        "[201~",
        "\x1b[201~",
        "\x1b[200~",
        "\n",
        "\r",
        "\r\n",
        "\t",
        "\x03",
        "\x7f",
        "\u{9b}",
        "漢",
        "\0",
        "\x1b]52;c;x\x07",
        " ",
    ];
    let (mut count, mut seed) = (0, 0);
    let marked = modes(|m| m.bracketed_paste = true);
    while count < 100_000 {
        seed += 1;
        arbtest(|u| {
            for _ in 0..100 {
                let length = u.int_in_range(0..=12)?;
                let mut text = String::new();
                for _ in 0..length {
                    match u.ratio(1, 4)? {
                        true => text.push(u.arbitrary()?),
                        false => text.push_str(u.choose(&PIECES)?),
                    }
                }
                let expected = format!("\x1b[200~{}\x1b[201~", allowed_paste(&text));
                assert_eq!(paste(&text, &marked), expected.as_bytes(), "{text:?}");
                assert_eq!(paste(&text, &Modes::default()), allowed_paste(&text).as_bytes());
                count += 1;
            }
            Ok(())
        })
        .seed(seed << 32 | 4_096)
        .run();
    }
}

#[test]
fn typed_text() {
    assert_eq!(type_text("ls\n\x03é", &Modes::default()), "ls\r\x03é".as_bytes());
    let all = modes(|m| m.kitty_keyboard = 8);
    assert_eq!(type_text("a\n", &all), b"\x1b[97u\x1b[13u");
}
