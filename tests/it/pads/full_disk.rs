//! A full disk: content that cannot be written completely is not written, and reading continues.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::json;

use super::tool_client::{ToolClient, file, files, string, writing};
use crate::support::Place;

/// A disk of one megabyte, removed on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn at(path: PathBuf) -> Self {
        let options = CString::new("size=1048576,mode=0700").unwrap();
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), &*options).unwrap();
        Self(path)
    }

    /// Fills the disk up to this many free bytes, until the file is removed.
    fn fill_but(&self, bytes: u64) -> PathBuf {
        let path = self.0.join("ballast");
        std::fs::write(&path, vec![0; 2 << 20]).unwrap_err();
        let taken = path.metadata().unwrap().len();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(taken - bytes).unwrap();
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// The names of all files in a folder.
fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_write_to_a_full_disk_changes_nothing() {
    let place = Place::new();
    let disk = SmallDisk::at(place.path("state"));
    let server = place.serve_in_process();
    let mut tools = ToolClient::at(server.socket());
    let large = "x".repeat(100 << 10);
    let old = string(&tools.ok("scratchpad_write", writing("plan", "old", None))["revision"]);
    let folder = file(&place, "plan").parent().unwrap().parent().unwrap().to_owned();
    // Room for the index but not for the content, then for neither.
    for room in [32 << 10, 0] {
        let ballast = disk.fill_but(room);
        let before = listing(&folder);
        for (tool, arguments) in [
            ("scratchpad_write", writing("plan", &large, Some(&old))),
            ("scratchpad_write", writing("new", &large, None)),
            ("scratchpad_append", json!({"name": "plan", "content": large})),
        ] {
            let error = tools.refused("unavailable", tool, arguments);
            assert!(string(&error["message"]).contains("No space left"), "{error}");
        }
        assert_eq!((listing(&folder), files(&place)), (before, vec!["plan.md".to_owned()]));
        let pad = tools.read("plan");
        assert_eq!((&*string(&pad["content"]), &*string(&pad["revision"])), ("old", &*old));
        std::fs::remove_file(ballast).unwrap();
    }
    // A person's edit is read, although that cannot be recorded.
    let ballast = disk.fill_but(0);
    std::fs::write(file(&place, "plan"), "two").unwrap();
    let seen = tools.read("plan");
    assert_eq!(
        (&seen["content"], &seen["changed_by"]),
        (&json!("two"), &json!("a person's editor"))
    );
    std::fs::remove_file(ballast).unwrap();
    let seen = string(&seen["revision"]);
    tools.ok("scratchpad_write", writing("plan", &large, Some(&seen)));
}
