//! The modes that a program can set, by their numbers.

/// Which mouse events the program wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mouse {
    /// None.
    #[default]
    Off,
    /// Presses only (mode 9).
    Press,
    /// Presses and releases (mode 1000).
    Click,
    /// And movement while a button is held (mode 1002).
    Drag,
    /// And all movement (mode 1003).
    Motion,
}

/// How mouse events are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MouseEncoding {
    /// One byte each, up to column 223.
    #[default]
    Bytes,
    /// UTF-8 (mode 1005).
    Utf8,
    /// Numbers (mode 1006).
    Sgr,
    /// The older numbers (mode 1015).
    Urxvt,
    /// Numbers, in pixels (mode 1016).
    SgrPixels,
}

/// The modes that a program has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Modes {
    /// The alternate screen is shown (47, 1047, 1049).
    pub alternate_screen: bool,
    /// Arrow keys are sent as `ESC O` (1).
    pub application_cursor: bool,
    /// The keypad is in application mode (66, `ESC =`).
    pub application_keypad: bool,
    /// Pastes are marked (2004).
    pub bracketed_paste: bool,
    /// Focus changes are reported (1004).
    pub focus_reports: bool,
    /// Colour scheme changes are reported (2031).
    pub scheme_reports: bool,
    /// Which mouse events are reported (9, 1000, 1002, 1003).
    pub mouse: Mouse,
    /// How they are encoded (1005, 1006, 1015, 1016).
    pub mouse_encoding: MouseEncoding,
    /// The wheel sends arrow keys on the alternate screen (1007).
    pub alternate_scroll: bool,
    /// A frame is being drawn (2026). The screen shows it as it arrives; a client that draws the screen
    /// may wait.
    pub synchronized: bool,
    /// The cursor is shown (25).
    pub cursor_visible: bool,
    /// Foreground and background of the whole screen are exchanged (5).
    pub reverse_video: bool,
    /// Text wraps into the next row (7).
    pub wrap: bool,
    /// Rows count from the top margin (6).
    pub origin: bool,
    /// Moving back from the first column of a wrapped row goes to the end of the row before (45).
    pub reverse_wrap: bool,
    /// The same from any row, and from the first to the last (1045).
    pub far_reverse_wrap: bool,
    /// There are margins at the left and right as well (69).
    pub side_margins: bool,
    /// Size changes are reported to the program in its input (2048).
    pub size_reports: bool,
    /// A tab after a full row goes to the next one (41).
    pub tab_wraps: bool,
    /// Changes of the column mode erase the screen (40).
    pub column_mode: bool,
    /// Backspace sends BS and not DEL (67).
    pub backspace_sends_bs: bool,
    /// Modes that a program can set and query, but that nothing depends on: smooth scrolling (4), and what is printed
    /// on paper (18, 19).
    pub(crate) without_effect: [bool; 3],
    /// Characters that form a cluster share a cell (2027).
    pub clusters: bool,
    /// Printed text shifts the text after it (4).
    pub insert: bool,
    /// A line feed returns to the first column (20).
    pub newline: bool,
    /// The kitty keyboard's current flags.
    pub kitty_keyboard: u8,
    /// xterm's modifyOtherKeys, 0 to 2.
    pub modify_other_keys: u8,
}

impl Default for Modes {
    fn default() -> Self {
        Self {
            alternate_screen: false,
            application_cursor: false,
            application_keypad: false,
            bracketed_paste: false,
            focus_reports: false,
            scheme_reports: false,
            mouse: Mouse::Off,
            mouse_encoding: MouseEncoding::Bytes,
            alternate_scroll: true,
            synchronized: false,
            cursor_visible: true,
            reverse_video: false,
            wrap: true,
            origin: false,
            reverse_wrap: false,
            far_reverse_wrap: false,
            side_margins: false,
            size_reports: false,
            tab_wraps: false,
            column_mode: false,
            backspace_sends_bs: false,
            without_effect: [false; 3],
            clusters: true,
            insert: false,
            newline: false,
            kitty_keyboard: 0,
            modify_other_keys: 0,
        }
    }
}

