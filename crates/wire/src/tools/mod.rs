//! The tools that the CLI and the TUI call, as they see them: the arguments they set and the members of the
//! results they use. The server's own definitions hold more. A test in the CLI checks these against the
//! server's schemas; a missing member counts as its default, since the server may be older.

mod agents;
mod events;
mod input;
mod output;
mod pads;
mod processes;
mod project;
mod timers;

pub use agents::*;
pub use events::*;
pub use input::*;
pub use output::*;
pub use pads::*;
pub use processes::*;
pub use project::*;
pub use timers::*;

/// Declares tools: a marker type for each, with its name, its arguments and its result.
macro_rules! tools {
    ($($(#[$doc:meta])* $tool:ident = $name:literal: $args:ty => $result:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $tool {}

            impl $crate::method::Method for $tool {
                const NAME: &'static str = $name;
                type Params = $args;
                type Result = $result;
            }
        )*
    };
}
use tools;
