//! Mistakes as people make them, and files as editors and machines leave them.

use super::*;
use std::path::Path;

/// What is said of a file, without where it lies.
fn said(root: &Path) -> String {
    let content = match Content::read(root) {
        Ok(Some(content)) => content,
        Ok(None) => return "absent".into(),
        Err(error) => return error.why,
    };
    match ProjectFile::parse(&content.text) {
        Ok(_) => "sound".into(),
        Err(faults) => faults.iter().map(|fault| fault.to_string() + "\n").collect(),
    }
}

fn written(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("patterm.toml"), bytes).unwrap();
    said(folder.path())
}

#[test]
fn every_mistake_is_told_with_its_place_and_what_to_do() {
    let web = "[processes.web]\ncommand = \"x\"\n";
    let rows: &[(&str, &str)] = &[
        // A value of another type, a key that is nearly right, one that is nowhere.
        ("[processes.web]\ncommand = true", "2:11: `processes.web.command` takes a string or"),
        ("[processes.web]\ncomand = \"x\"\ncommand = \"x\"", "did you mean `command`?"),
        (
            "[process.web]\ncommand = \"x\"",
            "1:2: there is no `process` here; did you mean `processes`?",
        ),
        (
            "[procs]",
            "1:2: there is no `procs` here; there are processes, agents, servers, bots, http, limits",
        ),
        // The same name twice.
        (&format!("{web}{web}"), "3:12: duplicate key"),
        (&format!("{web}command = \"y\"\n"), "3:1: duplicate key"),
        // What waits for itself, or for nobody.
        (&format!("{web}depends_on = [\"web\"]"), "3:15: `web` cannot depend on itself"),
        (&format!("{web}depends_on = [\"db\"]"), "3:15: there is no process `db`"),
        (&format!("{web}depends_on = \"db\""), "3:14: `processes.web.depends_on` takes an array"),
        // Patterns, ports and times.
        (
            &format!("{web}ready = {{ pattern = \"(\" }}"),
            "3:21: the pattern does not compile: unclosed group",
        ),
        (
            &format!("{web}ready = {{ port = 0 }}"),
            "3:18: `processes.web.ready.port` takes a whole number from 1 to 65535, not 0",
        ),
        (
            &format!("{web}ready = {{ port = \"80\" }}"),
            "3:18: `processes.web.ready.port` takes a whole number from 1 to 65535, not \"80\"",
        ),
        (
            &format!("{web}ready = {{ port = 80, timeout_seconds = \"1m\" }}"),
            "3:40: `processes.web.ready.timeout_seconds` takes a number of seconds",
        ),
        (
            &format!("{web}restart = {{ policy = \"always\", delay_seconds = nan }}"),
            "3:48: `processes.web.restart.delay_seconds` takes a number of seconds",
        ),
        (&format!("{web}restart = \"allways\""), "did you mean \"always\"?"),
        (
            &format!("{web}autostart = 1"),
            "3:13: `processes.web.autostart` takes true or false, not 1",
        ),
        // No TOML: quotes, brackets, what other formats write.
        ("[processes.web]\ncommand = npm run dev", "2:11: "),
        ("[processes.web]\ncommand = \"npm", "2:"),
        ("{\"processes\": {}}", "1:1: "),
        ("processes:\n  web:\n", "1:11: key with no value, expected `=`"),
        // Presets, down to their last key.
        (
            "[agents.x.input]\nsubmitt = \"enter\"",
            "2:1: there is no `submitt` in `agents.x.input`; did you mean `submit`?",
        ),
        (
            "[agents.x.input]\nsettle_ms = \"1s\"",
            "2:13: `agents.x.input.settle_ms` takes a whole number",
        ),
        (
            "[agents.x.rules.mine]\nstate = \"bussy\"",
            "2:9: `agents.x.rules.mine.state` takes \"working\", \"idle\", \"blocked\", \"limited\", \"unknown\", not \"bussy\"",
        ),
        (
            "[agents.x.rules.mine]\nbottom = \"[\"",
            "2:10: the pattern does not compile: unclosed character class",
        ),
        ("[agents.x]\nrules = true", "2:9: `agents.x.rules` takes false or a table, not true"),
        (
            "[agents.x.inject.overlay]\nfiles = 1",
            "2:1: there is no `files` in `agents.x.inject.overlay`; did you mean `file`?",
        ),
        (
            "[agents.x.hooks.Stop]\nprompt = 1",
            "2:10: `agents.x.hooks.Stop.prompt` takes a string, not 1; write \"1\", in quotes",
        ),
        ("[limits]\nprocesses = -1", "2:13: `limits.processes` takes a whole number from 1"),
    ];
    for (text, expected) in rows {
        let said = written(text.as_bytes());
        assert!(said.contains(expected), "{text}\nsays {said}\nnot {expected}");
        // With Windows' ends of lines the places are the same.
        let windows = written(text.replace('\n', "\r\n").as_bytes());
        assert!(windows.contains(expected), "{text}\nwith CRLF says {windows}");
    }
}

