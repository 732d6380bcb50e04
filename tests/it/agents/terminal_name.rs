//! What a pane calls itself when its program asks (XTVERSION), and that the CLIs use the keyboard protocol that they get
//! without a name that they know.

use patterm_screen::TerminalName;
use patterm_wire::view::FromView;
use serde_json::json;

use super::bench::{Bench, type_by_hand};
use super::cli::Cli;
use super::fake::settle;
use super::first_letters::BEFORE_ENTER;
use crate::processes::survival::{desk_of, kill};
use crate::support::Place;
use crate::support::tool_client::id_of;

/// Agents that ask for the terminal's name when they start, and again for each `n` that they read.
const ASKING: &str = r#"
[agents.asks]
title = "Asks"
program = "/bin/sh"
args = ["-c", '''
    stty raw -echo; printf '1:\033[>q'
    while key=$(head -c 1; echo x); [ "$key" != x ]; do
        case $key in
            n*) printf '\r\n2:\033[>q' ;;
            *) printf %s "${key%x}" | cat -v ;;
        esac
    done''']

[agents.renamed]
like = "asks"
terminal_name = "tmux 3.5a"

[agents.broken]
like = "asks"
terminal_name = "\u001b[31m"
"#;

#[test]
fn a_pane_says_its_own_name_or_that_of_the_preset_and_so_it_does_under_the_next_server() {
    let mut place = Place::new();
    settle(&mut place, ASKING);
    let (mut tools, process) = desk_of(&place);
    let own = TerminalName::default();
    assert!(own.as_str().starts_with("patterm "), "{own:?}");
    let agents = [("asks", own.as_str()), ("renamed", "tmux 3.5a")]
        .map(|(agent, name)| (id_of(&tools.ok("spawn_agent", json!({"agent": agent}))), name));
    let reply =
        |number: u8, name: &str| format!(r"^{number}:\^\[P>\|{}\^\[\\", name.replace('.', r"\."));
    for (id, name) in &agents {
        tools.wait(id, &reply(1, name));
    }
    kill(&process);
    let (mut tools, _) = desk_of(&place);
    for (id, name) in &agents {
        tools.ok("send_input", json!({"process_id": id, "kind": "text", "text": "n"}));
        tools.wait(id, &reply(2, name));
    }
    let refusal = tools.refused("unavailable", "spawn_agent", json!({"agent": "broken"}));
    assert!(refusal.contains("printable ASCII"), "{refusal}");
}

/// Shift and Enter make a new line in its prompt. In a pane that is only possible if it has enabled the kitty keyboard;
/// otherwise the two are the same key as Enter.
pub(super) fn shift_enter(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let mut view = bench.view(&id);
    type_by_hand(&mut view, "", "mock: say first");
    bench.key(&id, "shift+enter");
    type_by_hand(&mut view, "", "qzwv");
    bench.mock.more_than(usize::MAX, BEFORE_ENTER);
    view.send(&FromView::Input(b"\r".to_vec()));
    bench.until_arrived("mock: say first\nqzwv");
    bench.until_state(&id, "idle");
    assert_eq!(bench.arrived().len(), 2, "{}", bench.story());
}
