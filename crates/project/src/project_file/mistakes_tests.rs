//! Typical errors in project files, and files as editors and other systems write them.

use super::*;
use std::path::Path;

/// The result of reading the file in a folder, without its path.
fn outcome(root: &Path) -> String {
    let content = match Content::read(root) {
        Ok(Some(content)) => content,
        Ok(None) => return "absent".into(),
        Err(error) => return error.why,
    };
    match ProjectFile::parse(&content.text) {
        Ok(_) => "valid".into(),
        Err(faults) => faults.iter().map(|fault| fault.to_string() + "\n").collect(),
    }
}

fn written(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("patterm.toml"), bytes).unwrap();
    outcome(folder.path())
}

#[test]
fn every_error_has_a_position_and_a_hint() {
    let web = "[processes.web]\ncommand = \"x\"\n";
    let rows: &[(&str, &str)] = &[
        // A wrong type, a misspelled key, an unknown key.
        ("[processes.web]\ncommand = true", "2:11: `processes.web.command` must be a string or"),
        ("[processes.web]\ncomand = \"x\"\ncommand = \"x\"", "did you mean `command`?"),
        ("[process.web]\ncommand = \"x\"", "1:2: unknown key `process`; did you mean `processes`?"),
        (
            "[procs]",
            "1:2: unknown key `procs`; the keys are processes, groups, agents, servers, bots, http, hooks, limits, \
             remember_environment, update_environment",
        ),
        // The same name twice.
        (&format!("{web}{web}"), "3:12: duplicate key"),
        (&format!("{web}command = \"y\"\n"), "3:1: duplicate key"),
        // Dependencies on itself or on nothing.
        (&format!("{web}depends_on = [\"web\"]"), "3:15: `web` cannot depend on itself"),
        (&format!("{web}depends_on = [\"db\"]"), "3:15: there is no process `db`"),
        (&format!("{web}depends_on = \"db\""), "3:14: `processes.web.depends_on` must be an array"),
        // Patterns, ports and times.
        (
            &format!("{web}ready = {{ pattern = \"(\" }}"),
            "3:21: the pattern does not compile: unclosed group",
        ),
        (
            &format!("{web}ready = {{ port = 0 }}"),
            "3:18: `processes.web.ready.port` must be a whole number from 1 to 65535, not 0",
        ),
        (
            &format!("{web}ready = {{ port = \"80\" }}"),
            "3:18: `processes.web.ready.port` must be a whole number from 1 to 65535, not \"80\"",
        ),
        (
            &format!("{web}ready = {{ port = 80, timeout_seconds = \"1m\" }}"),
            "3:40: `processes.web.ready.timeout_seconds` must be a number of seconds",
        ),
        (
            &format!("{web}restart = {{ policy = \"always\", delay_seconds = nan }}"),
            "3:48: `processes.web.restart.delay_seconds` must be a number of seconds",
        ),
        (&format!("{web}restart = \"allways\""), "did you mean \"always\"?"),
        (
            &format!("{web}autostart = 1"),
            "3:13: `processes.web.autostart` must be true or false, not 1",
        ),
        // Not TOML: missing quotes or brackets, other formats.
        ("[processes.web]\ncommand = npm run dev", "2:11: "),
        ("[processes.web]\ncommand = \"npm", "2:"),
        ("{\"processes\": {}}", "1:1: "),
        ("processes:\n  web:\n", "1:11: key with no value, expected `=`"),
        // Presets, at every level.
        (
            "[agents.x.input]\nsubmitt = \"enter\"",
            "2:1: unknown key `submitt` in `agents.x.input`; did you mean `submit`?",
        ),
        (
            "[agents.x.input]\nsettle_ms = \"1s\"",
            "2:13: `agents.x.input.settle_ms` must be a whole number",
        ),
        (
            "[agents.x.rules.mine]\nstate = \"bussy\"",
            "2:9: `agents.x.rules.mine.state` must be one of \"working\", \"idle\", \"blocked\", \"limited\", \"unknown\", not \"bussy\"",
        ),
        (
            "[agents.x.rules.mine]\nbottom = \"[\"",
            "2:10: the pattern does not compile: unclosed character class",
        ),
        ("[agents.x]\nrules = true", "2:9: `agents.x.rules` must be false or a table, not true"),
        (
            "[agents.x.inject.overlay]\nfiles = 1",
            "2:1: unknown key `files` in `agents.x.inject.overlay`; did you mean `file`?",
        ),
        (
            "[agents.x.hooks.Stop]\nprompt = 1",
            "2:10: `agents.x.hooks.Stop.prompt` must be a string, not 1; put it in quotes: \"1\"",
        ),
        ("[limits]\nprocesses = -1", "2:13: `limits.processes` must be a whole number from 1"),
    ];
    for (text, expected) in rows {
        let result = written(text.as_bytes());
        assert!(result.contains(expected), "{text}\ngave {result}\nnot {expected}");
        // Windows line ends do not change the positions.
        let windows = written(text.replace('\n', "\r\n").as_bytes());
        assert!(windows.contains(expected), "{text}\nwith CRLF gave {windows}");
    }
}

