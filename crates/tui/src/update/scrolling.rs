//! Scrollback: moving, searching, selecting, copying.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use patterm_wire::tools::{GetRawOutput, RawOutputArgs};

use super::{CallPurpose, Effect, keys, notify};
use crate::action::typed;
use crate::layout::PaneId;
use crate::model::Model;
use crate::scroll::{Scroll, Shape, WordMove};
use crate::send;

/// How much older output to request: some ten thousand lines, in one response.
const OLDER_BYTES: u64 = 2 << 20;

/// Opens the scrollback of a pane.
pub(super) fn begin(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    let Some(pane) = model.panes.get_mut(&id).filter(|pane| pane.scroll.is_none()) else { return };
    let height = pane.requested.map_or(24, |size| size.rows);
    let mut scroll = Scroll::of(&pane.screen, height);
    scroll.loads = true;
    let since = scroll.end.saturating_sub(OLDER_BYTES);
    let args = RawOutputArgs {
        process_id: pane.process.clone(),
        since_offset: Some(since),
        max_bytes: scroll.end - since,
    };
    effects.push(Effect::call::<GetRawOutput>(&args, CallPurpose::Older(id)));
    pane.scroll = Some(scroll);
}

/// Opens the scrollback of a pane at a place in its output.
pub(super) fn begin_at(model: &mut Model, id: PaneId, offset: u64, effects: &mut Vec<Effect>) {
    if let Some(pane) = model.panes.get_mut(&id) {
        pane.scroll = None;
    }
    begin(model, id, effects);
    if let Some(scroll) = model.panes.get_mut(&id).and_then(|pane| pane.scroll.as_mut()) {
        scroll.wanted = Some(offset);
    }
}

/// A key in the scrollback.
pub(super) fn key(model: &mut Model, key: &Key, effects: &mut Vec<Effect>) {
    let focus = model.focus;
    let Some(pane) = model.panes.get_mut(&focus) else { return };
    let Some(mut scroll) = pane.scroll.take() else { return };
    let step =
        if scroll.typing { search_key(&mut scroll, key) } else { counted_key(&mut scroll, key) };
    match step {
        Step::Stay => pane.scroll = Some(scroll),
        Step::NotFound => {
            let text = format!("`{}` was not found", scroll.search);
            pane.scroll = Some(scroll);
            notify(model, &text, true);
        }
        Step::NoCommand => {
            pane.scroll = Some(scroll);
            notify(model, "the shell does not mark its commands (OSC 133)", true);
        }
        Step::Leave => {}
        Step::Copy => copy(model, &scroll, effects),
    }
}

/// Copies the selection.
pub(super) fn copy(model: &mut Model, scroll: &Scroll, effects: &mut Vec<Effect>) {
    let text = scroll.selected();
    if text.is_empty() {
        return;
    }
    let (lines, characters) = (text.lines().count(), text.chars().count());
    let notice = match lines {
        1 if characters == 1 => "copied 1 character".into(),
        1 => format!("copied {characters} characters"),
        _ => format!("copied {lines} lines"),
    };
    notify(model, &notice, false);
    model.buffer = Some(text.clone());
    effects.push(Effect::Copy(text));
}

/// Types the last copy into the pane with the focus.
pub(super) fn paste(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(text) = &model.buffer else {
        notify(model, "nothing has been copied yet", false);
        return;
    };
    let Some(pane) = model.focused_pane() else { return };
    // A terminal sends the Enter key for the end of a line.
    let bytes = text.replace('\n', "\r").into_bytes();
    let bytes = send::paste(&bytes, &pane.screen.modes());
    effects.push(Effect::Send(model.focus, bytes));
    (model.sent_at, model.sent_line) = (Some(model.now), false);
}

enum Step {
    Stay,
    Leave,
    NotFound,
    NoCommand,
    Copy,
}

fn search_key(scroll: &mut Scroll, key: &Key) -> Step {
    match key.code {
        KeyCode::Escape => {
            scroll.typing = false;
            scroll.search.clear();
            scroll.update_matches();
        }
        KeyCode::Enter => {
            scroll.typing = false;
            if !scroll.search.is_empty() && !scroll.find(true) {
                return Step::NotFound;
            }
        }
        _ => {
            keys::edit_line(key, &mut scroll.search);
            scroll.update_matches();
        }
    }
    Step::Stay
}

/// The most repetitions: more than a history has rows that anybody moves through.
const MOST_REPEATS: usize = 9_999;

