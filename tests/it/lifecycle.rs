//! The server and its socket, from start to shutdown, and who may connect.

mod background;
mod connection;
mod crash;
mod end;
mod from_panes;
mod greeting;
mod planted;
mod secrets;
mod start;
mod suspended;
mod unused;
mod users;
mod verbs;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use patterm_wire::requests::ServerEntry;

use crate::support::Place;

/// The files of a server in this place: its entries, and the locks that show that it is alive.
struct Traces {
    entries: [PathBuf; 2],
    locks: [PathBuf; 2],
}

impl Traces {
    fn of(place: &Place) -> Self {
        Self::within(place, &place.path("run/patterm"))
    }

    /// The files of a server with another runtime folder.
    fn within(place: &Place, runtime: &Path) -> Self {
        let project = place.project();
        let runtime = |ending: &str| runtime.join(format!("{}.{ending}", project.key()));
        Self {
            entries: [runtime("json"), place.state().file("server.json")],
            locks: [runtime("lock"), place.state().file("server.lock")],
        }
    }

    /// The entry, which must be the same in both copies.
    fn entry(&self) -> ServerEntry {
        let [one, two] = self.entries.each_ref().map(|file| {
            let text = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            serde_json::from_slice::<ServerEntry>(&text).unwrap()
        });
        assert_eq!(one, two);
        one
    }

    fn assert_locked(&self) {
        assert_eq!(self.locks.each_ref().map(|lock| is_locked(lock)), [true, true]);
    }

    fn assert_unlocked(&self) {
        assert_eq!(self.locks.each_ref().map(|lock| is_locked(lock)), [false, false]);
    }

    /// Checks that there is no trace of a server.
    fn assert_none(&self) {
        assert_eq!(self.entries.each_ref().map(|entry| entry.exists()), [false, false]);
        self.assert_unlocked();
    }
}

fn is_locked(path: &Path) -> bool {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.try_lock().is_err()
}

/// The permission bits of a file.
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).unwrap().mode() & 0o777
}
