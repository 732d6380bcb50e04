//! Restored agents: with their conversation if their preset supports that, and without repeating
//! their first instructions.

use patterm_wire::Method;
use patterm_wire::restore::{Restore, RestoreMode};
use serde_json::{Value, json};

use super::{offered, offers, restore, serve, status_of};
use crate::agents::fake::{self, turns};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, id_of, strings, until};

/// The fake agent, with support for resuming a conversation.
const KEEPS: &str = r#"
[agents.goes-on]
like = "fake"
[agents.goes-on.resume]
begin = ["--begin", "{{conversation}}"]
again = ["--again", "{{conversation}}"]
"#;

fn place() -> Place {
    let mut place = Place::new();
    fake::settle(&mut place, KEEPS);
    place
}

#[track_caller]
fn until_turns(place: &Place, count: usize) -> Vec<String> {
    until(&format!("{count} turns"), || Some(turns(place)).filter(|turns| turns.len() >= count))
}

#[track_caller]
fn until_state(tools: &mut ToolClient, id: &str, state: &str) {
    until(&format!("{id} is {state}"), || {
        (tools.status(id)["activity"]["state"] == state).then_some(())
    });
}

/// An agent that has accepted its first instructions, and was seen to work on them.
#[track_caller]
fn with_a_turn(tools: &mut ToolClient, place: &Place, preset: &str) -> String {
    let before = turns(place).len();
    let done = format!("done{before}");
    let instructions = format!("work {done}");
    let arguments = json!({"agent": preset, "agent_instructions": instructions});
    let id = id_of(&tools.ok("spawn_agent", arguments));
    until_turns(place, before + 1);
    until(&format!("{id} works on it"), || {
        let reason = tools.status(&id)["activity"]["reason"].clone();
        reason.as_str().unwrap().contains("busy").then_some(())
    });
    std::fs::write(place.path("project").join(done), "").unwrap();
    until_state(tools, &id, "idle");
    id
}

/// A client with the agent's identity.
fn as_agent(place: &Place, id: &str) -> ToolClient {
    let identity = place.state().file("agents").join(id).join("identity");
    let token = std::fs::read_to_string(identity).unwrap();
    let (_, mut tools) = serve(place);
    tools.peer.greet(token.trim(), None);
    tools
}

/// The argument after another one.
#[track_caller]
fn after(argv: &Value, flag: &str) -> String {
    let argv = strings(argv);
    let at = argv.iter().position(|word| word == flag);
    let at = at.unwrap_or_else(|| panic!("no {flag} in {argv:?}"));
    argv[at + 1].clone()
}

#[test]
fn agents_resume_their_conversations_and_their_descendants_run_again() {
    let place = place();
    let (_, mut tools) = serve(&place);
    let lead = with_a_turn(&mut tools, &place, "goes-on");
    let forgets = with_a_turn(&mut tools, &place, "fake");
    let mut own = as_agent(&place, &lead);
    let child = id_of(&own.ok("spawn_process", json!({"argv": ["cat"], "name": "below"})));
    let silent = id_of(&tools.ok("spawn_agent", json!({"agent": "goes-on", "name": "silent"})));
    until_state(&mut tools, &silent, "idle");
    // A message that is sent during a dialog waits, and arrives after the restore.
    let send = |message: &str| json!({"target_process_id": lead, "message": message});
    tools.ok("send_message", send("ask"));
    until_state(&mut tools, &lead, "blocked");
    let receipt = tools.ok("send_message", send("are you back"));
    assert_eq!(receipt["receipt"]["state"], "queued", "{receipt}");
    let conversation = after(&tools.status(&lead)["argv"], "--begin");
    let unused = after(&tools.status(&silent)["argv"], "--begin");
    place.run(&["kill"]);

    let (_, mut tools) = serve(&place);
    let found = offers(&place);
    let how: Vec<_> = found.iter().map(|offer| (offer.id.as_str(), offer.how.clone())).collect();
    let (lead_, forgets_, child_, silent_) = (&*lead, &*forgets, &*child, &*silent);
    let expected = [
        (lead_, RestoreMode::Resumed),
        (forgets_, RestoreMode::NewConversation),
        (child_, RestoreMode::Again),
        (silent_, RestoreMode::NewConversation),
    ];
    assert_eq!(how, expected);
    assert!(found[1].reason.as_ref().unwrap().contains("has no `resume` section"));
    assert!(found[3].reason.as_ref().unwrap().contains("has no turns yet"));
    let back = restore(&mut tools, json!({}));
    let how: Vec<_> =
        back.iter().map(|back| (back.process_id.as_str(), back.how.clone())).collect();
    assert_eq!(how, expected, "those above come first");
    for id in [&lead, &forgets, &child, &silent] {
        assert_eq!(status_of(&mut tools, id), "running", "{id}");
    }
    assert_eq!(after(&tools.status(&lead)["argv"], "--again"), conversation);
    let fresh = after(&tools.status(&silent)["argv"], "--begin");
    assert_ne!(fresh, unused, "no CLI accepts the same id for two conversations");
    let told = until_turns(&place, 4);
    assert!(told[3].contains("are you back"), "{told:?}");
    for id in [&lead, &forgets, &silent] {
        until_state(&mut tools, id, "idle");
    }
    assert_eq!(turns(&place).len(), 4, "first instructions are not repeated");
    assert_eq!(tools.status(&child)["parent_id"], json!(lead));
    let me = as_agent(&place, &lead).ok("whoami", json!({}));
    assert_eq!(me["caller"]["process_id"], json!(lead), "it has the same identity");
}

