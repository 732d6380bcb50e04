//! The project file: who has not trusted it is told, sees what it would run, and decides.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use patterm_wire::follow::{ProjectFileInfo, ProjectFileState};
use serde_json::{Value, json};

use super::{Asked, Effect, tell};
use crate::model::{Mode, Model};
use crate::trust::Sheet;
use crate::view;

/// Rows that a page moves less than the sheet is high, so that the eye finds its place again.
const OVERLAP: usize = 2;

/// How long a sheet that came by itself is shown, without a key being pressed, before a key can trust
/// it.
const LOOK_MS: u64 = 1_000;

/// Opens the sheet, or says why there is nothing to decide.
pub(super) fn open(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.seen.project_file.state {
        ProjectFileState::Absent => {
            tell(model, "this project has no patterm.toml; `patterm init` writes one", false);
        }
        ProjectFileState::Trusted => tell(model, "patterm.toml is trusted as it is", false),
        ProjectFileState::Untrusted | ProjectFileState::Faulty => {
            model.mode = Mode::Trust(Sheet::default());
            ask(effects);
        }
    }
}

fn ask(effects: &mut Vec<Effect>) {
    let tool = "get_project_status";
    effects.push(Effect::Call { tool, arguments: json!({}), asked: Asked::ProjectFile });
}

/// Takes notice of how the file stands now; `before` is `None` when the project is first seen.
pub(super) fn seen(model: &mut Model, before: Option<&ProjectFileInfo>, effects: &mut Vec<Effect>) {
    let now = model.seen.project_file.clone();
    if before == Some(&now) {
        return;
    }
    if matches!(model.mode, Mode::Trust(_)) {
        return seen_while_open(model, now.state, effects);
    }
    match (before.map(|before| before.state), now.state) {
        // Whoever opens the project has typed nothing into it yet: no key is taken from a program.
        (None, ProjectFileState::Untrusted) if model.mode == Mode::Typing => {
            model.mode = Mode::Trust(Sheet { not_before: u64::MAX, ..Sheet::default() });
            ask(effects);
        }
        (Some(ProjectFileState::Trusted), ProjectFileState::Untrusted) => {
            let text = "patterm.toml changed and is not trusted any more; what it said before stays \
                in effect";
            tell(model, text, true);
        }
        (Some(_), ProjectFileState::Untrusted) => {
            tell(model, "patterm.toml is not trusted; nothing of it runs", true);
        }
        (Some(_), ProjectFileState::Faulty) => {
            tell(model, "patterm.toml has mistakes; nothing of it takes effect", true);
        }
        _ => {}
    }
}

/// Nobody trusts what he has not seen: another content is shown from its beginning.
fn seen_while_open(model: &mut Model, now: ProjectFileState, effects: &mut Vec<Effect>) {
    match now {
        ProjectFileState::Untrusted | ProjectFileState::Faulty => {
            let not_before = u64::MAX;
            model.mode = Mode::Trust(Sheet { anew: true, not_before, ..Sheet::default() });
            ask(effects);
        }
        ProjectFileState::Trusted => {
            close(model, "patterm.toml is trusted; a changed file must be trusted again");
        }
        ProjectFileState::Absent => close(model, "patterm.toml is gone"),
    }
}

/// Nothing is left to decide. Where that was not decided here, the next key was meant for the sheet, and
/// closes what says so.
fn close(model: &mut Model, text: &str) {
    let decided_here = matches!(&model.mode, Mode::Trust(sheet) if sheet.decided);
    if decided_here {
        model.mode = Mode::Typing;
        return tell(model, text, false);
    }
    let (title, text) = ("patterm.toml".to_owned(), text.to_owned());
    model.mode = Mode::Text { title, text, top: 0 };
}

/// What the server says of the file.
pub(super) fn answered(model: &mut Model, file: &Value) {
    let Mode::Trust(sheet) = &mut model.mode else { return };
    let text = |name: &str| file[name].as_str().map(str::to_owned);
    let would = text("would_run");
    let faults = file["faults"].as_array().into_iter().flatten().filter_map(Value::as_str);
    sheet.lines = match &would {
        Some(would) => would.lines().map(str::to_owned).collect(),
        None => faults.map(str::to_owned).collect(),
    };
    sheet.top = 0;
    if sheet.not_before > 0 {
        sheet.not_before = model.now.saturating_add(LOOK_MS);
    }
    // Only what is shown can be trusted.
    sheet.hash = text("hash").filter(|_| would.is_some());
}

