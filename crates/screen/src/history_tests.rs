//! The history's line numbers, its memory, and which rows it drops first.

use crate::{Colour, Screen, Size};

fn flooded(lines: usize) -> Screen {
    let mut screen = Screen::new(Size::DEFAULT);
    for line in 0..lines {
        screen.feed(format!("\x1b[3{}m{line}\x1b[0m some text of a line\r\n", line % 8).as_bytes());
    }
    screen
}

#[test]
fn lines_are_found_by_number_and_from_the_end() {
    let screen = flooded(5_000);
    let history = screen.history();
    assert_eq!(history.next_line() - history.first_line(), 5_000 - 23);
    assert_eq!(history.lines(1_234).next().unwrap().text, "1234 some text of a line");
    let tail = history.tail(3);
    assert_eq!(tail.len(), 3);
    assert_eq!(tail[2].text, "4976 some text of a line");
    assert_eq!(screen.tail(100)[0].text, "4900 some text of a line");
    assert_eq!(screen.tail(1_000_000).len(), 5_000);
    assert_eq!(history.tail(0).len(), 0);
    let styled = history.styled(80, 10, 1);
    assert_eq!(styled[0].text(), "4966 some text of a line");
    assert_eq!(styled[0].spans[0].style.foreground, Colour::Indexed(6));
}

#[test]
fn the_oldest_rows_are_dropped_and_line_numbers_stay() {
    let mut screen = flooded(5_000);
    let before = screen.history().bytes();
    let freed = screen.history_mut().drop_oldest(before / 2);
    assert_eq!(screen.history().bytes(), before - freed);
    assert!(freed >= before / 2 && freed < before / 2 + (40 << 10), "{freed} of {before}");
    let first = screen.history().first_line();
    let line = screen.history().lines(0).next().unwrap();
    assert_eq!(line.number, first);
    assert_eq!(line.text, format!("{first} some text of a line"));
    screen.history_mut().drop_oldest(usize::MAX);
    assert!(screen.history().is_empty() && screen.history().oldest_stamp().is_none());
    assert_eq!(screen.history().next_line(), 5_000 - 23);
}

#[test]
fn a_budget_for_many_panes_is_met_within_a_percent_and_the_oldest_rows_go_first() {
    const BUDGET: usize = 4 << 20;
    let mut panes: Vec<_> = (0..20).map(|_| Screen::new(Size::DEFAULT)).collect();
    let mut stamp = 0;
    for round in 0..3_000 {
        // The first pane prints only at the beginning, so its rows are the oldest.
        let pane = if round < 100 { 0 } else { 1 + round % 19 };
        stamp += 1;
        panes[pane].history_mut().set_stamp(stamp);
        panes[pane].feed("a line of text that is not short\r\n".repeat(100).as_bytes());
        loop {
            let total: usize = panes.iter().map(|pane| pane.history().bytes()).sum();
            if total <= BUDGET {
                break;
            }
            let oldest = panes
                .iter_mut()
                .filter(|pane| !pane.history().is_empty())
                .min_by_key(|pane| pane.history().oldest_stamp());
            oldest.unwrap().history_mut().drop_oldest(1);
        }
    }
    let total: usize = panes.iter().map(|pane| pane.history().bytes()).sum();
    assert!(total > BUDGET - BUDGET / 100, "{total} of {BUDGET}");
    assert!(panes[0].history().is_empty());
    assert!(panes[1..].iter().all(|pane| !pane.history().is_empty()));
}

#[test]
fn an_endless_line_stays_readable() {
    let mut screen = Screen::new(Size::DEFAULT);
    for _ in 0..200 {
        screen.feed(&[b'x'; 10_000]);
    }
    assert!(screen.history().lines(0).all(|line| line.text.len() <= 80 * 2_001));
    assert_eq!(screen.history().styled(80, 0, 10).len(), 10);
    screen.resize(Size { rows: 30, columns: 100 });
    assert_eq!(screen.failures(), 0);
    let total: usize = screen.lines(0).map(|line| line.text.len()).sum();
    assert_eq!(total, 2_000_000);
}

#[test]
fn an_idle_screen_is_small() {
    let mut screen = Screen::new(Size::DEFAULT);
    screen.feed(b"$ ");
    assert_eq!(screen.history().bytes(), 0);
    for _ in 0..30 {
        screen.feed(b"a\r\n");
    }
    assert!(screen.history().bytes() < 2_048, "{}", screen.history().bytes());
}

#[test]
fn lines_of_a_flood_have_their_offsets() {
    let text: String = (0..500).map(|line| format!("{line}\r\n")).collect();
    let mut screen = Screen::new(Size::DEFAULT);
    screen.feed(text.as_bytes());
    for (index, line) in screen.lines(0).enumerate() {
        let at = usize::try_from(line.offset).unwrap();
        assert!(text[at..].starts_with(&format!("{index}\r")), "{line:?}");
    }
}