/// A digit of a count, or a key that is repeated as often as the count says.
fn counted_key(scroll: &mut Scroll, key: &Key) -> Step {
    let count = scroll.count.take();
    let digit = match key.code {
        KeyCode::Char(character) if !key.ctrl && !key.alt => character.to_digit(10),
        _ => None,
    };
    let digit = digit.and_then(|digit| usize::try_from(digit).ok());
    // By itself, 0 goes to the beginning of the row.
    if let Some(digit) = digit.filter(|digit| *digit > 0 || count.is_some()) {
        let typed = count.unwrap_or(0).saturating_mul(10).saturating_add(digit);
        scroll.count = Some(typed.min(MOST_REPEATS));
        return Step::Stay;
    }
    match (count, key.code) {
        // It ends only the count.
        (Some(_), KeyCode::Escape) => return Step::Stay,
        (Some(count), _) if is_repeated(key) => {
            for _ in 1..count {
                let before = (scroll.cursor, scroll.top);
                let step = move_key(scroll, key);
                if !matches!(step, Step::Stay) {
                    return step;
                }
                // At the edge.
                if before == (scroll.cursor, scroll.top) {
                    break;
                }
            }
        }
        _ => {}
    }
    move_key(scroll, key)
}

/// Whether a key moves from where the cursor is, so that a count before it repeats it.
fn is_repeated(key: &Key) -> bool {
    match key.code {
        KeyCode::Up | KeyCode::Down | KeyCode::Left | KeyCode::Right => true,
        KeyCode::PageUp | KeyCode::PageDown => true,
        KeyCode::Char(character) if key.ctrl => matches!(character, 'u' | 'd' | 'b' | 'f'),
        KeyCode::Char(character) => {
            matches!(
                typed(character, key.shift),
                'h' | 'j' | 'k' | 'l' | 'w' | 'e' | 'b' | 'n' | 'N'
            )
        }
        _ => false,
    }
}

fn move_key(scroll: &mut Scroll, key: &Key) -> Step {
    let page = scroll.height.saturating_sub(1).max(1) as isize;
    match key.code {
        KeyCode::Escape if scroll.anchor.is_some() => scroll.anchor = None,
        KeyCode::Escape => return Step::Leave,
        KeyCode::Up => scroll.move_by(-1, 0),
        KeyCode::Down => scroll.move_by(1, 0),
        KeyCode::Left => scroll.move_by(0, -1),
        KeyCode::Right => scroll.move_by(0, 1),
        KeyCode::PageUp => scroll.move_by(-page, 0),
        KeyCode::PageDown => scroll.move_by(page, 0),
        KeyCode::Home => scroll.go((scroll.cursor.0, 0)),
        KeyCode::End => scroll.go((scroll.cursor.0, usize::MAX)),
        KeyCode::Enter => return if scroll.anchor.is_some() { Step::Copy } else { Step::Leave },
        KeyCode::Char(character) if key.ctrl => match character {
            'c' => return Step::Leave,
            'u' => scroll.move_by(-page / 2, 0),
            'd' => scroll.move_by(page / 2, 0),
            'b' => scroll.move_by(-page, 0),
            'f' => scroll.move_by(page, 0),
            'v' => scroll.begin_selection(Shape::Block),
            _ => {}
        },
        KeyCode::Char(character) => return letter(scroll, typed(character, key.shift)),
        _ => {}
    }
    Step::Stay
}

fn letter(scroll: &mut Scroll, letter: char) -> Step {
    match letter {
        'q' => return Step::Leave,
        'k' => scroll.move_by(-1, 0),
        'j' => scroll.move_by(1, 0),
        'h' => scroll.move_by(0, -1),
        'l' => scroll.move_by(0, 1),
        '0' => scroll.go((scroll.cursor.0, 0)),
        '$' => scroll.go((scroll.cursor.0, usize::MAX)),
        '^' => scroll.go_to_text(),
        'w' => scroll.move_word(WordMove::NextBegin),
        'e' => scroll.move_word(WordMove::NextEnd),
        'b' => scroll.move_word(WordMove::PreviousBegin),
        'H' => scroll.go_to_shown(0),
        'M' => scroll.go_to_shown(scroll.height / 2),
        'L' => scroll.go_to_shown(usize::MAX),
        'g' => scroll.go((0, 0)),
        'G' => scroll.go((usize::MAX, 0)),
        '/' | '?' => {
            scroll.typing = true;
            scroll.search.clear();
            scroll.update_matches();
        }
        'n' | 'N' if !scroll.find(letter == 'n') => return Step::NotFound,
        ' ' => (scroll.anchor, scroll.shape) = (Some(scroll.cursor), Shape::Text),
        'v' => scroll.begin_selection(Shape::Text),
        'V' => scroll.begin_selection(Shape::Rows),
        'o' if !scroll.select_command() && !scroll.loads => return Step::NoCommand,
        'y' => {
            // Without a selection, the row.
            if scroll.anchor.is_none() {
                (scroll.anchor, scroll.shape) = (Some(scroll.cursor), Shape::Rows);
            }
            return Step::Copy;
        }
        _ => {}
    }
    Step::Stay
}