/// A key while the sheet is open; those that leave it came before.
pub(super) fn key(model: &mut Model, mut sheet: Sheet, key: &Key, effects: &mut Vec<Effect>) {
    let body = view::trust_body(model);
    let page = usize::from(body.height).saturating_sub(OVERLAP).max(1) as isize;
    let by = match key.code {
        KeyCode::Char('t' | 'y') if !key.ctrl && !key.alt && !key.logo => {
            trust(model, &mut sheet, effects);
            0
        }
        KeyCode::Char('q' | 'n') => return,
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -page,
        KeyCode::PageDown | KeyCode::Char(' ') => page,
        KeyCode::Home | KeyCode::Char('g') if !key.shift => isize::MIN,
        KeyCode::End | KeyCode::Char('g' | 'G') => isize::MAX,
        _ => 0,
    };
    if model.now < sheet.not_before {
        // The person still types what was meant for something else.
        sheet.not_before = sheet.not_before.max(model.now.saturating_add(LOOK_MS));
    }
    shift(&mut sheet, model, by);
    model.mode = Mode::Trust(sheet);
}

/// The wheel over the sheet.
pub(super) fn wheel(model: &mut Model, rows: i32) {
    if let Mode::Trust(mut sheet) = std::mem::take(&mut model.mode) {
        shift(&mut sheet, model, rows as isize);
        model.mode = Mode::Trust(sheet);
    }
}

fn shift(sheet: &mut Sheet, model: &Model, by: isize) {
    let body = view::trust_body(model);
    let rows = sheet.rows(body.width).len();
    sheet.top = sheet.first(rows, body.height).saturating_add_signed(by);
    sheet.top = sheet.first(rows, body.height);
}

