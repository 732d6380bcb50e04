//! The `[http]` table: the HTTP endpoint.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::check::Checked;
use super::description::Description;
use super::schema::{COUNT, STRINGS, Schema, key};

/// The keys of `[http]`.
pub(super) const SCHEMA: Schema = Schema::Table(&[
    key("listen", Schema::Text, "The address and port to listen on, such as `127.0.0.1:7711`."),
    key(
        "allow_remote",
        Schema::Flag,
        "Whether other machines may reach that address; false by default.",
    ),
    key("hosts", STRINGS, "Host names under which clients reach it, besides those of loopback."),
    key("origins", STRINGS, "Web sites that may call it, such as `https://app.example`."),
    key(
        "audit_arguments",
        Schema::Flag,
        "Whether the audit log contains the arguments of calls; false by default.",
    ),
    key("sessions", COUNT, "The maximum number of sessions; 1024 by default."),
    key("sessions_per_token", COUNT, "The same for each token; an eighth of all by default."),
    key("connections", COUNT, "The maximum number of connections; 1024 by default."),
    key("body_bytes", COUNT, "The maximum size of a request in bytes; 64 MiB by default."),
]);

/// The HTTP endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpDefinition {
    /// The address to listen on.
    pub listen: Option<SocketAddr>,
    /// Whether that may be an address that other machines can reach.
    #[serde(default)]
    pub allow_remote: bool,
    /// Additional host names under which clients reach it.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Web sites that may call it.
    #[serde(default)]
    pub origins: Vec<String>,
    /// Whether the audit log contains the arguments of calls.
    #[serde(default)]
    pub audit_arguments: bool,
    /// The maximum number of sessions.
    pub sessions: Option<usize>,
    /// The maximum number of sessions per token.
    pub sessions_per_token: Option<usize>,
    /// The maximum number of connections.
    pub connections: Option<usize>,
    /// The maximum size of a request in bytes.
    pub body_bytes: Option<usize>,
}

/// The table, before its address is parsed.
#[derive(Debug, Deserialize)]
pub(super) struct RawHttp {
    listen: Option<String>,
    #[serde(flatten)]
    rest: RawRest,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawRest {
    allow_remote: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
    audit_arguments: bool,
    sessions: Option<usize>,
    sessions_per_token: Option<usize>,
    connections: Option<usize>,
    body_bytes: Option<usize>,
}

/// Reads the table.
pub(super) fn read(checked: &mut Checked<'_>, raw: RawHttp) -> HttpDefinition {
    let listen = raw.listen.and_then(|text| match text.parse::<SocketAddr>() {
        Ok(address) => Some(address),
        Err(_) => {
            let message = format!("`{text}` is not an address with a port");
            let hint = Some("write it like \"127.0.0.1:7711\"".to_owned());
            checked.fault("http.listen", message, hint);
            None
        }
    });
    let rest = raw.rest;
    if let Some(address) = listen
        && !address.ip().is_loopback()
        && !rest.allow_remote
    {
        let message = format!("other machines can reach {address}");
        let hint = Some("set `allow_remote = true` if that is intended".to_owned());
        checked.fault("http.listen", message, hint);
    }
    HttpDefinition {
        listen,
        allow_remote: rest.allow_remote,
        hosts: rest.hosts,
        origins: rest.origins,
        audit_arguments: rest.audit_arguments,
        sessions: rest.sessions,
        sessions_per_token: rest.sessions_per_token,
        connections: rest.connections,
        body_bytes: rest.body_bytes,
    }
}

impl HttpDefinition {
    /// Describes the table to a person who decides whether to trust the file.
    pub(super) fn describe(&self, description: &mut Description) {
        if let Some(address) = self.listen {
            description.heading("HTTP endpoint");
            description.line("listens on", address.to_string());
        }
    }
}
