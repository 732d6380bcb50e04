//! Pads in a real folder: writes, edits by people, and the leftovers of a server that died.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use patterm_store::clock::Clock;

use super::*;

/// A project's pads, and access to the folder as a person has it.
struct TestPads {
    home: tempfile::TempDir,
    pads: Pads,
}

impl TestPads {
    fn new() -> Self {
        Self::with(&Limits::default())
    }

    fn with(limits: &Limits) -> Self {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::within(home.path(), "k");
        state.ensure().unwrap();
        Self { pads: Pads::load(&state, limits, Clock::system()).unwrap(), home }
    }

    /// Replaces the server.
    fn restart(&mut self) {
        let state = StateDir::within(self.home.path(), "k");
        self.pads = Pads::load(&state, &Limits::default(), Clock::system()).unwrap();
    }

    fn path(&self, file: &str) -> PathBuf {
        self.home.path().join("patterm/k/scratchpads").join(file)
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("")).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Writes to the file as a person's editor does.
    fn edit(&self, pad: &str, content: &str) {
        std::fs::create_dir_all(self.path("")).unwrap();
        std::fs::write(self.path(&format!("{pad}.md")), content).unwrap();
    }

    fn read(&mut self, pad: &str) -> PadContent {
        self.pads.read(&name(pad)).unwrap()
    }

    fn revision(&mut self, pad: &str) -> String {
        self.read(pad).revision.revision
    }

    fn write(
        &mut self,
        pad: &str,
        content: &str,
        expected: Option<&str>,
    ) -> Result<String, PadError> {
        self.pads.write(&name(pad), content, expected, "p1 (lead)").map(|r| r.revision)
    }

    fn append(&mut self, pad: &str, content: &str) -> Result<String, PadError> {
        self.pads.append(&name(pad), content, "p2 (sub)").map(|r| r.revision)
    }

    fn authors(&mut self) -> Vec<(String, String)> {
        let listed = self.pads.list().unwrap().pads;
        listed.into_iter().map(|(name, r)| (name.to_string(), r.changed_by)).collect()
    }
}

fn name(text: &str) -> PadName {
    text.parse().unwrap()
}

#[test]
fn people_and_agents_read_what_was_written() {
    let mut test = TestPads::new();
    let first = test.write("plan", "# Plan\n", None).unwrap();
    let second = test.append("plan", "- one\n").unwrap();
    assert_ne!(first, second);
    assert_eq!(std::fs::read_to_string(test.path("plan.md")).unwrap(), "# Plan\n- one\n");
    let PadContent { content, revision } = test.read("plan");
    assert_eq!((&*content, &*revision.revision), ("# Plan\n- one\n", &*second));
    assert_eq!((revision.bytes, &*revision.changed_by), (13, "p2 (sub)"));
    let third = test.write("plan", "", Some(&second)).unwrap();
    test.restart();
    assert_eq!(test.revision("plan"), third, "the next server knows it");
    assert_eq!(test.authors(), [("plan".to_owned(), "p1 (lead)".to_owned())]);
    assert_eq!(test.files(), ["plan.md"], "nothing else is left");
}

#[test]
fn a_write_needs_the_current_revision() {
    let mut test = TestPads::new();
    let first = test.write("plan", "a", None).unwrap();
    let refused = test.write("plan", "b", None).unwrap_err();
    assert!(matches!(refused, PadError::Exists { current, .. } if current.revision == first));
    let second = test.write("plan", "b", Some(&first)).unwrap();
    for stale in [&*first, "", "7", "x-y"] {
        let refused = test.write("plan", "c", Some(stale)).unwrap_err();
        assert!(matches!(refused, PadError::Changed { current, .. } if current.revision == second));
    }
    let same = test.write("plan", "b", Some(&second)).unwrap();
    assert_ne!(same, second, "a write is a change, even with the same content");
    assert_eq!(test.read("plan").content, "b");
    let refused = test.write("other", "x", Some(&second)).unwrap_err();
    assert!(matches!(refused, PadError::Gone(_)));
    assert_eq!(test.files(), ["plan.md"]);
}

#[test]
fn a_persons_edit_gets_a_revision_of_its_own() {
    let mut test = TestPads::new();
    let ours = test.write("plan", "one", None).unwrap();
    // The same size and modification time: only the content differs.
    let file = std::fs::File::open(test.path("plan.md")).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    test.edit("plan", "two");
    std::fs::File::options()
        .append(true)
        .open(test.path("plan.md"))
        .unwrap()
        .set_modified(modified)
        .unwrap();
    let refused = test.write("plan", "three", Some(&ours)).unwrap_err();
    let PadError::Changed { current, .. } = refused else { panic!("{refused}") };
    assert_eq!((&*current.changed_by, current.bytes), ("a person's editor", 3));
    assert_eq!(test.read("plan").content, "two");
    // An editor that saves by renaming, while no server runs.
    std::fs::write(test.path("4913"), "four").unwrap();
    std::fs::rename(test.path("4913"), test.path("plan.md")).unwrap();
    test.restart();
    let theirs = test.revision("plan");
    assert!(theirs != current.revision && theirs != ours);
    assert_eq!(test.authors(), [("plan".to_owned(), "a person's editor".to_owned())]);
    test.restart();
    assert_eq!(test.revision("plan"), theirs, "the edit is recorded once");
    test.append("plan", "!").unwrap();
    assert_eq!(test.read("plan").content, "four!");
}

