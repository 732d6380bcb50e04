//! Trusting the project file: the user sees what it would run, and decides.

use patterm_screen::Key;
use patterm_screen::keys::KeyCode;
use patterm_wire::follow::{ProjectFileInfo, ProjectFileState};
use patterm_wire::method::Empty;
use patterm_wire::requests::{Trust, TrustRequest};
use patterm_wire::tools::{GetProjectStatus, ProjectFileStatus};

use super::{CallPurpose, Effect, notify};
use crate::action::Action;
use crate::list::one_line;
use crate::model::{Mode, Model, Notice, NoticeSubject};
use crate::trust::TrustPanel;
use crate::view;

/// How many rows two pages have in common.
const OVERLAP: usize = 2;

/// How long a panel that opened on its own must be visible, without a key being pressed, before a key can trust
/// the file.
const LOOK_MS: u64 = 1_000;

/// Opens the panel, or shows why there is nothing to decide.
pub(super) fn open(model: &mut Model, effects: &mut Vec<Effect>) {
    match &model.snapshot.project_file.state {
        ProjectFileState::Absent => {
            notify(model, "this project has no patterm.toml; `patterm init` writes one", false);
        }
        ProjectFileState::Trusted => notify(model, "patterm.toml is already trusted", false),
        ProjectFileState::Untrusted | ProjectFileState::Faulty => {
            model.mode = Mode::Trust(TrustPanel::default());
            request_status(effects);
        }
        ProjectFileState::Other(state) => {
            notify(model, &format!("patterm.toml is {}", one_line(state)), false);
        }
    }
}

fn request_status(effects: &mut Vec<Effect>) {
    effects.push(Effect::call::<GetProjectStatus>(&Empty {}, CallPurpose::ProjectFile));
}

/// Handles a new state of the file; `before` is `None` for the first snapshot.
pub(super) fn apply_snapshot(
    model: &mut Model,
    before: Option<&ProjectFileInfo>,
    effects: &mut Vec<Effect>,
) {
    let now = model.snapshot.project_file.clone();
    if before == Some(&now) {
        return;
    }
    if model.notice.as_ref().is_some_and(|notice| notice.subject == NoticeSubject::ProjectFile) {
        model.notice = None;
    }
    if matches!(model.mode, Mode::Trust(_)) {
        return update_panel(model, &now.state, effects);
    }
    match (before.map(|before| &before.state), now.state) {
        // The user has just opened the project and has not typed anything yet.
        (None, ProjectFileState::Untrusted) if model.mode == Mode::Typing => {
            model.mode = Mode::Trust(TrustPanel { not_before: u64::MAX, ..TrustPanel::default() });
            request_status(effects);
        }
        (Some(_), ProjectFileState::Untrusted) => {
            warn(
                model,
                match now.changed {
                    true => "patterm.toml has changed; the trusted version stays in effect",
                    false => "patterm.toml is not trusted and does not take effect",
                },
            );
        }
        (Some(_), ProjectFileState::Faulty) => {
            warn(model, "patterm.toml has errors and does not take effect");
        }
        _ => {}
    }
}

/// Says that the file is not in effect, and which key shows it.
fn warn(model: &mut Model, text: &str) {
    let press = model.settings.keys.press(Action::Trust);
    let (text, subject) = (format!("{text} ({press})"), NoticeSubject::ProjectFile);
    model.notice = Some(Notice { text, is_error: true, subject });
}

/// A new content is shown from its beginning, so that nobody trusts it unseen.
fn update_panel(model: &mut Model, now: &ProjectFileState, effects: &mut Vec<Effect>) {
    match now {
        ProjectFileState::Untrusted | ProjectFileState::Faulty => {
            let not_before = u64::MAX;
            model.mode =
                Mode::Trust(TrustPanel { changed: true, not_before, ..TrustPanel::default() });
            request_status(effects);
        }
        ProjectFileState::Trusted => {
            close(model, "patterm.toml is trusted; a changed file must be trusted again");
        }
        ProjectFileState::Absent => close(model, "patterm.toml was removed"),
        ProjectFileState::Other(state) => {
            close(model, &format!("patterm.toml is {}", one_line(state)));
        }
    }
}

/// There is nothing left to decide. If that was not decided here, the next key was meant for the panel; it
/// closes the text that says so.
fn close(model: &mut Model, text: &str) {
    let confirmed_here = matches!(&model.mode, Mode::Trust(panel) if panel.confirmed);
    if confirmed_here {
        model.mode = Mode::Typing;
        return notify(model, text, false);
    }
    let (title, text) = ("patterm.toml".to_owned(), text.to_owned());
    model.mode = Mode::Text { title, text, top: 0 };
}

/// The heading between the changes and the whole content.
const DECLARES: &str = "All that it declares:";

