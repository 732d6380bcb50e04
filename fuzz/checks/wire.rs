//! What must hold of frames, messages and views for any bytes. The fuzz targets and the tests that
//! replay the corpus share it.
#![allow(dead_code, reason = "each fuzz target uses one of them")]

use patterm_wire::view::ViewDecoder;
use patterm_wire::{BadFrame, Decoder, Frame, Framing, Id, Incoming, Malformed, Message};
use serde_json::Value;

const LIMIT: usize = 256;

/// The frames of a stream that comes in pieces of `step` bytes.
fn decode(stream: &[u8], step: usize) -> Vec<Result<Vec<u8>, BadFrame>> {
    let own = |frame: Frame<'_>| match frame {
        Frame::Body(body) => Ok(body.to_vec()),
        Frame::Bad(bad) => Err(bad),
    };
    let mut decoder = Decoder::new(LIMIT);
    let mut frames = Vec::new();
    for piece in stream.chunks(step) {
        decoder.feed(piece);
        while let Some(frame) = decoder.next_frame() {
            frames.push(own(frame));
        }
    }
    frames.extend(decoder.finish().map(own));
    frames
}

/// The first byte says how the rest is cut into reads. However that is, the frames are the same,
/// and none is longer than the limit.
pub(crate) fn frames(data: &[u8]) {
    let Some((step, stream)) = data.split_first() else { return };
    let whole = decode(stream, stream.len().max(1));
    let cut = decode(stream, usize::from(*step).max(1));
    assert_eq!(whole, cut, "by {step}");
    for frame in whole {
        match frame {
            Ok(body) => assert!(body.len() <= LIMIT),
            Err(bad) => {
                let refusal = Malformed::from(bad);
                assert_eq!(refusal.error.code, -32700);
            }
        }
    }
}

/// A body is a message, or refused with the right code; ids are as they stood.
pub(crate) fn messages(data: &[u8]) {
    let json = serde_json::from_slice::<Value>(data).ok();
    match Incoming::parse(data) {
        Ok(Incoming::One(message)) => one(&message, data),
        Ok(Incoming::Batch(elements)) => {
            for element in elements {
                if let Ok(message) = Message::from_raw(element) {
                    one(&message, data);
                }
            }
        }
        // A number that no float can hold is JSON all the same, whatever serde_json says.
        Err(refusal) if refusal.error.code == -32600 => {}
        Err(refusal) => {
            assert_eq!(refusal.error.code, -32700);
            assert!(json.is_none(), "it is JSON: {}", data.escape_ascii());
        }
    }
}

/// A JSON text written to a peer that reads lines is one line, for every notion of a line, and means
/// the same.
pub(crate) fn one_line(data: &[u8]) {
    let mut line = Vec::new();
    Framing::Newline.encode(data, &mut line);
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert_eq!(line.last(), Some(&b'\n'));
    assert!(!line.contains(&b'\r'));
    let (Ok(text), Ok(line)) = (std::str::from_utf8(data), std::str::from_utf8(&line)) else {
        return;
    };
    assert!(!line.contains(['\u{85}', '\u{2028}', '\u{2029}']), "{line:?}");
    if Incoming::parse(data).is_ok() {
        assert_eq!(compact(line), compact(text));
    }
}

/// A JSON text without what stands between its tokens, separators in its strings escaped.
fn compact(text: &str) -> String {
    let (mut compact, mut in_string, mut escaped) = (String::new(), false, false);
    for letter in text.chars() {
        match letter {
            '\u{85}' | '\u{2028}' | '\u{2029}' => {
                compact += &format!("\\u{:04x}", u32::from(letter));
                continue;
            }
            '"' if !escaped => in_string = !in_string,
            ' ' | '\t' | '\r' | '\n' if !in_string => continue,
            _ => {}
        }
        escaped = in_string && letter == '\\' && !escaped;
        compact.push(letter);
    }
    compact
}

fn one(message: &Message<'_>, data: &[u8]) {
    let id = match message {
        Message::Request { id, .. } => Some(id),
        Message::Response { id, .. } => id.as_ref(),
        Message::Notification { .. } => None,
    };
    let stood = |id: &Id| data.windows(id.as_json().len()).any(|w| w == id.as_json().as_bytes());
    assert!(id.is_none_or(stood));
}

/// Both sides of a view: however their bytes are cut, what is understood is the same, and what was
/// understood is written as it was read.
pub(crate) fn views(data: &[u8]) {
    let Some((step, stream)) = data.split_first() else { return };
    let step = usize::from(*step).max(1);
    let (whole, cut) = (views_of(stream, stream.len().max(1)), views_of(stream, step));
    assert_eq!(whole, cut, "by {step}");
}

/// What the two sides read of a stream in pieces, and whether they gave up.
fn views_of(stream: &[u8], step: usize) -> (Vec<String>, bool, Vec<String>, bool) {
    let (mut to, mut from) = (ViewDecoder::default(), ViewDecoder::default());
    let (mut shown, mut said) = (Vec::new(), Vec::new());
    let (mut to_failed, mut from_failed) = (false, false);
    for piece in stream.chunks(step) {
        to.feed(piece);
        while !to_failed {
            match to.next_to_view() {
                Ok(Some(frame)) => {
                    let mut bytes = Vec::new();
                    frame.encode(&mut bytes);
                    let mut again = ViewDecoder::default();
                    again.feed(&bytes);
                    assert_eq!(again.next_to_view().ok().flatten().as_ref(), Some(&frame));
                    shown.push(format!("{frame:?}"));
                }
                Ok(None) => break,
                Err(_) => to_failed = true,
            }
        }
        from.feed(piece);
        while !from_failed {
            match from.next_from_view() {
                Ok(Some(frame)) => {
                    let mut bytes = Vec::new();
                    frame.encode(&mut bytes);
                    let mut again = ViewDecoder::default();
                    again.feed(&bytes);
                    assert_eq!(again.next_from_view().ok().flatten().as_ref(), Some(&frame));
                    said.push(format!("{frame:?}"));
                }
                Ok(None) => break,
                Err(_) => from_failed = true,
            }
        }
    }
    (shown, to_failed, said, from_failed)
}
