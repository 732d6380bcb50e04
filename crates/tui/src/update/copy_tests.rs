//! Copying, pasting and links.

use super::tests::sent;
use super::*;
use crate::sample::Sample;

#[test]
fn the_copied_text_is_pasted() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02]");
    assert_eq!(sample.model.notice.as_ref().unwrap().text, "nothing has been copied yet");
    sample.type_in("\x02[gVjy");
    assert_eq!(sent(sample.type_in("\x02]")), "lead says hello\r> what next?");
    let pane = sample.model.focus;
    sample.show(pane, "\x1b[?2004h");
    assert!(sent(sample.type_in("\x02]")).starts_with("\x1b[200~lead"));
}

#[test]
fn clicks_select_words_and_lines_and_open_links() {
    let copied = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::Copy(text) => Some(text.clone()),
            _ => None,
        })
    };
    let mut sample = Sample::new(80, 24);
    let pane = sample.model.focus;
    sample
        .show(pane, "cat /etc/hosts\r\n\x1b]8;;https://a.example/\x07here\x1b]8;;file:///x\x07 no");
    // The tree has 24 columns and an edge.
    let click = "\x1b[<0;31;1M\x1b[<0;31;1m";
    assert_eq!(copied(sample.type_in(click)), None);
    assert_eq!(copied(sample.type_in(click)).as_deref(), Some("/etc/hosts"));
    assert_eq!(copied(sample.type_in(click)).as_deref(), Some("cat /etc/hosts"));
    sample.model.now += 1_000;
    assert_eq!(copied(sample.type_in(click)), None, "the next one is a first click");
    let link = "\x1b[<0;27;2M\x1b[<0;27;2m";
    assert_eq!(sample.type_in(link), [Effect::OpenLink("https://a.example/".to_owned())]);
    sample.type_in("\x1b[<0;31;2M\x1b[<0;31;2m");
    let notice = sample.model.notice.as_ref().unwrap().text.clone();
    assert_eq!(notice, "only web links are opened, not file:///x");
    sample.type_in("\x02|2\r");
    // Below the title of the pane.
    let link = "\x1b[<0;27;3M\x1b[<0;27;3m";
    assert_eq!(sample.type_in(link), [], "the first click in another pane gives it the focus");
    let effects = sample.handle(Event::LinkNotOpened("https://a".into())).to_vec();
    assert_eq!(effects, [Effect::Copy("https://a".to_owned())]);
    sample.show(pane, "cat\r\nhere");
    let block = "\x1b[<8;27;2M\x1b[<40;29;3M\x1b[<8;29;3m";
    assert_eq!(copied(sample.type_in(block)).as_deref(), Some("at\nere"));
}

#[test]
fn a_count_repeats_a_movement_of_the_scrollback() {
    let mut sample = Sample::new(80, 24);
    let pane = sample.model.focus;
    let rows: String = (0..20).map(|row| format!("a{row} b c d\r\n")).collect();
    sample.show(pane, &rows);
    let cursor = |sample: &Sample| {
        let pane = sample.model.focused_pane().unwrap();
        pane.scroll.as_ref().map(|scroll| (scroll.cursor, scroll.count))
    };
    sample.type_in("\x02[g");
    assert_eq!(cursor(&sample), Some(((0, 0), None)));
    sample.type_in("1");
    assert_eq!(cursor(&sample), Some(((0, 0), Some(1))));
    sample.type_in("0j");
    assert_eq!(cursor(&sample), Some(((10, 0), None)), "0 continues a count");
    sample.type_in("5k3w");
    assert_eq!(cursor(&sample), Some(((5, 7), None)));
    sample.type_in("0");
    assert_eq!(cursor(&sample), Some(((5, 0), None)), "0 alone goes to the beginning");
    sample.type_in("7\x1b");
    assert_eq!(cursor(&sample), Some(((5, 0), None)), "escape ends only the count");
    sample.type_in("99999k");
    assert_eq!(cursor(&sample), Some(((0, 0), None)), "not beyond the first row");
    sample.type_in("2\x1b[B");
    assert_eq!(cursor(&sample), Some(((2, 0), None)), "arrows too");
    sample.type_in("3V");
    assert!(sample.model.focused_pane().unwrap().scroll.as_ref().unwrap().anchor.is_some());
}
