//! Streams without their escape sequences.

use arbtest::arbtest;

use crate::Stripper;

#[track_caller]
fn check(bytes: impl AsRef<[u8]>, expected: &str) {
    let bytes = bytes.as_ref();
    assert_eq!(Stripper::default().feed(bytes), expected);
    let mut stripper = Stripper::default();
    let pieces: String = bytes.chunks(1).map(|piece| stripper.feed(piece)).collect();
    // A backspace can take back only what is not given out yet.
    if !bytes.contains(&0x08) {
        assert_eq!(pieces, expected, "byte by byte");
    }
}

#[test]
fn sequences_go_and_text_stays() {
    check("\x1b[1;31mred\x1b[0m plain\r\n", "red plain\n");
    check("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1bP1$r\x1b\\c\x1b_x\x1b\\d", "abcd");
    check("漢字 é 👍\n", "漢字 é 👍\n");
    check(b"a\xffb", "a\u{fffd}b");
    check("\x1b(0q\x1b=\x1b7x", "qx");
}

#[test]
fn line_ends() {
    check("a\r\nb\r\r\nc\nd", "a\nb\nc\nd");
    check("10%\r20%\r30%\r\n", "10%\n20%\n30%\n");
    check("\r\r\r\na", "\na");
    check("one\x1b[5;1Htwo\x1b[Hthree", "one\ntwo\nthree");
    check("a\x1b[3Cb", "a   b");
    check("ab\x08\x08cd\x08", "c");
}

#[test]
fn what_comes_out_has_no_controls_and_does_not_depend_on_the_pieces() {
    arbtest(|u| {
        let bytes: Vec<u8> = u.arbitrary()?;
        let bytes: Vec<u8> = bytes.into_iter().filter(|byte| *byte != 0x08).collect();
        let whole = Stripper::default().feed(&bytes);
        assert!(!whole.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{whole:?}");
        let (mut stripper, mut rest, mut text) = (Stripper::default(), &bytes[..], String::new());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(u.int_in_range(1..=rest.len())?);
            text.push_str(&stripper.feed(piece));
            rest = after;
        }
        assert_eq!(text, whole);
        Ok(())
    });
}
