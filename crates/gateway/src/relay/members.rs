//! What survives the end of a server: the clients of its session, with their subscriptions and log
//! levels. The next session takes them over and tells its server, so that a client that only
//! listens notices nothing.

use std::collections::BTreeSet;

use patterm_wire::reply;

use super::log_level::LogLevel;
use super::{ClientId, Relay};
use crate::raw;

/// A client on its way from one session to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) client: ClientId,
    /// Who it belongs to: an agent or a token.
    pub(crate) caller: String,
    /// Whether it can answer requests from the server.
    pub(crate) can_respond: bool,
    resources: BTreeSet<String>,
    log_level: Option<LogLevel>,
}

impl<R> Relay<R> {
    /// The clients that expect to stay connected. Stateless ones are about to leave.
    pub(crate) fn members(&self) -> Vec<Member> {
        let lasting = self.clients.iter().filter(|(_, client)| !client.stateless);
        let mut members: Vec<_> = lasting
            .map(|(id, client)| Member {
                client: *id,
                caller: client.caller.clone(),
                can_respond: client.can_respond,
                resources: client.resources.clone(),
                log_level: client.log_level,
            })
            .collect();
        members.sort_unstable_by_key(|member| member.client);
        members
    }

    /// Takes over the clients of an earlier session.
    pub(crate) fn adopt(&mut self, members: impl IntoIterator<Item = Member>) {
        for member in members {
            let client = self.clients.entry(member.client).or_default();
            client.caller = member.caller;
            client.can_respond = member.can_respond;
            client.resources = member.resources;
            client.log_level = member.log_level;
        }
    }

    /// Whether a client waits for notifications that it asked for.
    pub(crate) fn has_subscribers(&self) -> bool {
        !self.listeners.is_empty()
            || self.clients.values().any(|client| !client.resources.is_empty())
    }

    /// Tells a server after its handshake what its predecessor was told.
    pub(super) fn restore_subscriptions(&mut self) {
        let clients = self.clients.values();
        let resources: BTreeSet<String> =
            clients.flat_map(|client| client.resources.iter().cloned()).collect();
        for resource in resources {
            let id = self.next_upstream_id().to_id();
            let params = format!("{{\"uri\":{}}}", raw::quoted(&resource));
            self.write_bytes(reply::request(&id, "resources/subscribe", Some(&params)));
        }
        self.update_server_level();
    }
}
