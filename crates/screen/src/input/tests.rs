//! Input events in all encodings and chunk sizes.

use arbtest::arbtest;

use super::*;

fn events(bytes: &[u8], step: usize) -> Vec<InputEvent> {
    let mut parser = InputParser::default();
    let mut seen = Vec::new();
    for piece in bytes.chunks(step) {
        parser.feed(piece);
        seen.extend(std::iter::from_fn(|| parser.next_event()));
    }
    seen.extend(std::iter::from_fn(|| parser.flush()));
    seen
}

#[track_caller]
fn check(bytes: &[u8], names: &[&str]) {
    for step in [1, 2, bytes.len()] {
        let seen = events(bytes, step);
        let keys: Vec<_> = seen
            .iter()
            .map(|event| match event {
                InputEvent::Key(key_event) => key_event.key,
                other => panic!("{} is {other:?}", bytes.escape_ascii()),
            })
            .collect();
        let wanted: Vec<Option<Key>> = names.iter().map(|name| name.parse().ok()).collect();
        assert_eq!(keys, wanted, "{} by {step}", bytes.escape_ascii());
        let raw: Vec<u8> = seen
            .iter()
            .flat_map(|event| match event {
                InputEvent::Key(key_event) => key_event.raw.clone(),
                _ => vec![],
            })
            .collect();
        assert_eq!(raw, bytes, "no byte is lost");
    }
}

#[test]
fn keys_of_any_terminal() {
    check("aü漢".as_bytes(), &["a", "ü", "漢"]);
    check(b"\x02\r\t\x7f\x00", &["ctrl+b", "enter", "tab", "backspace", "ctrl+space"]);
    check(b"\x1bx\x1b[A\x1bOB\x1b[1;5C", &["alt+x", "up", "down", "ctrl+right"]);
    check(b"\x1bOP\x1b[15~\x1b[3;2~\x1b[Z", &["f1", "f5", "shift+delete", "shift+tab"]);
    check(b"\x1b[27;5;98~", &["ctrl+b"]);
    check(b"\x1b[98;5u\x1b[13;2u\x1b[27u", &["ctrl+b", "shift+enter", "escape"]);
    check(b"\x1b", &["escape"]);
    check(b"\x1b\x1b[A", &["alt+up"]);
    check(b"\x1b[", &["alt+["]);
}

#[test]
fn a_released_key() {
    let Some(InputEvent::Key(key_event)) = events(b"\x1b[98;5:3u", 99).pop() else { panic!() };
    assert!(key_event.released);
    let Some(InputEvent::Key(key_event)) = events(b"\x1b[1;1:3A", 99).pop() else { panic!() };
    assert!(key_event.released && key_event.encoding == KeyEncoding::Kitty);
}

#[test]
fn replies_are_never_keys() {
    let string = |text: &[u8]| TerminalReply::String(text.to_vec());
    for (answer, expected) in [
        (&b"\x1b[?62;22c"[..], TerminalReply::Attributes),
        (b"\x1b[>1;10;0c", TerminalReply::Other),
        (b"\x1b]11;rgb:0000/0000/0000\x1b\\", TerminalReply::Other),
        (b"\x1b]10;rgb:ff/ff/ff\x07", TerminalReply::Other),
        (b"\x1bP>|tmux 3.5\x1b\\", string(b">|tmux 3.5")),
        (b"\x1bP1$r0;48:2::1:2:3m\x1b\\", string(b"1$r0;48:2::1:2:3m")),
        (b"\x1b[?2026;2$y", TerminalReply::Mode(2026, 2)),
        (b"\x1b[?2026$y", TerminalReply::Other),
        (b"\x1b[24;80R", TerminalReply::Other),
        (b"\x1b[?997;1n", TerminalReply::Other),
        (b"\x1b[8;24;80t", TerminalReply::Other),
    ] {
        for step in [1, 3, answer.len()] {
            let seen = events(answer, step);
            assert_eq!(seen, [InputEvent::Reply(expected.clone())], "{}", answer.escape_ascii());
        }
    }
    assert_eq!(events(b"\x1b[?5u", 1), [InputEvent::Reply(TerminalReply::KittyKeyboard(5))]);
}

#[test]
fn a_paste_is_one_event_whatever_it_contains() {
    let pasted = b"one\rtwo\x1b[A\x02d";
    let sent = [b"\x1b[200~", &pasted[..], b"\x1b[201~"].concat();
    for step in [1, 4, sent.len()] {
        assert_eq!(events(&sent, step), [InputEvent::Paste(pasted.to_vec())]);
    }
}

/// Searching all of it again for every byte would take hours.
#[test]
fn a_long_paste_that_arrives_byte_by_byte_is_searched_once() {
    let pasted = vec![b'x'; 1_000_000];
    let sent = [b"\x1b[200~", pasted.as_slice(), b"\x1b[201~"].concat();
    assert!(events(&sent, 1) == [InputEvent::Paste(pasted)]);
}

#[test]
fn mouse_and_focus() {
    let at = |code, x, y, released| InputEvent::Mouse(MouseEvent { code, x, y, released });
    assert_eq!(events(b"\x1b[<0;3;4M\x1b[<0;3;4m", 1), [at(0, 2, 3, false), at(0, 2, 3, true)]);
    assert_eq!(events(b"\x1b[M !!", 1), [at(0, 0, 0, false)]);
    assert_eq!(events(b"\x1b[I\x1b[O", 1), [InputEvent::Focus(true), InputEvent::Focus(false)]);
}

#[test]
fn random_bytes_neither_panic_nor_loop() {
    arbtest(|u| {
        let bytes: Vec<u8> = u.arbitrary()?;
        events(&bytes, 3.min(bytes.len()).max(1));
        Ok(())
    });
}

#[test]
fn only_keys_and_pastes_are_typed() {
    let reports = [
        "\x1b[I",
        "\x1b[O",
        "\x1b[<0;1;1M",
        "\x1b[<35;10;3m",
        "\x1b[M !!",
        "\x1b[M \u{84}\u{85}",
        "\x1b[32;10;3M",
        "\x1b[?1;2c",
        "\x1b[>0;1;2c",
        "\x1b[24;80R",
        "\x1b[0n",
        "\x1b[?997;1n",
        "\x1b[?2026;2$y",
        "\x1b[8;24;80t",
        "\x1b[?5u",
        "\x1b]11;rgb:0000/0000/0000\x1b\\",
        "\x1bP>|term 1\x1b\\",
        "\x1b[97;1:3u",
    ];
    for report in reports {
        let seen = events(report.as_bytes(), report.len());
        assert!(!seen.iter().any(InputEvent::is_typed), "{report:?} is {seen:?}");
    }
    for typed in ["a", "\r", "\x1b", "\x1b[A", "\x1b[97u", "\x1b[200~x\x1b[201~", "é", "\x1bOP"] {
        let seen = events(typed.as_bytes(), typed.len());
        assert!(seen.iter().all(InputEvent::is_typed) && !seen.is_empty(), "{typed:?} is {seen:?}");
    }
}
