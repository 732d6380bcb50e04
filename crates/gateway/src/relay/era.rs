//! The two protocol eras: revisions with a handshake, and the stateless one, in which every request
//! identifies its client. Requests from a client of one era to a server of the other are translated
//! as far as both have an equivalent.

use serde::Deserialize;

use crate::raw::{self, Span};

/// The newest revision with a handshake, which is offered to servers.
pub(crate) const LEGACY: &str = "2025-11-25";

/// Revisions with a handshake, oldest first.
const LEGACY_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];

/// The stateless revision.
pub(crate) const MODERN: &str = "2026-07-28";

/// All supported revisions.
pub(crate) const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY, MODERN];

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// A protocol era.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Era {
    /// With a handshake.
    Legacy,
    /// Without.
    Modern,
}

impl Era {
    /// The era of a request, which its metadata declares.
    pub(crate) fn of(text: &str) -> Self {
        match raw::at_path(text, &["params", "_meta", META_VERSION]) {
            Some(_) => Self::Modern,
            None => Self::Legacy,
        }
    }
}

/// Whether a request no longer exists in the stateless era.
pub(super) fn is_removed(method: &str) -> bool {
    const GONE: [&str; 5] =
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    GONE.contains(&method)
}

/// The translation between a client's era and its server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Translation {
    /// Both have the same era.
    None,
    /// The client is stateless, the server is not.
    Down,
    /// The server is stateless, the client is not.
    Up,
}

/// The notifications that a stateless client listens to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Filter {
    pub(super) tools_list_changed: bool,
    pub(super) prompts_list_changed: bool,
    pub(super) resources_list_changed: bool,
}

impl Filter {
    pub(super) fn of(text: &str) -> Option<Self> {
        let span = raw::at_path(text, &["params", "notifications"])?;
        serde_json::from_str(text.get(span)?).ok()
    }

    pub(super) fn wants(&self, method: &str) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools_list_changed,
            "notifications/prompts/list_changed" => self.prompts_list_changed,
            "notifications/resources/list_changed" => self.resources_list_changed,
            _ => false,
        }
    }

    /// As in the acknowledgement.
    pub(super) fn to_json(&self) -> String {
        let flags = [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ];
        let enabled: Vec<_> = flags
            .iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| format!("\"{name}\":true"))
            .collect();
        format!("{{{}}}", enabled.join(","))
    }
}

/// The metadata that a request to a stateless server needs.
pub(super) fn stateless_meta(log_level: Option<&str>) -> String {
    let level = log_level
        .map(|level| format!(",\"io.modelcontextprotocol/logLevel\":{level}"))
        .unwrap_or_default();
    format!(
        "\"{META_VERSION}\":\"{MODERN}\",\"io.modelcontextprotocol/clientCapabilities\":{{}},\
         \"io.modelcontextprotocol/clientInfo\":{}{level}",
        client_info()
    )
}

/// The edit that inserts metadata into a request.
pub(super) fn meta_edit(text: &str, meta: &str) -> Option<(Span, String)> {
    if let Some(span) = raw::at_path(text, &["params", "_meta"]) {
        let (at, comma) = raw::opening(text, &span)?;
        return Some((at, format!("{meta}{comma}")));
    }
    if let Some(span) = raw::at_path(text, &["params"]) {
        let (at, comma) = raw::opening(text, &span)?;
        return Some((at, format!("\"_meta\":{{{meta}}}{comma}")));
    }
    let begin = text.find('{')?;
    let (at, comma) = raw::opening(text, &(begin..text.len()))?;
    Some((at, format!("\"params\":{{\"_meta\":{{{meta}}}}}{comma}")))
}

/// How patterm identifies itself to servers.
pub(super) fn client_info() -> String {
    format!("{{\"name\":\"patterm\",\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION"))
}

