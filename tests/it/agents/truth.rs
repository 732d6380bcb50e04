//! The scenarios of the accuracy table: each is run with one CLI, and patterm's reports are
//! compared with what the model received.

use std::time::{Duration, Instant};

use patterm_wire::view::FromView;
use serde_json::json;

use super::bench::{Bench, send, type_by_hand};
use super::cli::{CLAUDE, Cli};
use super::report::row;
use crate::support::Rng;
use crate::support::tool_client::long;

/// The number of trials in the short and in the long form.
pub(super) fn times(short: usize, in_full: usize) -> usize {
    if long() { in_full } else { short }
}

/// A unique text of this many bytes, in one of three shapes: one line, many lines, and code with
/// indentation, blank lines and letters of several bytes.
fn text_of(bytes: usize, trial: usize) -> String {
    let mut text = format!("m{trial}-{bytes}");
    let pieces: &[&str] = match trial % 3 {
        0 => &[" and so on"],
        1 => &["\nanother line", " with words"],
        _ => &["\n    if größe > 0 {", "\n        return \"“…”\";", "\n\n    }", " // señor"],
    };
    let mut pieces = pieces.iter().cycle();
    while text.len() < bytes {
        text.push_str(pieces.next().unwrap());
    }
    let fits = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap();
    text.truncate(fits);
    // The end of the text must be recognisable, and nothing that a prompt would trim.
    let end = text.trim_end().len();
    text.truncate(end);
    text
}

/// Messages of 10 bytes to 20 kB.
pub(super) fn messages(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let (mut sent, mut whole, mut stalled) = (Vec::new(), 0, Vec::new());
    for bytes in [10, 200, 1_000, 6_000, 20_000] {
        for trial in 0..times(3, 20) {
            let message = text_of(bytes, trial);
            let mut receipt = bench.send(&id, &message);
            if receipt.state == "queued" {
                receipt = bench.until_done(receipt.message);
            }
            let text = format!("[external] {message}");
            match receipt.state.as_str() {
                "delivered" => {
                    bench.until_arrived(&text);
                    whole += 1;
                }
                _ => stalled.push(format!("{bytes} bytes: {receipt:?}\n{}", bench.story())),
            }
            bench.until_state(&id, "idle");
            sent.push((text, receipt.state));
        }
    }
    let arrived = bench.arrived();
    for (text, state) in &sent {
        let count = arrived.iter().filter(|other| *other == text).count();
        assert!(count <= 1 && (count == 1 || state != "delivered"), "{count} times: {text}");
    }
    let all = sent.len();
    row(cli, "messages 10 B to 20 kB", &format!("{whole} of {all} whole and once"));
    assert_eq!(arrived.len(), whole + 1, "and nothing else came");
    assert!(stalled.is_empty(), "a CLI at rest takes every message: {}", stalled.join("\n"));
}

/// Messages right after the start, and during a slow answer, from two senders.
pub(super) fn while_working(cli: Cli) {
    let mut bench = Bench::new(cli);
    let first = "mock: slow 10 3";
    let id = bench.spawn(Some(first));
    let early = bench.send(&id, "right after the start");
    let mut person = bench.person();
    let slow = "mock: slow 20 6";
    bench.until_arrived("[external] right after the start");
    bench.until_state(&id, "idle");
    bench.send(&id, slow);
    let slow = format!("[external] {slow}");
    bench.until_turn("the slow turn", |turn| turn.text == slow);
    bench.until_state(&id, "working");
    let mut receipts = vec![early];
    let mut expected = vec![first.to_owned(), "[external] right after the start".to_owned(), slow];
    for number in 0..times(3, 10) {
        let message = format!("number {number}\nof several");
        let (tools, tag) = match number % 2 {
            0 => (&mut bench.tools, "external"),
            _ => (&mut person, "human"),
        };
        receipts.push(send(tools, &id, &message));
        expected.push(format!("[{tag}] {message}"));
    }
    for receipt in &receipts {
        let done = bench.until_done(receipt.message);
        assert_eq!(done.state, "delivered", "{done:?}\n{}", bench.story());
    }
    bench.until_arrived(expected.last().unwrap());
    bench.until_state(&id, "idle");
    let slow = bench.mock.turns().into_iter().find(|turn| turn.text == expected[2]).unwrap();
    assert_eq!(slow.ended.unwrap().1, "complete", "its answer was not interrupted");
    assert_eq!(bench.arrived(), expected, "{}", bench.story());
    row(
        cli,
        "while starting and working",
        &format!("{} of {} in order", expected.len(), expected.len()),
    );
}

