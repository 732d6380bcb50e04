//! Colours that a program changes: what it is told, what is drawn, and what keeps and resets them.

use crate::{Colour, Screen, Size};

fn screen(output: &str) -> Screen {
    let mut screen = Screen::new(Size::new(3, 10));
    screen.feed(output.as_bytes());
    screen
}

#[track_caller]
fn assert_told(output: &str, expected: &str) {
    let told = screen(output).take_replies();
    assert_eq!(String::from_utf8(told).unwrap(), expected, "{output:?}");
}

#[test]
fn a_program_is_told_what_it_has_set() {
    for (output, expected) in [
        ("\x1b]4;3;#aabbcc\x07\x1b]4;3;?\x07", "\x1b]4;3;rgb:aaaa/bbbb/cccc\x07"),
        (
            "\x1b]4;0;#fff;1;rgb:1/2/3\x07\x1b]4;0;?;1;?\x07",
            "\x1b]4;0;rgb:f0f0/f0f0/f0f0\x07\x1b]4;1;rgb:1111/2222/3333\x07",
        ),
        // The special colours have two numbers.
        ("\x1b]5;1;#aabbcc\x07\x1b]4;257;?\x07", "\x1b]4;257;rgb:aaaa/bbbb/cccc\x07"),
        ("\x1b]4;256;#aabbcc\x07\x1b]5;0;?\x07", "\x1b]5;0;rgb:aaaa/bbbb/cccc\x07"),
        // The values are for the colour and the next ones.
        ("\x1b]10;#111111;#222222\x07\x1b]11;?\x07", "\x1b]11;rgb:2222/2222/2222\x07"),
        (
            "\x1b]18;#111111;#222222;#333333\x07\x1b]18;?;?;?\x07",
            "\x1b]18;rgb:1111/1111/1111\x07\x1b]19;rgb:2222/2222/2222\x07",
        ),
        // Values that cannot be read change nothing.
        ("\x1b]4;1;red;2;#000\x07\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]4;261;?;-1;?;x;?;1\x07", ""),
        ("\x1b]5;5;?\x07\x1b]20;?\x07", ""),
    ] {
        assert_told(output, expected);
    }
}

#[test]
fn colours_are_reset_one_by_one_and_together() {
    let set = "\x1b]4;1;#aaaaaa;2;#bbbbbb;256;#cccccc\x07\x1b]10;#dddddd;#eeeeee\x07";
    let ask = "\x1b]4;1;?;2;?;256;?\x07\x1b]10;?;?\x07";
    // Red, green, bold, foreground and background: the first digits.
    for (reset, expected) in [
        ("", "aa bb cc dd ee"),
        ("\x1b]104;1\x07", "cd bb cc dd ee"),
        ("\x1b]104;1;2;256\x07", "cd 00 d8 dd ee"),
        ("\x1b]104\x07", "cd 00 cc dd ee"),
        ("\x1b]104;\x07", "cd 00 cc dd ee"),
        ("\x1b]105;0\x07", "aa bb d8 dd ee"),
        ("\x1b]105\x07", "aa bb d8 dd ee"),
        ("\x1b]110\x07", "aa bb cc d8 ee"),
        ("\x1b]111\x07", "aa bb cc dd 18"),
        ("\x1b[!p", "aa bb cc dd ee"),
        ("\x1bc", "cd 00 d8 d8 18"),
    ] {
        let told = screen(&format!("{set}{reset}{ask}")).take_replies();
        let told = String::from_utf8(told).unwrap();
        let reds: Vec<_> = told.split("rgb:").skip(1).map(|value| &value[..2]).collect();
        assert_eq!(reds.join(" "), expected, "{reset:?}");
    }
}

#[test]
fn text_is_drawn_in_the_colours_of_now() {
    let mut screen = screen("\x1b[31mred\x1b[32;44mgreen\x1b[m");
    let drawn = |screen: &Screen| {
        let row = screen.styled_row(0);
        let spans = screen.colours().apply(&row.spans, 10).into_owned();
        let colours = |span: &crate::Span| (span.style.foreground, span.style.background);
        spans.iter().map(|span| (span.text.clone(), colours(span))).collect::<Vec<_>>()
    };
    let (red, green, blue) = (Colour::Indexed(1), Colour::Indexed(2), Colour::Indexed(4));
    let (r, g) = ("red".to_owned(), "green".to_owned());
    let before = [(r.clone(), (red, Colour::Default)), (g.clone(), (green, blue))];
    assert_eq!(drawn(&screen), before);
    let version = screen.version();
    screen.feed(b"\x1b]4;1;#010203;4;#040506\x07\x1b]11;#070809\x07");
    assert!(screen.version() > version);
    let background = Colour::Rgb(7, 8, 9);
    let rest = ("  ".to_owned(), (Colour::Default, background));
    let after = [
        (r.clone(), (Colour::Rgb(1, 2, 3), background)),
        (g.clone(), (green, Colour::Rgb(4, 5, 6))),
        rest,
    ];
    assert_eq!(drawn(&screen), after);
    // A snapshot, and a resize, keep them; a program's text stays what it was.
    let mut copy = Screen::new(screen.size());
    copy.feed(&screen.snapshot());
    assert_eq!(drawn(&copy), after);
    assert_eq!(copy.snapshot(), screen.snapshot());
    copy.resize(Size::new(5, 10));
    assert_eq!(drawn(&copy), after);
    assert_eq!(copy.styled_row(0).text(), "redgreen");
    screen.feed(b"\x1b]104\x07\x1b]111\x07");
    assert_eq!(drawn(&screen), before);
}

#[test]
fn a_snapshot_with_all_colours_is_bounded() {
    let mut output = String::new();
    for index in 0..300 {
        output.push_str(&format!("\x1b]4;{index};#123456\x07\x1b]{index};#123456\x07"));
    }
    let size = screen(&output).snapshot().len();
    assert!((4_000..8_000).contains(&size), "{size}");
}