#[test]
fn a_list_notices_edits_too_however_fast_they_come() {
    let mut test = TestPads::new();
    let mut seen = Vec::new();
    for turn in 0..50 {
        test.edit("plan", &format!("{:02}", turn % 100));
        seen.push(test.pads.list().unwrap().pads.remove(0).1.revision);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 50);
}

#[test]
fn a_removed_pad_never_gets_an_old_revision_again() {
    let mut test = TestPads::new();
    let mut seen = vec![test.write("plan", "a", None).unwrap()];
    for restart in [false, true, true] {
        std::fs::remove_file(test.path("plan.md")).unwrap();
        if restart {
            test.restart();
        }
        assert!(matches!(test.pads.read(&name("plan")), Err(PadError::NotFound { .. })));
        let refused = test.write("plan", "b", Some(&seen[0])).unwrap_err();
        assert!(matches!(refused, PadError::Gone(_)), "{refused}");
        seen.push(test.write("plan", "a", None).unwrap());
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
}

#[test]
fn links_and_special_files_are_not_pads() {
    let mut test = TestPads::new();
    let secret = test.home.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    test.edit("real", "x");
    symlink(&secret, test.path("link.md")).unwrap();
    symlink("nowhere", test.path("dangling.md")).unwrap();
    std::fs::create_dir(test.path("folder.md")).unwrap();
    let pipe = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, test.path("pipe.md"), pipe).unwrap();
    std::os::unix::net::UnixListener::bind(test.path("socket.md")).unwrap();
    for file in ["notes.txt", ".hidden.md", "x.md~", "plan.md.md"] {
        std::fs::write(test.path(file), "x").unwrap();
    }
    let before = test.files();
    for pad in ["link", "dangling", "folder", "pipe", "socket"] {
        let refused = [
            test.pads.read(&name(pad)).map(drop).unwrap_err(),
            test.write(pad, "x", None).unwrap_err(),
            test.append(pad, "x").unwrap_err(),
        ];
        for refused in refused {
            assert!(matches!(refused, PadError::NoFile(_)), "{pad}: {refused}");
        }
    }
    assert_eq!(test.authors().len(), 1);
    assert_eq!(test.files(), before);
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret");
}

#[test]
fn errors_name_the_limits_and_nothing_is_written_beyond_them() {
    let mut test = TestPads::with(&Limits { pads: 2, pad_bytes: 10, ..Limits::default() });
    let refused = test.write("a", "12345678901", None).unwrap_err();
    assert!(refused.to_string().contains("up to 10 bytes, but `a` would have 11"), "{refused}");
    let full = test.write("a", "1234567890", None).unwrap();
    assert!(matches!(test.append("a", "x"), Err(PadError::TooLarge { bytes: 11, .. })));
    assert_eq!(test.revision("a"), full);
    test.append("b", "").unwrap();
    for refused in [test.write("c", "", None), test.append("c", "")] {
        assert!(matches!(refused, Err(PadError::Full(2))));
    }
    // Edits by people have no limits, but are not read into memory either.
    test.edit("b", "a person's words");
    test.edit("c", "x");
    let listed = test.pads.list().unwrap();
    assert_eq!((listed.pads.len(), listed.more), (2, 1));
    let large = &listed.pads[1].1;
    assert_eq!((large.bytes, &*large.changed_by), (16, "a person's editor"));
    for refused in [
        test.pads.read(&name("b")).map(drop).unwrap_err(),
        test.write("b", "x", Some(&large.revision)).unwrap_err(),
        test.append("b", "x").unwrap_err(),
    ] {
        assert!(matches!(refused, PadError::FileTooLarge { bytes: 16, limit: 10, .. }));
    }
    assert_eq!(test.read("c").content, "x");
}

#[test]
fn a_file_that_is_not_text_is_reported() {
    let mut test = TestPads::new();
    test.edit("plan", "");
    std::fs::write(test.path("plan.md"), b"caf\xe9").unwrap();
    let refused = test.pads.read(&name("plan")).unwrap_err();
    assert!(matches!(refused, PadError::NoText { at: 3, .. }), "{refused}");
    assert_eq!(test.authors().len(), 1);
}

