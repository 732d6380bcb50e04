//! Moving, searching and selecting in the scrollback.

use super::*;

fn scroll(lines: usize) -> (Scroll, Screen) {
    let mut screen = Screen::new(Size::new(5, 20));
    for line in 1..=lines {
        screen.feed(format!("line {line}\r\n").as_bytes());
    }
    (Scroll::of(&screen, 5), screen)
}

#[test]
fn it_starts_at_the_screen_and_goes_up_to_the_oldest_row() {
    let (mut scroll, _) = scroll(50);
    assert_eq!(scroll.rows.len(), 51);
    assert!(scroll.at_end());
    assert_eq!(scroll.cursor, (50, 0));
    scroll.move_by(-1000, 0);
    assert_eq!((scroll.top, scroll.cursor), (0, (0, 0)));
    scroll.shift(3);
    assert_eq!((scroll.top, scroll.cursor), (3, (3, 0)));
    scroll.move_by(1000, 0);
    assert!(scroll.at_end());
}

#[test]
fn search_works_in_both_directions_and_wraps_around() {
    let (mut scroll, _) = scroll(50);
    scroll.search = "LINE 2".into();
    scroll.update_matches();
    assert_eq!(scroll.matches.len(), 11);
    assert!(scroll.find(true));
    assert_eq!(scroll.cursor, (28, 0), "line 29");
    assert!(scroll.find(true));
    assert_eq!(scroll.cursor, (27, 0));
    assert!(scroll.find(false) && scroll.find(false));
    assert_eq!(scroll.cursor, (1, 0), "and wraps around: line 2");
    scroll.search = "nothing".into();
    scroll.update_matches();
    assert!(!scroll.find(true));
}

#[test]
fn wrapped_rows_are_joined_in_a_copy() {
    let mut screen = Screen::new(Size::new(5, 4));
    screen.feed("ab漢def\r\nxy".as_bytes());
    let mut scroll = Scroll::of(&screen, 5);
    scroll.anchor = Some((0, 1));
    scroll.go((2, 0));
    assert_eq!(scroll.selected(), "b漢def\nx");
    scroll.shape = Shape::Rows;
    assert_eq!(scroll.selected(), "ab漢def\nxy");
}

#[test]
fn older_rows_are_added_above_and_the_position_stays() {
    let (_, screen) = scroll(50);
    let fresh = screen.snapshot();
    let mut view = Screen::new(screen.size());
    view.feed(&fresh);
    let mut scroll = Scroll::of(&view, 5);
    assert_eq!(scroll.rows.len(), 5);
    let shown = scroll.rows[scroll.top].text();
    let output: String = (1..=50).map(|line| format!("line {line}\r\n")).collect();
    let mut cut = scroll.clone();
    cut.add_older(output.as_bytes(), 7, &view);
    assert_eq!(cut.rows.len(), 50, "the first line is incomplete");
    scroll.add_older(output.as_bytes(), 0, &view);
    assert_eq!(scroll.rows.len(), 51);
    assert_eq!(scroll.rows[scroll.top].text(), shown);
}

#[test]
fn every_match_of_a_row_is_found() {
    let mut screen = Screen::new(Size::new(5, 40));
    screen.feed("one two one\r\n漢one".as_bytes());
    let mut scroll = Scroll::of(&screen, 5);
    scroll.search = "one".into();
    scroll.update_matches();
    let found: Vec<_> = scroll.matches.iter().map(|m| (m.row, m.from, m.to)).collect();
    assert_eq!(found, [(0, 0, 3), (0, 8, 11), (1, 2, 5)]);
    assert_eq!(scroll.matches_in(0).len(), 2);
    assert!(scroll.find(true));
    assert_eq!((scroll.cursor, scroll.match_number()), ((1, 2), Some(3)));
    assert!(scroll.find(true));
    assert_eq!((scroll.cursor, scroll.match_number()), ((0, 8), Some(2)));
    assert!(scroll.find(false) && scroll.find(false));
    assert_eq!(scroll.match_number(), Some(1));
}