/// A message during a permission dialog.
pub(super) fn permission(cli: Cli) {
    let mut bench = Bench::with_settings(cli, &cli.asking);
    let id = bench.spawn_ready();
    let file = bench.place.path("project/made");
    let cat = bench.tools.run(&["cat"]);
    let trials = times(1, 5);
    for trial in 0..trials {
        let body = format!("it rests {trial}.");
        let timer = json!({"watched": [id], "body": body, "owner_process_id": cat});
        bench.tools.ok("timer_fire_when_idle_any", timer);
        bench.send(&id, &cli.ask);
        let blocked = bench.until_state(&id, "blocked");
        let message = format!("to one who is asked {trial}");
        let receipt = bench.send(&id, &message);
        assert_eq!(receipt.state, "queued", "{receipt:?}");
        bench.until_queued_because(receipt.message, "waiting for a person");
        bench.stays_away(&id, &message, 1.0);
        bench.stays_away(&cat, &body, 2.0);
        assert_eq!(bench.activity(&id)["state"], "blocked", "it was {blocked}");
        assert!(!file.exists(), "the tool was not approved");
        bench.key(&id, &cli.yes);
        bench.until("the tool ran", |_| file.exists().then_some(()).ok_or(String::new()));
        let done = bench.until_done(receipt.message);
        assert_eq!(done.state, "delivered", "{done:?}\n{}", bench.story());
        let text = format!("[external] {message}");
        bench.until_arrived(&text);
        bench.until_state(&id, "idle");
        assert_eq!(bench.count(&text), 1);
        bench.tools.wait(&cat, &body);
        std::fs::remove_file(&file).unwrap();
    }
    row(
        cli,
        "at a permission dialog",
        &format!("{trials} of {trials} queued, none approved, no idle timer fired"),
    );
}

/// A message while a person has a half-typed draft.
pub(super) fn draft(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let mut view = bench.view(&id);
    let trials = times(2, 10);
    for trial in 0..trials {
        let draft = format!("half a thought {trial}");
        type_by_hand(&mut view, "", &draft);
        bench.tools.wait(&id, &draft);
        let message = format!("into a draft {trial}");
        let receipt = bench.send(&id, &message);
        assert_eq!(receipt.state, "queued", "{receipt:?}");
        bench.until_queued_because(receipt.message, "its prompt contains a draft");
        bench.stays_away(&id, &message, 1.0);
        assert_eq!(bench.count(&format!("[external] {message}")), 0);
        let screen = bench.tools.rows(&id).join("\n");
        assert!(screen.contains(&draft), "the draft is untouched\n{screen}");
        // It is finished, or given up.
        match trial % 2 {
            0 => {
                type_by_hand(&mut view, &draft, " and the rest");
                // No person types faster, and some CLIs show a letter before they process it.
                bench.stays_away(&id, &message, 0.2);
                view.send(&FromView::Input(b"\r".to_vec()));
                bench.until_arrived(&format!("{draft} and the rest"));
            }
            _ => {
                for _ in draft.chars() {
                    view.send(&FromView::Input(b"\x7f".to_vec()));
                }
            }
        }
        let done = bench.until_done(receipt.message);
        assert_eq!(done.state, "delivered", "{done:?}\n{}", bench.story());
        bench.until_arrived(&format!("[external] {message}"));
        assert_eq!(bench.count(&format!("[external] {message}")), 1);
        bench.until_state(&id, "idle");
    }
    let finished = trials.div_ceil(2);
    assert_eq!(bench.arrived().len(), 1 + trials + finished, "{}", bench.story());
    row(cli, "with a draft", &format!("{trials} of {trials} untouched"));
}

/// The first prompt, again and again.
pub(super) fn first_prompts(cli: Cli) {
    let mut bench = Bench::new(cli);
    let trials = times(3, 20);
    for trial in 0..trials {
        let prompt = format!("begin {trial}\nwith two lines");
        check_first_prompt(&mut bench, &prompt);
    }
    assert_eq!(bench.arrived().len(), trials);
    row(cli, "first prompt", &format!("{trials} of {trials} arrived once"));
}

