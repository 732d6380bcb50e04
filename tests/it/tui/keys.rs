//! Key fidelity: the program gets exactly what the terminal sends for each key.

use super::Screen;
use crate::support::Place;

/// Runs a program that sets up its terminal and reads bytes; types them; compares.
#[track_caller]
fn check(set_up: &str, typed: &[u8], expected: &[u8]) {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    let file = place.path("taken");
    let script = format!(
        "stty raw -echo; printf '{set_up}ready'; dd bs=1 count={} of={} 2>/dev/null; \
         printf 'all taken'; cat",
        expected.len(),
        file.display()
    );
    place.run(&["run", "--name", "keys", "--", "sh", "-c", &script]);
    screen.until("ready");
    // In pieces that a terminal might write, never inside a key.
    for piece in typed.chunk_by(|_, next| *next != 0x1b) {
        screen.send(piece);
    }
    screen.until("all taken");
    let taken = std::fs::read(file).unwrap();
    assert_eq!(taken.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

/// Every key of a legacy terminal, except the leader and a lone escape.
fn legacy_keys() -> Vec<u8> {
    let mut keys = Vec::new();
    keys.extend((0x20..0x7f).map(|byte: u8| byte));
    keys.extend("äß漢🙂".bytes());
    keys.extend((0..0x20).filter(|byte| !matches!(byte, 0x02 | 0x1b)));
    keys.push(0x7f);
    for byte in (b'a'..=b'z').chain(b'A'..=b'N').chain(*b"0129 .,;/\r\t\x7f\x01\x03") {
        keys.extend([0x1b, byte]);
    }
    for letter in b"ABCDHF" {
        keys.extend([0x1b, b'[', *letter]);
    }
    for modifiers in 2..=8 {
        for letter in "ABCDHFPQS".chars() {
            keys.extend(format!("\x1b[1;{modifiers}{letter}").bytes());
        }
        for number in [2, 3, 5, 6, 15, 17, 18, 19, 20, 21, 23, 24] {
            keys.extend(format!("\x1b[{number};{modifiers}~").bytes());
        }
    }
    for letter in b"PQRS" {
        keys.extend([0x1b, b'O', *letter]);
    }
    for number in [2, 3, 5, 6, 15, 17, 18, 19, 20, 21, 23, 24] {
        keys.extend(format!("\x1b[{number}~").bytes());
    }
    keys.extend(b"\x1b[Z");
    keys
}

#[test]
fn every_key_of_an_old_terminal_arrives_as_it_was_sent() {
    check("", &legacy_keys(), &legacy_keys());
}

#[test]
fn the_leader_twice_is_the_leader_and_an_escape_alone_is_an_escape() {
    check("", b"a\x02\x02b\x1b", b"a\x02b\x1b");
}

#[test]
fn cursor_keys_follow_the_programs_mode() {
    let sent = b"\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F\x1b[1;5A";
    check("\\033[?1h", sent, b"\x1bOA\x1bOB\x1bOC\x1bOD\x1bOH\x1bOF\x1b[1;5A");
}

#[test]
fn every_key_of_a_kitty_keyboard_arrives_as_it_was_sent() {
    let mut keys = Vec::new();
    for modifiers in 1..=16 {
        for number in [9, 13, 27, 127, 97, 98, 99, 122, 32, 228, 57376, 57399, 57441] {
            // The leader itself belongs to patterm.
            if (number, modifiers) == (98, 5) {
                continue;
            }
            for event in ["", ":2", ":3"] {
                keys.extend(format!("\x1b[{number};{modifiers}{event}u").bytes());
            }
        }
        for letter in "ABCDHFPQS".chars() {
            keys.extend(format!("\x1b[1;{modifiers}:3{letter}").bytes());
        }
    }
    keys.extend(b"\x1b[97:65;2;65u\x1b[13;2u");
    check("\\033[>31u", &keys, &keys);
}

#[test]
fn a_paste_is_bracketed_only_for_programs_that_enabled_it() {
    let pasted = b"\x1b[200~one\rtwo\x02d\x1b[201~";
    check("\\033[?2004h", pasted, pasted);
    check("", pasted, b"one\rtwo\x02d");
}
