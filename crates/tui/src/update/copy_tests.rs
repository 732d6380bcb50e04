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