/// The edit that adds what a stateless client needs to the result of an older server.
pub(super) fn stateless_result_edit(text: &str, method: &str) -> Option<(Span, String)> {
    let result = raw::at_path(text, &["result"])?;
    let inner = text.get(result.clone())?;
    let [kind, ttl, scope] = raw::members(inner, ["resultType", "ttlMs", "cacheScope"])?;
    let mut more = Vec::new();
    if kind.is_none() {
        more.push("\"resultType\":\"complete\"");
    }
    let cacheable = method.ends_with("/list") || method == "resources/read";
    if cacheable && ttl.is_none() {
        more.push("\"ttlMs\":0");
    }
    if cacheable && scope.is_none() {
        more.push("\"cacheScope\":\"private\"");
    }
    if more.is_empty() {
        return None;
    }
    let (at, comma) = raw::opening(text, &result)?;
    Some((at, format!("{}{comma}", more.join(","))))
}

/// Whether a stateless result requests input, which a client of the older era cannot give.
pub(super) fn requests_input(text: &str) -> bool {
    let kind = raw::at_path(text, &["result", "resultType"]);
    kind.is_some_and(|span| &text[span] != "\"complete\"")
}

/// The position of the subscription id in a notification or a result.
pub(super) fn subscription(text: &str, under: &str) -> Option<Span> {
    raw::at_path(text, &[under, "_meta", META_SUBSCRIPTION])
}

/// A notification for a stateless listener.
pub(super) fn to_listener(text: &str, id: &str) -> String {
    let meta = format!("\"{META_SUBSCRIPTION}\":{id}");
    match meta_edit(text, &meta) {
        Some(edit) => raw::edited(text, vec![edit]),
        None => text.to_owned(),
    }
}

/// Whether the result of `server/discover` contains the stateless revision.
pub(super) fn is_modern(discover: &str) -> bool {
    raw::member(discover, "supportedVersions").is_some_and(|versions| versions.contains(MODERN))
}

/// The server's description of itself in a result of `server/discover`.
pub(super) fn server_info(discover: &str) -> Option<&str> {
    raw::at_path(discover, &["_meta", META_SERVER]).map(|span| &discover[span])
}

/// The result of `server/discover` on behalf of a server that only has a handshake.
pub(super) fn discovered(initialize: &str) -> String {
    let part = |name: &str| raw::member(initialize, name);
    let instructions =
        part("instructions").map(|text| format!(",\"instructions\":{text}")).unwrap_or_default();
    format!(
        "{{\"resultType\":\"complete\",\"supportedVersions\":[\"{MODERN}\"],\"capabilities\":{},\
         \"ttlMs\":0,\"cacheScope\":\"private\",\"_meta\":{{\"{META_SERVER}\":{}}}{instructions}}}",
        part("capabilities").unwrap_or("{}"),
        part("serverInfo").unwrap_or("{\"name\":\"unknown\",\"version\":\"0\"}"),
    )
}

/// The result of `initialize` on behalf of a server that only has `server/discover`.
pub(super) fn initialized(discover: &str) -> String {
    let part = |name: &str| raw::member(discover, name);
    let instructions =
        part("instructions").map(|text| format!(",\"instructions\":{text}")).unwrap_or_default();
    let info = server_info(discover);
    format!(
        "{{\"protocolVersion\":\"{LEGACY}\",\"capabilities\":{},\"serverInfo\":{}{instructions}}}",
        part("capabilities").unwrap_or("{}"),
        info.unwrap_or("{\"name\":\"unknown\",\"version\":\"0\"}"),
    )
}

/// The result of a handshake for one client: in the revision that it requested, if the server's is
/// newer.
pub(super) fn initialize_result_for(initialize: &str, request: &str) -> String {
    let requested =
        raw::at_path(request, &["params", "protocolVersion"]).map(|span| &request[span]);
    let Some(span) = raw::at_path(initialize, &["protocolVersion"]) else {
        return initialize.to_owned();
    };
    let index_of =
        |quoted: &str| LEGACY_REVISIONS.iter().position(|r| quoted.trim_matches('"') == *r);
    let agreed = index_of(&initialize[span.clone()]);
    match requested.filter(|requested| index_of(requested).zip(agreed).is_some_and(|(a, b)| a < b))
    {
        Some(older) => raw::edited(initialize, vec![(span, older.to_owned())]),
        None => initialize.to_owned(),
    }
}
