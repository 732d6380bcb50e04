//! Probes: how patterm finds out whether a process is ready or healthy.

use std::time::Duration;

use hyper::Uri;
use serde::Deserialize;

use super::check::Checked;
use super::command::{COMMAND_OR_LINE, RawCommand, argv};
use super::limits::{LEAST_PROBE_SECONDS, TRY_TIMEOUT};
use super::schema::{Schema, SchemaKey, key};
use super::visible::{command_line, visible};

/// The keys that select a probe.
pub(super) const PROBE_KEYS: &[SchemaKey] = &[
    key(
        "http",
        Schema::Text,
        "An http:// URL that patterm requests. Redirects are not followed, and the body is not read.",
    ),
    key(
        "status",
        Schema::Whole { least: 100, most: 599 },
        "The HTTP status that is expected; by default any from 200 to 399.",
    ),
    key(
        "command",
        COMMAND_OR_LINE,
        "A command that exits with code 0 if all is well. It gets the environment and the working \
         directory of the process.",
    ),
    key(
        "port",
        Schema::Whole { least: 1, most: 65_535 },
        "A TCP port on which the process, or a process it started, listens.",
    ),
    key(
        "try_timeout_seconds",
        Schema::Seconds,
        "How long one request or one run of the command may take; 5 by default. A command is then killed \
         with everything it started.",
    ),
];

/// How patterm finds out whether all is well with a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// An HTTP server answers.
    Http {
        /// What is requested.
        url: ProbeUrl,
        /// The expected status; `None` for any from 200 to 399.
        status: Option<u16>,
    },
    /// A command exits with code 0.
    Command(Vec<String>),
    /// The process, or one that it started, listens on a port.
    Port(u16),
}

/// An HTTP URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeUrl {
    /// The URL as it is written.
    pub text: String,
    /// The host, without the brackets of an IPv6 address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The host and port for the header.
    pub authority: String,
    /// The path and query.
    pub target: String,
}

/// The keys of a probe as they are written.
#[derive(Deserialize)]
pub(super) struct RawProbe {
    http: Option<String>,
    status: Option<u16>,
    command: Option<RawCommand>,
    port: Option<u16>,
    try_timeout_seconds: Option<f64>,
}

impl RawProbe {
    /// The selecting keys that are set.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let keys = [
            ("http", self.http.is_some()),
            ("command", self.command.is_some()),
            ("port", self.port.is_some()),
        ];
        keys.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect()
    }

    /// The probe and the timeout of one try, if this table has the only condition `condition`.
    pub(super) fn read(
        self,
        checked: &mut Checked<'_>,
        path: &str,
        condition: &str,
    ) -> (Option<Probe>, Duration) {
        if self.status.is_some() && condition != "http" {
            no_effect(checked, path, "status", condition);
        }
        if self.try_timeout_seconds.is_some() && !matches!(condition, "http" | "command") {
            no_effect(checked, path, "try_timeout_seconds", condition);
        }
        let key = format!("{path}.try_timeout_seconds");
        let timeout = probe_seconds(checked, &key, self.try_timeout_seconds);
        let probe = match (self.http, self.command, self.port) {
            (Some(url), ..) => url_of(&url)
                .map_err(|message| checked.fault(&format!("{path}.http"), message, None))
                .ok()
                .map(|url| Probe::Http { url, status: self.status }),
            (_, Some(command), _) => {
                Some(Probe::Command(argv(checked, &format!("{path}.command"), command)))
            }
            (.., Some(port)) => Some(Probe::Port(port)),
            (None, None, None) => None,
        };
        (probe, timeout.unwrap_or(TRY_TIMEOUT))
    }
}

/// Reports a key that has no effect together with the condition of its table.
pub(super) fn no_effect(checked: &mut Checked<'_>, path: &str, key: &str, condition: &str) {
    let message = format!("`{key}` has no effect with `{condition}`");
    checked.fault(&format!("{path}.{key}"), message, Some("remove it".into()));
}

/// A timeout or an interval of a probe.
pub(super) fn probe_seconds(
    checked: &mut Checked<'_>,
    path: &str,
    raw: Option<f64>,
) -> Option<Duration> {
    let seconds = raw?;
    if seconds < LEAST_PROBE_SECONDS {
        let message =
            format!("`{path}` must be at least {LEAST_PROBE_SECONDS} seconds, not {seconds}");
        checked.fault(path, message, None);
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// Parses a URL, or says what is wrong with it.
fn url_of(text: &str) -> Result<ProbeUrl, String> {
    let invalid =
        || format!("`{text}` is not an HTTP URL; write one such as http://127.0.0.1:3000/health");
    let uri: Uri = text.parse().map_err(|_| invalid())?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(invalid());
    };
    match scheme {
        "http" => {}
        "https" => {
            let advice = "use http, or `command` with a program such as curl";
            return Err(format!("`{text}` uses https, which probes do not support; {advice}"));
        }
        _ => return Err(invalid()),
    }
    if authority.as_str().contains('@') {
        return Err(format!("`{text}` contains a user name, which is not supported"));
    }
    let host = authority.host();
    let port = match authority.port() {
        Some(port) => port.as_u16(),
        None if authority.as_str() == host => 80,
        None => return Err(invalid()),
    };
    if host.is_empty() || port == 0 {
        return Err(invalid());
    }
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    Ok(ProbeUrl {
        text: text.to_owned(),
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port,
        authority: authority.to_string(),
        target: target.to_owned(),
    })
}

impl Probe {
    /// What must hold, for a person who decides about trust.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Http { url, status: None } => format!("{} answers", visible(&url.text)),
            Self::Http { url, status: Some(status) } => {
                format!("{} answers with status {status}", visible(&url.text))
            }
            Self::Command(argv) => format!("{} exits with code 0", command_line(argv)),
            Self::Port(port) => format!("it listens on port {port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_a_port_and_a_path() {
        let url = |text: &str| {
            let ProbeUrl { host, port, authority, target, .. } = url_of(text).unwrap();
            format!("{host} {port} {authority} {target}")
        };
        assert_eq!(url("http://localhost"), "localhost 80 localhost /");
        assert_eq!(url("http://127.0.0.1:3000/a?b=c#d"), "127.0.0.1 3000 127.0.0.1:3000 /a?b=c");
        assert_eq!(url("http://[::1]:8080/x"), "::1 8080 [::1]:8080 /x");
        assert_eq!(url("HTTP://db/"), "db 80 db /");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "health",
            "/health",
            "127.0.0.1:3000",
            "htp://x/",
            "ftp://x/",
            "http://",
            "http:///x",
            "http://x:/",
            "http://x:0/",
            "http://x:70000/",
            "http://a b/",
            "http://x/\r\nHost: y",
            "http://x/\u{1b}",
        ] {
            assert!(url_of(text).is_err(), "{text:?}");
        }
        assert!(url_of("https://x/").unwrap_err().contains("uses https"));
        assert!(url_of("http://me:pw@x/").unwrap_err().contains("a user name"));
    }
}
