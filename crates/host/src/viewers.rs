//! How far people have looked: for each viewer, the place in the log of events up to which it has shown what happened.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use patterm_events::DigestStart;
use patterm_store::state::{self, StateDir, StateError};
use patterm_store::sync::lock;
use patterm_wire::digest::Viewer;
use serde::{Deserialize, Serialize};

const FILE: &str = "viewers.json";
const VERSION: u32 = 1;

/// The places of all viewers; their number is that of the variants of [`Viewer`].
#[derive(Debug)]
pub(crate) struct Viewers {
    file: PathBuf,
    content: Mutex<Content>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Content {
    /// By the name of a viewer, since a newer version may know others.
    #[serde(default)]
    viewers: BTreeMap<String, LookedUntil>,
}

/// Up to where a viewer has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LookedUntil {
    /// The number of the first event that it has not shown.
    pub(crate) next: u64,
    /// When it looked, in milliseconds since 1970.
    pub(crate) at_ms: u64,
}

impl Viewers {
    pub(crate) fn load(state: &StateDir) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let content = Mutex::new(state::read(&file, VERSION)?.unwrap_or_default());
        Ok(Self { file, content })
    }

    /// Where a viewer continues.
    pub(crate) fn start(&self, viewer: Viewer) -> DigestStart {
        let looked = lock(&self.content).viewers.get(name(viewer)).copied();
        looked.map_or(DigestStart::Beginning, |LookedUntil { next, at_ms }| {
            DigestStart::Continued(next, at_ms)
        })
    }

    /// A viewer has looked. `now` is the end of the log: nobody has seen more, and who has seen more before has seen
    /// another log.
    pub(crate) fn note(
        &self,
        viewer: Viewer,
        looked: LookedUntil,
        now: LookedUntil,
    ) -> Result<(), StateError> {
        let mut content = lock(&self.content);
        let known = content.viewers.get(name(viewer)).copied();
        let looked = if looked.next > now.next { now } else { looked };
        let is_further = |known: LookedUntil| {
            known.next <= now.next && (known.next, known.at_ms) >= (looked.next, looked.at_ms)
        };
        if known.is_some_and(is_further) {
            return Ok(());
        }
        let mut next = content.clone();
        next.viewers.insert(name(viewer).to_owned(), looked);
        state::write(&self.file, VERSION, &next)?;
        *content = next;
        Ok(())
    }
}

fn name(viewer: Viewer) -> &'static str {
    match viewer {
        Viewer::Tui => "tui",
        Viewer::Cli => "cli",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_viewer_continues_where_it_looked_last_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::within(dir.path(), "k");
        state.ensure().unwrap();
        let viewers = Viewers::load(&state).unwrap();
        let until = |next, at_ms| LookedUntil { next, at_ms };
        assert_eq!(viewers.start(Viewer::Tui), DigestStart::Beginning);
        viewers.note(Viewer::Tui, until(5, 50), until(9, 90)).unwrap();
        viewers.note(Viewer::Tui, until(4, 40), until(9, 90)).unwrap();
        viewers.note(Viewer::Cli, until(99, 1), until(9, 90)).unwrap();
        let viewers = Viewers::load(&state).unwrap();
        assert_eq!(viewers.start(Viewer::Tui), DigestStart::Continued(5, 50), "it never goes back");
        assert_eq!(viewers.start(Viewer::Cli), DigestStart::Continued(9, 90), "nor beyond the end");
        viewers.note(Viewer::Cli, until(2, 100), until(3, 110)).unwrap();
        assert_eq!(viewers.start(Viewer::Cli), DigestStart::Continued(2, 100), "of another log");
    }
}
