//! The HTTP door of a project: whether it is open and where, who may come in, and what is noted of
//! their calls.

mod tokens;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::state::{StateDir, StateError};
use tokens::Tokens;
pub use tokens::{Grant, Listed, TokenError, TokenWish};

/// The door.
#[derive(Debug)]
pub(crate) struct Web {
    tokens: Arc<Tokens>,
}

impl Web {
    /// Reads who may come in.
    pub(crate) fn load(state: &StateDir) -> Result<Self, StateError> {
        Ok(Self { tokens: Arc::new(Tokens::load(state)?) })
    }

    /// Does what a person wants of the tokens.
    pub(crate) fn token(&self, wish: TokenWish) -> Result<Value, TokenError> {
        Ok(match wish {
            TokenWish::New(grant) => json!({"token": self.tokens.add(grant)?}),
            TokenWish::List => json!({"tokens": self.tokens.list()}),
            TokenWish::Revoke(name) => {
                self.tokens.revoke(&name)?;
                json!({})
            }
        })
    }
}
