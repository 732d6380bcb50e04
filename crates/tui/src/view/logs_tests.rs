//! Frames of the logs of all processes.

use patterm_wire::logs::{LogLine, LogLines};

use super::tests::check;
use crate::sample::Sample;
use crate::update::Event;

/// The logs view with some lines.
fn with_logs(sample: &mut Sample) {
    let line = |n: u64, id: &str, name: &str, text: &str| LogLine {
        process_id: id.to_owned(),
        name: name.to_owned(),
        time_ms: (n > 0).then_some(1_000_000_000 + n * 61_000),
        text: text.to_owned(),
        ..LogLine::default()
    };
    let mut lines = vec![line(0, "p4", "dev", "printed by patterm 0.1, at an unknown time")];
    for n in 1..60 {
        lines.push(line(n, "p4", "dev", &format!("GET /items/{n} 200 in {} ms", n * 7 % 90)));
        if n % 9 == 0 {
            let long = "a warning that is too long for most terminals ".repeat(6);
            lines.push(line(n, "p5", "bash", &long));
        }
        if n % 7 == 0 {
            lines.push(line(n, "p3", "tests", "漢字 \u{1b}[31m e\u{301} 🙂\tdone"));
        }
    }
    sample.type_in("\x02v");
    let current = Some(std::collections::BTreeMap::new());
    sample.handle(Event::Logs(LogLines { lines, current, done: false }));
}

#[test]
fn logs_of_all_processes() {
    check("logs", with_logs);
}

#[test]
fn logs_with_a_filter_and_a_search() {
    check("logs-search", |sample| {
        with_logs(sample);
        sample.type_in("fget\r/items/3\rn");
    });
}

#[test]
fn logs_while_a_filter_is_typed() {
    check("logs-filter", |sample| {
        with_logs(sample);
        sample.type_in("\t\t\tfdone");
    });
}
