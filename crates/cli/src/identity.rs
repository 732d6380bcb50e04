//! The caller's identity token.

use std::path::PathBuf;

use patterm_agents::identity::{self, Token};
use patterm_host::Greeting;

/// How the caller identifies itself.
#[derive(Debug)]
pub(crate) enum Identity {
    /// Not at all: an external caller.
    None,
    /// With the token in a file.
    File(PathBuf),
    /// With the token in the environment; `None` if that is not a token.
    Token(Option<Token>),
}

impl Identity {
    /// A flag takes precedence over the environment, a file over a token.
    pub(crate) fn find(flag: Option<PathBuf>) -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(file) = flag.or_else(|| variable("PATTERM_IDENTITY_FILE").map(PathBuf::from)) {
            return Self::File(file);
        }
        match variable("PATTERM_IDENTITY") {
            Some(token) => Self::Token(token.to_str().and_then(Token::parse)),
            None => Self::None,
        }
    }

    /// The first line of a connection, if there is one; an error if the identity cannot be read, so that a
    /// caller with an identity is never served as one without.
    pub(crate) fn greeting(&self, project_key: Option<&str>) -> Result<Option<String>, String> {
        let token = match self {
            Self::None => return Ok(None),
            Self::Token(Some(token)) => token.reveal(),
            Self::Token(None) => return Err("PATTERM_IDENTITY is not an identity token".into()),
            Self::File(path) => identity::read_file(path)?.reveal(),
        };
        let greeting =
            Greeting { patterm_identity: token, project_key: project_key.map(str::to_owned) };
        serde_json::to_string(&greeting).map(Some).map_err(|e| e.to_string())
    }
}
