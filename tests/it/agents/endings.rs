//! What remains of an agent that exits, is restarted or is closed, whatever its CLI: tested with
//! the fake agent.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::fake::{self, turns};
use crate::support::tool_client::{ToolClient, id_of, until};
use crate::support::{Place, Spawned};

/// The fake agent as CLIs that need special treatment.
const SETTINGS: &str = r#"
# Killed as long as it has had no turn.
[agents.deletes]
like = "fake"
[agents.deletes.resume]
begin = ["--begin", "{{conversation}}"]
again = ["--again", "{{conversation}}"]
kill_unused = true

# With a home of its own.
[agents.homed]
like = "fake"
[agents.homed.inject.overlay]
of = ".fakecli"
variable = "FAKE_HOME"
file = "settings.json"
json = '{"servers": {"patterm": 1}}'
also = ["tmp/"]
beside = [".agents"]

# The file of its conversation is a pipe into which nothing is written: a read of it does not return.
[agents.held]
like = "fake"
program = "/bin/sh"
args = ["-c", 'mkfifo said-one.jsonl; exec 9<>said-one.jsonl; exec "$0"', "{{program}}"]
[agents.held.resume]
again = ["--again", "{{conversation}}"]
told_by_calls = "threadId"
[agents.held.resume.told_by_files]
path = '/said-(?<id>[a-z]+)\.jsonl$'
unless = ["/helper"]
"#;

struct Scene {
    place: Place,
    server: Spawned,
    tools: ToolClient,
}

impl Scene {
    fn new() -> Self {
        let mut place = Place::new();
        fake::settle(&mut place, SETTINGS);
        let server = place.serve();
        let tools = ToolClient::at(&server.socket());
        Self { place, server, tools }
    }

    /// An idle agent.
    #[track_caller]
    fn spawn(&mut self, preset: &str) -> String {
        let id = id_of(&self.tools.ok("spawn_agent", json!({"agent": preset})));
        self.until_state(&id, "idle");
        id
    }

    #[track_caller]
    fn until_state(&mut self, id: &str, state: &str) {
        until(&format!("{id} is {state}"), || {
            (self.tools.status(id)["activity"]["state"] == state).then_some(())
        });
    }

    /// Lets an agent take a turn in which it counts as working until this file exists.
    #[track_caller]
    fn work(&mut self, id: &str, name: &str) {
        let before = turns(&self.place).len();
        let message = format!("work {name}");
        self.tools.ok("send_message", json!({"target_process_id": id, "message": message}));
        until("the turn", || (turns(&self.place).len() > before).then_some(()));
        until(&format!("{id} works on it"), || {
            let reason = self.tools.status(id)["activity"]["reason"].clone();
            reason.as_str().unwrap().contains("busy").then_some(())
        });
    }

    /// The file that ends such a turn.
    fn done(&self, name: &str) {
        std::fs::write(self.place.path("project").join(name), "").unwrap();
    }

    /// `kill -9` of the server; the next one is running when this returns.
    fn kill_server(&mut self) {
        self.server.kill();
        self.server = self.place.serve();
        self.tools = ToolClient::at(&self.server.socket());
    }

    /// The signal that ended a stopped agent.
    #[track_caller]
    fn stopped_by(&mut self, id: &str) -> Value {
        self.tools.ok("stop_process", json!({"process_id": id}));
        self.tools.status(id)["exit"]["signal"].take()
    }

    fn folder(&self, id: &str) -> PathBuf {
        self.place.state().file("agents").join(id)
    }
}

