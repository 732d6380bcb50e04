//! The terminal user interface: the tree of a project's processes and their panes. The core is pure: events
//! change a model, and the model is drawn as a frame. The outer loop has the terminal, the connections and the
//! clock.

mod action;
mod canvas;
mod connection;
mod layout;
mod list;
mod markdown;
mod model;
mod outer;
mod paint;
mod run;
#[cfg(test)]
mod sample;
mod saved_layout;
mod scroll;
mod send;
mod settings;
mod terminal;
mod trust;
mod update;
mod view;

pub use outer::TerminalInfo;
pub use paint::ColourDepth;
pub use run::{Error, Options, ServerConnector, run};
pub use saved_layout::SavedLayout;
