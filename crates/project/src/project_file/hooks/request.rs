//! The request of a hook, with its headers.

use std::collections::BTreeMap;

use hyper::header::{HeaderName, HeaderValue};

use super::HookAction;
use super::url::{self, HookUrl};
use crate::project_file::check::Checked;

/// Headers that belong to the request as it is sent.
const OWN_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Where a hook sends events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRequest {
    /// The URL.
    pub url: HookUrl,
    /// More headers, as they are written: `${NAME}` stands for a variable.
    pub headers: BTreeMap<String, String>,
}

/// Reads the URL and the headers of a hook. Errors do not quote values, which may be secrets.
pub(super) fn read(
    checked: &mut Checked<'_>,
    path: &str,
    url: &str,
    headers: BTreeMap<String, String>,
) -> Option<HookAction> {
    for (name, value) in &headers {
        if let Some(message) = fault(name, value) {
            checked.fault(&format!("{path}.headers.{name}"), message, None);
        }
    }
    match url::parse(url) {
        Ok(url) => Some(HookAction::Post(HookRequest { url, headers })),
        Err(message) => {
            checked.fault(&format!("{path}.post"), message.into(), None);
            None
        }
    }
}

fn fault(name: &str, value: &str) -> Option<String> {
    let Ok(known) = name.parse::<HeaderName>() else {
        return Some(format!("`{name}` is not a name of a header"));
    };
    if OWN_HEADERS.contains(&known.as_str()) {
        return Some(format!("patterm itself sets the header `{name}`"));
    }
    let is_value = HeaderValue::from_str(value).is_ok();
    let message =
        format!("the value of the header `{name}` has characters that no header may have");
    (!is_value).then_some(message)
}
