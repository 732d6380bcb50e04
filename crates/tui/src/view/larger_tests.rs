//! A pane whose program has the size of a larger terminal.

use patterm_wire::view::{ToView, ViewSize};

use super::view;
use crate::sample::Sample;
use crate::update::Event;

/// A terminal of 80×24 whose program has 50 rows of 200 columns, with this text.
fn larger(text: &str) -> Sample {
    let mut sample = Sample::new(80, 24);
    let size = ViewSize { rows: 50, columns: 200 };
    let frame = ToView::Snapshot { offset: 0, size, bytes: text.as_bytes().to_vec() };
    sample.handle(Event::Frame(sample.model.focus, frame));
    sample
}

#[test]
fn the_part_with_the_cursor_is_shown() {
    let at_the_top = view(&larger("top\x1b[2;1H").model);
    assert!(at_the_top.text().contains("top"));
    let sample = larger("top\x1b[50;195H日end");
    let shown = view(&sample.model);
    assert!(shown.text().contains("end") && !shown.text().contains("top"), "{}", shown.text());
    let caret = shown.caret.unwrap();
    assert!(shown.row(caret.y).iter().any(|cell| cell.character == '日'), "{}", shown.text());
}

#[test]
fn a_wide_character_at_the_edge_is_cut() {
    // The first column in view is in the middle of it.
    let mut sample = larger("");
    let pane = sample.model.focus;
    let columns = sample.model.panes[&pane].requested.unwrap().columns;
    let text = format!("日rest\x1b[1;{}H", columns + 1);
    let size = ViewSize { rows: 50, columns: 200 };
    let frame = ToView::Snapshot { offset: 0, size, bytes: text.into_bytes() };
    sample.handle(Event::Frame(pane, frame));
    let text = view(&sample.model).text();
    assert!(text.contains(" rest") && !text.contains('日'), "{text}");
}
