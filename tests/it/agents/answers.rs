//! A person answers an agent's dialog by choosing an option: the keys that the preset names for it do what the
//! option says, and nothing is typed into a dialog that the person has not seen.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use patterm_wire::Method;
use patterm_wire::follow::{self, DialogInfo, Follow, ProjectSnapshot};
use patterm_wire::requests::AnswerDialog;
use serde_json::{Value, json};

use super::bench::{Bench, send};
use super::cli::Cli;
use super::fake::{settle, turns};
use super::report::row;
use crate::support::tool_client::{ToolClient, id_of, until};
use crate::support::{Place, Spawned};

/// The fake agent with dialogs that are answered in different ways.
pub(crate) const ASKING: &str = r#"
[agents.asking]
like = "fake"
[agents.asking.rules.choice]
state = "blocked"
lowest = '^\(choose\)'
answer = ["number"]
[agents.asking.rules.list]
state = "blocked"
lowest = '^\(list\)'
answer = ["up-down"]
[agents.asking.rules.row]
state = "blocked"
lowest = '^\(row\)'
options = '^(Once) +(Always) +(Never)$'
answer = ["left-right"]
[agents.asking.rules.silent]
state = "blocked"
lowest = '^\(silent\)'
"#;

/// The project as a client that only observes sees it.
pub(crate) fn observe(socket: &Path) -> ProjectSnapshot {
    let mut stream = UnixStream::connect(socket).unwrap();
    let params = json!({"version": follow::VERSION, "observes": true});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": Follow::NAME, "params": params});
    stream.write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let mut answer: Value = serde_json::from_str(&line).unwrap();
    serde_json::from_value(answer["result"].take()).unwrap_or_else(|e| panic!("{e}: {line}"))
}

/// The dialog of a process, once it has one that matches.
#[track_caller]
pub(crate) fn until_dialog(
    socket: &Path,
    id: &str,
    wanted: impl Fn(&DialogInfo) -> bool,
) -> DialogInfo {
    until(&format!("the dialog of {id}"), || {
        let processes = observe(socket).processes;
        let process = processes.into_iter().find(|process| process.id == id)?;
        process.dialog.filter(|dialog| wanted(dialog))
    })
}

#[track_caller]
fn answer(
    tools: &mut ToolClient,
    id: &str,
    dialog: &DialogInfo,
    option: Value,
) -> (String, String) {
    let request = json!({"process_id": id, "dialog": dialog.version, "option": option});
    let answered = tools.ok(AnswerDialog::NAME, request);
    let text = |name: &str| answered[name].as_str().unwrap().to_owned();
    (text("state"), text("reason"))
}

/// A real CLI asks whether to run something: once the person says no, and then yes.
pub(super) fn permission(cli: Cli) {
    let mut bench = Bench::with_settings(cli, &cli.asking);
    let id = bench.spawn_ready();
    let socket = bench.server.socket.clone();
    let file = bench.place.path("project/made");
    for says_yes in [false, true] {
        bench.send(&id, &cli.ask);
        bench.until_state(&id, "blocked");
        let dialog = until_dialog(&socket, &id, |dialog| dialog.is_answerable());
        let labels: Vec<_> = dialog.options.iter().map(|option| &option.label).collect();
        let is = |label: &str, words: &[&str]| words.iter().any(|word| label.contains(word));
        let wanted = labels.iter().position(|label| match says_yes {
            true => is(label, &["Yes", "Allow once"]),
            false => is(label, &["No", "Reject"]),
        });
        let wanted = wanted.unwrap_or_else(|| panic!("{labels:?}"));
        let mut person = bench.person();
        let (state, reason) = answer(&mut person, &id, &dialog, json!(wanted + 1));
        assert_eq!(state, "accepted", "{labels:?}: {reason}\n{}", bench.story());
        if says_yes {
            bench.until("the tool ran", |_| file.exists().then_some(()).ok_or(String::new()));
        } else {
            // Some CLIs ask what to do instead; that leaves their prompt.
            bench.until("it asks nothing", |bench| {
                let activity = bench.activity(&id);
                (activity["state"] == "idle").then_some(()).ok_or(activity.to_string())
            });
            assert!(!file.exists(), "the tool was not approved");
        }
        let (state, reason) = answer(&mut person, &id, &dialog, json!(1));
        assert_eq!(state, "refused", "the same dialog again: {reason}");
    }
    row(cli, "dialogs answered by option", "2 of 2: once no, once yes");
}

struct Asking {
    place: Place,
    server: Spawned,
    tools: ToolClient,
    id: String,
}

