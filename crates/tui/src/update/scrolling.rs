//! Scrollback: moving, searching, selecting, copying.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use patterm_wire::tools::{GetRawOutput, RawOutputArgs};

use super::{CallPurpose, Effect, keys, notify};
use crate::action::typed;
use crate::layout::PaneId;
use crate::model::Model;
use crate::scroll::Scroll;

/// How much older output to request: some ten thousand lines, in one response.
const OLDER_BYTES: u64 = 2 << 20;

/// Opens the scrollback of a pane.
pub(super) fn begin(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    let Some(pane) = model.panes.get_mut(&id).filter(|pane| pane.scroll.is_none()) else { return };
    let height = pane.requested.map_or(24, |size| size.rows);
    let scroll = Scroll::of(&pane.screen, height);
    let since = scroll.end.saturating_sub(OLDER_BYTES);
    let args = RawOutputArgs {
        process_id: pane.process.clone(),
        since_offset: Some(since),
        max_bytes: scroll.end - since,
    };
    effects.push(Effect::call::<GetRawOutput>(&args, CallPurpose::Older(id)));
    pane.scroll = Some(scroll);
}

/// A key in the scrollback.
pub(super) fn key(model: &mut Model, key: &Key, effects: &mut Vec<Effect>) {
    let focus = model.focus;
    let Some(pane) = model.panes.get_mut(&focus) else { return };
    let Some(mut scroll) = pane.scroll.take() else { return };
    let step =
        if scroll.typing { search_key(&mut scroll, key) } else { move_key(&mut scroll, key) };
    match step {
        Step::Stay => pane.scroll = Some(scroll),
        Step::NotFound => {
            let text = format!("`{}` was not found", scroll.search);
            pane.scroll = Some(scroll);
            notify(model, &text, true);
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
        1 => format!("copied {characters} characters"),
        _ => format!("copied {lines} lines"),
    };
    notify(model, &notice, false);
    effects.push(Effect::Copy(text));
}

enum Step {
    Stay,
    Leave,
    NotFound,
    Copy,
}

fn search_key(scroll: &mut Scroll, key: &Key) -> Step {
    match key.code {
        KeyCode::Escape => {
            scroll.typing = false;
            scroll.search.clear();
        }
        KeyCode::Enter => {
            scroll.typing = false;
            if !scroll.search.is_empty() && !scroll.find(true) {
                return Step::NotFound;
            }
        }
        _ => keys::edit_line(key, &mut scroll.search),
    }
    Step::Stay
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
        'g' => scroll.go((0, 0)),
        'G' => scroll.go((usize::MAX, 0)),
        '/' | '?' => {
            scroll.typing = true;
            scroll.search.clear();
        }
        'n' | 'N' if !scroll.find(letter == 'n') => return Step::NotFound,
        ' ' | 'v' | 'V' => {
            scroll.by_rows = letter == 'V';
            scroll.anchor = Some(scroll.cursor);
        }
        'y' => {
            // Without a selection, the row.
            if scroll.anchor.is_none() {
                (scroll.anchor, scroll.by_rows) = (Some(scroll.cursor), true);
            }
            return Step::Copy;
        }
        _ => {}
    }
    Step::Stay
}
