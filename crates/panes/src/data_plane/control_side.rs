//! The part of a run that belongs to the control plane: the threads that answer requests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use patterm_events::current_actor;
use patterm_screen::Size;
use patterm_store::sync::lock;
use patterm_wire::events::Actor;
use tokio::time::Instant;

use crate::tree::{self, Usage};

/// Resource usage is measured at most this often: it reads several files of `/proc` for each process, which takes
/// longer than the rest of a status request.
const USAGE_AGE: Duration = Duration::from_millis(250);

/// The process below which everything of a run is started.
#[derive(Debug, Clone, Copy)]
pub(super) struct InitProcess {
    pub(super) pid: i32,
    /// The process above it when it was first looked up.
    pub(super) parent: Option<i32>,
}

/// State that only the control plane uses.
#[derive(Debug, Default)]
pub(super) struct ControlSide {
    /// Set once, when it is first needed.
    init: OnceLock<InitProcess>,
    /// The last measurement of resource usage.
    usage: Mutex<Option<(Instant, Usage)>>,
    /// Somebody asked the run to end. Set before the signal is sent and read when the end is recorded: release and
    /// acquire, since another thread of the runtime may record it. Never cleared.
    stopping: AtomicBool,
    /// Who did so first.
    stopped_by: OnceLock<Actor>,
    /// How often the terminal got another size. Counted while the screen is locked, so that whoever holds the lock sees
    /// the number that belongs to the screen.
    resizes: AtomicU64,
    /// The size that the terminal gets as soon as enough of what is above its screen is rebuilt. Changed and used only
    /// while the screen is locked.
    wanted_size: Mutex<Option<Size>>,
}

impl ControlSide {
    /// The init, if it was looked up before.
    pub(super) fn known_init(&self) -> Option<InitProcess> {
        self.init.get().copied()
    }

    /// Remembers the init together with its current parent.
    pub(super) fn remember_init(&self, pid: i32) -> InitProcess {
        *self.init.get_or_init(|| InitProcess { pid, parent: tree::parent_of(pid) })
    }

    /// The resource usage of everything below an init, measured at most [`USAGE_AGE`] ago.
    pub(super) fn usage(&self, init: i32) -> Usage {
        let mut last = lock(&self.usage);
        match &*last {
            Some((at, usage)) if at.elapsed() < USAGE_AGE => usage.clone(),
            _ => last.insert((Instant::now(), tree::usage(init))).1.clone(),
        }
    }

    pub(super) fn note_resize(&self) {
        self.resizes.fetch_add(1, Ordering::Release);
    }

    pub(super) fn wanted_size(&self) -> Option<Size> {
        *lock(&self.wanted_size)
    }

    pub(super) fn set_wanted_size(&self, size: Option<Size>) {
        *lock(&self.wanted_size) = size;
    }

    pub(super) fn resizes(&self) -> u64 {
        self.resizes.load(Ordering::Acquire)
    }

    pub(super) fn set_stopping(&self) {
        let _ = self.stopped_by.set(current_actor());
        self.stopping.store(true, Ordering::Release);
    }

    pub(super) fn stopped_by(&self) -> Actor {
        self.stopped_by.get().cloned().unwrap_or_default()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}
