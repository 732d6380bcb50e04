//! What happened while the user was away. It opens by itself only while nothing is typed, and passes every key on that
//! may have been meant for a pane.

use patterm_screen::Key;
use patterm_screen::input::{InputEvent, MouseEvent};
use patterm_screen::keys::KeyCode;
use patterm_wire::digest::{
    Digest, DigestRequest, LineTarget, LookedRequest, NoteLooked, ReadDigest, Viewer,
};
use patterm_wire::events::parse_time;

use super::{CallPurpose, Effect, keyboard, notify, panes, scrolling};
use crate::action::Action;
use crate::away::{Absence, DigestPanel, Jump};
use crate::layout::PaneId;
use crate::model::{Mode, Model, Pane};
use crate::view;

/// How often the server is told that the user looks, while the user types.
const NOTE_MS: u64 = 60_000;

/// How long a panel that opened by itself must be visible before a key is meant for it.
const LOOK_MS: u64 = 1_000;

/// How far page up and page down go.
const PAGE: isize = 10;

const MINUTE_MS: u64 = 60_000;

/// The TUI is connected to a server, for the first time or again.
pub(super) fn connected(model: &mut Model, is_first: bool, effects: &mut Vec<Effect>) {
    if is_first {
        model.away.here_at = Some(model.now);
    }
    if is_first || model.away.absence == Absence::Wanted {
        returned(model, effects);
    }
}

/// The user is back: what happened since the last look?
fn returned(model: &mut Model, effects: &mut Vec<Effect>) {
    model.away.absence = Absence::Requested;
    let request = DigestRequest { viewer: Some(Viewer::Tui), ..DigestRequest::default() };
    effects.push(Effect::call::<ReadDigest>(&request, CallPurpose::Digest { by_user: false }));
}

/// The user wants to see it, again if there was one.
pub(super) fn open(model: &mut Model, effects: &mut Vec<Effect>) {
    keyboard::note_request(model);
    let request = match model.away.began_ms {
        Some(since_ms) => DigestRequest { since_ms: Some(since_ms), ..DigestRequest::default() },
        None => DigestRequest { viewer: Some(Viewer::Tui), ..DigestRequest::default() },
    };
    effects.push(Effect::call::<ReadDigest>(&request, CallPurpose::Digest { by_user: true }));
}

/// Input arrives: the user is here, and may have been away.
pub(super) fn note_input(model: &mut Model, token: &InputEvent, effects: &mut Vec<Effect>) {
    let is_user =
        token.is_typed() || matches!(token, InputEvent::Focus(true) | InputEvent::Mouse(_));
    if !is_user {
        return;
    }
    if token.is_typed() {
        model.away.jump = None;
    }
    let before = model.away.here_at.replace(model.now);
    let limit = u64::from(model.settings.digest_minutes) * MINUTE_MS;
    match &mut model.away.absence {
        Absence::Ready { waits, .. } => *waits = true,
        Absence::Requested | Absence::Wanted | Absence::Unknown => {}
        Absence::Over if matches!(model.mode, Mode::Digest(_)) => {}
        Absence::Over => {
            let was_away = before.is_some_and(|before| model.now.saturating_sub(before) >= limit);
            if was_away && limit > 0 && model.connected {
                return returned(model, effects);
            }
            let noted = model.away.noted_at;
            if noted.is_none_or(|noted| model.now.saturating_sub(noted) >= NOTE_MS) {
                note_looked(model, None, effects);
            }
        }
    }
}

/// Tells the server what the user has seen; everything until now, unless it is a digest.
fn note_looked(model: &mut Model, shown: Option<(u64, String)>, effects: &mut Vec<Effect>) {
    if model.connected {
        model.away.noted_at = Some(model.now);
        let request = LookedRequest { viewer: Viewer::Tui, shown };
        effects.push(Effect::call::<NoteLooked>(&request, CallPurpose::Looked));
    }
}

/// The server's digest.
pub(super) fn answered(model: &mut Model, by_user: bool, digest: Digest) {
    if by_user {
        if !keyboard::is_late(model) {
            model.mode = Mode::Digest(DigestPanel::new(&digest, None));
        }
        return;
    }
    model.away.absence = Absence::Over;
    model.away.began_ms = digest.from.as_deref().and_then(parse_time);
    let limit = u64::from(model.settings.digest_minutes) * MINUTE_MS;
    let is_long = limit > 0 && digest.covers_ms().is_some_and(|covers| covers >= limit);
    if !is_long || digest.is_empty() {
        return;
    }
    let needs = digest.needs_you.len();
    model.away.absence = Absence::Ready { digest: Box::new(digest), waits: true };
    if keyboard::is_busy(model) {
        let key = model.settings.keys.press(Action::Digest);
        let what = match needs {
            0 => "things happened while you were away".to_owned(),
            1 => "while you were away: 1 thing needs you".to_owned(),
            needs => format!("while you were away: {needs} things need you"),
        };
        notify(model, &format!("{what} ({key})"), false);
    }
}

