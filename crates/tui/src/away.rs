//! What is known about the user's absence, and the digest of what happened meanwhile.

use patterm_wire::digest::{Digest, DigestLine};

/// How far the digest of an absence is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The user is here.
    #[default]
    Over,
    /// The user is back, and the digest was requested.
    Requested,
    /// It is shown as soon as the user does not type. `waits` says that the pause after the last key is not over yet.
    Ready { digest: Box<Digest>, waits: bool },
    /// The digest could not be requested. It will be, once there is a server again.
    Wanted,
    /// The server is too old for digests.
    Unknown,
}

impl Absence {
    /// Whether a digest waits for a pause in what the user types.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Self::Ready { waits: true, .. })
    }
}

/// The user's absence.
#[derive(Debug, Default)]
pub(crate) struct Away {
    pub(crate) absence: Absence,
    /// When the user last did anything here, in milliseconds since 1970.
    pub(crate) here_at: Option<u64>,
    /// When the server was last told that the user looks.
    pub(crate) noted_at: Option<u64>,
    /// When the last absence began, for a user who wants to see its digest again.
    pub(crate) began_ms: Option<u64>,
    /// Where to scroll to once the pane shows its process.
    pub(crate) jump: Option<Jump>,
}

/// A place in the output of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Jump {
    pub(crate) process: String,
    pub(crate) offset: u64,
}

/// A digest on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DigestPanel {
    pub(crate) lines: Vec<DigestLine>,
    /// How long the time is that it covers, in milliseconds.
    pub(crate) covers_ms: Option<u64>,
    /// The chosen line.
    pub(crate) chosen: usize,
    /// Where the digest ends: what the user has seen once the panel closes.
    pub(crate) shown: (u64, String),
    /// When it opened by itself, in milliseconds since 1970; a key may have been meant for a pane then.
    pub(crate) by_itself_at: Option<u64>,
}

impl DigestPanel {
    pub(crate) fn new(digest: &Digest, by_itself_at: Option<u64>) -> Self {
        let lines = digest.lines();
        let chosen = lines.iter().position(|line| line.target.is_some()).unwrap_or(0);
        let shown = (digest.next, digest.until.clone());
        Self { lines, covers_ms: digest.covers_ms(), chosen, shown, by_itself_at }
    }

    /// Chooses another line that leads somewhere.
    pub(crate) fn step(&mut self, by: isize) {
        let places: Vec<usize> =
            (0..self.lines.len()).filter(|at| self.lines[*at].target.is_some()).collect();
        let now = places.iter().position(|at| *at == self.chosen).unwrap_or(0);
        let last = places.len().saturating_sub(1);
        if let Some(at) = places.get(now.saturating_add_signed(by).min(last)) {
            self.chosen = *at;
        }
    }
}
