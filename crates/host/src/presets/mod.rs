//! Presets: what is known of the CLIs of agents, as data.

mod catalogue;
mod launch;
mod overlay;
mod preset;
mod settings_text;
mod template;
mod write_back;

#[cfg(test)]
pub(crate) use catalogue::BUILT_IN;
pub(crate) use catalogue::{Catalogue, Known, Origin};
pub(crate) use launch::{IDENTITY_FILE, Launch, LaunchError, Opening, Surroundings, find_program};
pub(crate) use preset::{Bar, Composer, Limit, Preset, Rule, ToldByFiles};
pub(crate) use write_back::write_back;
