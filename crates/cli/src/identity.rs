//! Where the caller's identity token comes from.

use std::path::PathBuf;

use patterm_agents::identity::{self, Token};
use patterm_host::Greeting;

/// How the caller says who it is.
#[derive(Debug)]
pub(crate) enum Identity {
    /// It does not: an external caller.
    None,
    /// By the token in a file.
    File(PathBuf),
    /// By the token in the environment.
    Token(Option<Token>),
}

impl Identity {
    /// A flag wins over the environment, a file over a token.
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

    /// The first line of a connection, if one is to be sent; an error if the identity cannot be
    /// read. A caller that has one is never served as somebody without.
    pub(crate) fn greeting(&self, project_key: Option<&str>) -> Result<Option<String>, String> {
        let token = match self {
            Self::None => return Ok(None),
            Self::Token(Some(token)) => token.reveal(),
            Self::Token(None) => return Err("PATTERM_IDENTITY holds no identity token".into()),
            Self::File(path) => identity::read_file(path)?.reveal(),
        };
        let greeting =
            Greeting { patterm_identity: token, project_key: project_key.map(str::to_owned) };
        serde_json::to_string(&greeting).map(Some).map_err(|e| e.to_string())
    }
}
