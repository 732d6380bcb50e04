//! The overview of all projects, and answering questions there.

use patterm_wire::Method;
use patterm_wire::follow::{DialogInfo, DialogOption, ProjectSnapshot};
use patterm_wire::requests::{AnswerDialog, ServerEntry};
use serde_json::json;

use super::{CallPurpose, Effect, Event, Switched};
use crate::model::Mode;
use crate::overview::OverviewEvent;
use crate::sample::{Sample, asking, others, project, server};
use crate::view::view;

/// The overview with three projects, one of which does not answer.
fn opened() -> Sample {
    let mut sample = Sample::new(100, 30);
    sample.model.project_key = "k1".to_owned();
    assert_eq!(sample.type_in("\x02L"), [Effect::OpenOverview]);
    others(&mut sample);
    sample
}

fn chosen(sample: &Sample) -> (&str, Option<&str>) {
    let Mode::Overview(place) = &sample.model.mode else { panic!("{:?}", sample.model.mode) };
    (&place.key, place.process.as_deref())
}

fn notice(sample: &Sample) -> &str {
    sample.model.notice.as_ref().map_or("", |notice| &notice.text)
}

#[test]
fn enter_switches_to_another_project_and_shows_a_process_of_this_one() {
    let mut sample = opened();
    assert_eq!(chosen(&sample), ("k1", None));
    sample.type_in("jj");
    assert_eq!(chosen(&sample), ("k1", Some("p2")));
    let effects = sample.type_in("\r").to_vec();
    assert!(matches!(&effects[..], [.., Effect::CloseOverview]), "{effects:?}");
    assert_eq!(sample.model.selected().unwrap().id, "p2");
    let mut sample = opened();
    sample.type_in("\x1b[F");
    assert_eq!(chosen(&sample), ("k3", None));
    assert_eq!(sample.type_in("\r"), [], "its server does not answer");
    assert!(notice(&sample).contains("kill -CONT 7"), "{}", notice(&sample));
    sample.type_in("k");
    assert_eq!(chosen(&sample), ("k2", Some("p1")));
    let switch = Effect::Switch { key: "k2".to_owned(), process: Some("p1".to_owned()) };
    assert_eq!(sample.type_in("\r"), [switch, Effect::CloseOverview]);
}

#[test]
fn the_way_back_is_the_same_key() {
    let mut sample = opened();
    sample.model.buffer = Some("copied".to_owned());
    sample.model.utc_offset = 7_200;
    let to = Switched {
        key: "k2".to_owned(),
        from: "k1".to_owned(),
        process: Some("p1".to_owned()),
        layout: None,
        why: None,
    };
    sample.handle(Event::Switched(Box::new(to)));
    assert!(!sample.model.connected && sample.model.panes.is_empty());
    assert_eq!(sample.model.buffer.as_deref(), Some("copied"));
    assert_eq!(sample.model.utc_offset, 7_200);
    sample.handle(Event::Snapshot(asking()));
    assert_eq!(sample.model.selected().unwrap().name, "writer");
    sample.type_in("\x02L");
    others(&mut sample);
    assert_eq!(chosen(&sample), ("k1", None));
    let back = Effect::Switch { key: "k1".to_owned(), process: None };
    assert_eq!(sample.type_in("\r"), [back.clone(), Effect::CloseOverview]);
    sample.type_in("\x02L");
    others(&mut sample);
    assert_eq!(sample.type_in("jjL"), [back, Effect::CloseOverview]);
}

