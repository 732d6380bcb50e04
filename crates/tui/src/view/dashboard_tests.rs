//! Frames of the dashboard, and what its keys and the mouse do.

use patterm_wire::follow::{HealthState, ProcessInfo, ProcessStatus, ProjectSnapshot};
use patterm_wire::usage::{ProcessUsage, UsageResult};
use serde_json::{Value, json};

use super::tests::check;
use super::view;
use crate::model::Mode;
use crate::sample::{Sample, project};
use crate::update::{CallPurpose, Effect, Event};

/// A measurement of the sample's processes: the lead works more and more, the shell a little.
fn measurement(number: u64, now: u64) -> Value {
    let usage = |id: &str, cpu_ms: u64, memory: u64, line: &str| ProcessUsage {
        id: id.to_owned(),
        cpu_ms: Some(cpu_ms),
        memory_bytes: Some(memory),
        started_at: Some(now - 3_700_000),
        last_line: line.to_owned(),
        ports: Some(Vec::new()),
        ..ProcessUsage::default()
    };
    let lead =
        usage("p1", number * number * 60, (300 + 40 * number) << 20, "✳ Refactoring the parser…");
    let helper = usage("p2", 0, 250 << 20, "› ");
    let tests = usage("p3", number * 20, 190 << 20, "may I push?");
    let dev = ProcessUsage {
        cpu_ms: None,
        memory_bytes: None,
        ended_at: Some(now - 42_000),
        last_line: "error: address already in use".to_owned(),
        ..usage("p4", 0, 0, "")
    };
    let shell =
        ProcessUsage { ports: Some(vec![8080, 5173]), ..usage("p5", number, 9 << 20, "$ ") };
    let shell = ProcessUsage { health: Some("ready".to_owned()), ..shell };
    let processes = vec![lead, helper, tests, dev, shell];
    serde_json::to_value(UsageResult { at_ms: number * 1000, processes }).unwrap()
}

fn measure(sample: &mut Sample, number: u64) {
    let result = measurement(number, sample.model.now);
    sample.handle(Event::Answer(CallPurpose::Usage, Ok(result)));
}

/// The dashboard after some seconds.
fn opened(sample: &mut Sample) {
    let mut restarted = project();
    restarted.processes[3] =
        ProcessInfo { runs: 9, restarts: Some(3), ..restarted.processes[3].clone() };
    sample.handle(Event::Snapshot(restarted));
    sample.type_in("\x02D");
    (1..=8).for_each(|number| measure(sample, number));
}

/// The names in the table, from top to bottom.
fn names(sample: &Sample) -> Vec<String> {
    let text = view(&sample.model).text();
    let rows = text.lines().skip(2).take(5).map(|row| row[..16].trim().to_owned());
    rows.map(|row| row.split_whitespace().last().unwrap().to_owned()).collect()
}

fn requests(effects: &[Effect]) -> Vec<Value> {
    let calls = effects.iter().filter_map(|effect| match effect {
        Effect::Call { method: "patterm/usage", params, .. } => Some(params.clone()),
        _ => None,
    });
    calls.collect()
}

#[test]
fn frames() {
    check("dashboard", opened);
    check("dashboard-sorted", |sample| {
        opened(sample);
        sample.type_in("\x1b[C\x1b[C\x1b[C\x1b[B");
    });
    check("dashboard-confirm", |sample| {
        opened(sample);
        sample.type_in("X");
    });
    check("dashboard-first", |sample| {
        sample.type_in("\x02D");
    });
    check("dashboard-health", |sample| {
        sample.handle(Event::Snapshot(checked()));
        sample.type_in("\x02D");
        (1..=8).for_each(|number| measure(sample, number));
        sample.type_in("jjj");
    });
}

/// The sample's project, with two processes whose health is checked.
fn checked() -> ProjectSnapshot {
    let mut project = project();
    let dev = &mut project.processes[3];
    (dev.status, dev.code, dev.declared) = (ProcessStatus::Running, None, true);
    dev.health = Some(HealthState::Unhealthy);
    let why = "it is unhealthy: http://127.0.0.1:3000/health answered with status 500";
    dev.problem = Some(why.to_owned());
    project.processes[4].health = Some(HealthState::Healthy);
    project
}

#[test]
fn measurements_are_requested_only_while_it_is_open() {
    let mut sample = Sample::new(80, 24);
    assert!(requests(sample.handle(Event::UsageDue)).is_empty());
    assert_eq!(requests(sample.type_in("\x02D")), [json!({"ports": true})]);
    measure(&mut sample, 1);
    assert_eq!(requests(sample.handle(Event::UsageDue)), [json!({"ports": false})]);
    sample.type_in("\x1b");
    assert_eq!(sample.model.mode, Mode::Typing);
    assert!(requests(sample.handle(Event::UsageDue)).is_empty());
    measure(&mut sample, 2);
    assert_eq!(sample.model.dashboard.samples["p1"].memory.len(), 1, "a late result is ignored");
}

