//! Pads on a real folder: what is written, what people do to the files, and what a server that died
//! leaves.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;

/// A project's pads, and the folder a person works in.
struct Desk {
    home: tempfile::TempDir,
    pads: Pads,
}

impl Desk {
    fn new() -> Self {
        Self::with(&Limits::default())
    }

    fn with(limits: &Limits) -> Self {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::within(home.path(), "k");
        state.ensure().unwrap();
        Self { pads: Pads::load(&state, limits).unwrap(), home }
    }

    /// As after the end of one server and the start of the next.
    fn restart(&mut self) {
        let state = StateDir::within(self.home.path(), "k");
        self.pads = Pads::load(&state, &Limits::default()).unwrap();
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

    /// A person's editor that writes into the file.
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
fn what_is_written_is_read_by_people_and_agents() {
    let mut desk = Desk::new();
    let first = desk.write("plan", "# Plan\n", None).unwrap();
    let second = desk.append("plan", "- one\n").unwrap();
    assert_ne!(first, second);
    assert_eq!(std::fs::read_to_string(desk.path("plan.md")).unwrap(), "# Plan\n- one\n");
    let PadContent { content, revision } = desk.read("plan");
    assert_eq!((&*content, &*revision.revision), ("# Plan\n- one\n", &*second));
    assert_eq!((revision.bytes, &*revision.changed_by), (13, "p2 (sub)"));
    let third = desk.write("plan", "", Some(&second)).unwrap();
    desk.restart();
    assert_eq!(desk.revision("plan"), third, "the next server knows it");
    assert_eq!(desk.authors(), [("plan".to_owned(), "p1 (lead)".to_owned())]);
    assert_eq!(desk.files(), ["plan.md"], "nothing else is left");
}

#[test]
fn a_write_needs_the_revision_that_holds() {
    let mut desk = Desk::new();
    let first = desk.write("plan", "a", None).unwrap();
    let refused = desk.write("plan", "b", None).unwrap_err();
    assert!(matches!(refused, PadError::Exists { current, .. } if current.revision == first));
    let second = desk.write("plan", "b", Some(&first)).unwrap();
    for stale in [&*first, "", "7", "x-y"] {
        let refused = desk.write("plan", "c", Some(stale)).unwrap_err();
        assert!(matches!(refused, PadError::Changed { current, .. } if current.revision == second));
    }
    let same = desk.write("plan", "b", Some(&second)).unwrap();
    assert_ne!(same, second, "a write is a change, even by the same words");
    assert_eq!(desk.read("plan").content, "b");
    let refused = desk.write("other", "x", Some(&second)).unwrap_err();
    assert!(matches!(refused, PadError::Gone(_)));
    assert_eq!(desk.files(), ["plan.md"]);
}

#[test]
fn a_persons_edit_gets_a_revision_of_its_own() {
    let mut desk = Desk::new();
    let ours = desk.write("plan", "one", None).unwrap();
    // The same size, and the time set back: only the content tells.
    let file = std::fs::File::open(desk.path("plan.md")).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    desk.edit("plan", "two");
    std::fs::File::options()
        .append(true)
        .open(desk.path("plan.md"))
        .unwrap()
        .set_modified(modified)
        .unwrap();
    let refused = desk.write("plan", "three", Some(&ours)).unwrap_err();
    let PadError::Changed { current, .. } = refused else { panic!("{refused}") };
    assert_eq!((&*current.changed_by, current.bytes), ("a person's editor", 3));
    assert_eq!(desk.read("plan").content, "two");
    // An editor that saves by renaming, while no server runs.
    std::fs::write(desk.path("4913"), "four").unwrap();
    std::fs::rename(desk.path("4913"), desk.path("plan.md")).unwrap();
    desk.restart();
    let theirs = desk.revision("plan");
    assert!(theirs != current.revision && theirs != ours);
    assert_eq!(desk.authors(), [("plan".to_owned(), "a person's editor".to_owned())]);
    desk.restart();
    assert_eq!(desk.revision("plan"), theirs, "noticed once");
    desk.append("plan", "!").unwrap();
    assert_eq!(desk.read("plan").content, "four!");
}

#[test]
fn a_list_notices_edits_too_however_fast_they_come() {
    let mut desk = Desk::new();
    let mut seen = Vec::new();
    for turn in 0..50 {
        desk.edit("plan", &format!("{:02}", turn % 100));
        seen.push(desk.pads.list().unwrap().pads.remove(0).1.revision);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 50);
}

#[test]
fn a_pad_that_was_removed_never_has_an_old_revision_again() {
    let mut desk = Desk::new();
    let mut seen = vec![desk.write("plan", "a", None).unwrap()];
    for restart in [false, true, true] {
        std::fs::remove_file(desk.path("plan.md")).unwrap();
        if restart {
            desk.restart();
        }
        assert!(matches!(desk.pads.read(&name("plan")), Err(PadError::NotFound { .. })));
        let refused = desk.write("plan", "b", Some(&seen[0])).unwrap_err();
        assert!(matches!(refused, PadError::Gone(_)), "{refused}");
        seen.push(desk.write("plan", "a", None).unwrap());
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
}

#[test]
fn links_and_what_is_no_file_are_no_pads() {
    let mut desk = Desk::new();
    let secret = desk.home.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    desk.edit("real", "x");
    symlink(&secret, desk.path("link.md")).unwrap();
    symlink("nowhere", desk.path("dangling.md")).unwrap();
    std::fs::create_dir(desk.path("folder.md")).unwrap();
    let pipe = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, desk.path("pipe.md"), pipe).unwrap();
    std::os::unix::net::UnixListener::bind(desk.path("socket.md")).unwrap();
    for file in ["notes.txt", ".hidden.md", "x.md~", "plan.md.md"] {
        std::fs::write(desk.path(file), "x").unwrap();
    }
    let before = desk.files();
    for pad in ["link", "dangling", "folder", "pipe", "socket"] {
        let refused = [
            desk.pads.read(&name(pad)).map(drop).unwrap_err(),
            desk.write(pad, "x", None).unwrap_err(),
            desk.append(pad, "x").unwrap_err(),
        ];
        for refused in refused {
            assert!(matches!(refused, PadError::NoFile(_)), "{pad}: {refused}");
        }
    }
    assert_eq!(desk.authors().len(), 1);
    assert_eq!(desk.files(), before);
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret");
}

#[test]
fn limits_are_named_and_nothing_is_written_beyond_them() {
    let mut desk = Desk::with(&Limits { pads: 2, pad_bytes: 10, ..Limits::default() });
    let refused = desk.write("a", "12345678901", None).unwrap_err();
    assert!(refused.to_string().contains("up to 10 bytes, and `a` would have 11"), "{refused}");
    let full = desk.write("a", "1234567890", None).unwrap();
    assert!(matches!(desk.append("a", "x"), Err(PadError::TooLarge { bytes: 11, .. })));
    assert_eq!(desk.revision("a"), full);
    desk.append("b", "").unwrap();
    for refused in [desk.write("c", "", None), desk.append("c", "")] {
        assert!(matches!(refused, Err(PadError::Full(2))));
    }
    // What people do has no limits, but is not read into memory either.
    desk.edit("b", "a person's words");
    desk.edit("c", "x");
    let listed = desk.pads.list().unwrap();
    assert_eq!((listed.pads.len(), listed.more), (2, 1));
    let large = &listed.pads[1].1;
    assert_eq!((large.bytes, &*large.changed_by), (16, "a person's editor"));
    for refused in [
        desk.pads.read(&name("b")).map(drop).unwrap_err(),
        desk.write("b", "x", Some(&large.revision)).unwrap_err(),
        desk.append("b", "x").unwrap_err(),
    ] {
        assert!(matches!(refused, PadError::FileTooLarge { bytes: 16, limit: 10, .. }));
    }
    assert_eq!(desk.read("c").content, "x");
}

#[test]
fn what_is_no_text_is_said_to_be_none() {
    let mut desk = Desk::new();
    desk.edit("plan", "");
    std::fs::write(desk.path("plan.md"), b"caf\xe9").unwrap();
    let refused = desk.pads.read(&name("plan")).unwrap_err();
    assert!(matches!(refused, PadError::NoText { at: 3, .. }), "{refused}");
    assert_eq!(desk.authors().len(), 1);
}

#[test]
fn whom_a_person_let_read_it_may_go_on_reading() {
    let mut desk = Desk::new();
    let mode = |desk: &Desk| desk.path("plan.md").metadata().unwrap().permissions().mode() & 0o777;
    desk.append("plan", "a").unwrap();
    assert_eq!(mode(&desk), 0o600);
    let readable = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(desk.path("plan.md"), readable).unwrap();
    desk.append("plan", "b").unwrap();
    assert_eq!(mode(&desk), 0o644);
}

/// The states in which a server can die, each made by hand: the one that follows finds the old or the
/// new content under its own revision, and no other file.
#[test]
fn whenever_a_server_dies_the_next_finds_the_old_or_the_new() {
    let mut desk = Desk::new();
    let old = desk.write("plan", "old", None).unwrap();
    // As it is written before every change of a file.
    desk.pads.index.intend(&name("plan"), b"new", "p9 (late)", 1);
    desk.pads.save().unwrap();
    desk.restart();
    assert_eq!(desk.revision("plan"), old);

    for half in ["", "ne", "new"] {
        std::fs::write(desk.path(".plan.md.new"), half).unwrap();
        desk.restart();
        assert_eq!((desk.read("plan").content, desk.revision("plan")), ("old".into(), old.clone()));
        assert_eq!(desk.files(), ["plan.md"]);
    }

    std::fs::rename(desk.path("plan.md"), desk.path(".plan.md.new")).unwrap();
    std::fs::write(desk.path("plan.md"), "new").unwrap();
    desk.restart();
    assert_eq!(desk.read("plan").content, "new");
    assert_eq!(desk.authors(), [("plan".to_owned(), "p9 (late)".to_owned())]);
    assert_eq!(desk.files(), ["plan.md"]);
    let next = desk.append("plan", "er").unwrap();
    assert_eq!(desk.revision("plan"), next);
}

/// The next write of a pad is torn, when the one before it is known only as an intention.
#[test]
fn a_torn_file_is_never_taken_for_a_persons() {
    let mut desk = Desk::new();
    desk.write("plan", "old", None).unwrap();
    let last = desk.append("plan", "er").unwrap();
    desk.pads.index.intend(&name("plan"), b"older still", "p9 (late)", 1);
    desk.pads.save().unwrap();
    std::fs::write(desk.path(".plan.md.new"), "older st").unwrap();
    desk.restart();
    assert_eq!((desk.read("plan").content, desk.revision("plan")), ("older".into(), last));
    assert_eq!(desk.files(), ["plan.md"]);
}

#[test]
fn what_a_person_saved_in_the_moment_of_the_exchange_is_put_back() {
    let mut desk = Desk::new();
    let old = desk.write("plan", "old", None).unwrap();
    desk.pads.index.intend(&name("plan"), b"new", "p9 (late)", 1);
    desk.pads.save().unwrap();
    // It stood in the pad's place when the two files were exchanged, and then the server died.
    std::fs::write(desk.path(".plan.md.new"), "a person's").unwrap();
    std::fs::write(desk.path("plan.md"), "new").unwrap();
    desk.restart();
    let pad = desk.read("plan");
    assert_eq!((&*pad.content, &*pad.revision.changed_by), ("a person's", "a person's editor"));
    assert_ne!(pad.revision.revision, old);
    assert_eq!(desk.files(), ["plan.md"]);
}

#[test]
fn a_damaged_index_loses_no_pad_and_lets_no_revision_mean_another_content() {
    let mut desk = Desk::new();
    let first = desk.write("plan", "a", None).unwrap();
    let second = desk.write("plan", "b", Some(&first)).unwrap();
    let index = desk.home.path().join("patterm/k/scratchpads.json");
    std::fs::write(&index, "{\"version\":1,\"la").unwrap();
    desk.restart();
    assert_eq!(desk.read("plan").content, "b");
    let now = desk.revision("plan");
    assert!(now != first && now != second);
    assert!(matches!(desk.write("plan", "c", Some(&first)), Err(PadError::Changed { .. })));
}

#[test]
fn the_index_forgets_what_is_gone_and_has_a_ceiling() {
    let mut desk = Desk::with(&Limits { pads: 3, ..Limits::default() });
    for pad in ["a", "b", "c", "d", "e"] {
        desk.edit(pad, pad);
        desk.read(pad);
    }
    let known = |desk: &Desk| {
        desk.pads.save().unwrap();
        let text = std::fs::read(desk.home.path().join("patterm/k/scratchpads.json")).unwrap();
        let index: serde_json::Value = serde_json::from_slice(&text).unwrap();
        index["pads"].as_object().unwrap().len()
    };
    assert_eq!(known(&desk), 3);
    for pad in ["a", "b", "c", "d"] {
        std::fs::remove_file(desk.path(&format!("{pad}.md"))).unwrap();
    }
    desk.pads.list().unwrap();
    assert_eq!(known(&desk), 1);
}