/// DEC private modes that only set a flag. Those with an effect of their own (origin, the alternate
/// screens) are in `csi.rs`.
pub(crate) const SWITCHES: [u16; 18] =
    [1, 4, 5, 7, 18, 19, 25, 40, 41, 45, 66, 67, 1004, 1007, 1045, 2004, 2026, 2031];

impl Modes {
    /// The flag of a DEC private mode.
    pub(crate) fn switch(&mut self, number: u16) -> Option<&mut bool> {
        Some(match number {
            1 => &mut self.application_cursor,
            4 => &mut self.without_effect[0],
            18 => &mut self.without_effect[1],
            19 => &mut self.without_effect[2],
            40 => &mut self.column_mode,
            41 => &mut self.tab_wraps,
            67 => &mut self.backspace_sends_bs,
            5 => &mut self.reverse_video,
            7 => &mut self.wrap,
            25 => &mut self.cursor_visible,
            45 => &mut self.reverse_wrap,
            66 => &mut self.application_keypad,
            1004 => &mut self.focus_reports,
            1007 => &mut self.alternate_scroll,
            1045 => &mut self.far_reverse_wrap,
            2004 => &mut self.bracketed_paste,
            2026 => &mut self.synchronized,
            2031 => &mut self.scheme_reports,
            _ => return None,
        })
    }

    /// Sets or resets a mouse mode; false if `number` is not one.
    pub(crate) fn set_mouse(&mut self, number: u16, on: bool) -> bool {
        if let Some(mouse) = mouse(number) {
            self.mouse = if on { mouse } else { Mouse::Off };
        } else if let Some(encoding) = mouse_encoding(number) {
            self.mouse_encoding = if on { encoding } else { MouseEncoding::Bytes };
        } else {
            return false;
        }
        true
    }

    /// Whether a DEC private mode is on; `None` if it is unknown.
    pub(crate) fn state(&self, number: u16) -> Option<bool> {
        let mut copy = *self;
        Some(match number {
            6 => self.origin,
            69 => self.side_margins,
            2027 => self.clusters,
            2048 => self.size_reports,
            47 | 1047 | 1049 => self.alternate_screen,
            _ => {
                if let Some(mouse) = mouse(number) {
                    self.mouse == mouse
                } else if let Some(encoding) = mouse_encoding(number) {
                    self.mouse_encoding == encoding
                } else {
                    *copy.switch(number)?
                }
            }
        })
    }

    /// The private modes that differ from those of a fresh screen, as numbers with their states; without
    /// the alternate screen and the origin mode.
    pub(crate) fn changed(&self) -> Vec<(u16, bool)> {
        let (mut ours, mut fresh) = (*self, Self::default());
        let mut changed = Vec::new();
        for number in SWITCHES {
            if let (Some(a), Some(b)) = (ours.switch(number), fresh.switch(number))
                && a != b
            {
                changed.push((number, *a));
            }
        }
        for number in [9, 1000, 1002, 1003, 1005, 1006, 1015, 1016] {
            if self.state(number) == Some(true) {
                changed.push((number, true));
            }
        }
        changed
    }
}

fn mouse(number: u16) -> Option<Mouse> {
    Some(match number {
        9 => Mouse::Press,
        1000 => Mouse::Click,
        1002 => Mouse::Drag,
        1003 => Mouse::Motion,
        _ => return None,
    })
}

fn mouse_encoding(number: u16) -> Option<MouseEncoding> {
    Some(match number {
        1005 => MouseEncoding::Utf8,
        1006 => MouseEncoding::Sgr,
        1015 => MouseEncoding::Urxvt,
        1016 => MouseEncoding::SgrPixels,
        _ => return None,
    })
}
