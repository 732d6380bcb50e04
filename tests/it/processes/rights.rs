//! Whose doing it is what somebody in a pane does: the kernel says in which one he runs, and nothing he
//! says of himself makes him more than its owner.

use patterm_wire::view;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::desk::{Desk, id_of, strings, until};
use crate::support::{Place, Spawned};

/// A real server, an agent of it, and a person's pane.
struct Team {
    place: Place,
    server: Spawned,
    lead: String,
    agent: Desk,
    person: Desk,
    /// A person's pane, which repeats what is typed into it.
    persons: String,
}

impl Team {
    fn new() -> Self {
        let place = Place::new();
        let mut issuing = place.serve_in_process();
        let (lead, token) = issuing.agent("lead", None);
        issuing.stop();
        let server = place.serve();
        let mut agent = Desk::at(&server.socket());
        agent.peer.greet(&token.reveal(), None);
        let mut person = Desk::at(&server.socket());
        let persons = person.run(&["cat"]);
        Self { lead: lead.id.to_string(), place, server, agent, person, persons }
    }

    /// Runs a script in a shell of the agent's that knows no token.
    fn in_its_shell(&mut self, script: &str) -> String {
        let arguments = self.shell(script);
        id_of(&self.agent.ok("spawn_process", arguments))
    }

    fn shell(&self, script: &str) -> Value {
        let env = json!({
            "HOME": self.place.path("home"), "XDG_RUNTIME_DIR": self.place.path("run"), "XDG_STATE_HOME": self.place.path("state"),
        });
        json!({"argv": ["sh", "-c", self.with_binary(script)], "env": env})
    }

    /// A script in which `patterm` is the binary under test.
    fn with_binary(&self, script: &str) -> String {
        script.replace("PATTERM ", &format!("{} ", self.place.binary().display()))
    }

    /// The process with this name, as lists show it.
    fn named(&mut self, name: &str) -> Value {
        until(name, || {
            let listed = self.person.ok("list_processes", json!({}));
            let mut all = listed["processes"].as_array().unwrap().iter();
            all.find(|process| process["name"] == name && process["status"] == "running").cloned()
        })
    }

    fn assert_no_tokens(&self) {
        assert_eq!(self.place.run(&["token", "ls", "--json"]), "[]\n");
    }
}

/// In every way in which a pane can be started from an agent's shell, and from what that started.
#[test]
fn what_an_agents_shell_starts_through_the_cli_is_that_agents_and_no_person() {
    let mut team = Team::new();
    let deed = "PATTERM token new own; echo said $?; sleep 1000";
    let inner = format!("PATTERM run --name two -- sh -c '{deed}'; {deed}");
    std::fs::write(team.place.path("project/inner"), team.with_binary(&inner)).unwrap();
    let script = "PATTERM run --name one -- sh ./inner; \
                  setsid -f sh -c 'PATTERM run --name away -- sh ./inner'; \
                  (nohup PATTERM run --name orphan -- sh ./inner > /dev/null 2>&1 &); \
                  sleep 1000";
    team.in_its_shell(script);
    for name in ["one", "away", "orphan", "two", "two-2", "two-3"] {
        let process = team.named(name);
        assert_eq!(process["parent_id"], json!(team.lead), "{process}");
        let id = id_of(&process);
        team.person.wait(&id, "only a person");
        team.person.wait(&id, "said 1");
    }
    team.assert_no_tokens();
    // It is all closed with the agent.
    let closed =
        strings(&team.person.ok("close_process", json!({"process_id": team.lead}))["closed"]);
    assert_eq!(closed.len(), 8, "{closed:?}");
}

#[test]
fn every_verb_that_is_a_persons_is_refused_in_a_pane_that_an_agents_shell_started() {
    let mut team = Team::new();
    std::fs::write(team.place.path("project/patterm.toml"), "[processes.a]\ncommand = 'x'\n")
        .unwrap();
    let verbs = [
        "trust --yes",
        "token new own",
        "token revoke own",
        "kill",
        "upgrade",
        "serve --http 127.0.0.1:0",
        "servers restart files",
        "restart --bring-back",
    ];
    for (n, verb) in verbs.iter().enumerate() {
        let script =
            format!("PATTERM run --name v{n} -- sh -c 'PATTERM {verb}; echo said $?; cat'");
        team.in_its_shell(&script);
        let id = id_of(&team.named(&format!("v{n}")));
        team.person.wait(&id, "only a person");
        team.person.wait(&id, "said 1");
    }
    assert!(!team.server.process().is_gone());
    assert!(!team.place.run(&["ls", "--json"]).contains("127.0.0.1"));
    team.assert_no_tokens();
}

