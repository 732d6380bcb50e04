//! `patterm ls` and `patterm kill`: their output and effect, and errors for wrong usage.

use std::process::Output;

use patterm_wire::requests::ServerEntry;
use rustix::process::Signal;

use crate::support::{Place, Running};

/// Servers of two projects of one user.
struct Two {
    place: Place,
}

impl Two {
    fn new() -> Self {
        let place = Place::of_another_user();
        place.folder("second");
        Self { place }
    }

    /// Runs a verb in a folder; it must succeed and print nothing on standard error.
    fn run(&self, folder: &str, arguments: &[&str]) -> String {
        let mut command = self.place.patterm(arguments);
        let Output { status, stdout, stderr } =
            command.current_dir(self.place.path(folder)).output().unwrap();
        assert_eq!((status.code(), String::from_utf8(stderr).unwrap()), (Some(0), String::new()));
        String::from_utf8(stdout).unwrap()
    }

    fn serve(&self, folder: &str) -> (ServerEntry, Running) {
        let entry: ServerEntry =
            serde_json::from_str(&self.run(folder, &["serve", "--json"])).unwrap();
        let running = Running::of(entry.pid);
        (entry, running)
    }

    fn list(&self) -> Vec<ServerEntry> {
        serde_json::from_str(&self.run("home", &["ls", "--json"])).unwrap()
    }
}

fn ended(entry: &ServerEntry) -> String {
    format!("ended the server of {} (pid {})\n", entry.project.display(), entry.pid)
}

#[test]
fn with_no_server_all_verbs_say_so_and_succeed() {
    let two = Two::new();
    assert_eq!(two.run("project", &["ls"]), "no servers are running; `patterm` starts one\n");
    assert_eq!(two.run("project", &["ls", "--json"]), "[]\n");
    assert_eq!(two.run("project", &["kill"]), "no server is running for this project\n");
    assert_eq!(two.run("project", &["kill", "--all"]), "no servers are running\n");
}

#[test]
fn ls_lists_the_servers_of_all_projects_from_anywhere() {
    let two = Two::new();
    let ((first, _), (second, _)) = (two.serve("project"), two.serve("second"));
    assert_eq!(two.list(), [first.clone(), second.clone()]);
    let text = two.run("home", &["ls"]);
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["PID", "UP", "VERSION", "PANES", "RUNNING", "PROJECT"]);
    for (row, entry) in rows[1..].iter().zip([&first, &second]) {
        let (pid, project) = (entry.pid.to_string(), entry.project.to_str().unwrap());
        assert_eq!(
            [row[0], row[2], row[3], row[4], row[5]],
            [&*pid, &*entry.patterm, "0", "0", project]
        );
        assert!(row[1].ends_with('s'), "up for seconds: {text}");
    }
    assert_eq!(rows.len(), 3);
}

#[test]
fn kill_ends_the_server_of_its_own_project_only() {
    let two = Two::new();
    let ((first, first_runs), (second, second_runs)) = (two.serve("project"), two.serve("second"));
    assert_eq!(two.run("project", &["kill"]), ended(&first));
    assert!(first_runs.is_gone(), "kill returns when the server is gone");
    assert!(!second_runs.is_gone());
    assert_eq!(two.list(), [second]);
    assert_eq!(two.run("project", &["kill"]), "no server is running for this project\n");
}

#[test]
fn kill_works_in_any_folder_of_the_project() {
    let two = Two::new();
    let project = two.place.path("project");
    std::fs::write(project.join("patterm.toml"), "").unwrap();
    two.place.folder("project/src");
    let (entry, runs) = two.serve("project/src");
    assert_eq!(entry.project, project.canonicalize().unwrap());
    assert_eq!(two.run("project/src", &["kill"]), ended(&entry));
    assert!(runs.is_gone());
}

#[test]
fn kill_all_ends_every_server_of_the_user() {
    let two = Two::new();
    let ((first, first_runs), (second, second_runs)) = (two.serve("project"), two.serve("second"));
    assert_eq!(two.run("home", &["kill", "--all"]), ended(&first) + &ended(&second));
    assert!(first_runs.is_gone() && second_runs.is_gone());
    assert_eq!(two.list(), []);
    assert!(!first.socket.exists() && !second.socket.exists());
}

/// A killed server leaves its entry; a server that was started elsewhere since is the right one.
#[test]
fn kill_finds_the_living_server_behind_the_entry_of_a_dead_one() {
    let two = Two::new();
    let (_, dead) = two.serve("project");
    dead.signal(Signal::KILL);
    dead.wait();
    let mut elsewhere = two.place.patterm(&["serve", "--json"]);
    let output = elsewhere.env("XDG_RUNTIME_DIR", two.place.folder("elsewhere")).output().unwrap();
    let entry: ServerEntry = serde_json::from_slice(&output.stdout).unwrap();
    let living = Running::of(entry.pid);
    assert_eq!(two.run("project", &["kill"]), ended(&entry));
    assert!(living.is_gone());
}

#[test]
fn wrong_usage_exits_2_with_the_reason_on_stderr() {
    let place = Place::new();
    for arguments in [
        &["nonsense"][..],
        &["serve", "--nonsense"],
        &["serve", "extra"],
        &["serve", "--json", "--foreground"],
        &["serve", "--max-message-bytes", "12"],
        &["serve", "--max-log-bytes", "12"],
        &["kill", "extra"],
        &["ls", "--all"],
        &["mcp-stdio", "--socket"],
        &["mcp-stdio", "--project-key", "no key"],
        // A token is never in argv.
        &["mcp-stdio", "--identity", "0123"],
    ] {
        let Output { status, stdout, stderr } = place.patterm(arguments).output().unwrap();
        assert_eq!((status.code(), &*stdout), (Some(2), &b""[..]), "{arguments:?}");
        assert!(stderr.starts_with(b"error: "), "{arguments:?}");
    }
    assert!(!place.path("run/patterm").exists(), "nothing was started");
}
