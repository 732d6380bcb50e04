//! Remote servers that speak Streamable HTTP.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::Location;
use super::settings::{BackendSettings, Kind, Section};
use crate::project_file::description::Description;
use crate::project_file::schema::{Schema, key};
use crate::project_file::visible::visible;

pub(super) const KIND: Kind = Kind {
    selector: "url",
    keys: &[
        key("url", Schema::Text, "The URL of a remote server that speaks Streamable HTTP."),
        key("headers", Schema::Strings, "Headers to send; `${NAME}` inserts a variable of yours."),
    ],
    accepts: &[],
    read,
};

/// A remote server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RemoteSettings {
    /// Its URL.
    pub url: String,
    /// Headers of every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

fn read(section: &mut Section<'_, '_>) -> Option<Location> {
    let settings: RemoteSettings = section.read()?;
    if !settings.url.starts_with("http://") && !settings.url.starts_with("https://") {
        section.fault("url", "a URL must begin with https:// or http://");
    }
    Some(Location::Remote(settings))
}

impl fmt::Display for RemoteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl BackendSettings for RemoteSettings {
    fn describe(&self, description: &mut Description) {
        description.line("calls", visible(&self.url));
        for (name, value) in &self.headers {
            description.line("sends", format!("{}: {}", visible(name), visible(value)));
        }
    }
}
