//! The overview of all projects: moving in it, jumping to a project, answering a question there.

use patterm_screen::Key;
use patterm_screen::input::MouseEvent;
use patterm_screen::keys::KeyCode;

use super::{Effect, answering, notify, panes};
use crate::action::typed;
use crate::model::{ListKind, Mode, Model};
use crate::overview::{Overview, OverviewEvent, OverviewRow, Place, ProjectState};
use crate::saved_layout::SavedLayout;
use crate::view;

/// Rows of a page up or down.
const PAGE: isize = 10;

/// Opens the overview, with the project that was shown before this one chosen: Enter goes back.
pub(super) fn open(model: &mut Model, effects: &mut Vec<Effect>) {
    let key = model.last_project.as_ref().unwrap_or(&model.project_key).clone();
    look(model, effects);
    model.mode = Mode::Overview(Place { key, process: None });
}

/// Connects to all projects.
pub(super) fn look(model: &mut Model, effects: &mut Vec<Effect>) {
    model.overview = Some(Overview::default());
    effects.push(Effect::OpenOverview);
}

/// Ends the connections of the overview once the user does something else.
pub(super) fn close_if_left(model: &mut Model, effects: &mut Vec<Effect>) {
    let is_open = match &model.mode {
        Mode::Overview(_) | Mode::Answer(_) => true,
        // It names the agents of other projects too.
        Mode::List { kind, .. } => *kind == ListKind::Attention,
        _ => false,
    };
    if !is_open && model.overview.take().is_some() {
        effects.push(Effect::CloseOverview);
    }
}

/// Handles news about the servers.
pub(super) fn take(model: &mut Model, event: OverviewEvent) {
    let Some(overview) = &mut model.overview else { return };
    match event {
        OverviewEvent::Servers(servers) => overview.set_servers(servers),
        OverviewEvent::Snapshot(key, snapshot) => {
            overview.set_state(&key, ProjectState::Live(snapshot));
        }
        OverviewEvent::Hung(key, advice) => overview.set_state(&key, ProjectState::Hung(advice)),
    }
    answering::refresh(model);
}

/// A key while the overview is open.
pub(super) fn key(model: &mut Model, place: &Place, key: &Key, effects: &mut Vec<Effect>) {
    match key.code {
        KeyCode::Up => step(model, place, -1),
        KeyCode::Down | KeyCode::Tab => step(model, place, 1),
        KeyCode::PageUp => step(model, place, -PAGE),
        KeyCode::PageDown => step(model, place, PAGE),
        KeyCode::Home => step(model, place, isize::MIN),
        KeyCode::End => step(model, place, isize::MAX),
        KeyCode::Enter => go_to(model, place, effects),
        KeyCode::Right => answer(model, place),
        KeyCode::Char(letter) if !key.ctrl && !key.alt => match typed(letter, key.shift) {
            'k' => step(model, place, -1),
            'j' => step(model, place, 1),
            'a' => answer(model, place),
            'L' => go_back(model, effects),
            'q' => {}
            _ => model.mode = Mode::Overview(place.clone()),
        },
        _ => model.mode = Mode::Overview(place.clone()),
    }
}

/// Chooses the place that is this many places away.
fn step(model: &mut Model, place: &Place, by: isize) {
    let rows = model.overview.as_ref().map(Overview::rows).unwrap_or_default();
    let places: Vec<Place> = rows.iter().filter_map(OverviewRow::place).collect();
    let now = model.overview.as_ref().map_or(0, |overview| overview.row_of(place));
    let now = rows.iter().take(now).filter_map(OverviewRow::place).count();
    let next = now.saturating_add_signed(by).min(places.len().saturating_sub(1));
    model.mode = Mode::Overview(places.get(next).unwrap_or(place).clone());
}

/// Opens the question of a process, to answer it here.
fn answer(model: &mut Model, place: &Place) {
    model.mode = Mode::Overview(place.clone());
    let process = model.overview.as_ref().and_then(|overview| overview.process(place)).cloned();
    match process {
        Some(process) => answering::open(model, Some(place.key.clone()), &process),
        None => notify(model, "choose an agent that is asking something", false),
    }
}

/// Shows a place: in this project, or in another one, to whose server the TUI switches.
pub(super) fn go_to(model: &mut Model, place: &Place, effects: &mut Vec<Effect>) {
    // What is shown may have ended since.
    let overview = model.overview.as_ref();
    let rows = overview.map(Overview::rows).unwrap_or_default();
    let row = overview.map_or(0, |overview| overview.row_of(place));
    let Some(place) = rows.get(row).and_then(OverviewRow::place) else { return };
    let project = overview.and_then(|overview| overview.project(&place.key));
    if let Some(ProjectState::Hung(advice)) = project.map(|project| &project.state) {
        let text = format!("its server does not answer: {advice}");
        model.mode = Mode::Overview(place);
        return notify(model, &text, true);
    }
    match place.key == model.project_key {
        true => {
            if let Some(id) = place.process.filter(|id| model.process(id).is_some()) {
                panes::show(model, &id, effects);
            }
        }
        false => effects.push(Effect::Switch { key: place.key, process: place.process }),
    }
}

/// Goes back to the project that was shown before this one.
fn go_back(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.last_project.clone() {
        Some(key) => go_to(model, &Place { key, process: None }, effects),
        None => notify(model, "no other project was shown before this one", false),
    }
}

/// A click chooses a place, and on the chosen one goes there; the wheel moves.
pub(super) fn mouse(
    model: &mut Model,
    place: &Place,
    event: MouseEvent,
    effects: &mut Vec<Effect>,
) {
    if let Some(rows) = event.wheel() {
        step(model, place, rows.signum() as isize);
    } else if event.pressed_left() {
        match view::overview_place(model, event.x, event.y) {
            Some(clicked) if clicked == *place => {
                model.mode = Mode::Typing;
                go_to(model, place, effects);
            }
            Some(clicked) => model.mode = Mode::Overview(clicked),
            None => {}
        }
    }
}

/// The TUI shows another project from now on.
#[derive(Debug)]
pub(crate) struct Switched {
    /// Its key.
    pub(crate) key: String,
    /// The key of the previous project.
    pub(crate) from: String,
    /// The process to show.
    pub(crate) process: Option<String>,
    pub(crate) layout: Option<SavedLayout>,
    /// Why it is shown again, if it is.
    pub(crate) why: Option<String>,
}

/// Begins again with another project. What belongs to the user and not to the project stays.
pub(super) fn switched(model: &mut Model, to: Switched) {
    let Switched { key, from, process, layout, why } = to;
    let mut next = Model::new(model.width, model.height, process);
    std::mem::swap(&mut next.settings, &mut model.settings);
    next.settings_error = model.settings_error.take();
    next.buffer = model.buffer.take();
    std::mem::swap(&mut next.tmux_prefixes, &mut model.tmux_prefixes);
    std::mem::swap(&mut next.settings_path, &mut model.settings_path);
    (next.focused, next.now) = (model.focused, model.now);
    next.utc_offset = model.utc_offset;
    (next.tree_hidden, next.tree_width) = match &layout {
        Some(layout) => (layout.tree_hidden, layout.tree_width),
        None => (model.tree_hidden, model.tree_width),
    };
    next.saved_layout = layout;
    (next.project_key, next.last_project) = (key, Some(from));
    next.consumed_keys = std::mem::take(&mut model.consumed_keys);
    *model = next;
    if let Some(why) = why {
        notify(model, &why, true);
    }
}
