//! The tools: one file each, with its arguments, its answer, its words and its test. They are
//! listed once, in [`Registry::standard`].

mod error;
mod help;
mod progress;
mod registry;
mod schema;
mod tool;
mod topics;
mod whoami;

pub use error::{ErrorKind, ToolError};
pub use progress::Progress;
pub use registry::Registry;
pub use tool::{Call, Effect, Tool};

impl Registry {
    /// Every tool of this version.
    pub fn standard() -> Self {
        Self::default().with::<whoami::Whoami>().with::<help::Help>()
    }
}
