//! The TUI as a person uses it: the real binary on a tmux terminal, typed into and read.

mod agents;
mod attach;
mod colours;
mod dashboard;
mod focus;
mod hostile;
mod hung;
mod keys;
mod leaving;
mod logs;
mod overview;
mod pages;
mod panes;
mod past;
mod personal;
mod replay;
mod restore;
mod screen;
mod survival;
mod trust;

pub(crate) use screen::Screen;
