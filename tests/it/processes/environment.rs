//! Programs get the environment of the caller that starts them and keep it across restarts, and values are stored
//! only in the files made for them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Place;
use crate::support::tool_client::{ToolClient, until};

/// Runs a command that must succeed; returns what it printed.
#[track_caller]
fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A program that anybody may run.
fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The files in which environments are kept.
fn kept(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.state().file("environments")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Every file below a folder, except those in which environments are kept.
fn files_but_kept(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files = Vec::new();
    for path in entries.filter(|path| !path.ends_with("environments")) {
        match path.symlink_metadata().unwrap().is_dir() {
            true => files.extend(files_but_kept(&path)),
            false => files.push(path),
        }
    }
    files
}

/// A place whose server was started by somebody with another environment.
fn place_with_server() -> Place {
    let place = Place::new();
    // Its folders belong to it.
    std::fs::create_dir(place.path("project/.git")).unwrap();
    std::fs::write(place.path("project/.git/HEAD"), "").unwrap();
    output_of(place.patterm(&["serve"]).env("FOO", "of the server"));
    place
}

#[test]
fn a_program_that_a_person_starts_has_their_environment_and_folder_and_keeps_them_on_restart() {
    let place = place_with_server();
    let project = place.path("project");
    std::fs::create_dir(project.join("sub")).unwrap();
    let mut run = place.patterm(&["run", "--", "sh", "-c", "echo [$FOO] [$PWD]; pwd; sleep 600"]);
    output_of(run.env("FOO", "mine").env("TMUX", "/x").current_dir(project.join("sub")));
    let line = place.run(&["wait", "p1", r"\[mine\]"]);
    assert_eq!(line.trim_end(), format!("[mine] [{}]", project.join("sub").display()));
    // Whoever restarts it: it is the same.
    output_of(place.patterm(&["restart", "p1"]).env("FOO", "another"));
    assert_eq!(place.run(&["wait", "p1", r"^\[.*\] "]).trim_end(), line.trim_end());
    output_of(place.patterm(&["restart", "--env-from-here", "p1"]).env("FOO", "refreshed"));
    place.run(&["wait", "p1", r"\[refreshed\]"]);
    place.run(&["kill", "--now"]);
    place.run(&["restore"]);
    place.run(&["wait", "p1", r"\[refreshed\]"]);
}

#[test]
fn programs_are_looked_up_in_the_callers_path() {
    let place = place_with_server();
    let tool = place.path("project").join("venv/bin/mytool");
    script(&tool, "echo tool of $VIRTUAL_ENV; sleep 600");
    let path = std::env::var("PATH").unwrap();
    let error = place.patterm(&["run", "--", "mytool"]).output().unwrap();
    let error = String::from_utf8(error.stderr).unwrap();
    assert!(error.contains("there is no program `mytool` in PATH"), "{error}");
    assert!(!error.contains(&path), "no value: {error}");
    let venv = tool.parent().unwrap().parent().unwrap();
    let mut run = place.patterm(&["run", "--", "mytool"]);
    run.env("VIRTUAL_ENV", venv);
    run.env("PATH", format!("{}/bin:{path}", venv.display()));
    let id = output_of(&mut run);
    let line = place.run(&["wait", &id, "^tool of"]);
    assert_eq!(line.trim_end(), format!("tool of {}", venv.display()));
    place.run(&["restart", &id]);
    place.run(&["wait", &id, "^tool of"]);
}

#[test]
fn variables_on_the_command_line_and_a_clean_environment() {
    let place = place_with_server();
    let print = "echo [$FOO] [$BAR] [$HOME]";
    let run = |options: &[&str]| {
        let mut command = place.patterm(&["run"]);
        command.args(options).args(["--", "sh", "-c", print]).env("FOO", "f").env("BAR", "b");
        let id = output_of(&mut command);
        let line = place.run(&["wait", &id, r"^\[.*\] \["]).trim_end().to_owned();
        line.strip_suffix(&format!(" [{}]", place.path("home").display())).unwrap().to_owned()
    };
    assert_eq!(run(&[]), "[f] [b]");
    assert_eq!(run(&["--env", "FOO=x=y", "--env", "BAR="]), "[x=y] []");
    assert_eq!(run(&["--clean-env"]), "[] []");
    assert_eq!(run(&["--clean-env", "--env", "BAR", "--env=FOO=z"]), "[z] [b]");
    for bad in ["=x", "PATTERM_IDENTITY_FILE=/x"] {
        let output = place.patterm(&["run", "--env", bad, "--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[test]
fn variables_that_are_set_by_name_are_kept_even_if_they_describe_a_terminal() {
    let place = place_with_server();
    let print = "echo [$TERM $TMUX $LINES $COLORTERM $CLAUDECODE $FOO]; sleep 600";
    let options = ["TERM=dumb", "TMUX=/t", "LINES=5", "COLORTERM=no", "CLAUDECODE=1", "FOO=set"];
    let mut run = place.patterm(&["run"]);
    for option in options {
        run.args(["--env", option]);
    }
    run.args(["--", "sh", "-c", print]).env("TMUX", "/other").env("FOO", "own");
    let id = output_of(&mut run);
    let expected = "[dumb /t 5 no 1 set]";
    assert_eq!(place.run(&["wait", &id, r"^\[.*\]"]).trim_end(), expected);
    // What the shell has instead changes nothing that was set by name.
    let mut restart = place.patterm(&["restart", "--env-from-here", &id]);
    output_of(restart.env("FOO", "another").env("TMUX", "/other"));
    assert_eq!(place.run(&["wait", &id, r"^\[.*\]"]).trim_end(), expected);
    place.run(&["kill", "--now"]);
    place.run(&["restore"]);
    assert_eq!(place.run(&["wait", &id, r"^\[.*\]"]).trim_end(), expected);
}

#[test]
fn a_value_that_is_not_utf_8_arrives_unchanged_and_survives_a_restart() {
    let place = place_with_server();
    let raw = OsString::from_vec(b"\xff\xfe x\n\x01".to_vec());
    let print = "printf %s \"$RAW\" | od -An -tx1; sleep 600";
    let id = output_of(place.patterm(&["run", "--", "sh", "-c", print]).env("RAW", raw));
    place.run(&["wait", &id, "ff fe 20 78 0a 01"]);
    place.run(&["kill", "--now"]);
    place.run(&["restore"]);
    place.run(&["wait", &id, "ff fe 20 78 0a 01"]);
}

#[test]
fn the_size_limit_is_that_of_execve_and_the_error_contains_no_value() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut tools = ToolClient::of(&server);
    let mut pass = |bytes: usize, times: usize| {
        let mut variables: serde_json::Map<String, Value> = (0..times)
            .map(|n| (format!("V{n:04}"), Value::from("v".repeat(bytes - "V0000=".len()))))
            .collect();
        variables.insert("PATH".into(), "/usr/bin:/bin".into());
        tools.call("patterm/environment", json!({"variables": variables}))?;
        tools.call("spawn_process", json!({"argv": ["sh", "-c", "echo ${#V0000}; sleep 600"]}))
    };
    // One less than 32 pages: the terminating zero counts.
    let longest = (128 << 10) - 1;
    assert_eq!(pass(longest, 1).unwrap()["status"], "running");
    let error = pass(longest + 1, 1).unwrap_err();
    assert_eq!(error.kind, "invalid_argument");
    assert!(error.message.starts_with("the variable `V0000` is 131072 bytes"), "{error:?}");
    let error = pass(longest, 80).unwrap_err();
    assert!(error.message.contains("a quarter of the stack limit"), "{error:?}");
    assert!(!error.message.contains("vvv"), "{error:?}");
    assert_eq!(kept(&place).len(), 1, "nothing is left of those that were refused");
    tools.wait("p1", "131065");
}

#[test]
fn values_are_stored_only_in_the_environment_files_which_are_removed_with_their_last_entry() {
    let place = place_with_server();
    let start = |name: &str| {
        let mut run = place.patterm(&["run", "--name", name, "--", "sh", "-c", "sleep 600"]);
        output_of(run.env("TOKEN", "s3cr3t-value"))
    };
    let (one, other) = (start("one"), start("other"));
    let env = json!({"argv": ["sleep", "600"], "env": {"ARG": "s3cr3t-value"}});
    let third = place.run(&["call", "spawn_process", &env.to_string()]);
    let third: Value = serde_json::from_str(&third).unwrap();
    assert_eq!(kept(&place).len(), 2, "each content once");
    for file in kept(&place) {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    place.run(&["restart", &one]);
    for argument in ["ps", "ls"] {
        assert!(!place.run(&[argument, "--json"]).contains("s3cr3t-value"), "{argument}");
    }
    for tool in ["list_processes", "get_project_status"] {
        assert!(!place.run(&["call", tool]).contains("s3cr3t-value"), "{tool}");
    }
    let status = json!({"process_id": one}).to_string();
    assert!(!place.run(&["call", "get_process_status", &status]).contains("s3cr3t-value"));
    for file in files_but_kept(&place.path("state")) {
        let content = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(!content.contains("s3cr3t-value"), "{}", file.display());
    }
    place.run(&["close", &one]);
    assert_eq!(kept(&place).len(), 2, "another entry has the same");
    place.run(&["close", &other]);
    place.run(&["close", third["process_id"].as_str().unwrap()]);
    assert_eq!(kept(&place), Vec::<PathBuf>::new());
}

#[test]
fn without_remember_environment_a_restart_gets_the_servers_environment_and_says_so() {
    let place = Place::new();
    let settings = place.path("home/.config/patterm");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("config.toml"), "remember_environment = false\n").unwrap();
    output_of(place.patterm(&["serve"]).env("FOO", "of the server"));
    let mut run = place.patterm(&["run", "--", "sh", "-c", "echo [$FOO]; sleep 600"]);
    let id = output_of(run.env("FOO", "mine"));
    place.run(&["wait", &id, r"\[mine\]"]);
    assert_eq!(kept(&place), Vec::<PathBuf>::new());
    let answer = output_of(place.patterm(&["restart", &id]).env("FOO", "mine"));
    assert!(answer.contains("the server's environment") && answer.contains("remember_environment"));
    place.run(&["wait", &id, r"\[of the server\]"]);
    let answer = output_of(place.patterm(&["restart", "--env-from-here", &id]).env("FOO", "again"));
    assert_eq!(answer, format!("restarted {id}"));
    place.run(&["wait", &id, r"\[again\]"]);
}

#[test]
fn an_entry_of_an_older_version_restarts_as_it_did_under_that_version() {
    let place = place_with_server();
    place.run(&["run", "--", "sh", "-c", "echo [$FOO] [$OLD]; sleep 600"]);
    place.run(&["kill", "--now"]);
    let file = place.state().file("processes.json");
    let mut table: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let entry = table["processes"][0].as_object_mut().unwrap();
    assert!(entry.remove("environment").is_some());
    entry["recipe"]["env"] = json!({"OLD": "kept"});
    std::fs::write(&file, table.to_string()).unwrap();
    output_of(place.patterm(&["serve"]).env("FOO", "of the server"));
    assert_eq!(kept(&place), Vec::<PathBuf>::new(), "nobody uses it any more");
    place.run(&["restart", "p1"]);
    place.run(&["wait", "p1", r"\[of the server\] \[kept\]"]);
}

#[test]
fn programs_that_an_agent_starts_inherit_its_panes_environment_and_no_identity_can_be_passed() {
    let place = Place::new();
    let settings = place.path("home/.config/patterm");
    std::fs::create_dir_all(&settings).unwrap();
    let agent = place.path("agent");
    script(
        &agent,
        "echo identity [$PATTERM_IDENTITY_FILE]
        unset FOO
        print='echo [$FOO] [$PATTERM_IDENTITY_FILE]; sleep 600'
        \"$PATTERM\" call spawn_process \"{\\\"argv\\\": [\\\"sh\\\", \\\"-c\\\", \\\"$print\\\"]}\"
        FOO=shell \"$PATTERM\" run -- sh -c \"$print\"
        \"$PATTERM\" run --env PATTERM_SOCKET=/x -- true || echo refused
        sleep 600",
    );
    let preset = format!(
        "[agents.mine]\nprogram = {:?}\nenv = {{ PATTERM_IDENTITY_FILE = \"/x\" }}\n",
        agent
    );
    std::fs::write(settings.join("config.toml"), preset).unwrap();
    output_of(place.patterm(&["serve"]).env("FOO", "of the server"));
    let mut start = place.patterm(&["agent", "mine"]);
    start.env("FOO", "mine").env("PATTERM", place.binary()).env("PATTERM_IDENTITY_FILE", "/other");
    let id = output_of(&mut start);
    let identity = place.state().file("agents").join(&id).join("identity");
    let line = place.run(&["wait", &id, r"identity \[/"]);
    assert_eq!(line.trim_end().replace('\n', ""), format!("identity [{}]", identity.display()));
    place.run(&["wait", &id, "refused"]);
    let children = |place: &Place| -> Vec<String> {
        let all: Value = serde_json::from_str(&place.run(&["ps", "--json"])).unwrap();
        let all = all.as_array().unwrap().iter().filter(|p| p["parent_id"] == json!(id));
        all.map(|process| process["process_id"].as_str().unwrap().to_owned()).collect()
    };
    let children =
        until("two children", || Some(children(&place)).filter(|children| children.len() == 2));
    place.run(&["wait", &children[0], r"\[mine\] \[\]"]);
    place.run(&["wait", &children[1], r"\[shell\] \[\]"]);
}

#[test]
fn attaching_a_terminal_updates_a_few_variables_for_programs_that_others_start() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut terminal = ToolClient::of(&server);
    let variables = json!({"SSH_AUTH_SOCK": "/tmp/new", "OTHER": "no", "PATH": "/usr/bin:/bin"});
    terminal.ok("patterm/environment", json!({"variables": variables, "attaches": true}));
    let mut script = ToolClient::of(&server);
    let print = "echo [$SSH_AUTH_SOCK] [$OTHER] [$DISPLAY]";
    let id = script.sh(print);
    script.wait(&id, r"^\[/tmp/new\] \[\] \[\]");
    let mut file = place.path("home/.config/patterm");
    std::fs::create_dir_all(&file).unwrap();
    file.push("config.toml");
    std::fs::write(&file, "update_environment = [\"OTHER\", \"PATTERM_SOCKET\"]\n").unwrap();
    terminal.ok("patterm/environment", json!({"variables": variables, "attaches": true}));
    let id = script.sh("echo [$OTHER] [$PATTERM_SOCKET]");
    script.wait(&id, r"^\[no\] \[\]");
}

#[test]
fn a_declared_process_gets_the_variables_of_its_env_file_as_they_are_at_each_start() {
    let place = Place::new();
    let project = place.path("project");
    let text = "[processes.web]\ncommand = 'echo [$FROM_FILE] [$BOTH] [$FOO]; sleep 600'\n\
                env_file = \".env\"\nenvironment = { BOTH = \"toml\" }\n";
    std::fs::write(project.join("patterm.toml"), text).unwrap();
    std::fs::write(project.join(".env"), "FROM_FILE='a b'\nBOTH=file\n").unwrap();
    output_of(place.patterm(&["serve"]).env("FOO", "of the server"));
    let described = output_of(&mut place.patterm(&["trust", "--yes"]));
    assert!(described.contains("the variables in .env, as they are at each start"), "{described}");
    place.run(&["call", "spawn_process", r#"{"preset": "web"}"#]);
    place.run(&["wait", "web", r"\[a b\] \[toml\] \[of the server\]"]);
    std::fs::write(project.join(".env"), "FROM_FILE=\"new\"\n").unwrap();
    place.run(&["restart", "web"]);
    place.run(&["wait", "web", r"\[new\] \[toml\]"]);
    std::fs::write(project.join(".env"), "\nTOKEN s3cr3t\n").unwrap();
    let output = place.patterm(&["restart", "web"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(".env:2: a line must have the form NAME=VALUE"), "{error}");
    assert!(!error.contains("s3cr3t"), "{error}");
}

#[test]
fn a_declared_process_that_a_person_starts_has_their_environment() {
    let place = Place::new();
    let project = place.path("project");
    let text = "[processes.db]\ncommand = 'echo db [$FOO]; sleep 600'\n\
                [processes.web]\ncommand = 'echo web [$FOO] [$PWD]; sleep 600'\n\
                depends_on = [\"db\"]\ndirectory = \"sub\"\n";
    std::fs::create_dir(project.join("sub")).unwrap();
    std::fs::write(project.join("patterm.toml"), text).unwrap();
    output_of(place.patterm(&["serve"]).env("FOO", "of the server"));
    place.run(&["trust", "--yes"]);
    output_of(place.patterm(&["up", "web"]).env("FOO", "mine"));
    let runs = || {
        let all: Value = serde_json::from_str(&place.run(&["ps", "--json"])).unwrap();
        let web = all.as_array().unwrap().iter().find(|process| process["name"] == "web").cloned();
        web.filter(|web| web["status"] == "running")
    };
    until("web runs, and so does what it needs", runs);
    place.run(&["wait", "db", r"^db \[mine\]"]);
    let line = place.run(&["wait", "web", r"^web \[mine\]"]);
    assert_eq!(line.trim_end(), format!("web [mine] [{}]", project.join("sub").display()));
    // A running one is left alone; an ended one gets the environment of the shell that starts it.
    place.run(&["stop", "web"]);
    output_of(place.patterm(&["start", "web"]).env("FOO", "other"));
    place.run(&["wait", "web", r"^web \[other\]"]);
    output_of(place.patterm(&["restart", "db"]).env("FOO", "third"));
    place.run(&["wait", "db", r"^db \[mine\]"]);
    // What is not declared keeps its own.
    let mut run =
        place.patterm(&["run", "--name", "own", "--", "sh", "-c", "echo own [$FOO]; sleep 600"]);
    output_of(run.env("FOO", "first"));
    place.run(&["stop", "own"]);
    output_of(place.patterm(&["start", "own"]).env("FOO", "second"));
    place.run(&["wait", "own", r"^own \[first\]"]);
}

#[test]
fn after_a_change_of_folder_pwd_is_the_new_one() {
    let place = place_with_server();
    let project = place.path("project");
    std::fs::create_dir(project.join("sub")).unwrap();
    let print = "echo [$PWD]; sleep 600";
    let mut run = place.patterm(&["-C", "sub", "run", "--", "sh", "-c", print]);
    let id = output_of(run.current_dir(&project).env("PWD", &project));
    place.run(&["wait", &id, &format!(r"^\[{}\]", project.join("sub").display())]);
    let kept = kept(&place);
    let content = std::fs::read(&kept[0]).unwrap();
    let variable = format!("PWD={}\0", project.join("sub").display());
    assert!(String::from_utf8_lossy(&content).contains(&variable), "{kept:?}");
}

/// What each shell runs: it enters a folder whose environment direnv or a venv would set, and starts a
/// program of that folder and a shell.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "cd sub && export PATH=$PWD/bin:$PATH NAME='of bash' && mytool_starts"),
    ("zsh", "cd sub && path=($PWD/bin $path) && export NAME='of zsh' && mytool_starts"),
    (
        "fish",
        "cd sub; and set -x PATH $PWD/bin $PATH; and set -x NAME 'of fish'; and mytool_starts",
    ),
];

#[test]
fn a_real_bash_zsh_and_fish_pass_what_they_exported() {
    let place = place_with_server();
    let bin = place.path("project").join("sub/bin");
    script(&bin.join("mytool"), "echo tool $NAME in ${PWD##*/}; sleep 600");
    script(
        &bin.join("mytool_starts"),
        "\"$PATTERM\" run --name tool-of-$1 -- mytool && exec \"$PATTERM\" shell",
    );
    for (shell, text) in SHELLS {
        let mut command = place.command(Path::new(shell));
        let shell_path =
            output_of(place.command(Path::new("sh")).args(["-c", &format!("command -v {shell}")]));
        command.args(["-c", &format!("{text} {shell}")]);
        command.env("PATTERM", place.binary()).env("SHELL", shell_path).env("SHLVL", "7");
        let ids = output_of(&mut command);
        let ids: Vec<&str> = ids.lines().collect();
        assert_eq!(ids.len(), 2, "{shell}: {ids:?}");
        place.run(&["wait", ids[0], &format!("^tool of {shell} in sub")]);
        // The shell in the pane has it as well, whatever its own start-up files do.
        place.run(&["send", ids[1], "echo \"<$NAME>\"; command -v mytool"]);
        place.run(&["wait", ids[1], &format!("^<of {shell}>")]);
        place.run(&["wait", ids[1], &format!("^{}", bin.join("mytool").display())]);
    }
}