impl Asking {
    fn new() -> Self {
        let mut place = Place::new();
        settle(&mut place, ASKING);
        let server = place.serve();
        let mut tools = ToolClient::at(&server.socket());
        let id = id_of(&tools.ok("spawn_agent", json!({"agent": "asking"})));
        Self { place, server, tools, id }
    }

    /// Has it show a dialog of this kind.
    #[track_caller]
    fn ask(&mut self, what: &str) -> DialogInfo {
        send(&mut self.tools, &self.id, what);
        until_dialog(&self.server.socket(), &self.id, |_| true)
    }

    #[track_caller]
    fn answer(&mut self, dialog: &DialogInfo, option: Value) -> (String, String) {
        answer(&mut self.tools, &self.id.clone(), dialog, option)
    }

    /// The option that it was told last.
    fn chosen(&self) -> Option<String> {
        turns(&self.place).into_iter().rfind(|turn| turn.starts_with("chose "))
    }
}

#[test]
fn an_option_is_chosen_by_its_number_in_a_list_and_in_a_row() {
    let mut asking = Asking::new();
    for (what, option, chosen) in [
        ("choose", json!(2), "chose 2"),
        ("choose", json!("1. Red"), "chose 1"),
        ("list", json!(3), "chose Green"),
        ("list", json!("Red"), "chose Red"),
        ("row", json!(3), "chose Never"),
        ("row", json!(1), "chose Once"),
    ] {
        let dialog = asking.ask(what);
        assert_eq!(dialog.question, "Which one?", "{what}");
        let (state, reason) = asking.answer(&dialog, option);
        assert_eq!((state.as_str(), reason.as_str()), ("accepted", "the dialog closed"), "{what}");
        assert_eq!(asking.chosen().as_deref(), Some(chosen), "{what}");
        let (state, reason) = asking.answer(&dialog, json!(1));
        assert_eq!(state, "refused", "{what}: {reason}");
    }
}

#[test]
fn enter_is_pressed_again_if_the_dialog_ignores_it() {
    let mut asking = Asking::new();
    let dialog = asking.ask("list twice");
    let (state, reason) = asking.answer(&dialog, json!(2));
    assert_eq!((state.as_str(), asking.chosen().as_deref()), ("accepted", Some("chose Blue")));
    assert_eq!(reason, "the dialog closed");
}

#[test]
fn a_dialog_that_changed_is_not_answered() {
    let mut asking = Asking::new();
    let dialog = asking.ask("choose changed");
    std::fs::write(asking.place.path("project/changed"), "").unwrap();
    let other = until_dialog(&asking.server.socket(), &asking.id.clone(), |now| {
        now.question != dialog.question
    });
    assert_eq!(other.question, "Delete everything?");
    let (state, reason) = asking.answer(&dialog, json!(1));
    assert_eq!(state, "refused");
    assert!(reason.contains("asks something else now"), "{reason}");
    let (state, reason) = asking.answer(&other, json!(9));
    assert_eq!(state, "refused");
    assert!(reason.contains("the dialog has 2"), "{reason}");
    assert_eq!(asking.chosen(), None, "nothing was typed");
    assert_eq!(asking.answer(&other, json!(2)).0, "accepted");
    assert_eq!(asking.chosen().as_deref(), Some("chose 2"));
    // The same text once more is another dialog.
    let again = asking.ask("choose");
    assert_eq!((&again.question, &again.options), (&dialog.question, &dialog.options));
    let (state, reason) = asking.answer(&dialog, json!(1));
    assert_eq!(state, "refused", "{reason}");
    assert_eq!(asking.answer(&again, json!(1)).0, "accepted");
}

#[test]
fn only_a_person_answers_and_only_where_the_keys_are_known() {
    let mut asking = Asking::new();
    let dialog = asking.ask("silent");
    assert!(!dialog.is_answerable(), "{dialog:?}");
    let (state, reason) = asking.answer(&dialog, json!(1));
    assert_eq!(state, "refused");
    assert!(reason.contains("does not know the keys"), "{reason}");
    let unknown = json!({"process_id": "p99", "dialog": "x", "option": 1});
    asking.tools.refused("not_found", AnswerDialog::NAME, unknown);
    let mut agent = ToolClient::at(&asking.server.socket());
    let folder = asking.place.state().file("agents").join(&asking.id);
    let token = std::fs::read_to_string(folder.join("identity")).unwrap();
    agent.peer.greet(token.trim(), None);
    let request = json!({"process_id": asking.id, "dialog": dialog.version, "option": 1});
    let message = agent.refused("not_owner", AnswerDialog::NAME, request);
    assert!(message.contains("only a person may answer a dialog"), "{message}");
}