/// The server's description of the file.
pub(super) fn answered(model: &mut Model, file: ProjectFileStatus) {
    let Mode::Trust(panel) = &mut model.mode else { return };
    let own = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    panel.lines = match (&file.would_run, &file.changes) {
        (Some(would_run), None) => own(would_run),
        (Some(would_run), Some(changes)) => {
            [own(changes), vec![String::new(), DECLARES.into(), String::new()], own(would_run)]
                .concat()
        }
        (None, _) => file.faults,
    };
    panel.top = 0;
    if panel.not_before > 0 {
        panel.not_before = model.now.saturating_add(LOOK_MS);
    }
    // Only what is shown can be trusted.
    panel.hash = file.hash.filter(|_| file.would_run.is_some());
}

/// A key while the panel is open, except those that close it.
pub(super) fn key(model: &mut Model, mut panel: TrustPanel, key: &Key, effects: &mut Vec<Effect>) {
    let body = view::trust_body(model);
    let page = usize::from(body.height).saturating_sub(OVERLAP).max(1) as isize;
    let by = match key.code {
        KeyCode::Char('t' | 'y') if !key.ctrl && !key.alt && !key.logo => {
            trust(model, &mut panel, effects);
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
    if model.now < panel.not_before {
        // The user is still typing something that was meant for another place.
        panel.not_before = panel.not_before.max(model.now.saturating_add(LOOK_MS));
    }
    shift(&mut panel, model, by);
    model.mode = Mode::Trust(panel);
}

/// The wheel over the panel.
pub(super) fn wheel(model: &mut Model, rows: i32) {
    if let Mode::Trust(mut panel) = std::mem::take(&mut model.mode) {
        shift(&mut panel, model, rows as isize);
        model.mode = Mode::Trust(panel);
    }
}

fn shift(panel: &mut TrustPanel, model: &Model, by: isize) {
    let body = view::trust_body(model);
    let rows = panel.rows(body.width).len();
    panel.top = panel.first(rows, body.height).saturating_add_signed(by);
    panel.top = panel.first(rows, body.height);
}

fn trust(model: &mut Model, panel: &mut TrustPanel, effects: &mut Vec<Effect>) {
    let Some(hash) = &panel.hash else { return };
    if !panel.shows_end(view::trust_body(model)) {
        return notify(model, "there is more below: scroll to the end first", true);
    }
    if model.now < panel.not_before {
        return notify(
            model,
            "this has only just appeared: look at it for a second, then press the key",
            true,
        );
    }
    let request = TrustRequest { hash: hash.clone() };
    panel.confirmed = true;
    effects.push(Effect::call::<Trust>(&request, CallPurpose::Nothing));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, project};
    use crate::update::Event;
    use patterm_wire::follow::ProjectSnapshot;
    use serde_json::json;

    const UNTRUSTED: ProjectFileState = ProjectFileState::Untrusted;

    fn file(state: ProjectFileState, hash: &str) -> Event {
        let hash = Some(hash.to_owned());
        Event::Snapshot(ProjectSnapshot {
            project_file: ProjectFileInfo { changed: hash.as_deref() != Some("h1"), state, hash },
            ..project()
        })
    }

    fn declares(sample: &mut Sample, hash: &str, lines: usize) {
        let would = "  runs x\n".repeat(lines);
        let answer = json!({"project_file": {"hash": hash, "would_run": would}});
        sample.handle(Event::Answer(CallPurpose::ProjectFile, Ok(answer)));
    }

    fn opened(hash: &str, lines: usize) -> Sample {
        let mut sample = Sample::new(80, 24);
        sample.handle(file(UNTRUSTED, hash));
        sample.type_in("\x02T");
        declares(&mut sample, hash, lines);
        sample
    }

    fn is_open(sample: &Sample) -> bool {
        matches!(sample.model.mode, Mode::Trust(_))
    }

    fn trusts(hash: &str) -> [Effect; 1] {
        let request = TrustRequest { hash: hash.to_owned() };
        [Effect::call::<Trust>(&request, CallPurpose::Nothing)]
    }

    #[test]
    fn the_panel_opens_with_an_untrusted_project() {
        let mut sample = Sample::empty(80, 24);
        sample.model.has_snapshot = false;
        let effects = sample.handle(file(UNTRUSTED, "h1")).to_vec();
        let asks = |effect: &Effect| {
            matches!(effect, Effect::Call { purpose: CallPurpose::ProjectFile, .. })
        };
        assert!(is_open(&sample) && effects.iter().any(asks), "{effects:?}");
        // It is not shown yet and cannot be trusted.
        assert_eq!(sample.type_in("t"), []);
        declares(&mut sample, "h1", 3);
        // Nor while the user keeps typing.
        assert_eq!(sample.type_in("test"), []);
        assert!(sample.model.notice.as_ref().unwrap().text.contains("only just appeared"));
        for _ in 0..5 {
            sample.model.now += LOOK_MS - 1;
            assert_eq!(sample.type_in("yt"), [], "without a pause");
        }
        sample.model.now += LOOK_MS;
        assert_eq!(sample.type_in("t"), trusts("h1"));
        assert!(is_open(&sample), "until the server confirms it");
        sample.handle(file(ProjectFileState::Trusted, "h1"));
        assert!(!is_open(&sample));
        assert!(sample.model.notice.take().unwrap().text.contains("is trusted"));
    }

    #[test]
    fn a_file_that_becomes_untrusted_takes_no_keys_from_a_program() {
        let mut sample = Sample::new(80, 24);
        sample.handle(file(ProjectFileState::Trusted, "h1"));
        sample.handle(file(UNTRUSTED, "h2"));
        assert!(!is_open(&sample));
        let notice = sample.model.notice.clone().unwrap();
        assert_eq!(
            notice.text,
            "patterm.toml has changed; the trusted version stays in effect (ctrl+b T)"
        );
        let pane = sample.model.focus;
        assert_eq!(sample.type_in("t"), [Effect::Send(pane, b"t".to_vec())]);
    }

    #[test]
    fn a_notice_about_the_file_goes_when_it_is_no_longer_true() {
        let text = |sample: &Sample| sample.model.notice.clone().map(|notice| notice.text);
        let mut sample = Sample::new(80, 24);
        sample.handle(file(ProjectFileState::Trusted, "h1"));
        sample.handle(file(UNTRUSTED, "h2"));
        sample.handle(file(ProjectFileState::Faulty, "h3"));
        let faulty = "patterm.toml has errors and does not take effect (ctrl+b T)";
        assert_eq!(text(&sample).as_deref(), Some(faulty));
        // Trusted in another terminal.
        sample.handle(file(ProjectFileState::Trusted, "h4"));
        assert_eq!(text(&sample), None);
        sample.handle(file(UNTRUSTED, "h5"));
        notify(&mut sample.model, "copied", false);
        sample.handle(file(ProjectFileState::Trusted, "h5"));
        assert_eq!(text(&sample).as_deref(), Some("copied"), "it is about something else");
    }

    #[test]
    fn only_what_was_shown_to_the_end_is_trusted() {
        let mut sample = opened("h1", 100);
        for keys in ["t", "y", "\r", "\x1b[B", " t"] {
            assert_eq!(sample.type_in(keys), [], "{keys:?}");
        }
        assert!(sample.model.notice.as_ref().unwrap().text.contains("more below"));
        assert_eq!(sample.type_in("\x1b[Fy"), trusts("h1"));
    }

    #[test]
    fn a_changed_content_is_shown_from_its_beginning() {
        let mut sample = opened("h1", 1);
        let effects = sample.handle(file(UNTRUSTED, "h2")).to_vec();
        assert!(matches!(&effects[..], [Effect::Call { purpose: CallPurpose::ProjectFile, .. }]));
        assert_eq!(sample.type_in("t"), [], "neither the old content nor one that is not shown");
        declares(&mut sample, "h2", 1);
        assert_eq!(sample.type_in("t"), [], "the key was meant for the old content");
        sample.model.now += LOOK_MS;
        assert_eq!(sample.type_in("t"), trusts("h2"));
        sample.handle(file(ProjectFileState::Faulty, "h3"));
        let answer = json!({"project_file": {"hash": "h3", "faults": ["1:1: no"]}});
        sample.handle(Event::Answer(CallPurpose::ProjectFile, Ok(answer)));
        assert_eq!(sample.type_in("t"), [], "a file with errors cannot be trusted");
        sample.handle(Event::Snapshot(project()));
        assert!(!is_open(&sample), "it was removed");
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
    fn the_wheel_scrolls_and_a_click_does_not_close_the_panel() {
        let mut sample = opened("h1", 100);
        sample.type_in("\x1b[<65;5;5M\x1b[<0;5;5M\x1b[<0;5;5m");
        let Mode::Trust(panel) = &sample.model.mode else { panic!() };
        assert!(panel.top > 0);
    }

    #[test]
    fn a_notice_says_that_there_is_nothing_to_decide() {
        let mut sample = Sample::new(80, 24);
        sample.type_in("\x02T");
        assert!(sample.model.notice.take().unwrap().text.contains("no patterm.toml"));
        sample.handle(file(ProjectFileState::Trusted, "h1"));
        sample.type_in("\x02T");
        assert!(sample.model.notice.take().unwrap().text.contains("already trusted"));
        assert!(!is_open(&sample));
    }
}