#[test]
fn files_as_editors_and_machines_leave_them() {
    let valid = "[processes.web]\ncommand = \"x\"\n";
    assert_eq!(written(valid.replace('\n', "\r\n").as_bytes()), "valid");
    assert_eq!(written(format!("\u{feff}{valid}").as_bytes()), "valid");
    assert_eq!(written(b""), "valid");
    assert_eq!(written(b"a = \"\xff\""), "it is not valid UTF-8 (byte 5)");
    assert_eq!(written(&vec![b'#'; 1 << 20]), "it is larger than 262144 bytes");
    let deep = format!("a = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(written(deep.as_bytes()).starts_with("1:"), "{}", written(deep.as_bytes()));
    let deep: String = (0..10_000).map(|_| "a.").collect();
    assert!(written(format!("[{deep}a]").as_bytes()).starts_with("1:"));
}

#[test]
fn folders_and_links_in_its_place() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let (root, file) = (folder.path(), folder.path().join("patterm.toml"));
    std::fs::create_dir(&file).unwrap();
    assert_eq!(outcome(root), "it is a folder, not a file");
    std::fs::remove_dir(&file).unwrap();
    symlink("elsewhere.toml", &file).unwrap();
    assert_eq!(outcome(root), "it is a link to elsewhere.toml, which does not exist");
    std::fs::write(root.join("elsewhere.toml"), "[processes.a]\ncommand = \"x\"\n").unwrap();
    assert_eq!(outcome(root), "valid");
    std::fs::remove_file(&file).unwrap();
    symlink("patterm.toml", &file).unwrap();
    assert!(outcome(root).contains("symbolic link"), "{}", outcome(root));
}

/// An untrusted file must not keep the server busy.
#[test]
fn many_dependencies_and_many_errors_take_no_time() {
    // Each depends on all before it, so there are as many paths as subsets.
    let mut text = String::new();
    for n in 0..80 {
        let before: Vec<_> = (0..n).map(|n| format!("\"s{n}\"")).collect();
        text += &format!("[processes.s{n}]\ncommand='x'\ndepends_on=[{}]\n", before.join(","));
    }
    let file = ProjectFile::parse(&text).unwrap();
    assert_eq!(file.in_order().len(), 80);
    let text = text.replace("command='x'\ndepends_on=[]", "command='x'\ndepends_on=['s79']");
    let faults = ProjectFile::parse(&text).unwrap_err();
    assert!(
        faults[0].message.starts_with("these processes depend on each other: s0 → s79 → s0"),
        "{faults:?}"
    );
    let text: String = (0..30_000).map(|n| format!("k{n}=1\n")).collect();
    assert_eq!(ProjectFile::parse(&text).unwrap_err().len(), limits::FAULTS);
}
