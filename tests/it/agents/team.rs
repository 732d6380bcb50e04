//! A team at work: a real orchestrator that starts real agents, distributes work, ends its turn, is
//! woken once when the last has finished, reads the results, and closes the agents.

use serde_json::json;

use super::bench::Bench;
use super::cli::{CLAUDE, CODEX, OPENCODE};
use super::recording::Recording;

/// What the orchestrator's model does in its first turn.
const PLAN: &str = concat!(
    "You lead a team of two.\n",
    r#"mock: call spawn_agent {"agent": "codex", "name": "builder", "agent_instructions": "mock: wait 3 ;; say the wall stands"}"#,
    r#" ;; call spawn_agent {"agent": "opencode", "name": "painter", "agent_instructions": "mock: wait 6 ;; say the wall is blue"}"#,
    r#" ;; call timer_fire_when_idle_all {"watched": ["{{result.0.process_id}}", "{{result.1.process_id}}"], "label": "team", "body": "The team is done.\nmock: call get_process_output {\"process_id\": \"{{result.0.process_id}}\"} ;; call get_process_output {\"process_id\": \"{{result.1.process_id}}\"} ;; call close_process {\"process_id\": \"{{result.0.process_id}}\"} ;; call close_process {\"process_id\": \"{{result.1.process_id}}\"} ;; say all done"}"#,
    " ;; say I wait for the team",
);

#[test]
fn an_orchestrator_distributes_work_is_woken_once_and_closes_its_team() {
    let mut bench = Bench::new(CLAUDE);
    let mut recording = Recording::new("A team: Claude leads, Codex and opencode work");
    let lead = bench.spawn(Some(PLAN));
    recording.step("The user starts an orchestrator, Claude, and tells it what to do.");
    let planned =
        bench.until_turn("the end of the plan", |turn| turn.text == PLAN && turn.is_final());
    let [spawned, _, timer] = planned.results.as_slice() else { panic!("{planned:?}") };
    assert!(spawned.contains("process_id") && timer.contains("timer_id"), "{planned:?}");
    recording.text("Its prompt", PLAN);
    recording.step("It starts two agents, sets a timer on both, and ends its turn.");
    recording.results(&planned.results);
    let (builder, painter) = ("p2".to_owned(), "p3".to_owned());
    for id in [&builder, &painter] {
        assert_eq!(bench.tools.status(id)["parent_id"], lead.as_str());
        bench.until_state(id, "working");
    }
    bench.until_state(&lead, "idle");
    recording.step("No polling: the orchestrator is idle while the others work.");
    recording.screen(&mut bench, &lead, "the orchestrator");
    recording.tree(&mut bench);
    for (cli, said) in [(CODEX, "the wall stands"), (OPENCODE, "the wall is blue")] {
        bench.until(&format!("{} has said {said}", cli.name), |bench| {
            let turns = bench.mock.turns();
            let done = turns.iter().any(|turn| turn.api == cli.api && turn.is_final());
            done.then_some(()).ok_or(format!("{turns:?}"))
        });
    }
    for id in [&builder, &painter] {
        bench.until_state(id, "idle");
    }
    recording.step("Both have finished.");
    recording.screen(&mut bench, &builder, "the builder, codex");
    recording.screen(&mut bench, &painter, "the painter, opencode");
    let woken = bench.until_turn("the orchestrator's second turn", |turn| {
        turn.text.starts_with("[system] ") && turn.is_final()
    });
    recording.step("The timer wakes the orchestrator, which reads their output and closes them.");
    recording.text("Its prompt", &woken.text);
    assert!(woken.text.contains("\nThe team is done."), "{}", woken.text);
    assert_eq!(woken.results.len(), 4, "{woken:?}");
    assert!(woken.results[0].contains("the wall stands"), "{}", woken.results[0]);
    assert!(woken.results[1].contains("the wall is blue"), "{}", woken.results[1]);
    bench.until_state(&lead, "idle");
    recording.screen(&mut bench, &lead, "the orchestrator");
    assert_eq!(bench.tools.ids(), [lead.as_str()], "the team is closed");
    let timers = bench.tools.ok("timer_list", json!({}))["timers"].take();
    assert_eq!(timers, json!([]), "and no timer is left");
    let wakes = bench.arrived().iter().filter(|t| t.starts_with("[system] ")).count();
    assert_eq!(wakes, 1, "{}", bench.story());
    assert_eq!(bench.arrived().len(), 2, "the plan, and the wake");
    recording.step("The team is gone.");
    recording.tree(&mut bench);
    bench.tools.close(&lead);
    recording.write();
}

#[test]
fn a_sub_agent_reports_into_its_orchestrators_pane() {
    let mut bench = Bench::new(CLAUDE);
    let plan = concat!(
        r#"mock: call spawn_agent {"agent": "codex", "name": "scout", "agent_instructions": "#,
        r#""mock: call send_message {\"target_process_id\": \"p1\", "#,
        r#"\"message\": \"I found it\\nin the cellar\"} ;; say reported"}"#,
        " ;; say scout is out",
    );
    let lead = bench.spawn(Some(plan));
    assert_eq!(lead, "p1");
    bench.until_arrived("[sub-agent:scout] I found it\nin the cellar");
    bench.until_state(&lead, "idle");
    bench.tools.wait(&lead, r"\[sub-agent:scout\] I found it");
    let text = "[sub-agent:scout] I found it\nin the cellar";
    assert_eq!(bench.count(text), 1, "{}", bench.story());
    bench.tools.close(&lead);
    assert_eq!(bench.tools.ids(), Vec::<String>::new(), "closing an agent closes its team");
}
