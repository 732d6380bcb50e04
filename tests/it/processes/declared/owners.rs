//! All agents use the declared processes; none can remove them.

use serde_json::json;

use super::{id, named, once, trusted};
use crate::support::tool_client::{ToolClient, id_of};

#[test]
fn an_agent_may_start_stop_and_type_but_not_close() {
    let (_place, server, mut person) = trusted("[processes.dev]\ncommand = 'cat'\n");
    let (_, token) = server.agent("lead", None);
    let mut agent = ToolClient::of_agent(&server, &token);
    let dev = id_of(&agent.ok("spawn_process", json!({"preset": "dev"})));
    assert_eq!(person.status(&dev).get("parent_id"), None, "it belongs to the project");
    agent.line(&dev, "typed by an agent");
    agent.wait(&dev, "typed by an agent");
    agent.ok("restart_process", json!({"process_id": dev}));
    agent.ok("rename_process", json!({"process_id": dev, "name": "site"}));
    let error = agent.refused("not_owner", "close_process", json!({"process_id": dev}));
    assert!(error.contains("only a person may close it; use stop_process"), "{error}");
    agent.ok("stop_process", json!({"process_id": dev}));
    agent.ok("start_process", json!({"process_id": dev}));
    assert_eq!(person.close(&dev), [&*dev]);
    assert!(named(&mut person, "dev").is_none());
    let again = id_of(&agent.ok("spawn_process", json!({"preset": "dev"})));
    assert_ne!(again, dev, "ids are never used again");
    once(&mut agent, "dev", "ready", |dev| dev["ready"] == true);
}

#[test]
fn the_files_agents_are_available_once_it_is_trusted() {
    let (place, _server, mut tools) = trusted(
        "[agents.mine]\nlike = 'generic'\nprogram = 'cat'\ntitle = 'Mine'\n[agents.bad.rules.mine]\nbottom = 'x'\n",
    );
    let listed = tools.ok("list_agents", json!({}));
    let find = |name: &str| {
        listed["agents"].as_array().unwrap().iter().find(|a| a["agent"] == name).cloned().unwrap()
    };
    assert_eq!(find("mine")["title"], "Mine");
    assert_eq!(find("mine")["origin"], json!(place.project().root().join("patterm.toml")));
    assert_eq!(find("mine")["found"], true);
    assert!(
        find("bad")["why"].as_str().unwrap().contains("missing field `state`"),
        "{}",
        find("bad")
    );
    assert_eq!(find("claude")["origin"], "built in");
    let agent = id_of(&tools.ok("spawn_agent", json!({"agent": "mine"})));
    assert_eq!(tools.status(&agent)["argv"][0].as_str().unwrap().rsplit('/').next(), Some("cat"));
}

#[test]
fn its_folder_and_environment_take_effect() {
    let (place, _server, mut tools) = trusted(
        "[processes.show]\ncommand = 'echo $WORD at $(pwd)'\ndirectory = 'sub'\n\
         environment = { WORD = 'said' }\n[processes.lost]\ncommand = 'cat'\ndirectory = 'nowhere'\n",
    );
    std::fs::create_dir(place.project().root().join("sub")).unwrap();
    let show = id_of(&tools.ok("spawn_process", json!({"preset": "show"})));
    tools.wait(&show, &format!("^said at {}$", place.project().root().join("sub").display()));
    let error = tools.refused("invalid_argument", "spawn_process", json!({"preset": "lost"}));
    assert!(error.contains("nowhere"), "{error}");
    let lost = id(&mut tools, "lost");
    assert_eq!(tools.status(&lost)["status"], "failed");
    let error = tools.refused("unavailable", "get_process_output", json!({"process_id": lost}));
    assert!(error.starts_with(&format!("{lost} (lost) has no output: ")), "{error}");
}
