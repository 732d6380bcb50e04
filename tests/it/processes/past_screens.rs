//! The screens of earlier moments equal those that were recorded at these moments, sizes included, before and after a
//! restart of the server.

use std::fmt::Write;

use patterm_wire::view::{FromView, ViewSize};
use serde_json::{Value, json};

use super::survival::{desk_of, kill, server};
use crate::support::tool_client::{ToolClient, long, until};
use crate::support::{Place, Rng};
use crate::view::View;

/// Prints a file for each line that it reads, byte by byte as it is.
const PRINTER: &str = "stty -echo -opost; printf up; while read n; do cat piece.$n; done";

/// What a program may print between two moments.
fn piece(rng: &mut Rng) -> String {
    let mut text = String::new();
    // Now and then so much that the next key frame is reached.
    let items = if rng.once_in(12) { 6_000 } else { rng.within(1..60) };
    for _ in 0..items {
        let (row, column) = (rng.within(1..30), rng.within(1..140));
        match rng.within(0..16) {
            0 => write!(text, "\x1b[{row};{column}H"),
            1 => write!(
                text,
                "\x1b[{}m",
                rng.pick(&["0", "1", "4", "7", "31", "48;5;99", "38;2;1;2;3"])
            ),
            2 => write!(
                text,
                "\x1b[{}{}",
                row,
                rng.pick(&["A", "B", "C", "D", "L", "M", "P", "@", "X"])
            ),
            3 => write!(text, "\x1b[{}", rng.pick(&["J", "1J", "2J", "K", "1K", "2K"])),
            4 if rng.once_in(8) => write!(text, "\x1b[?1049{}", rng.pick(&["h", "l"])),
            5 if rng.once_in(8) => write!(text, "\x1b[{};{}r", row, row + rng.within(2..20)),
            7 => write!(
                text,
                "{}",
                rng.pick(&["寬い文字", "e\u{301}a\u{308}", "👩\u{200d}🔬🏽", "\t", "\x08"])
            ),
            8..=10 => write!(text, "\r\n"),
            11 => write!(text, "\x1b7{row}\x1b8"),
            _ => write!(text, "word {row} and {column} "),
        }
        .unwrap();
    }
    text
}

/// What a screen shows, without what only the current one has.
fn shown(mut screen: Value) -> [Value; 3] {
    ["rows", "cursor", "size"].map(|member| screen[member].take())
}

fn check(tools: &mut ToolClient, id: &str, moments: &[(u64, [Value; 3])]) {
    for (offset, expected) in moments {
        let past = tools.ok("get_process_output", json!({"process_id": id, "at": offset}));
        assert_eq!(shown(past), *expected, "at {offset}");
    }
}

#[test]
fn the_screens_of_random_moments_are_those_that_were_there() {
    let place = Place::new();
    let mut rng = Rng::new(26);
    let (mut tools, process) = desk_of(&place);
    let id = tools.sh(PRINTER);
    tools.wait(&id, "up");
    let mut view = View::attach_at(&server(&place).socket, &id, 24, 80);
    let mut end = until("the size of the view", || {
        let status = tools.status(&id);
        let grid = tools.grid(&id);
        (grid["size"]["rows"] == 24).then(|| status["output_offset"].as_u64().unwrap())
    });
    let mut moments = Vec::new();
    let count = if long() { 500 } else { 100 };
    for number in 0..count {
        let is_resized = rng.once_in(4);
        if is_resized {
            let size = ViewSize {
                rows: u16::try_from(rng.within(5..60)).unwrap(),
                columns: u16::try_from(rng.within(10..180)).unwrap(),
            };
            // The screen before is no moment of its own: its offset is that of the new size.
            moments.pop();
            view.send(&FromView::Size(size));
            let size = json!({"rows": size.rows, "columns": size.columns});
            until("the new size", || (tools.grid(&id)["size"] == size).then_some(()));
        }
        // Its title says that the screen shows all of it.
        let title = format!("after piece {number}");
        let text = format!("{}\x1b]2;{title}\x07", piece(&mut rng));
        std::fs::write(place.path(&format!("project/piece.{number}")), &text).unwrap();
        end += text.len() as u64;
        tools.line(&id, &number.to_string());
        until("the output", || (tools.status(&id)["title"] == *title).then_some(()));
        assert_eq!(tools.status(&id)["output_offset"], end);
        moments.push((end, shown(tools.grid(&id))));
    }
    assert!(moments.len() > count / 2, "{} moments", moments.len());
    check(&mut tools, &id, &moments);
    kill(&process);
    let (mut tools, _) = desk_of(&place);
    check(&mut tools, &id, &moments);
}
