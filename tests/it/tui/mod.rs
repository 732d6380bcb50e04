//! The TUI as a person has it: the real binary on a terminal of tmux, typed into and looked at.

mod attach;
mod focus;
mod hostile;
mod keys;
mod leaving;
mod panes;
mod personal;
mod restore;
mod screen;
mod survival;
mod trust;

pub(crate) use screen::Screen;
