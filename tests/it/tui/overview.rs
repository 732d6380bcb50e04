//! All projects at a glance: three servers, one of them suspended; jumping to another project and back, and
//! answering a question there.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::Screen;
use crate::agents::answers::{ASKING, until_dialog};
use crate::agents::fake::{settle, turns};
use crate::support::Place;

/// Three projects with servers, in folders beside each other: `project` has a shell, `asks` an agent with a question,
/// and `stopped` a program that ended. The server of the last is suspended until the end.
struct Three {
    place: Place,
    asks: PathBuf,
    suspended: Pid,
}

impl Three {
    fn new(question: &str) -> Self {
        let mut place = Place::new();
        settle(&mut place, ASKING);
        let asks = place.folder("asks");
        let stopped = place.folder("stopped");
        place.run(&["run", "--name", "mine", "--", "sh", "-c", "echo here is mine; cat"]);
        let at = |folder: &PathBuf| folder.to_str().unwrap().to_owned();
        place.run(&["-C", &at(&asks), "agent", "asking", question, "--name", "writer"]);
        crate::support::tool_client::until("the question", || {
            let shown = place.run(&["-C", &at(&asks), "ps", "--json"]);
            shown.contains("\"blocked\"").then_some(())
        });
        place.run(&["-C", &at(&stopped), "run", "--name", "gone", "--", "sh", "-c", "exit 3"]);
        let pid = entry(&place, "stopped")["pid"].as_u64().unwrap();
        let suspended = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(suspended, Signal::STOP).unwrap();
        Self { place, asks, suspended }
    }

    /// The socket of the project that asks.
    fn socket(&self) -> PathBuf {
        entry(&self.place, "asks")["socket"].as_str().unwrap().into()
    }

    fn chosen(&self) -> Option<String> {
        turns(&self.place).into_iter().rfind(|turn| turn.starts_with("chose "))
    }
}

impl Drop for Three {
    fn drop(&mut self) {
        // It has to notice that its place is removed.
        let _ = kill_process(self.suspended, Signal::CONT);
    }
}

/// A project in the output of `patterm overview`.
fn entry(place: &Place, folder: &str) -> Value {
    let printed = place.run(&["overview", "--json"]);
    let all: Vec<Value> = serde_json::from_str(&printed).unwrap();
    let path = json!(place.path(folder));
    let found = all.into_iter().find(|project| project["project"] == path);
    found.unwrap_or_else(|| panic!("no {folder} in {printed}"))
}

