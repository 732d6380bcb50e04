//! Frames of pages, and of what arranges panes.

use patterm_wire::view::{ToView, ViewSize};

use super::tests::check;
use crate::sample::Sample;
use crate::update::Event;

/// A page with three panes, and a second page.
fn two_pages(sample: &mut Sample) {
    sample.type_in("\x02|2\r\x02-3\r\x02|5\r\x02!\x02,logs\r");
    let pane = sample.model.focus;
    sample.show(pane, "$ tail -f log");
}

#[test]
fn pages() {
    check("pages", two_pages);
    check("page-list", |sample| {
        two_pages(sample);
        sample.type_in("\x02w");
    });
    check("page-name", |sample| {
        two_pages(sample);
        sample.type_in("\x02,");
    });
    check("page-close", |sample| {
        two_pages(sample);
        sample.type_in("\x02&");
    });
    check("page-join", |sample| {
        two_pages(sample);
        sample.type_in("\x02J");
    });
    check("page-move", |sample| {
        two_pages(sample);
        sample.type_in("\x02.");
    });
}

#[test]
fn what_to_put_into_a_new_pane() {
    check("split-choice", |sample| {
        sample.type_in("\x02|");
    });
    check("process-choice", |sample| {
        two_pages(sample);
        sample.type_in("\x02s");
    });
}

#[test]
fn keys_for_all_panes() {
    check("broadcast", |sample| {
        sample.type_in("\x02|2\r\x02-5\r\x02B");
    });
}

#[test]
fn the_size_of_another_terminal() {
    check("other-size", |sample| {
        let pane = sample.model.focus;
        let size = ViewSize { rows: 12, columns: 40 };
        let bytes = b"lead says hello".to_vec();
        let frame = ToView::Snapshot { offset: 0, size, bytes };
        sample.handle(Event::Frame(pane, frame));
        sample.model.now += 1_000;
    });
}

#[test]
fn labels_on_panes() {
    check("labels", |sample| {
        sample.type_in("\x02|2\r\x02-3\r\x02q");
    });
}

#[test]
fn a_preset_layout() {
    check("tiled", |sample| {
        sample.type_in("\x02|2\r\x02-3\r\x02-4\r\x02-5\r\x02\x1b5");
    });
}
