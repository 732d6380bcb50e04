//! The pages in the status bar, if there are several.

use crate::canvas::{Canvas, text_width};
use crate::model::{Mode, Model};

/// The texts of the pages, each with its number, as they fit into a width: with all names, with the current
/// page's name, or only the current page.
fn tabs(model: &Model, width: usize) -> Vec<(u32, String, bool)> {
    let titles = model.page_titles();
    let shown = |with_names: bool| -> Vec<(u32, String, bool)> {
        let tabs = titles.iter().map(|(number, title, is_current)| {
            let star = if *is_current { "*" } else { "" };
            let text = match with_names || *is_current {
                true => format!("{number}:{title}{star}"),
                false => number.to_string(),
            };
            (*number, text, *is_current)
        });
        tabs.collect()
    };
    let fits = |tabs: &Vec<(u32, String, bool)>| {
        tabs.iter().map(|(_, text, _)| text_width(text) + 1).sum::<usize>() <= width
    };
    let only_current = || shown(false).into_iter().filter(|(.., is_current)| *is_current).collect();
    [shown(true), shown(false)].into_iter().find(fits).unwrap_or_else(only_current)
}

/// Whether the pages are shown.
fn is_shown(model: &Model) -> bool {
    let has_notice = model.notice.is_some() || model.mode != Mode::Typing;
    model.pages.len() > 1 && !has_notice
}

/// The pages with their columns.
fn places(model: &Model) -> Vec<(u32, u16, String, bool)> {
    if !is_shown(model) {
        return Vec::new();
    }
    let mut x = 1;
    let place = |(number, text, is_current): (u32, String, bool)| {
        let at = x;
        x += text_width(&text) as u16 + 1;
        (number, at, text, is_current)
    };
    tabs(model, usize::from(model.width / 2)).into_iter().map(place).collect()
}

/// The number of the page at a column of the status bar.
pub(crate) fn page_at(model: &Model, x: u16) -> Option<u32> {
    let has_it = |at: u16, text: &str| (at..at + text_width(text) as u16).contains(&x);
    let found = places(model).into_iter().find(|(_, at, text, _)| has_it(*at, text));
    found.map(|(number, ..)| number)
}

/// Draws the pages; returns the column where the rest of the status bar begins.
pub(super) fn draw(model: &Model, canvas: &mut Canvas) -> u16 {
    let y = model.height - 1;
    let mut x = 1;
    for (_, at, text, is_current) in places(model) {
        let mut style = model.theme().bar.clone();
        if is_current {
            style.attributes = style.attributes | patterm_screen::Attributes::BOLD;
        }
        x = canvas.put(at, y, model.width, &text, &style) + 2;
    }
    x
}