#[test]
fn a_block_a_word_and_a_line_are_selected() {
    let mut screen = Screen::new(Size::new(5, 20));
    screen.feed("ab /usr/lib (x)\r\nc\r\ndefgh\r\n0123456789012345678901".as_bytes());
    let mut scroll = Scroll::of(&screen, 5);
    scroll.go((0, 1));
    scroll.begin_selection(Shape::Text);
    scroll.begin_selection(Shape::Block);
    scroll.move_by(1, 0);
    scroll.move_by(1, 2);
    assert_eq!(scroll.selected(), "b /\n\nefg", "short rows do not narrow it");
    scroll.select_word((0, 5));
    assert_eq!(scroll.selected(), "/usr/lib");
    scroll.select_word((0, 13));
    assert_eq!(scroll.selected(), "x");
    scroll.select_word((0, 2));
    assert_eq!(scroll.selected(), "", "a blank");
    scroll.select_line(4);
    assert_eq!(scroll.selected(), "0123456789012345678901");
    scroll.select_line(1);
    assert_eq!(scroll.selected(), "c");
    scroll.select_word((99, 0));
}

#[test]
fn the_last_command_is_known_if_the_shell_marks_it() {
    let prompt = "\x1b]133;D\x07\x1b]133;A\x07$ \x1b]133;B\x07";
    let run = |lines: usize| {
        let lines: String = (1..=lines).map(|line| format!("line {line}\r\n")).collect();
        format!("{prompt}cmd\r\n\x1b]133;C\x07{lines}")
    };
    for (lines, after, expected) in [
        (3, prompt, "line 1\nline 2\nline 3"),
        (2, "", "line 1\nline 2"),
        (1, "more", "line 1\nmore"),
    ] {
        let output = format!("{}{}{after}", run(40), run(lines));
        let mut view = Screen::new(Size::new(5, 20));
        view.feed(output.as_bytes());
        let mut scroll = Scroll::of(&view, 5);
        scroll.loads = true;
        assert!(!scroll.select_command(), "it has to be read first");
        scroll.add_older(output.as_bytes(), 0, &view);
        assert_eq!(scroll.selected(), expected);
    }
    let mut view = Screen::new(Size::new(5, 20));
    view.feed(b"a\r\nb");
    let mut scroll = Scroll::of(&view, 5);
    scroll.add_older(b"a\r\nb", 0, &view);
    assert!(!scroll.select_command());
}

#[test]
fn a_match_is_not_shown_in_the_first_row() {
    let (mut scroll, _) = scroll(50);
    scroll.search = "line 2".into();
    scroll.update_matches();
    while scroll.cursor.0 > 1 {
        assert!(scroll.find(true));
        assert!((scroll.top + 1..scroll.top + 5).contains(&scroll.cursor.0), "{scroll:?}");
    }
}

#[test]
fn words_are_passed_as_in_vi() {
    let mut screen = Screen::new(Size::new(5, 20));
    screen.feed("  one two(\u{6f22}\u{5b57}) \r\n\r\n/a/path end".as_bytes());
    let mut scroll = Scroll::of(&screen, 5);
    let mut walk = |by: WordMove, from: Position| {
        scroll.go(from);
        let mut passed = Vec::new();
        loop {
            let before = scroll.cursor;
            scroll.move_word(by);
            if scroll.cursor == before {
                return passed;
            }
            passed.push(scroll.cursor);
        }
    };
    let begins = [(0, 2), (0, 6), (0, 10), (2, 0), (2, 8)];
    assert_eq!(walk(WordMove::NextBegin, (0, 0)), begins);
    assert_eq!(walk(WordMove::NextEnd, (0, 0)), [(0, 4), (0, 8), (0, 12), (2, 6), (2, 10)]);
    let back: Vec<_> = begins.into_iter().rev().collect();
    assert_eq!(walk(WordMove::PreviousBegin, (2, 10)), back);
    scroll.go((0, 9));
    scroll.go_to_text();
    assert_eq!(scroll.cursor, (0, 2));
    scroll.go_to_shown(usize::MAX);
    assert_eq!(scroll.cursor, (4, 0));
}