#[test]
fn files_as_editors_and_machines_leave_them() {
    let sound = "[processes.web]\ncommand = \"x\"\n";
    assert_eq!(written(sound.replace('\n', "\r\n").as_bytes()), "sound");
    assert_eq!(written(format!("\u{feff}{sound}").as_bytes()), "sound");
    assert_eq!(written(b""), "sound");
    assert_eq!(written(b"a = \"\xff\""), "it is no UTF-8 text (byte 5)");
    assert_eq!(written(&vec![b'#'; 1 << 20]), "it has more than 262144 bytes");
    let deep = format!("a = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(written(deep.as_bytes()).starts_with("1:"), "{}", written(deep.as_bytes()));
    let deep: String = (0..10_000).map(|_| "a.").collect();
    assert!(written(format!("[{deep}a]").as_bytes()).starts_with("1:"));
}

#[test]
fn whatever_lies_in_its_place() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let (root, file) = (folder.path(), folder.path().join("patterm.toml"));
    std::fs::create_dir(&file).unwrap();
    assert_eq!(said(root), "it is a folder, not a file");
    std::fs::remove_dir(&file).unwrap();
    symlink("elsewhere.toml", &file).unwrap();
    assert_eq!(said(root), "it is a link to elsewhere.toml, which is not there");
    std::fs::write(root.join("elsewhere.toml"), "[processes.a]\ncommand = \"x\"\n").unwrap();
    assert_eq!(said(root), "sound");
    std::fs::remove_file(&file).unwrap();
    symlink("patterm.toml", &file).unwrap();
    assert!(said(root).contains("symbolic link"), "{}", said(root));
}

/// A file of a stranger must not keep the server busy, trusted or not.
#[test]
fn many_ways_and_many_mistakes_take_no_time() {
    // Each waits for all before it: as many ways as subsets.
    let mut text = String::new();
    for n in 0..80 {
        let before: Vec<_> = (0..n).map(|n| format!("\"p{n}\"")).collect();
        text += &format!("[processes.p{n}]\ncommand='x'\ndepends_on=[{}]\n", before.join(","));
    }
    let file = ProjectFile::parse(&text).unwrap();
    assert_eq!(file.in_order().len(), 80);
    let text = text.replace("command='x'\ndepends_on=[]", "command='x'\ndepends_on=['p79']");
    let faults = ProjectFile::parse(&text).unwrap_err();
    assert!(
        faults[0].message.starts_with("these wait for each other: p0 → p79 → p0"),
        "{faults:?}"
    );
    let text: String = (0..30_000).map(|n| format!("k{n}=1\n")).collect();
    assert_eq!(ProjectFile::parse(&text).unwrap_err().len(), limits::FAULTS);
}
