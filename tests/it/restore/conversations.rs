//! Agents that come back: with their conversation where their preset can, and never told twice what
//! they were told first.

use patterm_wire::Method;
use patterm_wire::restore::{Restore, RestoreMode};
use serde_json::{Value, json};

use super::{offered, offers, restore, serve, status_of};
use crate::agents::fake::{self, turns};
use crate::support::Place;
use crate::support::tool_client::{ToolClient, id_of, strings, until};

/// The fake agent, with a way to take a conversation up again.
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

/// An agent that has taken its first instructions, and was seen to work on them.
#[track_caller]
fn spoken(tools: &mut ToolClient, place: &Place, preset: &str) -> String {
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

/// The agent itself, by what proves who it is.
fn as_agent(place: &Place, id: &str) -> ToolClient {
    let identity = place.state().file("agents").join(id).join("identity");
    let token = std::fs::read_to_string(identity).unwrap();
    let (_, mut tools) = serve(place);
    tools.peer.greet(token.trim(), None);
    tools
}

/// What follows an argument.
#[track_caller]
fn after(argv: &Value, flag: &str) -> String {
    let argv = strings(argv);
    let at = argv.iter().position(|word| word == flag);
    let at = at.unwrap_or_else(|| panic!("no {flag} in {argv:?}"));
    argv[at + 1].clone()
}

#[test]
fn agents_go_on_with_their_conversations_and_those_below_them_run_again() {
    let place = place();
    let (_, mut tools) = serve(&place);
    let lead = spoken(&mut tools, &place, "goes-on");
    let forgets = spoken(&mut tools, &place, "fake");
    let mut own = as_agent(&place, &lead);
    let child = id_of(&own.ok("spawn_process", json!({"argv": ["cat"], "name": "below"})));
    let silent = id_of(&tools.ok("spawn_agent", json!({"agent": "goes-on", "name": "silent"})));
    until_state(&mut tools, &silent, "idle");
    // What is sent while it asks a person something waits, and arrives when it is back.
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
    let how: Vec<_> = found.iter().map(|offer| (offer.id.as_str(), offer.how)).collect();
    let (lead_, forgets_, child_, silent_) = (&*lead, &*forgets, &*child, &*silent);
    let expected = [
        (lead_, RestoreMode::Resumed),
        (forgets_, RestoreMode::Anew),
        (child_, RestoreMode::Again),
        (silent_, RestoreMode::Anew),
    ];
    assert_eq!(how, expected);
    assert!(found[1].reason.as_ref().unwrap().contains("does not say how a conversation"));
    assert!(found[3].reason.as_ref().unwrap().contains("nothing was said"));
    let back = restore(&mut tools, json!({}));
    let how: Vec<_> = back.iter().map(|back| (back.process_id.as_str(), back.how)).collect();
    assert_eq!(how, expected, "those above come first");
    for id in [&lead, &forgets, &child, &silent] {
        assert_eq!(status_of(&mut tools, id), "running", "{id}");
    }
    assert_eq!(after(&tools.status(&lead)["argv"], "--again"), conversation);
    let fresh = after(&tools.status(&silent)["argv"], "--begin");
    assert_ne!(fresh, unused, "no CLI takes the same id for two conversations");
    let told = until_turns(&place, 4);
    assert!(told[3].contains("are you back"), "{told:?}");
    for id in [&lead, &forgets, &silent] {
        until_state(&mut tools, id, "idle");
    }
    assert_eq!(turns(&place).len(), 4, "nobody is told twice what he was told first");
    assert_eq!(tools.status(&child)["parent_id"], json!(lead));
    let me = as_agent(&place, &lead).ok("whoami", json!({}));
    assert_eq!(me["caller"]["process_id"], json!(lead), "it is who it was");
}

#[test]
fn no_agent_brings_anything_back() {
    let place = place();
    let (_, mut tools) = serve(&place);
    let agent = spoken(&mut tools, &place, "goes-on");
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
fn there_are_never_more_agents_than_may_be() {
    let mut place = place();
    let (_, mut tools) = serve(&place);
    let ids = [spoken(&mut tools, &place, "goes-on"), spoken(&mut tools, &place, "goes-on")];
    place.run(&["kill"]);
    place.set("PATTERM_LIMITS", "agents=1");
    let (_, mut tools) = serve(&place);
    let back = restore(&mut tools, json!({}));
    assert_eq!([back[0].how, back[1].how], [RestoreMode::Resumed, RestoreMode::Not]);
    let why = back[1].reason.as_ref().unwrap();
    assert!(why.contains("1 agents run already"), "{why}");
    assert_eq!(offered(&place), ids[1..]);
}

#[test]
fn an_agent_whose_cli_is_gone_says_so_and_is_still_offered() {
    let place = place();
    let (_, mut tools) = serve(&place);
    let agent = spoken(&mut tools, &place, "goes-on");
    place.run(&["kill"]);
    let file = place.path("home/.config/patterm/config.toml");
    let settings = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, settings.replace("agents/fake-agent", "agents/no-agent")).unwrap();
    let (_, mut tools) = serve(&place);
    let offer = offers(&place).remove(0);
    assert_eq!(offer.how, RestoreMode::Not);
    assert!(offer.reason.unwrap().contains("no program that can be run"));
    assert_eq!(restore(&mut tools, json!({}))[0].how, RestoreMode::Not);
    std::fs::write(&file, settings).unwrap();
    assert_eq!(restore(&mut tools, json!({}))[0].how, RestoreMode::Resumed);
    assert_eq!(status_of(&mut tools, &agent), "running");
}

/// One that was ended with everything has not come to rest; once it is declined, it has.
#[test]
fn whoever_waits_for_one_at_rest_waits_until_it_is_decided() {
    let place = place();
    let (_, mut tools) = serve(&place);
    let owner = spoken(&mut tools, &place, "goes-on");
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