#[test]
fn an_agent_that_took_a_turn_under_another_server_is_terminated_and_not_killed() {
    let mut scene = Scene::new();
    let (used, unused) = (scene.spawn("deletes"), scene.spawn("deletes"));
    scene.work(&used, "done");
    scene.done("done");
    scene.until_state(&used, "idle");
    scene.kill_server();
    for id in [&used, &unused] {
        scene.until_state(id, "idle");
    }
    assert_eq!(scene.stopped_by(&used), 15);
    assert_eq!(scene.stopped_by(&unused), 9, "it would delete its conversation");
    // Its next run has not had a turn yet.
    scene.tools.ok("start_process", json!({"process_id": used}));
    scene.until_state(&used, "idle");
    assert_eq!(scene.stopped_by(&used), 9);
}

#[test]
fn a_second_restart_before_any_turn_still_reports_the_lost_conversation() {
    let mut scene = Scene::new();
    let (lost, other) = (scene.spawn("fake"), scene.spawn("fake"));
    scene.work(&lost, "done");
    scene.done("done");
    scene.until_state(&lost, "idle");
    scene.work(&other, "other");
    let owner = scene.spawn("fake");
    let timer = json!({"watched": [lost, other], "body": "all rest", "owner_process_id": owner});
    scene.tools.ok("timer_fire_when_idle_all", timer);
    for _ in 0..2 {
        let answer = scene.tools.ok("restart_process", json!({"process_id": lost}));
        assert!(answer["began_anew"].is_string(), "{answer}");
        scene.until_state(&lost, "idle");
    }
    scene.done("other");
    let text = until("the timer's text", || {
        turns(&scene.place).into_iter().find(|turn| turn.contains("all rest"))
    });
    assert!(text.contains("restarted without its conversation"), "{text}");
}

#[test]
fn files_that_a_cli_wrote_into_its_home_survive_its_close() {
    let mut scene = Scene::new();
    let home = scene.place.path("home");
    let noted = scene.spawn("homed");
    let own = scene.folder(&noted).join("home");
    std::fs::write(own.join(".fakecli/chat"), "said").unwrap();
    std::fs::create_dir(own.join(".agents")).unwrap();
    std::fs::write(own.join(".agents/skill"), "made").unwrap();
    scene.tools.close(&noted);
    let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap();
    assert_eq!((read(".fakecli/chat").as_str(), read(".agents/skill").as_str()), ("said", "made"));
    assert!(!scene.folder(&noted).exists());
    // As 0.1.0 left it: only the preset says where it belongs.
    let without_note = |scene: &mut Scene, text: &str| {
        let id = scene.spawn("homed");
        std::fs::remove_file(scene.folder(&id).join("overlay.json")).unwrap();
        std::fs::write(scene.folder(&id).join("home/.fakecli").join(text), text).unwrap();
        id
    };
    let old = without_note(&mut scene, "old");
    scene.tools.close(&old);
    assert_eq!(read(".fakecli/old"), "old");
    assert!(!scene.folder(&old).exists());
    // The preset is gone, too: it stays where it is.
    let orphan = without_note(&mut scene, "orphan");
    let settings = home.join(".config/patterm/config.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let cut = text.find("# With a home of its own.").unwrap();
    std::fs::write(&settings, &text[..cut]).unwrap();
    scene.tools.close(&orphan);
    assert!(!home.join(".fakecli/orphan").exists());
    let kept = scene.folder(&orphan).join("home/.fakecli/orphan");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "orphan");
}

#[test]
fn a_slow_search_for_a_conversation_delays_no_call() {
    let mut scene = Scene::new();
    let id = scene.spawn("held");
    let token = std::fs::read_to_string(scene.folder(&id).join("identity")).unwrap();
    let mut agent = ToolClient::at(&scene.server.socket());
    agent.peer.greet(token.trim(), None);
    // It names an unknown conversation, so its files are searched.
    let me = agent.ok("whoami", json!({"_meta": {"threadId": "two"}}));
    assert_eq!(me["caller"]["process_id"], json!(id));
    assert_eq!(scene.tools.status(&id)["status"], "running");
    scene.tools.ok("stop_process", json!({"process_id": id}));
    assert_eq!(scene.tools.status(&id)["status"], "stopped");
}
