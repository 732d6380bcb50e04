//! Who listened on a port before a process was started. Such a listener's answer says nothing about the process, even
//! if it is the expected one: a forgotten server on the same port answers as well.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use patterm_panes::Panes;
use patterm_panes::tree::{self, ListeningSockets};

use crate::project_file::{Probe, Ready, ReadyWhen};

/// Sockets, by their inodes.
type Sockets = BTreeSet<u64>;

/// The listeners at the port of a process. Empty if a server did not start the process itself: then everybody who
/// answers counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Listeners {
    /// Those that were there before the current run was started.
    before: Sockets,
    /// Those that came during a run and answered for it. A container may outlive the run.
    own: Sockets,
}

impl Listeners {
    /// Notes who listens before a run is started. The other processes of the project do not count as strangers: one of
    /// them may pass requests on.
    pub(super) fn note_start(&mut self, ready: Option<&Ready>, panes: &Panes) {
        let Some(ReadyWhen::Succeeds(Probe::Http { url, .. })) = ready.map(|ready| &ready.when)
        else {
            self.before = Sockets::new();
            return;
        };
        let mut before = ListeningSockets::read().at_port(url.port);
        before.retain(|socket| !self.own.contains(socket));
        if !before.is_empty() {
            for (_, run) in panes.runs() {
                let of_project = run.status().map(|status| tree::sockets_below(status.init));
                before
                    .retain(|socket| !of_project.as_ref().is_some_and(|own| own.contains(socket)));
            }
        }
        self.before = before;
    }

    /// The sockets that listen at an address of this machine from which an answer came; fails if all of them were
    /// there before. Nobody is found if the kernel passes connections on to a container by itself.
    pub(super) fn answered(&self, address: SocketAddr) -> Result<Sockets, String> {
        let listening = ListeningSockets::read().accepting(address);
        let Some(first) = listening.first().filter(|_| listening.is_subset(&self.before)) else {
            return Ok(listening);
        };
        let who = match tree::holder(*first) {
            Some((pid, name)) => format!("pid {pid} ({name})"),
            None => "a program of another user".to_owned(),
        };
        let port = address.port();
        Err(format!("port {port} was already served by {who} before this process was started"))
    }

    /// These answered for a run.
    pub(super) fn note_own(&mut self, sockets: Sockets) {
        self.own = sockets;
    }
}