#[test]
fn permissions_that_a_person_granted_are_kept() {
    let mut test = TestPads::new();
    let mode =
        |test: &TestPads| test.path("plan.md").metadata().unwrap().permissions().mode() & 0o777;
    test.append("plan", "a").unwrap();
    assert_eq!(mode(&test), 0o600);
    let readable = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(test.path("plan.md"), readable).unwrap();
    test.append("plan", "b").unwrap();
    assert_eq!(mode(&test), 0o644);
}

/// Creates each state in which a server can die: the next server finds the old or the new
/// content under its own revision, and no other file.
#[test]
fn after_a_crash_the_next_server_finds_the_old_or_the_new_content() {
    let mut test = TestPads::new();
    let old = test.write("plan", "old", None).unwrap();
    // As saved before every change of a file.
    test.pads.index.intend(&name("plan"), b"new", "p9 (late)", 1);
    test.pads.save().unwrap();
    test.restart();
    assert_eq!(test.revision("plan"), old);

    for half in ["", "ne", "new"] {
        std::fs::write(test.path(".plan.md.new"), half).unwrap();
        test.restart();
        assert_eq!((test.read("plan").content, test.revision("plan")), ("old".into(), old.clone()));
        assert_eq!(test.files(), ["plan.md"]);
    }

    std::fs::rename(test.path("plan.md"), test.path(".plan.md.new")).unwrap();
    std::fs::write(test.path("plan.md"), "new").unwrap();
    test.restart();
    assert_eq!(test.read("plan").content, "new");
    assert_eq!(test.authors(), [("plan".to_owned(), "p9 (late)".to_owned())]);
    assert_eq!(test.files(), ["plan.md"]);
    let next = test.append("plan", "er").unwrap();
    assert_eq!(test.revision("plan"), next);
}

/// A write is torn while the one before it is known only as an intention.
#[test]
fn a_torn_file_is_never_mistaken_for_an_edit() {
    let mut test = TestPads::new();
    test.write("plan", "old", None).unwrap();
    let last = test.append("plan", "er").unwrap();
    test.pads.index.intend(&name("plan"), b"older still", "p9 (late)", 1);
    test.pads.save().unwrap();
    std::fs::write(test.path(".plan.md.new"), "older st").unwrap();
    test.restart();
    assert_eq!((test.read("plan").content, test.revision("plan")), ("older".into(), last));
    assert_eq!(test.files(), ["plan.md"]);
}

#[test]
fn an_edit_at_the_moment_of_the_exchange_is_put_back() {
    let mut test = TestPads::new();
    let old = test.write("plan", "old", None).unwrap();
    test.pads.index.intend(&name("plan"), b"new", "p9 (late)", 1);
    test.pads.save().unwrap();
    // The edit was in place when the two files were exchanged, and then the server died.
    std::fs::write(test.path(".plan.md.new"), "a person's").unwrap();
    std::fs::write(test.path("plan.md"), "new").unwrap();
    test.restart();
    let pad = test.read("plan");
    assert_eq!((&*pad.content, &*pad.revision.changed_by), ("a person's", "a person's editor"));
    assert_ne!(pad.revision.revision, old);
    assert_eq!(test.files(), ["plan.md"]);
}

#[test]
fn a_damaged_index_loses_no_pad_and_reuses_no_revision() {
    let mut test = TestPads::new();
    let first = test.write("plan", "a", None).unwrap();
    let second = test.write("plan", "b", Some(&first)).unwrap();
    let index = test.home.path().join("patterm/k/scratchpads.json");
    std::fs::write(&index, "{\"version\":1,\"la").unwrap();
    test.restart();
    assert_eq!(test.read("plan").content, "b");
    let now = test.revision("plan");
    assert!(now != first && now != second);
    assert!(matches!(test.write("plan", "c", Some(&first)), Err(PadError::Changed { .. })));
}

#[test]
fn the_index_forgets_removed_pads_and_is_limited() {
    let mut test = TestPads::with(&Limits { pads: 3, ..Limits::default() });
    for pad in ["a", "b", "c", "d", "e"] {
        test.edit(pad, pad);
        test.read(pad);
    }
    let known = |test: &TestPads| {
        test.pads.save().unwrap();
        let text = std::fs::read(test.home.path().join("patterm/k/scratchpads.json")).unwrap();
        let index: serde_json::Value = serde_json::from_slice(&text).unwrap();
        index["pads"].as_object().unwrap().len()
    };
    assert_eq!(known(&test), 3);
    for pad in ["a", "b", "c", "d"] {
        std::fs::remove_file(test.path(&format!("{pad}.md"))).unwrap();
    }
    test.pads.list().unwrap();
    assert_eq!(known(&test), 1);
}