#[test]
fn keys_and_headings_sort() {
    let mut sample = Sample::new(80, 24);
    opened(&mut sample);
    assert_eq!(names(&sample), ["lead", "helper", "tests", "dev", "bash"]);
    sample.type_in("\x1b[C");
    assert_eq!(names(&sample), ["bash", "dev", "helper", "lead", "tests"], "by name");
    sample.type_in("r");
    assert_eq!(names(&sample), ["tests", "lead", "helper", "dev", "bash"], "reversed");
    // A click on the heading of the CPU usage, and another one.
    let text = view(&sample.model).text();
    let heading = text.lines().nth(1).unwrap();
    let column = heading[..heading.find("CPU").unwrap()].chars().count() + 1;
    sample.type_in(&format!("\x1b[<0;{column};2M\x1b[<0;{column};2m"));
    assert_eq!(names(&sample), ["lead", "tests", "helper", "bash", "dev"]);
    sample.type_in(&format!("\x1b[<0;{column};2M\x1b[<0;{column};2m"));
    assert_eq!(names(&sample), ["dev", "helper", "bash", "tests", "lead"]);
}

#[test]
fn the_chosen_process_stays_chosen_when_rows_move() {
    let mut sample = Sample::new(80, 24);
    opened(&mut sample);
    sample.type_in("jj");
    assert_eq!(sample.model.dashboard.chosen.as_deref(), Some("p3"));
    sample.type_in("\x1b[C");
    assert_eq!(sample.model.dashboard.chosen.as_deref(), Some("p3"));
    let effects = sample.type_in("\r").to_vec();
    assert_eq!(sample.model.mode, Mode::Typing);
    assert!(
        matches!(&effects[..], [.., Effect::Attach { process, .. }] if process == "p3"),
        "{effects:?}"
    );
}

#[test]
fn a_click_chooses_a_row_and_another_one_shows_it() {
    let mut sample = Sample::new(80, 24);
    opened(&mut sample);
    sample.type_in("\x1b[<0;10;4M\x1b[<0;10;4m");
    assert_eq!(sample.model.dashboard.chosen.as_deref(), Some("p2"));
    sample.type_in("\x1b[<65;10;4M");
    assert_eq!(sample.model.dashboard.chosen.as_deref(), Some("p3"), "the wheel moves");
    sample.type_in("\x1b[<0;10;5M\x1b[<0;10;5m");
    assert_eq!(sample.model.mode, Mode::Typing);
    assert_eq!(sample.model.selected().unwrap().id, "p3");
}

#[test]
fn the_chosen_process_is_stopped_restarted_and_closed() {
    let mut sample = Sample::new(80, 24);
    opened(&mut sample);
    let method = |effects: &[Effect]| match effects {
        [Effect::Call { method, params, .. }] => format!("{method} {}", params["process_id"]),
        other => format!("{other:?}"),
    };
    sample.type_in("j");
    assert_eq!(sample.type_in("X"), []);
    assert!(view(&sample.model).text().contains("stop helper? y/n"));
    assert_eq!(sample.type_in("\x1b"), [], "escape cancels only the question");
    assert!(matches!(sample.model.mode, Mode::Dashboard { confirmation: None, .. }));
    assert_eq!(method(sample.type_in("Xy")), "stop_process \"p2\"");
    assert_eq!(method(sample.type_in("\x02Ry")), "restart_process \"p2\"", "the leader is allowed");
    // A process that is not running is started without a question.
    assert_eq!(method(sample.type_in("jjR")), "restart_process \"p4\"");
    assert_eq!(method(sample.type_in("x")), "close_process \"p4\"");
    assert!(matches!(sample.model.mode, Mode::Dashboard { .. }), "it stays open");
}

#[test]
fn after_the_leader_other_actions_work_too() {
    let mut sample = Sample::new(80, 24);
    opened(&mut sample);
    sample.type_in("t");
    assert!(matches!(sample.model.mode, Mode::Dashboard { .. }), "not without the leader");
    sample.type_in("\x02t");
    assert!(matches!(sample.model.mode, Mode::List { .. }));
    sample.type_in("\x1b");
    sample.type_in("\x02D\x02D");
    assert_eq!(sample.model.mode, Mode::Typing, "its own key closes it");
    sample.type_in("\x02D");
    assert_eq!(sample.type_in("\x02d"), [Effect::Quit(None)]);
}

#[test]
fn an_older_server_is_reported_and_processes_are_still_listed() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02D");
    let error = patterm_wire::ErrorObject::method_not_found("patterm/usage");
    sample.handle(Event::Answer(CallPurpose::Usage, Err(error)));
    let text = view(&sample.model).text();
    assert!(text.contains("✗ this server is too old"), "{text}");
    assert!(text.contains("helper") && text.contains("exit 1"), "{text}");
    measure(&mut sample, 1);
    assert!(!view(&sample.model).text().contains("too old"), "it is asked again");
}
