//! The size of a terminal.

use rustix::termios::Winsize;
use serde::{Deserialize, Serialize};

/// A terminal's size in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Its height.
    pub rows: u16,
    /// Its width.
    pub columns: u16,
}

impl Size {
    /// The size of a terminal that nothing shows yet.
    pub const DEFAULT: Self = Self { rows: 24, columns: 80 };
}

impl From<Size> for Winsize {
    fn from(size: Size) -> Self {
        Self { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
    }
}
