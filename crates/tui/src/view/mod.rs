//! Draws a model.

#[cfg(test)]
mod every_view_tests;
mod overlay;
mod pane;
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

pub(crate) use overlay::{last_top, list_row};
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
    canvas
}