#[test]
fn an_agent_cannot_restore_processes() {
    let place = place();
    let (_, mut tools) = serve(&place);
    let agent = with_a_turn(&mut tools, &place, "goes-on");
    let cat = tools.run(&["cat"]);
    place.run(&["kill"]);
    serve(&place);
    let mut own = as_agent(&place, &agent);
    for params in [json!({}), json!({"decline": true})] {
        let message = own.refused("not_owner", Restore::NAME, params);
        assert!(message.contains("only a person may restore processes"), "{message}");
    }
    assert_eq!(offered(&place), [agent, cat]);
}

#[test]
fn a_restore_respects_the_limit_of_agents() {
    let mut place = place();
    let (_, mut tools) = serve(&place);
    let ids =
        [with_a_turn(&mut tools, &place, "goes-on"), with_a_turn(&mut tools, &place, "goes-on")];
    place.run(&["kill"]);
    place.set("PATTERM_LIMITS", "agents=1");
    let (_, mut tools) = serve(&place);
    let back = restore(&mut tools, json!({}));
    assert_eq!(
        [back[0].how.clone(), back[1].how.clone()],
        [RestoreMode::Resumed, RestoreMode::Not]
    );
    let why = back[1].reason.as_ref().unwrap();
    assert!(why.contains("1 agents are already running"), "{why}");
    assert_eq!(offered(&place), ids[1..]);
}

#[test]
fn an_agent_whose_cli_is_gone_says_so_and_is_still_offered() {
    let place = place();
    let (_, mut tools) = serve(&place);
    let agent = with_a_turn(&mut tools, &place, "goes-on");
    place.run(&["kill"]);
    let file = place.path("home/.config/patterm/config.toml");
    let settings = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, settings.replace("agents/fake-agent", "agents/no-agent")).unwrap();
    let (_, mut tools) = serve(&place);
    let offer = offers(&place).remove(0);
    assert_eq!(offer.how, RestoreMode::Not);
    assert!(offer.reason.unwrap().contains("not an executable file"));
    assert_eq!(restore(&mut tools, json!({}))[0].how, RestoreMode::Not);
    std::fs::write(&file, settings).unwrap();
    assert_eq!(restore(&mut tools, json!({}))[0].how, RestoreMode::Resumed);
    assert_eq!(status_of(&mut tools, &agent), "running");
}

/// An agent that was ended with everything is not settled; once it is declined, it is.
#[test]
fn waiting_for_an_idle_process_lasts_until_its_restore_is_decided() {
    let place = place();
    let (_, mut tools) = serve(&place);
    let owner = with_a_turn(&mut tools, &place, "goes-on");
    let mut own = as_agent(&place, &owner);
    let busy = "while :; do echo busy; sleep 0.1; done";
    let spawn = json!({"argv": ["sh", "-c", busy]});
    let (one, two) =
        (id_of(&own.ok("spawn_process", spawn.clone())), id_of(&own.ok("spawn_process", spawn)));
    for (id, label) in [(&one, "one"), (&two, "two")] {
        until_state(&mut tools, id, "working");
        let arguments = json!({"watched": [id], "label": label, "body": format!("{label} rests")});
        own.ok("timer_fire_when_idle_any", arguments);
    }
    place.run(&["kill"]);
    let (_, mut tools) = serve(&place);
    restore(&mut tools, json!({"ids": [owner, one]}));
    until_state(&mut tools, &owner, "idle");
    until_state(&mut tools, &one, "working");
    assert_eq!(turns(&place).len(), 1, "nothing rests yet");
    restore(&mut tools, json!({"decline": true}));
    let told = until_turns(&place, 2);
    assert!(told[1].contains("two rests"), "{told:?}");
    tools.ok("stop_process", json!({"process_id": one}));
    let told = until_turns(&place, 3);
    assert!(told[2].contains("one rests"), "{told:?}");
}