/// There is no digest.
pub(super) fn failed(model: &mut Model, is_unknown: bool) {
    model.away.absence = if is_unknown { Absence::Unknown } else { Absence::Wanted };
}

/// The pause after the last key is over.
pub(super) fn paused(model: &mut Model) {
    if let Absence::Ready { waits, .. } = &mut model.away.absence {
        *waits = false;
    }
}

/// Shows a digest that is ready, if the user does nothing else.
pub(super) fn show_if_free(model: &mut Model) {
    if !matches!(model.away.absence, Absence::Ready { .. }) || keyboard::is_busy(model) {
        return;
    }
    if let Absence::Ready { digest, .. } = std::mem::take(&mut model.away.absence) {
        model.mode = Mode::Digest(DigestPanel::new(&digest, Some(model.now)));
    }
}

/// Before a key or a paste is handled: a panel that opened by itself closes if it may have been meant for a pane.
pub(super) fn let_through(model: &mut Model, key: Option<&Key>, effects: &mut Vec<Effect>) {
    let Mode::Digest(DigestPanel { by_itself_at: Some(at), .. }) = &model.mode else { return };
    let was_seen = model.now >= at.saturating_add(LOOK_MS);
    if was_seen && key.is_some_and(is_own_key) {
        return;
    }
    close(model, effects);
    let press = model.settings.keys.press(Action::Digest);
    notify(model, &format!("{press} shows again what happened while you were away"), false);
}

fn is_own_key(key: &Key) -> bool {
    let plain = !key.ctrl && !key.alt && !key.logo;
    let moves = matches!(
        key.code,
        KeyCode::Up
            | KeyCode::Down
            | KeyCode::PageUp
            | KeyCode::PageDown
            | KeyCode::Home
            | KeyCode::End
            | KeyCode::Enter
            | KeyCode::Escape
    );
    plain && moves
}

/// A key while the panel is open.
pub(super) fn key(model: &mut Model, key: &Key, effects: &mut Vec<Effect>) {
    let Mode::Digest(panel) = &mut model.mode else { return };
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => panel.step(-1),
        KeyCode::Down | KeyCode::Tab | KeyCode::Char('j') => panel.step(1),
        KeyCode::PageUp => panel.step(-PAGE),
        KeyCode::PageDown => panel.step(PAGE),
        KeyCode::Home => panel.step(isize::MIN),
        KeyCode::End => panel.step(isize::MAX),
        KeyCode::Enter => go(model, effects),
        KeyCode::Escape | KeyCode::Char('q') => close(model, effects),
        KeyCode::Char('c') if key.ctrl => close(model, effects),
        _ => {}
    }
}

/// The mouse over the panel: a click on a line goes there, one outside closes it.
pub(super) fn mouse(model: &mut Model, event: MouseEvent, effects: &mut Vec<Effect>) {
    let line = view::digest_line(model, event.x, event.y);
    let Mode::Digest(panel) = &mut model.mode else { return };
    if let Some(rows) = event.wheel() {
        return panel.step(rows.signum() as isize);
    }
    if !event.pressed_left() {
        return;
    }
    match line {
        Some(at) if panel.lines.get(at).is_some_and(|line| line.target.is_some()) => {
            panel.chosen = at;
            go(model, effects);
        }
        Some(_) => {}
        None => close(model, effects),
    }
}

/// Closes the panel: the user has seen it.
fn close(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Mode::Digest(panel) = std::mem::take(&mut model.mode) {
        note_looked(model, Some(panel.shown), effects);
    }
}

/// Goes to the place of the chosen line.
fn go(model: &mut Model, effects: &mut Vec<Effect>) {
    let Mode::Digest(panel) = &model.mode else { return };
    let target = panel.lines.get(panel.chosen).and_then(|line| line.target.clone());
    let Some(LineTarget { process_id, run, offset }) = target else { return };
    close(model, effects);
    let Some(process) = model.process(&process_id) else {
        return notify(model, &format!("{process_id} was closed"), false);
    };
    let is_its_run = run == Some(process.runs);
    panes::show(model, &process_id, effects);
    model.away.jump =
        offset.filter(|_| is_its_run).map(|offset| Jump { process: process_id, offset });
    scroll(model, model.focus, effects);
}

/// Scrolls to the place that the user has chosen, once the pane shows its process.
pub(super) fn scroll(model: &mut Model, id: PaneId, effects: &mut Vec<Effect>) {
    let Some(jump) = &model.away.jump else { return };
    let shows = |pane: &Pane| pane.live && pane.process == jump.process;
    if model.focus == id
        && model.panes.get(&id).is_some_and(shows)
        && let Some(Jump { offset, .. }) = model.away.jump.take()
    {
        scrolling::begin_at(model, id, offset, effects);
    }
}