#[test]
fn somebody_in_an_agents_pane_may_do_what_the_agent_may_and_no_more() {
    let mut team = Team::new();
    let persons = team.persons.clone();
    let own = id_of(&team.agent.ok("spawn_process", json!({"argv": ["cat"], "name": "own"})));
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "send_input",
        "params": {"process_id": persons, "kind": "text", "text": "typed"}});
    std::fs::write(team.place.path("project/asked"), format!("{asked}\n")).unwrap();
    // A view is a way to type, too.
    let wish = json!({"jsonrpc": "2.0", "id": 1, "method": view::METHOD,
        "params": {"version": view::VERSION, "process_id": persons}});
    let look = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{}')\n\
         s.sendall(b'''{wish}\n''')\nprint(s.recv(4096).decode())\n",
        team.server.socket().display()
    );
    std::fs::write(team.place.path("project/view.py"), look).unwrap();
    let script = format!(
        "PATTERM send {persons} typed; echo cli $?; \
         PATTERM close {persons}; echo close $?; \
         python3 view.py; echo view $?; \
         PATTERM mcp-stdio < asked; echo; echo proxy $?; \
         PATTERM send {own} allowed; echo own $?; sleep 1000"
    );
    let shell = team.in_its_shell(&script);
    for line in ["cli 1", "close 1", "view 0", "proxy 0", "own 0"] {
        team.person.wait(&shell, line);
    }
    let said = team.person.raw(&shell);
    assert_eq!(said.matches("is neither you nor below you").count(), 4, "{said}");
    team.person.wait(&own, "allowed");
    assert_eq!(team.person.raw(&persons), "");
    assert_eq!(team.person.status(&persons)["status"], "running");
}

/// It connects, asks, and is gone before the server takes the connection.
#[test]
fn who_is_gone_before_he_can_be_placed_is_not_served() {
    let mut team = Team::new();
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "spawn_process",
        "params": {"argv": ["cat"], "name": "smuggled"}});
    let script = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{}')\n\
         s.sendall(b'''{{\"patterm_person\":true}}\n{asked}\n''')\n",
        team.server.socket().display()
    );
    std::fs::write(team.place.path("project/ask.py"), script).unwrap();
    let waits = "until test -e go; do sleep 0.01; done; python3 ask.py; touch gone; sleep 1000";
    team.in_its_shell(waits);
    let server = team.server.process();
    server.signal(Signal::STOP);
    std::fs::write(team.place.path("project/go"), "").unwrap();
    let gone = team.place.path("project/gone");
    until("it asked and went", || gone.exists().then_some(()));
    server.signal(Signal::CONT);
    let log = team.place.state().file("server.log");
    until("it was refused", || {
        let log = std::fs::read_to_string(&log).unwrap();
        log.contains("where this connection comes from").then_some(())
    });
    let listed = team.person.ok("list_processes", json!({}));
    assert!(!listed.to_string().contains("smuggled"), "{listed}");
}

/// What an agent may do in another project is what a stranger may, and never what a person may.
#[test]
fn an_agent_is_no_person_in_another_project_either() {
    let mut team = Team::new();
    let other = team.place.folder("other");
    let there = |arguments: &[&str]| {
        let output = team.place.patterm(arguments).current_dir(&other).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    there(&["serve"]);
    let deed = "PATTERM token new own; echo said $?; sleep 1000";
    std::fs::write(other.join("deed"), team.with_binary(deed)).unwrap();
    let script = format!(
        "cd {}; PATTERM token new own; PATTERM run --name there -- sh ./deed; echo ran $?; sleep 1000",
        other.display()
    );
    let shell = team.in_its_shell(&script);
    team.person.wait(&shell, "only a person");
    team.person.wait(&shell, "ran 0");
    let place = &team.place;
    let wait = |words: &str| {
        let output = place.patterm(&["wait", "there", words]).current_dir(&other).output().unwrap();
        assert!(output.status.success(), "{words}");
    };
    wait("only a person");
    wait("said 1");
    let tokens = place.patterm(&["token", "ls", "--json"]).current_dir(&other).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&tokens.stdout), "[]\n");
    // A person in a pane of his own is one there as well.
    let arguments =
        team.shell(&format!("cd {}; PATTERM token new own; sleep 1000", other.display()));
    let own = id_of(&team.person.ok("spawn_process", arguments));
    team.person.wait(&own, "It is shown this once");
    let _ = place.patterm(&["kill"]).current_dir(&other).output();
}
