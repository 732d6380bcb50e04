//! Framing by example and by property: chunking changes nothing, and no input makes the decoder buffer more
//! than its limit.

use arbtest::arbtest;

use super::*;

const LIMIT: usize = 100;

/// All frames of a stream that arrives in chunks of `step` bytes, in readable form.
fn frames(stream: &[u8], step: usize) -> Vec<String> {
    let mut decoder = Decoder::new(LIMIT);
    let mut seen = Vec::new();
    for piece in stream.chunks(step) {
        decoder.feed(piece);
        while let Some(frame) = decoder.next_frame() {
            seen.push(show(frame));
        }
        let bound = 2 * (LIMIT + MAX_HEADER_BLOCK + step);
        assert!(decoder.buffer.len() <= bound, "{} bytes kept", decoder.buffer.len());
    }
    seen.extend(decoder.finish().map(show));
    seen
}

fn show(frame: Frame<'_>) -> String {
    match frame {
        Frame::Body(body) => body.escape_ascii().to_string(),
        Frame::Bad(BadFrame::TooLong { id, .. }) => format!("!too long {id:?}"),
        Frame::Bad(BadFrame::BadHeaders(_)) => "!headers".into(),
        Frame::Bad(BadFrame::CutOff) => "!cut".into(),
    }
}

#[track_caller]
fn check(stream: impl AsRef<[u8]>, expected: &[&str]) {
    let stream = stream.as_ref();
    for step in [1, 2, 3, 7, 64, usize::MAX] {
        let step = step.min(stream.len().max(1));
        assert_eq!(frames(stream, step), expected, "{:?} by {step}", stream.escape_ascii());
    }
}

#[test]
fn lines() {
    check("{\"a\":1}\n[2]\n", &["{\\\"a\\\":1}", "[2]"]);
    check("{}\r\n\r\n  \n\n{}\n", &["{}", "{}"]);
    check("\u{feff}{}\n{}\n", &["{}", "{}"]);
    check("{}\n[1]", &["{}", "[1]"]);
    check("{}\nnonsense\nContent-Length: 2\n{}\n", &["{}", "nonsense", "Content-Length: 2", "{}"]);
    check("", &[]);
    check("\n\n", &[]);
    check("nonsense", &["nonsense"]);
}

#[test]
fn headers() {
    check("Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]", &["{}", "[1]"]);
    check("content-LENGTH:2\n\n{}", &["{}"]);
    check("\r\nContent-Type: x; y\r\nContent-Length: 2\r\nX-Y: z\r\n\r\n{}", &["{}"]);
    check(
        "Content-Length: 4\r\n\r\n{\n\n}\r\n\r\nContent-Length: 2\r\n\r\n{}",
        &["{\\n\\n}", "{}"],
    );
    check("Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n{}", &["", "{}"]);
}

#[test]
fn the_memory_of_a_large_message_is_freed_at_once() {
    for (stream, limit) in [
        ("[".repeat(4 << 20) + "\n{", 8 << 20),
        ("[".repeat(4 << 20), 1 << 20),
        (format!("Content-Length: {}\n\n{}", 4 << 20, "[".repeat(4 << 20)), 8 << 20),
        (format!("Content-Length: {}\n\n{}", 4 << 20, "[".repeat(4 << 20)), 1 << 20),
    ] {
        let mut decoder = Decoder::new(limit);
        for piece in stream.as_bytes().chunks(64 << 10) {
            decoder.feed(piece);
            while decoder.next_frame().is_some() {}
        }
        assert!(decoder.buffer.capacity() <= KEPT_BUFFER, "{} kept", decoder.buffer.capacity());
    }
}

#[test]
fn the_first_message_decides_the_framing() {
    check("oops\nContent-Length: 2\r\n\r\n{}", &["oops", "{}"]);
    check("Contenta\n{}\n", &["Contenta", "{}"]);
    check("con", &["con"]);
    check("Cont: x\n{}\n", &["Cont: x", "{}"]);
}

#[test]
fn the_framing_is_detected_again_after_a_greeting() {
    let mut decoder = Decoder::new(LIMIT);
    decoder.feed(b"{\"patterm_identity\":\"x\"}\nContent-Length: 2\r\n\r\n{}");
    assert!(matches!(decoder.next_frame(), Some(Frame::Body(_))));
    assert_eq!(decoder.framing(), Some(Framing::Newline));
    decoder.forget_framing();
    assert_eq!(decoder.next_frame(), Some(Frame::Body(b"{}")));
    assert_eq!(decoder.framing(), Some(Framing::Headers));
}

#[test]
fn a_long_line_is_skipped_and_reported_once() {
    let long = "x".repeat(250);
    check(format!("{{}}\n{long}\n{{}}\n"), &["{}", "!too long None", "{}"]);
    check(format!("{long}\nContent-Length: 2\n\n{{}}"), &["!too long None", "{}"]);
    check(format!("{{\"id\":7,\"a\":\"{long}\"}}\n[1]\n"), &["!too long Some(7)", "[1]"]);
    check(format!("{{\"a\":\"{long}"), &["!too long None"]);
    let exact = format!("[\"{}\"]", "x".repeat(LIMIT - 4));
    let shown = exact.replace('"', "\\\"");
    check(format!("{exact}\n{{}}\n"), &[&shown, "{}"]);
}