/// First prompts that look like something else.
pub(super) fn odd_first_prompts(cli: Cli) {
    let mut bench = Bench::new(cli);
    let odd = [
        "!touch made",
        "--version is no option",
        "quotes ' \" ` $HOME \\ in\n\nseveral lines\n    indented: größer – 日本語 – 👩‍🚀",
        "/frobnicate it",
        "@nobody is no file",
    ];
    for prompt in odd {
        check_first_prompt(&mut bench, prompt);
    }
    assert!(!bench.place.path("project/made").exists(), "none was treated as a command");
    let long = format!("a long one{}", "\nmore of it".repeat(100_000));
    let id = bench.spawn(Some(&long));
    let turn = bench.until_turn("the pointer", |turn| turn.text.starts_with("a long one"));
    let at = turn.text.find("the file ").unwrap() + "the file ".len();
    let path = &turn.text[at..at + turn.text[at..].find(": read").unwrap()];
    assert_eq!(std::fs::read_to_string(path).unwrap(), long, "all of it is in the file");
    bench.tools.close(&id);
    assert_eq!(bench.arrived().len(), odd.len() + 1, "{}", bench.story());
    row(cli, "odd first prompts", &format!("{0} of {0} arrived once", odd.len() + 1));
}

/// An agent has patterm's tools, and its own identity, from its very first turn.
pub(super) fn tools_at_once(cli: Cli) {
    let mut bench = Bench::new(cli);
    let trials = times(3, 20);
    for trial in 0..trials {
        let prompt = format!("mock: call whoami {{}} ;; say known\ntrial {trial}");
        let id = bench.spawn(Some(&prompt));
        let turn = bench.until_said(&prompt);
        let me = format!("\"process_id\":\"{id}\"");
        let result = turn.results.first().map(|result| result.replace(' ', ""));
        assert!(result.is_some_and(|result| result.contains(&me)), "{turn:?}\n{}", bench.story());
        bench.tools.close(&id);
    }
    row(cli, "tools in the first turn", &format!("{trials} of {trials}"));
}

/// A shared server's tool, called by the agent over its own connection. CLIs ask a person before
/// they use a tool that is not approved; the person approves.
pub(super) fn shared_tool(cli: Cli) {
    let program = env!("CARGO_BIN_EXE_everything-mcp");
    let server = format!("{}\n[servers.all]\ncommand = ['{program}']\n", cli.asking);
    let mut bench = Bench::with_settings(cli, &server);
    let prompt = match cli {
        // It gives its model the tools of shared servers only after a search.
        CLAUDE => concat!(
            r#"mock: call ToolSearch {"query": "select:mcp__patterm__all__slow"}"#,
            r#" ;; call all__slow {"milliseconds": 7} ;; say heard"#
        ),
        _ => r#"mock: call all__slow {"milliseconds": 7} ;; say heard"#,
    };
    let id = bench.spawn(Some(prompt));
    let mut answered: Option<Instant> = None;
    let turn = bench.until("the shared tool's answer", |bench| {
        // A dialog that has just appeared may still ignore keys.
        let again = answered.is_none_or(|at| at.elapsed() >= Duration::from_secs(5));
        if again && bench.activity(&id)["state"] == "blocked" {
            answered = Some(Instant::now());
            bench.key(&id, &cli.yes);
        }
        let turns = bench.mock.turns();
        let done = turns.iter().find(|turn| turn.text == prompt && turn.is_final());
        done.cloned().ok_or_else(|| format!("{turns:?}"))
    });
    let result = turn.results.last().map(|result| result.replace([' ', '\\'], ""));
    let known = result.as_ref().is_some_and(|result| result.contains("\"milliseconds\":7"));
    assert!(known, "{turn:?}\n{}", bench.story());
    let servers = bench.tools.ok("patterm/servers", json!({}));
    assert_eq!(servers["servers"][0]["state"], "running", "{servers}");
    let how = if answered.is_some() { "after a person's yes" } else { "unasked" };
    row(cli, "a shared server's tool", how);
    bench.tools.close(&id);
}

#[track_caller]
fn check_first_prompt(bench: &mut Bench, prompt: &str) {
    let id = bench.spawn(Some(prompt));
    // A leading blank prevents a text from being a command of the CLI.
    let is_it = |text: &str| text == prompt || text.strip_prefix(' ') == Some(prompt);
    let count = |bench: &Bench| bench.arrived().iter().filter(|text| is_it(text)).count();
    bench.until(&format!("arrival of {prompt:?}"), |bench| match count(bench) {
        0 => Err(format!("{:?}", bench.arrived().last())),
        _ => Ok(()),
    });
    let status = bench.tools.ok("get_project_status", json!({}));
    let message = status["messages"].as_array().unwrap().last().unwrap()["message_id"].clone();
    let receipt = bench.until_done(message.as_u64().unwrap());
    assert_eq!(receipt.state, "delivered", "{receipt:?}");
    bench.until_state(&id, "idle");
    assert_eq!(count(bench), 1, "{}", bench.story());
    bench.tools.close(&id);
}

