//! A terminal screen as a value: bytes in, rows out. It emulates the terminal, keeps rows that
//! scrolled off in a compact history, replies to a program's queries from a fixed list, and parses
//! and encodes keys and pastes. Nothing here does I/O or reads a clock.

mod bulk;
#[cfg(test)]
mod bulk_tests;
mod cluster;
mod colour_commands;
#[cfg(test)]
mod colour_tests;
mod colours;
mod csi;
mod cursor;
mod drawing;
mod edit;
mod emulator;
mod escape;
mod frame;
mod frame_bytes;
mod frame_cells;
#[cfg(test)]
mod frame_tests;
mod history;
#[cfg(test)]
mod history_tests;
pub mod input;
pub mod keys;
#[cfg(test)]
mod keys_tests;
mod kitty_keyboard;
mod modes;
mod notice;
mod pack;
mod page;
mod parser;
mod paste;
mod print;
#[cfg(test)]
mod recording_tests;
mod rectangle;
mod reflow;
#[cfg(test)]
mod reflow_tests;
mod replies;
mod reply;
#[cfg(test)]
mod reply_tests;
mod resize;
mod row_copies;
mod row_record;
mod screen;
#[cfg(test)]
mod screen_tests;
mod scrolled;
#[cfg(test)]
mod sequence_tests;
mod sgr;
mod size;
mod snapshot;
mod stripper;
#[cfg(test)]
mod stripper_tests;
mod style;
mod tabs;
mod terminal_name;
mod title;
mod wrap;

pub use cluster::{clusters, has_visible_character, text_width, width};
pub use colours::Colours;
pub use drawing::{Drawing, is_web_link};
pub use history::{History, Line};
pub use keys::Key;
pub use modes::{Modes, Mouse, MouseEncoding};
pub use notice::{Mark, Notice, ProgressReport, decode_base64};
pub use paste::{paste, type_text};
pub use row_copies::RowCopies;
pub use screen::Screen;
pub use scrolled::NumberedRow;
pub use size::{Cursor, CursorShape, Size};
pub use stripper::{Stripper, TAIL_BYTES, partial_prefix, strip_complete};
pub use style::{Attributes, Colour, Span, Style};
pub use terminal_name::{BadTerminalName, TerminalName};
pub use wrap::StyledRow;