#[test]
fn the_verb_shows_every_project_and_a_hung_one_delays_no_other() {
    let three = Three::new("choose");
    until_dialog(&three.socket(), "p1", |_| true);
    let asks = entry(&three.place, "asks");
    assert_eq!((&asks["state"], &asks["running"]), (&json!("running"), &json!(1)), "{asks}");
    let writer = &asks["processes"][0];
    assert_eq!((&writer["name"], &writer["state"]), (&json!("writer"), &json!("blocked")));
    assert_eq!((&writer["kind"], &writer["needs_you"]), (&json!("agent"), &json!(true)));
    assert_eq!(writer["reason"], "Which one? (1. Red | 2. Blue)");
    assert_eq!(writer["dialog"]["options"][1], json!({"label": "2. Blue", "answerable": true}));
    let hung = entry(&three.place, "stopped");
    assert_eq!((&hung["state"], &hung["running"]), (&json!("hung"), &Value::Null), "{hung}");
    let advice = hung["advice"].as_str().unwrap();
    let resume = format!("kill -CONT {}", three.suspended.as_raw_nonzero());
    assert!(advice.contains("suspended") && advice.contains(&resume), "{advice}");
    assert_eq!(entry(&three.place, "project")["processes"], json!([]), "only a shell runs there");
    let text = three.place.run(&["overview"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("/asks  1 running"), "{text}");
    assert_eq!(lines[1], "! p1 writer  blocked   Which one? (1. Red | 2. Blue)");
    assert!(lines[2].ends_with("/project (here)  1 running"), "{text}");
    assert!(lines[3].contains("/stopped  does not answer: it is suspended"), "{text}");
    kill_process(three.suspended, Signal::CONT).unwrap();
    let resumed = entry(&three.place, "stopped");
    assert_eq!(resumed["processes"][0]["state"], "exit 3", "{resumed}");
    three.place.run(&["kill", "--all"]);
    let text = three.place.run(&["overview"]);
    assert_eq!(text.trim(), "no project has a server; `patterm` starts one");
}

/// Opens the overview and waits until it shows all three.
fn open(screen: &mut Screen<'_>) {
    screen.lead("L");
    screen.until_it(|shown| {
        shown.contains("all projects")
            && shown.contains("does not answer")
            && shown.contains("writer")
    });
}

/// Whether a part of a line with styles is inverse, as the chosen row is.
fn is_inverse(line: &str) -> bool {
    let styles = line.split("\x1b[").skip(1).filter_map(|rest| rest.split_once('m'));
    styles.flat_map(|(numbers, _)| numbers.split(';')).any(|number| number == "7")
}

/// The rows that are inverse.
fn chosen_rows(styled: &str) -> Vec<usize> {
    styled.lines().enumerate().filter(|(_, line)| is_inverse(line)).map(|(row, _)| row).collect()
}

/// Moves from the first row until the chosen one contains these words.
fn choose(screen: &mut Screen<'_>, words: &str) {
    screen.press(&["Home"]);
    screen.until_styled(|shown| shown.lines().nth(1).is_some_and(is_inverse));
    for _ in 0..10 {
        let styled = screen.styled();
        if styled.lines().any(|line| is_inverse(line) && line.contains(words)) {
            return;
        }
        // Anything else on the screen may change at any time.
        let before = chosen_rows(&styled);
        screen.press(&["Down"]);
        screen.until_styled(|now| chosen_rows(now) != before);
    }
    panic!("{words} cannot be chosen in\n{}", screen.text());
}

#[test]
fn a_person_answers_a_question_of_another_project_jumps_there_and_comes_back() {
    let three = Three::new("choose");
    let mut screen = Screen::with_patterm(&three.place, 100, 30);
    screen.until("here is mine");
    open(&mut screen);
    let shown = screen.text();
    assert!(shown.contains("1. Red | 2. Blue") && shown.contains("kill -CONT"), "{shown}");
    choose(&mut screen, "writer");
    screen.press(&["Right"]);
    screen.until("writer asks");
    screen.press(&["2"]);
    screen.until("writer was answered: the dialog closed");
    assert_eq!(three.chosen().as_deref(), Some("chose 2"));
    // Its state changes where it is shown.
    screen.until("idle");
    choose(&mut screen, "writer");
    screen.press(&["Enter"]);
    screen.until_it(|shown| shown.contains("1 ○ @ writer") && shown.contains("│>"));
    screen.line("typed in the other project");
    crate::support::tool_client::until("the turn", || {
        turns(&three.place).contains(&"typed in the other project".to_owned()).then_some(())
    });
    // A shell that is started here runs here.
    screen.lead("C");
    screen.until("2 ○ > ");
    screen.line("pwd");
    screen.until(three.asks.to_str().unwrap());
    // The way back is the same key.
    open(&mut screen);
    screen.press(&["Enter"]);
    screen.until("here is mine");
    open(&mut screen);
    screen.press(&["L"]);
    screen.until("writer");
    screen.until_it(|shown| !shown.contains("all projects"));
    screen.lead("d");
    screen.until("detached; everything keeps running");
}

#[test]
fn a_question_that_changes_while_it_is_open_is_not_answered() {
    let three = Three::new("choose changed");
    let mut screen = Screen::with_patterm(&three.place, 80, 24);
    open(&mut screen);
    choose(&mut screen, "writer");
    screen.press(&["Right"]);
    screen.until("writer asks");
    std::fs::write(three.asks.join("changed"), "").unwrap();
    screen.until("writer asks something else now; nothing was answered");
    screen.press(&["1"]);
    screen.until("Delete everything?");
    assert_eq!(three.chosen(), None, "nothing was typed");
    choose(&mut screen, "writer");
    screen.press(&["Right"]);
    screen.until("2. No");
    screen.press(&["Down", "Enter"]);
    screen.until("writer was answered");
    assert_eq!(three.chosen().as_deref(), Some("chose 2"));
}

#[test]
fn a_server_that_appears_resumes_or_ends_is_noticed_while_the_overview_is_open() {
    let three = Three::new("choose");
    let mut screen = Screen::with_patterm(&three.place, 100, 30);
    open(&mut screen);
    // Enter on a project whose server hangs says what to do, and stays.
    choose(&mut screen, "stopped");
    screen.press(&["Enter"]);
    screen.until("its server does not answer: it is suspended");
    kill_process(three.suspended, Signal::CONT).unwrap();
    screen.until("exit 3");
    let new = three.place.folder("another");
    let new = new.to_str().unwrap();
    three.place.run(&["-C", new, "run", "--name", "x", "--", "sh", "-c", "exit 5"]);
    screen.until("exit 5");
    three.place.run(&["-C", new, "kill"]);
    screen.until_it(|shown| !shown.contains("exit 5") && shown.contains("exit 3"));
    // A question of the project itself, from the list of those who need attention.
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("all projects"));
}

#[test]
fn a_question_is_answered_from_the_list_of_agents_that_need_attention() {
    let mut place = Place::new();
    settle(&mut place, ASKING);
    place.run(&["agent", "asking", "list", "--name", "writer"]);
    place.run(&["run", "--name", "mine", "--", "sh", "-c", "echo here is mine; cat"]);
    let mut screen = Screen::with_patterm(&place, 80, 24);
    screen.until("here is mine");
    screen.until("! writer");
    screen.lead("u");
    screen.until("agents that need you");
    screen.press(&["Right"]);
    screen.until("writer asks");
    screen.press(&["3"]);
    screen.until("writer was answered: the dialog closed");
    assert_eq!(turns(&place).last().map(String::as_str), Some("chose Green"));
    screen.until("here is mine");
}
