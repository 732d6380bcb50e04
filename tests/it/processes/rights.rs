//! Whose rights a caller in a pane has: the kernel shows in which pane it runs, and no claim of its
//! own gives it more rights than the pane's owner has.

use patterm_host::Project;
use patterm_wire::Method;
use patterm_wire::view;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::tool_client::{ToolClient, alive, id_of, strings, until};
use crate::support::{Place, Spawned};

/// A real server, an agent of it, and a person's pane.
struct Team {
    place: Place,
    server: Spawned,
    lead: String,
    lead_token: String,
    /// The token of another agent, which is not below the first.
    mate: String,
    mate_token: String,
    agent: ToolClient,
    person: ToolClient,
    /// A person's pane, which echoes its input.
    persons: String,
}

impl Team {
    fn new() -> Self {
        let place = Place::new();
        let mut issuing = place.serve_in_process();
        let (lead, token) = issuing.agent("lead", None);
        let (mate, mate_token) = issuing.agent("mate", None);
        issuing.stop();
        let server = place.serve();
        let mut agent = ToolClient::at(&server.socket());
        agent.peer.greet(&token.reveal(), None);
        let mut person = ToolClient::at(&server.socket());
        let persons = person.run(&["cat"]);
        let (lead, mate) = (lead.id.to_string(), mate.id.to_string());
        let (lead_token, mate_token) = (token.reveal(), mate_token.reveal());
        Self { place, server, lead, lead_token, mate, mate_token, agent, person, persons }
    }