/// A turn that a person interrupts, and one that the model's server refuses.
pub(super) fn ends_of_turns(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    bench.send(&id, "mock: say partly\\n\\nand then\\n\\nno more\\n\\n ;; hang");
    bench.tools.wait(&id, r"^\W*partly");
    bench.until_state(&id, "working");
    for _ in 0..cli.escapes {
        bench.key(&id, "escape");
    }
    bench.until_state(&id, "idle");
    bench.send(&id, "after escape");
    bench.until_arrived("[external] after escape");
    bench.until_state(&id, "idle");
    bench.send(&id, "mock: error 400");
    bench.until_turn("the error", |turn| {
        turn.text == "[external] mock: error 400" && turn.ended.is_some()
    });
    bench.until_state(&id, "idle");
    bench.send(&id, "after an error");
    bench.until_arrived("[external] after an error");
    bench.until_state(&id, "idle");
    row(cli, "after escape and errors", "idle, and takes the next message");
}

/// `kill -9` of the server.
pub(super) fn server_killed(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let mut view = bench.view(&id);
    type_by_hand(&mut view, "", "a draft");
    bench.tools.wait(&id, "a draft");
    let receipts = ["one that waits", "another"].map(|text| bench.send(&id, text));
    for receipt in &receipts {
        assert_eq!(receipt.state, "queued", "{receipt:?}");
    }
    bench.kill_server();
    bench.until_queued_because(receipts[0].message, "its prompt contains a draft");
    bench.key(&id, &cli.clear);
    for receipt in &receipts {
        let done = bench.until_done(receipt.message);
        assert_eq!(done.state, "delivered", "{done:?}\n{}", bench.story());
    }
    bench.until_arrived("[external] another");
    bench.until_state(&id, "idle");
    let (mut delivered, mut stalled) = (0, 0);
    let mut rng = Rng::new(11);
    let trials = times(4, 20);
    for trial in 0..trials {
        let message = format!("killed meanwhile {trial}");
        let arguments = json!({"target_process_id": id, "message": message});
        bench.tools.ask("send_message", arguments);
        let pause = Duration::from_millis(rng.within(0..700) as u64);
        bench.mock.more_than(usize::MAX, pause);
        bench.kill_server();
        let status = bench.tools.ok("get_project_status", json!({}));
        let known = status["messages"].as_array().unwrap().iter();
        let text = format!("[external] {message}");
        let mine = known.rev().find(|known| known["excerpt"] == text.as_str());
        // It may have died before it accepted the message; then no receipt said otherwise.
        let Some(mine) = mine else { continue };
        let number = mine["message_id"].as_u64().unwrap();
        let mut receipt = bench.until_done(number);
        bench.until_state(&id, "idle");
        if bench.count(&text) == 1 {
            receipt = bench.until("what arrived is called delivered", |bench| {
                let receipt = bench.receipt(number);
                let is_so = receipt.state == "delivered";
                is_so.then_some(receipt.clone()).ok_or_else(|| format!("{receipt:?}"))
            });
        }
        match receipt.state.as_str() {
            "delivered" => {
                delivered += 1;
                bench.until_arrived(&text);
            }
            _ => stalled += 1,
        }
        // A text that was begun and not submitted is still in the prompt; a person sees it and
        // removes it.
        bench.until_state(&id, "idle");
        let held = bench.tools.rows(&id).iter().rev().take(6).any(|row| row.contains(&text));
        if held && bench.count(&text) == 0 {
            bench.key(&id, &cli.clear);
        }
        assert!(bench.count(&text) <= 1, "{receipt:?}\n{}", bench.story());
    }
    let after = bench.send(&id, "after all that");
    let after = bench.until_done(after.message);
    assert_eq!(after.state, "delivered", "{after:?}\n{}", bench.story());
    bench.until_arrived("[external] after all that");
    for text in bench.arrived() {
        assert_eq!(bench.count(&text), 1, "{text}");
    }
    let found = format!(
        "2 of 2 that waited; {trials} kills during delivery: {delivered} delivered, {stalled} \
         stalled, none twice"
    );
    row(cli, "server killed", &found);
}
