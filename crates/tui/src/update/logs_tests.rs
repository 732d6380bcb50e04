//! The view of all logs, with its connection.

use patterm_wire::logs::{LogLine, LogLines};

use super::{Effect, Event};
use crate::model::Mode;
use crate::sample::{Sample, project};

fn lines(from: u64, count: u64) -> LogLines {
    let line = |n: u64| LogLine {
        process_id: format!("p{}", n % 3 + 1),
        name: ["lead", "helper", "tests"][n as usize % 3].to_owned(),
        time_ms: Some(1_000_000_000 + n * 1_000),
        text: format!("line {n}"),
        next_offset: n * 10,
        ..LogLine::default()
    };
    LogLines { lines: (from..from + count).map(line).collect(), ..LogLines::default() }
}

#[test]
fn the_view_opens_and_closes_its_connection() {
    let mut sample = Sample::new(80, 24);
    let opened = sample.type_in("\x02v");
    assert!(matches!(opened, [Effect::OpenLogs(request)] if request.follow));
    sample.handle(Event::Logs(lines(0, 5)));
    assert_eq!(sample.type_in("q"), [Effect::CloseLogs]);
    assert!(sample.model.logs.is_none() && sample.model.mode == Mode::Typing);
    sample.handle(Event::Logs(lines(5, 1)));
    assert!(sample.model.logs.is_none(), "lines that were on their way");
}

#[test]
fn it_continues_after_the_server_died() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02v");
    sample.handle(Event::Logs(lines(0, 6)));
    assert_eq!(sample.handle(Event::Lost), []);
    let effects = sample.handle(Event::Snapshot(project()));
    let reopened = effects.iter().find_map(|effect| match effect {
        Effect::OpenLogs(request) => Some(request.continue_at.clone()),
        _ => None,
    });
    let expected = [("p1", 30), ("p2", 40), ("p3", 50)].map(|(id, at)| (id.to_owned(), at));
    assert_eq!(reopened.unwrap().into_iter().collect::<Vec<_>>(), expected);
    let effects = sample.handle(Event::Snapshot(project()));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::OpenLogs(_))), "only once");
}

#[test]
fn a_server_that_does_not_know_it_is_reported() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02v");
    let effects = sample.handle(Event::LogsRefused("there is no such method".to_owned()));
    assert_eq!(effects, [Effect::CloseLogs]);
    assert_eq!(sample.model.mode, Mode::Typing);
    assert!(sample.model.notice.as_ref().unwrap().text.contains("no such method"));
}

#[test]
fn filters_and_searches_are_typed() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02v");
    sample.handle(Event::Logs(lines(0, 300)));
    // A filter is in effect while it is typed, and its keys do nothing else.
    sample.type_in("fline 29");
    let logs = sample.model.logs.as_ref().unwrap();
    assert_eq!((logs.visible(99).len(), logs.filter.as_str()), (11, "line 29"));
    sample.type_in("\r\t");
    assert_eq!(sample.model.logs.as_ref().unwrap().visible(99).len(), 3);
    sample.type_in("f\x1b");
    sample.type_in("/271\r");
    let logs = sample.model.logs.as_ref().unwrap();
    assert_eq!((logs.filter.as_str(), logs.found), ("", None), "another process's");
    sample.type_in("\x1b[Z/271\r");
    let logs = sample.model.logs.as_ref().unwrap();
    assert_eq!((logs.process.as_deref(), logs.found), (None, Some(271)));
    sample.type_in("n");
    assert!(sample.model.notice.as_ref().unwrap().text.contains("no more lines with 271"));
    sample.type_in("\x1b[<64;10;10M");
    assert!(!sample.model.logs.as_ref().unwrap().follows(), "the wheel scrolls");
}
