//! What a person sees of a project: the tree of its processes and their panes. The core is pure:
//! events change a model, a model is drawn as a picture. The rim has the terminal, the connections
//! and the clock.

mod action;
mod canvas;
mod layout;
mod link;
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

pub use outer::Around;
pub use paint::Depth;
pub use run::{Door, Error, Options, run};
pub use saved_layout::SavedLayout;
