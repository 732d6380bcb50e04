//! Presets: descriptions of agents' CLIs, as data.

mod catalogue;
mod launch;
mod overlay;
mod preset;
mod settings_text;
mod source;
mod template;
mod write_back;

pub use catalogue::{Catalogue, Known, Origin};
pub(crate) use launch::{IDENTITY_FILE, Launch, LaunchContext, Opening};
pub use launch::{LaunchError, find_program};
pub use preset::{Bar, Composer, Limit, Preset, Rule, ToldByFiles};
pub use source::Presets;
pub(crate) use write_back::write_back;
