//! The terminal user interface: the tree of a project's processes and their panes. The core is pure: events
//! change a model, and the model is drawn as a frame. The outer loop has the terminal, the connections and the
//! clock.

mod action;
mod arrange;
mod away;
mod canvas;
mod connection;
mod dashboard;
mod layout;
mod list;
mod log_connection;
mod logs;
mod markdown;
mod model;
mod outer;
mod overview;
mod page;
mod pages;
mod paint;
mod past;
mod probe;
mod run;
#[cfg(test)]
mod sample;
mod saved_layout;
mod scroll;
mod send;
mod settings;
mod shown;
mod table;
mod terminal;
mod trust;
mod update;
mod view;

pub use outer::{LEAVE, TerminalInfo};
pub use paint::ColourDepth;
pub use probe::TerminalFeatures;
pub use run::{Error, Options, ServerConnector, run};
pub use saved_layout::SavedLayout;