    /// Runs a script in a shell of the agent that has no token.
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

/// For every way to start a pane from an agent's shell, and from programs of that shell.
#[test]
fn processes_that_an_agents_shell_starts_through_the_cli_belong_to_the_agent() {
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
    // Everything is closed with the agent.
    let closed =
        strings(&team.person.ok("close_process", json!({"process_id": team.lead}))["closed"]);
    assert_eq!(closed.len(), 8, "{closed:?}");
}

#[test]
fn every_verb_for_people_is_refused_in_a_pane_that_an_agents_shell_started() {
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
        "hooks test mine",
        "restore",
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
fn a_caller_in_an_agents_pane_may_do_what_the_agent_may_and_no_more() {
    let mut team = Team::new();
    let persons = team.persons.clone();
    let own = id_of(&team.agent.ok("spawn_process", json!({"argv": ["cat"], "name": "own"})));
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "send_input",
        "params": {"process_id": persons, "kind": "text", "text": "typed"}});
    std::fs::write(team.place.path("project/asked"), format!("{asked}\n")).unwrap();
    // A view can also type.
    let wish = json!({"jsonrpc": "2.0", "id": 1, "method": view::View::NAME,
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
    let printed = team.person.raw(&shell);
    assert_eq!(printed.matches("is neither you nor below you").count(), 4, "{printed}");
    team.person.wait(&own, "allowed");
    assert_eq!(team.person.raw(&persons), "");
    assert_eq!(team.person.status(&persons)["status"], "running");
}

/// It connects, sends a request, and exits before the server accepts the connection.
#[test]
fn a_caller_that_exits_before_it_is_identified_is_not_served() {
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

/// In another project, an agent has the rights of an anonymous caller, never those of a person.
#[test]
fn an_agent_is_not_a_person_in_another_project_either() {
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
    // A person in their own pane is a person there, too.
    let arguments =
        team.shell(&format!("cd {}; PATTERM token new own; sleep 1000", other.display()));
    let own = id_of(&team.person.ok("spawn_process", arguments));
    team.person.wait(&own, "It is shown only this once");
    let _ = place.patterm(&["kill"]).current_dir(&other).output();
}

/// A script that poses as the keeper of a project whose server treats every process as a person's.
const FALSE_KEEPER: &str = r#"
python3 - "$2" << 'END' &
import json, os, socket, sys
folder = os.path.dirname(sys.argv[1])
key = os.path.basename(sys.argv[1]).removesuffix('.keeper')
os.makedirs(folder, mode=0o700)
server = socket.socket(socket.AF_UNIX)
server.bind(folder + '/1.sock')
server.listen()
entry = {'pid': os.getpid(), 'socket': folder + '/1.sock', 'project': os.environ['FALSE'], 'key': key,
         'patterm': '0.1.1', 'started_at': 1}
with open(folder + '/' + key + '.json', 'w', opener=lambda *a: os.open(*a, 0o600)) as file:
    json.dump(entry, file)
open('listens', 'w')
while True:
    connection, _ = server.accept()
    connection.recv(65536)
    connection.sendall(b'{"jsonrpc":"2.0","id":1,"result":{"person":true}}\n')
END
until test -e listens; do sleep 0.01; done
PATTERM token new own; echo said $?
PATTERM send PERSONS typed; echo sent $?
sleep 1000
"#;

/// A process can choose its own command line, and therefore who answers for the project that it
/// names.
#[test]
fn a_process_in_an_agents_pane_that_poses_as_a_keeper_still_belongs_to_the_agent() {
    let mut team = Team::new();
    let project = Project::of(&team.place.folder("false")).unwrap();
    let script = FALSE_KEEPER.replace("PERSONS", &team.persons);
    std::fs::write(team.place.path("project/keeper"), team.with_binary(&script)).unwrap();
    let socket = team.place.path("false/patterm").join(format!("{}.keeper", project.key()));
    let shell = team.in_its_shell(&format!(
        "FALSE={} sh keeper --socket {}",
        project.root().display(),
        socket.display()
    ));
    team.person.wait(&shell, "only a person");
    team.person.wait(&shell, "said 1");
    team.person.wait(&shell, "is neither you nor below you");
    team.person.wait(&shell, "sent 1");
    team.assert_no_tokens();
}

/// The same from an agent's pane of another project: all keepers above a process are asked.
#[test]
fn posing_as_a_keeper_does_not_make_an_agent_a_person_in_another_project() {
    let mut team = Team::new();
    let project = Project::of(&team.place.folder("false")).unwrap();
    let other = team.place.folder("other");
    let in_other = |arguments: &[&str]| {
        let output = team.place.patterm(arguments).current_dir(&other).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    in_other(&["serve"]);
    let script = FALSE_KEEPER.replace("PATTERM send PERSONS typed; echo sent $?", "");
    std::fs::write(other.join("keeper"), team.with_binary(&script)).unwrap();
    let socket = team.place.path("false/patterm").join(format!("{}.keeper", project.key()));
    let line = format!(
        "cd {}; FALSE={} sh keeper --socket {}",
        other.display(),
        project.root().display(),
        socket.display()
    );
    let arguments = team.shell(&line);
    let shell = id_of(&team.agent.ok("spawn_process", arguments));
    team.person.wait(&shell, "only a person");
    team.person.wait(&shell, "said 1");
    assert_eq!(in_other(&["token", "ls", "--json"]), "[]\n");
    in_other(&["kill"]);
}

#[test]
fn an_agents_token_is_refused_in_the_pane_of_another_agent() {
    let mut team = Team::new();
    let script = format!(
        "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect('{}')\n\
         s.sendall(b'{{\"patterm_identity\":\"' + sys.argv[1].encode() + b'\"}}\\n' \\\n\
         b'{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"whoami\",\"params\":{{}}}}\\n')\n\
         print(s.makefile().readline())\n",
        team.server.socket().display()
    );
    std::fs::write(team.place.path("project/who.py"), script).unwrap();
    let (lead, mate) = (team.lead.clone(), team.mate.clone());
    let line = format!(
        "stty cols 1000; python3 who.py {}; python3 who.py {}; echo asked; sleep 1000",
        team.lead_token, team.mate_token
    );
    let shell = team.in_its_shell(&line);
    team.person.wait(&shell, "asked");
    let printed = team.person.raw(&shell);
    assert!(printed.contains(&format!("\"process_id\":\"{lead}\"")), "{printed}");
    assert!(
        printed.contains("other_process") && printed.contains(&format!("belongs to {mate}")),
        "{printed}"
    );
    assert!(!printed.contains(&format!("\"process_id\":\"{mate}\"")), "{printed}");
    // Outside of all panes, and in a person's, only a token counts.
    let mut outside = ToolClient::at(&team.server.socket());
    outside.peer.greet(&team.mate_token, None);
    assert_eq!(outside.ok("whoami", json!({}))["caller"]["process_id"], json!(mate));
    let line =
        format!("stty cols 1000; python3 who.py {}; echo asked; sleep 1000", team.mate_token);
    let arguments = team.shell(&line);
    let persons = id_of(&team.person.ok("spawn_process", arguments));
    team.person.wait(&persons, "asked");
    let printed = team.person.raw(&persons);
    assert!(printed.contains(&format!("\"process_id\":\"{mate}\"")), "{printed}");
}

/// A daemon that kills the keeper and then its own pane's init: none of its ancestors shows any
/// more that an agent started it.
const DAEMON: &str = r#"
import os, signal, subprocess, sys, time
def parent(pid):
    return int(open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[1])
if sys.argv[1:] == []:
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
    null = os.open('/dev/null', os.O_RDWR)
    for stream in (0, 1, 2): os.dup2(null, stream)
    names = ('PATH', 'HOME', 'XDG_RUNTIME_DIR', 'XDG_STATE_HOME')
    os.execve(sys.executable, [sys.executable, __file__, 'go'], {n: os.environ[n] for n in names})
with open('pid.new', 'w') as file: file.write(str(os.getpid()))
os.rename('pid.new', 'pid')
init = os.getpid()
while open(f'/proc/{init}/comm').read() != 'patterm-init\n':
    below, init = init, parent(init)
keeper = parent(init)
# At once: the next keeper would end what is below the init that it adopts.
os.kill(keeper, signal.SIGKILL)
os.kill(init, signal.SIGKILL)
while parent(below) in (init, keeper): time.sleep(0.01)
made = subprocess.run(['BINARY', 'token', 'new', 'own'], capture_output=True, text=True)
with open('made.new', 'w') as file: file.write(f'said {made.returncode}: {made.stderr}')
os.rename('made.new', 'made')
"#;

/// As a daemon, and with the pane's terminal.
#[test]
fn a_process_left_behind_by_an_agents_killed_init_is_not_a_person() {
    for script in ["python3 daemon.py; sleep 1000", "python3 daemon.py go; sleep 1000"] {
        let has_asked = (0..TRIES).any(|_| a_pane_is_left_behind(script));
        assert!(has_asked, "it was ended {TRIES} times before it could ask");
    }
}

/// How often it may be killed before it can send its request.
const TRIES: usize = 10;

/// Whether a process that an agent's pane left behind got to request a token, which was refused.
fn a_pane_is_left_behind(script: &str) -> bool {
    let mut team = Team::new();
    let daemon = DAEMON.replace("BINARY", &team.place.binary().display().to_string());
    std::fs::write(team.place.path("project/daemon.py"), daemon).unwrap();
    let shell = team.in_its_shell(script);
    let in_project = |name: &str| team.place.path("project").join(name);
    let read = |name: &str| std::fs::read_to_string(in_project(name)).ok();
    // The next keeper may have killed it before it could send its request.
    let is_ended = || read("pid").is_some_and(|pid| !alive(pid.parse().unwrap()));
    let printed = until("it asked, or was ended", || {
        let is_ended = is_ended();
        read("made").map(Some).or_else(|| is_ended.then_some(None))
    });
    if let Some(printed) = &printed {
        assert!(printed.starts_with("said 1") && printed.contains("only a person"), "{printed}");
    }
    until("the pane is lost", || (team.person.status(&shell)["status"] == "lost").then_some(()));
    // A person's pane is still a person's.
    let arguments = team.shell("PATTERM token ls --json; echo listed $?; sleep 1000");
    let own = id_of(&team.person.ok("spawn_process", arguments));
    team.person.wait(&own, "listed 0");
    let listed = team.person.raw(&own);
    assert!(listed.contains("[]"), "{listed}");
    printed.is_some()
}