fn trust(model: &mut Model, sheet: &mut Sheet, effects: &mut Vec<Effect>) {
    let Some(hash) = &sheet.hash else { return };
    if !sheet.shows_end(view::trust_body(model)) {
        return tell(model, "there is more of it below: go to its end first", true);
    }
    if model.now < sheet.not_before {
        return tell(
            model,
            "it has only just appeared: look at it for a second, then press the key",
            true,
        );
    }
    let (tool, arguments) = ("patterm/trust", json!({"hash": hash}));
    sheet.decided = true;
    effects.push(Effect::Call { tool, arguments, asked: Asked::Nothing });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, project};
    use crate::update::Event;
    use patterm_wire::follow::ProjectSnapshot;

    const UNTRUSTED: ProjectFileState = ProjectFileState::Untrusted;

    fn file(state: ProjectFileState, hash: &str) -> Event {
        let hash = Some(hash.to_owned());
        Event::Snapshot(ProjectSnapshot {
            project_file: ProjectFileInfo { state, hash },
            ..project()
        })
    }

    fn declares(sample: &mut Sample, hash: &str, lines: usize) {
        let would = "  runs x\n".repeat(lines);
        let answer = json!({"project_file": {"hash": hash, "would_run": would}});
        sample.happen(Event::Answer(Asked::ProjectFile, Ok(answer)));
    }

    fn opened(hash: &str, lines: usize) -> Sample {
        let mut sample = Sample::new(80, 24);
        sample.happen(file(UNTRUSTED, hash));
        sample.type_in("\x02T");
        declares(&mut sample, hash, lines);
        sample
    }

    fn is_open(sample: &Sample) -> bool {
        matches!(sample.model.mode, Mode::Trust(_))
    }

    fn trusts(hash: &str) -> [Effect; 1] {
        let arguments = json!({"hash": hash});
        [Effect::Call { tool: "patterm/trust", arguments, asked: Asked::Nothing }]
    }

    #[test]
    fn who_opens_an_untrusted_project_sees_it_at_once() {
        let mut sample = Sample::empty(80, 24);
        sample.model.begun = false;
        let effects = sample.happen(file(UNTRUSTED, "h1")).to_vec();
        let asks =
            |effect: &Effect| matches!(effect, Effect::Call { asked: Asked::ProjectFile, .. });
        assert!(is_open(&sample) && effects.iter().any(asks), "{effects:?}");
        // What is not shown yet cannot be trusted.
        assert_eq!(sample.type_in("t"), []);
        declares(&mut sample, "h1", 3);
        // Nor by who typed on.
        assert_eq!(sample.type_in("test"), []);
        assert!(sample.model.notice.as_ref().unwrap().text.contains("only just appeared"));
        for _ in 0..5 {
            sample.model.now += LOOK_MS - 1;
            assert_eq!(sample.type_in("yt"), [], "there was no pause");
        }
        sample.model.now += LOOK_MS;
        assert_eq!(sample.type_in("t"), trusts("h1"));
        assert!(is_open(&sample), "until the server says that it is trusted");
        sample.happen(file(ProjectFileState::Trusted, "h1"));
        assert!(!is_open(&sample));
        assert!(sample.model.notice.take().unwrap().text.contains("is trusted"));
    }

    #[test]
    fn one_that_becomes_untrusted_takes_no_keys_from_a_program() {
        let mut sample = Sample::new(80, 24);
        sample.happen(file(ProjectFileState::Trusted, "h1"));
        sample.happen(file(UNTRUSTED, "h2"));
        assert!(!is_open(&sample));
        assert!(sample.model.notice.as_ref().unwrap().text.contains("not trusted any more"));
        let pane = sample.model.focus;
        assert_eq!(sample.type_in("t"), [Effect::Send(pane, b"t".to_vec())]);
    }

    #[test]
    fn only_what_was_shown_to_its_end_is_trusted() {
        let mut sample = opened("h1", 100);
        for keys in ["t", "y", "\r", "\x1b[B", " t"] {
            assert_eq!(sample.type_in(keys), [], "{keys:?}");
        }
        assert!(sample.model.notice.as_ref().unwrap().text.contains("more of it below"));
        assert_eq!(sample.type_in("\x1b[Fy"), trusts("h1"));
    }

    #[test]
    fn another_content_is_shown_from_its_beginning() {
        let mut sample = opened("h1", 1);
        let effects = sample.happen(file(UNTRUSTED, "h2")).to_vec();
        assert!(matches!(&effects[..], [Effect::Call { asked: Asked::ProjectFile, .. }]));
        assert_eq!(sample.type_in("t"), [], "neither the old one nor one that is not shown");
        declares(&mut sample, "h2", 1);
        assert_eq!(sample.type_in("t"), [], "the finger was on its way to the old one");
        sample.model.now += LOOK_MS;
        assert_eq!(sample.type_in("t"), trusts("h2"));
        sample.happen(file(ProjectFileState::Faulty, "h3"));
        let answer = json!({"project_file": {"hash": "h3", "faults": ["1:1: no"]}});
        sample.happen(Event::Answer(Asked::ProjectFile, Ok(answer)));
        assert_eq!(sample.type_in("t"), [], "a faulty one cannot be trusted");
        sample.happen(Event::Snapshot(project()));
        assert!(!is_open(&sample), "it is gone");
    }

    #[test]
    fn escape_leaves_it_untrusted_and_other_keys_do_nothing() {
        for keys in ["\x1b", "q", "n"] {
            let mut sample = opened("h1", 1);
            assert_eq!(sample.type_in("x\t\x1b[5~\x14"), []);
            assert!(is_open(&sample));
            assert_eq!(sample.type_in(keys), []);
            assert!(!is_open(&sample), "{keys:?}");
        }
    }

    #[test]
    fn the_wheel_scrolls_and_a_click_does_not_close_it() {
        let mut sample = opened("h1", 100);
        sample.type_in("\x1b[<65;5;5M\x1b[<0;5;5M\x1b[<0;5;5m");
        let Mode::Trust(sheet) = &sample.model.mode else { panic!() };
        assert!(sheet.top > 0);
    }

    #[test]
    fn where_there_is_nothing_to_decide_that_is_said() {
        let mut sample = Sample::new(80, 24);
        sample.type_in("\x02T");
        assert!(sample.model.notice.take().unwrap().text.contains("no patterm.toml"));
        sample.happen(file(ProjectFileState::Trusted, "h1"));
        sample.type_in("\x02T");
        assert!(sample.model.notice.take().unwrap().text.contains("trusted as it is"));
        assert!(!is_open(&sample));
    }
}
