//! Draws a model.

#[cfg(test)]
mod condition_tests;
mod dashboard;
#[cfg(test)]
mod dashboard_tests;
mod digest;
#[cfg(test)]
mod every_view_tests;
mod labels;
#[cfg(test)]
mod larger_tests;
mod logs;
#[cfg(test)]
mod logs_tests;
mod overlay;
mod overview;
#[cfg(test)]
mod page_tests;
mod pages;
mod pane;
mod past;
#[cfg(test)]
mod past_tests;
mod prompt;
mod restore;
mod status;
mod style;
#[cfg(test)]
mod tests;
mod tree;
mod trust;
mod welcome;

use crate::canvas::Canvas;
use crate::model::{Mode, Model};

pub(crate) use dashboard::{DashboardPlace, place_at as dashboard_at};
pub(crate) use digest::digest_line;
pub(crate) use logs::log_rows;
pub(crate) use overlay::{LEADER_MS, last_top, list_row};
pub(crate) use overview::overview_place;
pub(crate) use pages::page_at;
pub(crate) use pane::{PlainPane, plain_panes, redraw};
pub(crate) use past::{moment_at, time_of};
pub(crate) use restore::offer_row;
pub(crate) use tree::process_at as tree_row;
pub(crate) use trust::body as trust_body;

/// Draws everything.
pub(crate) fn view(model: &Model) -> Canvas {
    let mut canvas = Canvas::new(model.width, model.height);
    if model.width < 2 || model.height < 2 {
        return canvas;
    }
    tree::draw(model, &mut canvas);
    match model.panes.is_empty() {
        true => welcome::draw(model, &mut canvas),
        false => pane::draw(model, &mut canvas),
    }
    status::draw(model, &mut canvas);
    if model.mode != Mode::Typing {
        overlay::draw(model, &mut canvas);
    }
    status::draw_hung(model, &mut canvas);
    canvas
}
