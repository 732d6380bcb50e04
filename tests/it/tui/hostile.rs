//! What a hostile program prints, and what reaches the person's terminal: cells, and nothing that
//! the terminal would act on.

use super::Screen;
use crate::support::Place;

/// Text that such a program would like to have typed, copied, or shown as a title.
const EVIL: &str = "EVIL;rm";

/// Three hundred ways and more to make a terminal do something.
fn sequences() -> Vec<String> {
    let mut all = vec![
        format!("\x1b]52;c;{EVIL}\x07"),
        format!("\x1bPtmux;\x1b\x1b]52;c;{EVIL}\x07\x1b\\"),
        format!("\x1bP1000p{EVIL}\x1b\\"),
        format!("\x1bk{EVIL}\x1b\\"),
        format!("\u{9d}52;c;{EVIL}\u{9c}\u{9b}5n\u{90}$q{EVIL}\u{9c}"),
        format!("\x1b]8;;javascript:{EVIL}\x07link\x1b]8;;\x07"),
        format!("\x1b]8;;http://x/\u{9c}{EVIL}\x07link\x1b]8;;\x07"),
        "e\u{301}\u{9b}6n\u{85}\u{8d}".into(),
        "\x1bc\x1b[!p\x1b[?1049l\x1b[?25l\x1b[?1000h\x1b[?1003h\x1b[>31u\x1b[=31;1u\x05".into(),
        "\x1b[8;9999;9999t\x1b[2t\x1b[3;0;0t\x1b[5i\x1b[4i".into(),
    ];
    for code in (0..60).chain([99, 104, 133, 176, 633, 666, 777, 1337, 7501, 9999]) {
        all.push(format!("\x1b]{code};{EVIL}\x07"));
        all.push(format!("\x1b]{code};?\x1b\\"));
    }
    for last in 0x40..0x7f_u8 {
        for marker in ["", "?", ">", "="] {
            all.push(format!("\x1b[{marker}1;2{}", char::from(last)));
        }
    }
    for first in "_^XP".chars() {
        all.push(format!("\x1b{first}{EVIL}\x1b\\"));
        all.push(format!("\x1b{first}{EVIL}\x07\x18"));
    }
    all
}

/// What the TUI composes: positions and styles of cells, the cursor, the modes it manages, the
/// title.
#[track_caller]
fn check_composed(written: &[u8]) -> usize {
    let text = std::str::from_utf8(written).expect("UTF-8");
    let mut rest = text;
    let mut seen = 0;
    while let Some(at) = rest.find(|c: char| c.is_control() && !"\r\n".contains(c)) {
        let sequence = &rest[at..];
        let length = composed(sequence)
            .unwrap_or_else(|| panic!("{:?}", sequence.chars().take(60).collect::<String>()));
        rest = &sequence[length..];
        seen += 1;
    }
    seen
}

/// How long the sequence is, if it is one of ours.
fn composed(text: &str) -> Option<usize> {
    if let Some(body) = text.strip_prefix("\x1b[") {
        let end = body.find(|c: char| ('@'..='~').contains(&c))?;
        let (parameters, last) = (&body[..end], &body[end..=end]);
        let plain = parameters.chars().all(|c| c.is_ascii_digit() || ";:".contains(c));
        // The modes that the TUI manages: its screen, its cursor, mouse, pastes, focus, size and
        // colour reports, and synchronized output.
        const MODES: [&str; 11] = [
            "?1049", "?25", "?7", "?1000", "?1002", "?1003", "?1004", "?1006", "?2004", "?2026",
            "?2031",
        ];
        let known = match last {
            "H" | "J" | "K" | "m" | "X" => plain || parameters.starts_with(">4"),
            "h" | "l" => MODES.contains(&parameters),
            "q" => parameters.ends_with(' ') || parameters.starts_with('>'),
            // The keyboard modes, and the first query at the start.
            "u" => parameters.starts_with(['<', '>', '=', '?']),
            "c" => parameters.is_empty(),
            // The title is saved and restored.
            "t" => ["22;0;0", "23;0;0"].contains(&parameters),
            _ => false,
        };
        return known.then_some(2 + end + 1);
    }
    if let Some(body) = text.strip_prefix("\x1b]") {
        let end = body.find("\x1b\\").map(|end| (end, 2)).into_iter();
        let end = end.chain(body.find('\x07').map(|end| (end, 1))).min()?;
        let control = &body[..end.0];
        // Our title, with the project's name; links as they are; never the clipboard.
        let known = control.starts_with("2;sh – project")
            || control.starts_with("2;patterm – project")
            || control.starts_with("2;! ")
            || (control.starts_with("8;;") && !control[3..].contains(char::is_control))
            || control.starts_with("9;patterm: ");
        return (known && !control.starts_with("2;EVIL")).then_some(2 + end.0 + end.1);
    }
    let simple = ["\x1b=", "\x1b>", "\x1b7", "\x1b8", "\x1b(B", "\x07", "\x08"];
    simple.iter().find(|known| text.starts_with(*known)).map(|known| known.len())
}

#[test]
fn only_output_that_the_tui_composed_reaches_the_terminal() {
    let all = sequences();
    assert!(all.len() >= 300, "{}", all.len());
    let place = Place::new();
    // A few at a time, so that each is visible when a frame is drawn.
    let mut script = String::from("sleep 0.2\n");
    for (n, some) in all.chunks(4).enumerate() {
        let file = place.path(&format!("project/{n}"));
        std::fs::write(&file, some.concat()).unwrap();
        script += &format!("cat {n}; sleep 0.02; printf '\\033c\\033\\\\'\n");
    }
    std::fs::write(place.path("project/all"), script + "echo over; exec cat\n").unwrap();
    let mut screen = Screen::with_patterm(&place, 80, 24);
    let record = place.path("written");
    screen.record(&record);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.line("exec sh all");
    screen.until("over");
    screen.lead("d");
    screen.until("detached; everything keeps running");
    let written = std::fs::read(record).unwrap();
    let seen = check_composed(&written);
    assert!(seen > 300, "{seen} sequences in {} bytes", written.len());
}
