//! The URL of a hook.

use hyper::Uri;

/// An http or https URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookUrl {
    text: String,
    host: String,
    secure: bool,
}

impl HookUrl {
    /// The URL as it is written. It may contain a secret.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its host, which may be shown to anybody.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether it is an https URL.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.secure
    }
}

/// Reads a URL. Errors do not quote it, since it may contain a secret.
pub(super) fn parse(text: &str) -> Result<HookUrl, &'static str> {
    let invalid = "it must be a URL that begins with https:// or http://";
    let uri: Uri = text.parse().map_err(|_| invalid)?;
    let secure = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(invalid),
    };
    let authority = uri.authority().ok_or(invalid)?;
    if authority.as_str().contains('@') {
        return Err("a URL with a user name is not supported");
    }
    if authority.host().is_empty() {
        return Err(invalid);
    }
    Ok(HookUrl { text: text.to_owned(), host: authority.host().to_owned(), secure })
}
