//! Conversions between the two sizes of a terminal. The keeper's size is what the kernel and the process table
//! store, and may be anything a client asked for; the size of a screen is clamped to what the screen supports.
//! Neither crate may depend on the other, so they meet here.

/// The size of a screen as the kernel gets it.
pub(crate) fn for_terminal(size: patterm_screen::Size) -> patterm_keeper::Size {
    patterm_keeper::Size { rows: size.rows, columns: size.columns }
}

/// The size of a terminal as a screen gets it, clamped.
pub(crate) fn for_screen(size: patterm_keeper::Size) -> patterm_screen::Size {
    patterm_screen::Size::new(size.rows, size.columns)
}