#[test]
fn bad_headers_are_skipped_and_reported_once() {
    check("Content-Length: x\r\n\r\n{}Content-Length: 2\r\n\r\n{}", &["!headers", "{}"]);
    check("Content-Length: -1\r\n\r\njunk\njunk content-length:2\n\n{}", &["!headers", "{}"]);
    check("Content-Type: x\r\n\r\n{}\r\nContent-Length: 2\r\n\r\n{}", &["!headers", "{}"]);
    check(
        "Content-Length: 2\r\n\r\n{}junk\nmoreContent-Length: 2\r\n\r\n[]",
        &["{}", "!headers", "[]"],
    );
    check("Content-Length: 101\r\n\r\nabcContent-Length: 2\r\n\r\n{}", &["!too long None", "{}"]);
    check("Content-Length: 99999999999999999999999\r\n\r\n", &["!headers"]);
    check(
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\nContent-Length: 2\n\n{}",
        &["!headers", "{}"],
    );
    let endless = "Content-Length: 2\r\n".to_owned() + &"X: y\r\n".repeat(2000);
    check(endless + "\r\nContent-Length: 2\r\n\r\n{}", &["!headers", "{}"]);
}

#[test]
fn the_next_message_is_found_inside_a_bad_header_block() {
    let good = "Content-Length: 2\r\n\r\n{}";
    for junk in [
        "Content-Length: x ",
        "Content-Length: ",
        "Content-Length:",
        "Content-Type: x; ",
        "Content-Type",
        "Content-Type: x\r\nContent-Type: ",
        "Content-Length: 2\r\njunk ",
        "Content-Length: 2\r\n\r\n[]junk",
    ] {
        let served = junk.contains("[]").then_some("[]");
        let expected: Vec<_> = served.into_iter().chain(["!headers", "{}"]).collect();
        check(format!("{junk}{good}"), &expected);
    }
}

#[test]
fn an_endless_header_line_is_reported_once() {
    let endless = "9".repeat(3 * MAX_HEADER_BLOCK);
    check(format!("Content-Length: {endless}"), &["!headers"]);
    check(
        format!("Content-Length: {endless}\r\n\r\nContent-Length: 2\n\n{{}}"),
        &["!headers", "{}"],
    );
    check(format!("Content-Type: {endless}"), &["!headers"]);
    // One for each of the two endless blocks.
    check(format!("Content-Type: x\nContent-Length: {endless}"), &["!headers", "!headers"]);
}

#[test]
fn the_stream_ends_inside_a_frame() {
    check("Content-Length: 5\r\n\r\n{}", &["!cut"]);
    check("Content-Length: 5", &["!cut"]);
    check("Content-Length: 5\r\n", &["!cut"]);
    check("Content-Length: 2\r\n\r\n{}\r\n", &["{}"]);
    check("Content-Length: z\r\n\r\nContent-Len", &["!headers"]);
}

#[test]
fn encoded_frames_can_be_decoded() {
    for framing in [Framing::Newline, Framing::Headers] {
        let mut stream = Vec::new();
        framing.encode(b"{}", &mut stream);
        framing.encode(b"[1]", &mut stream);
        check(&stream, &["{}", "[1]"]);
    }
}

#[test]
fn chunking_changes_nothing() {
    const PIECES: [&[u8]; 16] = [
        b"{}",
        b"[1,2]",
        b"\n",
        b"\r\n",
        b"\n\n",
        b"\r\n\r\n",
        b" ",
        b"Content-Length: 2",
        b"content-length:",
        b"Content-Type: a",
        b"Content-Length: 9999",
        b"junk",
        b"\xff\x00",
        b"\xef\xbb\xbf",
        b"{\"id\":1,\"method\":\"ping\"}",
        b"0",
    ];
    arbtest(|u| {
        let mut stream = Vec::new();
        for _ in 0..u.int_in_range(0..=24)? {
            stream.extend_from_slice(u.choose(&PIECES)?);
            if u.ratio(1, 20)? {
                stream.extend(std::iter::repeat_n(b'z', u.int_in_range(0..=3 * LIMIT)?));
            }
            if u.ratio(1, 20)? {
                let near = MAX_HEADER_BLOCK - 40..=MAX_HEADER_BLOCK + 40;
                stream.extend(std::iter::repeat_n(b'h', u.int_in_range(near)?));
            }
        }
        let whole = frames(&stream, stream.len().max(1));
        let step = u.int_in_range(1..=stream.len().max(1))?;
        assert_eq!(frames(&stream, step), whole, "{} by {step}", stream.escape_ascii());
        assert_eq!(frames(&stream, 1), whole, "{}", stream.escape_ascii());
        Ok(())
    });
}

#[test]
fn a_frame_after_garbage_is_found() {
    arbtest(|u| {
        let garbage: Vec<u8> = u.arbitrary()?;
        let mut stream = b"{}\n".to_vec();
        stream.extend_from_slice(&garbage);
        stream.extend_from_slice(b"\n{\"marker\":1}\n");
        let seen = frames(&stream, 16);
        assert_eq!(seen.last().map(String::as_str), Some("{\\\"marker\\\":1}"));
        Ok(())
    });
}
