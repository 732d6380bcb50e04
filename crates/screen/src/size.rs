//! The size of a screen, and its cursor.

/// Rows and columns of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// Rows, at least 1.
    pub rows: u16,
    /// Columns, at least 2.
    pub columns: u16,
}

impl Size {
    /// A wide character needs two columns; with one, reflow would never end.
    pub const MIN_COLUMNS: u16 = 2;

    /// Larger than any real screen; a hostile size must not exhaust memory (24 bytes per cell).
    pub const MAX_ROWS: u16 = 1_000;

    /// See [`Size::MAX_ROWS`].
    pub const MAX_COLUMNS: u16 = 2_000;

    /// The usual size when none is given.
    pub const DEFAULT: Self = Self { rows: 24, columns: 80 };

    /// A size, clamped to the limits.
    #[must_use]
    pub fn new(rows: u16, columns: u16) -> Self {
        Self {
            rows: rows.clamp(1, Self::MAX_ROWS),
            columns: columns.clamp(Self::MIN_COLUMNS, Self::MAX_COLUMNS),
        }
    }
}

/// How the cursor is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CursorShape {
    /// A full cell.
    #[default]
    Block,
    /// A line below the cell.
    Underline,
    /// A line before the cell.
    Bar,
}

/// The cursor's position and appearance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// Row, 0 at the top.
    pub row: u16,
    /// Column, 0 at the left.
    pub column: u16,
    /// Whether the program shows it.
    pub visible: bool,
    /// How it is drawn.
    pub shape: CursorShape,
    /// Whether it blinks.
    pub blinking: bool,
}
