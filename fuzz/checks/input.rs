//! What must hold of what the person's terminal sends, for any bytes. The fuzz target and the test that
//! replays the corpus share it.

use patterm_screen::input::{InputEvent, InputParser};

fn tokens(stream: &[u8], step: usize) -> Vec<InputEvent> {
    let mut parser = InputParser::default();
    let mut seen: Vec<InputEvent> = Vec::new();
    let mut note = |token: InputEvent| match (seen.last_mut(), token) {
        // A long paste is handed on in pieces.
        (Some(InputEvent::Paste(before)), InputEvent::Paste(text)) => before.extend(text),
        (_, token) => seen.push(token),
    };
    for piece in stream.chunks(step) {
        parser.feed(piece);
        std::iter::from_fn(|| parser.next_event()).for_each(&mut note);
    }
    std::iter::from_fn(|| parser.flush()).for_each(&mut note);
    seen
}

/// The first byte says how the rest is cut into reads. However that is, the tokens are the same; keys
/// are the bytes that came, in their order, and none is made up.
pub(crate) fn input(data: &[u8]) {
    let Some((step, stream)) = data.split_first() else { return };
    let whole = tokens(stream, stream.len().max(1));
    assert_eq!(whole, tokens(stream, usize::from(*step).max(1)), "by {step}");
    let mut rest = stream;
    for token in &whole {
        let bytes = match token {
            InputEvent::Key(stroke) => &stroke.raw,
            InputEvent::Paste(text) => text,
            _ => continue,
        };
        let at = rest.windows(bytes.len().max(1)).position(|part| part == bytes.as_slice());
        let at = if bytes.is_empty() { Some(0) } else { at };
        rest = &rest[at.unwrap_or_else(|| panic!("{token:?} never came")) + bytes.len()..];
    }
    if whole.iter().all(|token| matches!(token, InputEvent::Key(_))) {
        let keys = whole.iter().map(|token| match token {
            InputEvent::Key(stroke) => stroke.raw.len(),
            _ => 0,
        });
        // A mark of a paste's end without a beginning is let go; nothing else is.
        let ends = stream.windows(6).filter(|part| *part == b"\x1b[201~").count() * 6;
        let begins = stream.windows(6).filter(|part| *part == b"\x1b[200~").count();
        let kept: usize = keys.sum();
        assert!(begins > 0 || kept + ends >= stream.len(), "{kept} of {}", stream.len());
    }
}