#[test]
fn an_answer_names_the_dialog_that_was_shown() {
    let mut sample = opened();
    sample.type_in("\x1b[Fk");
    assert_eq!(sample.type_in("\r").len(), 2);
    let mut sample = opened();
    sample.type_in("\x1b[Fk\x1b[C");
    assert!(view(&sample.model).text().contains("writer asks"), "the project's only agent");
    let effects = sample.type_in("2").to_vec();
    let [Effect::CallAt { project, method, params, purpose }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((project.as_str(), *method), ("k2", AnswerDialog::NAME));
    assert_eq!(*params, json!({"process_id": "p1", "dialog": "1-a", "option": 2}));
    assert_eq!(chosen(&sample), ("k2", Some("p1")), "the overview stays open");
    let refused = json!({"state": "refused", "reason": "it asks something else now"});
    sample.handle(Event::Answer(purpose.clone(), Ok(refused)));
    assert_eq!(notice(&sample), "writer was not answered: it asks something else now");
    let accepted = json!({"state": "accepted", "reason": "the dialog closed"});
    sample.handle(Event::Answer(CallPurpose::Answer("writer".to_owned()), Ok(accepted)));
    assert_eq!(notice(&sample), "writer was answered: the dialog closed");
}

#[test]
fn an_option_that_is_one_letter_is_chosen_by_it_unless_that_is_a_key_of_the_window() {
    let mut sample = Sample::new(100, 30);
    let mut asks = project();
    let options =
        ["n", "y", "q"].map(|label| DialogOption { label: label.to_owned(), answerable: true });
    asks.processes[2].dialog = Some(DialogInfo {
        version: "3-c".to_owned(),
        question: "Push?".to_owned(),
        options: options.to_vec(),
    });
    sample.handle(Event::Snapshot(asks));
    sample.type_in("\x02u\x1b[C");
    assert_eq!(sample.type_in("x"), [], "no option");
    let effects = sample.type_in("y").to_vec();
    let [Effect::Call { params, .. }, Effect::CloseOverview] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(params["option"], 2);
    sample.type_in("\x02u\x1b[C");
    assert!(matches!(sample.model.mode, Mode::Answer(_)));
    assert_eq!(sample.type_in("q"), [], "it closes the window");
    assert!(!matches!(sample.model.mode, Mode::Answer(_)));
    let is_list = |sample: &Sample| matches!(sample.model.mode, Mode::List { .. });
    assert!(is_list(&sample), "back where it was opened");
    sample.type_in("\x1b[C");
    assert!(matches!(sample.model.mode, Mode::Answer(_)));
    assert_eq!(sample.type_in("\x1b"), []);
    assert!(is_list(&sample));
    assert_eq!(sample.type_in("\x1b"), [Effect::CloseOverview], "it closes the list");
    assert_eq!(sample.model.mode, Mode::Typing);
}

#[test]
fn a_question_that_changes_while_it_is_open_closes_and_is_not_answered() {
    let mut sample = opened();
    sample.type_in("\x1b[Fk\x1b[C");
    let mut changed = asking();
    changed.processes[0].dialog.as_mut().unwrap().version = "2-b".to_owned();
    let news = |snapshot: ProjectSnapshot| {
        Event::Overview(OverviewEvent::Snapshot("k2".to_owned(), Box::new(snapshot)))
    };
    sample.handle(news(asking()));
    assert!(matches!(sample.model.mode, Mode::Answer(_)), "the same again");
    sample.handle(news(changed));
    assert_eq!(notice(&sample), "writer asks something else now; nothing was answered");
    assert_eq!(sample.type_in("1"), [], "the overview is open, where a number does nothing");
}

#[test]
fn a_question_of_this_project_is_answered_from_the_list_of_those_who_need_attention() {
    let mut sample = Sample::new(100, 30);
    sample.type_in("\x02u\x1b[C");
    assert_eq!(notice(&sample), "tests is not showing a question with options");
    let mut asks = project();
    let options = ["1. Yes", "2. No"]
        .map(|label| DialogOption { label: label.to_owned(), answerable: label == "1. Yes" });
    asks.processes[2].dialog = Some(DialogInfo {
        version: "3-c".to_owned(),
        question: "Push?".to_owned(),
        options: options.to_vec(),
    });
    sample.handle(Event::Snapshot(asks.clone()));
    sample.type_in("\x1b[C");
    assert_eq!(sample.type_in("2"), [], "its keys are not known");
    let effects = sample.type_in("\x1b[A\r").to_vec();
    let [Effect::Call { method, params, .. }, Effect::CloseOverview] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(*method, AnswerDialog::NAME);
    assert_eq!(*params, json!({"process_id": "p3", "dialog": "3-c", "option": 1}));
    assert_eq!(sample.model.mode, Mode::Typing);
    sample.type_in("\x02u\x1b[C");
    asks.processes[2].dialog = None;
    sample.handle(Event::Snapshot(asks));
    let Mode::Text { text, .. } = &sample.model.mode else { panic!("{:?}", sample.model.mode) };
    assert_eq!(text, "tests no longer asks anything; nothing was answered");
    assert_eq!(sample.type_in("\r"), [], "it was meant for the question");
    assert_eq!(sample.model.mode, Mode::Typing);
}

#[test]
fn a_server_that_ends_disappears_and_one_that_starts_again_is_connected_to() {
    let mut sample = opened();
    sample.type_in("\x1b[F");
    let left: Vec<ServerEntry> = ["k1", "k2"].map(server).to_vec();
    sample.handle(Event::Overview(OverviewEvent::Servers(left.clone())));
    let text = view(&sample.model).text();
    assert!(!text.contains("does not answer") && text.contains("writer"), "{text}");
    let again = ServerEntry { pid: 99, ..server("k2") };
    sample.handle(Event::Overview(OverviewEvent::Servers(vec![again])));
    let text = view(&sample.model).text();
    assert!(!text.contains("writer"), "{text}");
    assert_eq!(sample.type_in("\x1b"), [Effect::CloseOverview]);
    sample.handle(Event::Overview(OverviewEvent::Servers(left)));
    assert!(sample.model.overview.is_none());
}

#[test]
fn agents_of_other_projects_that_need_the_user_are_listed_with_their_project() {
    let mut sample = Sample::new(100, 30);
    sample.model.project_key = "k1".to_owned();
    let mut calm = project();
    for process in &mut calm.processes {
        (process.attention, process.dialog) = (None, None);
        process.activity = patterm_wire::follow::ActivityState::Idle;
    }
    sample.handle(Event::Snapshot(calm));
    assert_eq!(sample.type_in("\x02u"), [Effect::OpenOverview]);
    assert!(view(&sample.model).text().contains("asking your other projects"));
    others(&mut sample);
    let text = view(&sample.model).text();
    assert!(text.contains("writer") && text.contains("in website: "), "{text}");
    // Its question can be answered from here, and the way back is this list.
    sample.type_in("\x1b[C");
    assert!(view(&sample.model).text().contains("writer asks"));
    sample.type_in("q");
    let switch = Effect::Switch { key: "k2".to_owned(), process: Some("p1".to_owned()) };
    assert_eq!(sample.type_in("\r"), [switch, Effect::CloseOverview]);
}

#[test]
fn nobody_needs_the_user_once_every_project_has_said_so() {
    let mut sample = Sample::new(100, 30);
    sample.model.project_key = "k1".to_owned();
    let mut calm = project();
    for process in &mut calm.processes {
        (process.attention, process.dialog) = (None, None);
        process.activity = patterm_wire::follow::ActivityState::Idle;
    }
    sample.handle(Event::Snapshot(calm));
    sample.type_in("\x02u");
    sample.handle(Event::Overview(OverviewEvent::Servers(vec![server("k1")])));
    assert!(view(&sample.model).text().contains("no agent needs you, in any of your projects"));
    let effects = sample.type_in("\x1b");
    assert!(!effects.contains(&Effect::OpenOverview));
}
