//! What clients may ask of the server, as types: a name with the parameters it takes and the result it
//! returns. Server, CLI and TUI share these definitions, so that a field renamed on one side does not
//! compile on the other.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request: one of patterm's own (`patterm/…`), or a tool, which can be called as a method of its name.
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// What only a person may do with it, as in "only a person may …"; `None` if anybody may send it.
    const PERSON_ONLY: Option<&'static str> = None;
    /// Its parameters. Missing parameters are an empty object.
    type Params: Serialize + DeserializeOwned;
    /// Its result.
    type Result: Serialize + DeserializeOwned;
}

/// Parameters or a result without fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Empty {}
