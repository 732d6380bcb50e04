//! How a piece of text looks: colours, attributes, link. The engine's cells are translated here,
//! so that nobody outside this crate sees them.

use std::sync::Arc;

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

/// A colour as the program chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Colour {
    /// The terminal's own foreground or background.
    #[default]
    Default,
    /// One of the 256 of the palette.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// Attributes of text, as a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Attributes(u16);

impl Attributes {
    /// Bold.
    pub const BOLD: Self = Self(1);
    /// Faint.
    pub const DIM: Self = Self(1 << 1);
    /// Italic.
    pub const ITALIC: Self = Self(1 << 2);
    /// Underlined with one line.
    pub const UNDERLINE: Self = Self(1 << 3);
    /// Foreground and background exchanged.
    pub const INVERSE: Self = Self(1 << 4);
    /// Not shown.
    pub const HIDDEN: Self = Self(1 << 5);
    /// Struck through.
    pub const STRIKEOUT: Self = Self(1 << 6);
    /// Underlined with two lines.
    pub const DOUBLE_UNDERLINE: Self = Self(1 << 7);
    /// Underlined with a wave.
    pub const CURLY_UNDERLINE: Self = Self(1 << 8);
    /// Underlined with dots.
    pub const DOTTED_UNDERLINE: Self = Self(1 << 9);
    /// Underlined with dashes.
    pub const DASHED_UNDERLINE: Self = Self(1 << 10);

    /// Whether all of `other` are set.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set as bits, in the order of the constants.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The set without what is in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

impl std::ops::BitOr for Attributes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a piece of text looks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Style {
    /// Colour of the text.
    pub foreground: Colour,
    /// Colour behind it.
    pub background: Colour,
    /// Colour of its underline, where the program chose one.
    pub underline: Option<Colour>,
    /// Bold, italic and so on.
    pub attributes: Attributes,
    /// Where it links to (OSC 8).
    pub link: Option<Arc<str>>,
}

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// The text; a wide character is one character here.
    pub text: String,
    /// How it looks.
    pub style: Style,
}

/// Which attribute is which flag of the engine.
const ATTRIBUTES: [(Attributes, Flags); 11] = [
    (Attributes::BOLD, Flags::BOLD),
    (Attributes::DIM, Flags::DIM),
    (Attributes::ITALIC, Flags::ITALIC),
    (Attributes::UNDERLINE, Flags::UNDERLINE),
    (Attributes::INVERSE, Flags::INVERSE),
    (Attributes::HIDDEN, Flags::HIDDEN),
    (Attributes::STRIKEOUT, Flags::STRIKEOUT),
    (Attributes::DOUBLE_UNDERLINE, Flags::DOUBLE_UNDERLINE),
    (Attributes::CURLY_UNDERLINE, Flags::UNDERCURL),
    (Attributes::DOTTED_UNDERLINE, Flags::DOTTED_UNDERLINE),
    (Attributes::DASHED_UNDERLINE, Flags::DASHED_UNDERLINE),
];

/// Flags of a cell that say where it stands and not how it looks.
pub(crate) const LAYOUT: Flags = Flags::WRAPLINE
    .union(Flags::WIDE_CHAR)
    .union(Flags::WIDE_CHAR_SPACER)
    .union(Flags::LEADING_WIDE_CHAR_SPACER);

/// Cells that only fill the room of a wide character.
pub(crate) const SPACER: Flags = Flags::WIDE_CHAR_SPACER.union(Flags::LEADING_WIDE_CHAR_SPACER);

pub(crate) const DEFAULT_FOREGROUND: Color = Color::Named(NamedColor::Foreground);
pub(crate) const DEFAULT_BACKGROUND: Color = Color::Named(NamedColor::Background);

pub(crate) fn attributes(flags: Flags) -> Attributes {
    if flags.difference(LAYOUT).is_empty() {
        return Attributes::default();
    }
    let mut bits = 0;
    for (attribute, flag) in ATTRIBUTES {
        bits |= u16::from(flags.contains(flag)) * attribute.0;
    }
    Attributes(bits)
}

pub(crate) fn flags(attributes: Attributes) -> Flags {
    let set = ATTRIBUTES.iter().filter(|(attribute, _)| attributes.contains(*attribute));
    set.fold(Flags::empty(), |all, (_, flag)| all | *flag)
}

impl From<Color> for Colour {
    fn from(colour: Color) -> Self {
        match colour {
            Color::Indexed(index) => Self::Indexed(index),
            Color::Spec(Rgb { r, g, b }) => Self::Rgb(r, g, b),
            Color::Named(_) => Self::Default,
        }
    }
}

impl Colour {
    /// The engine's form; `default` is what stands for the terminal's own.
    pub(crate) fn to_alacritty(self, default: Color) -> Color {
        match self {
            Self::Default => default,
            Self::Indexed(index) => Color::Indexed(index),
            Self::Rgb(r, g, b) => Color::Spec(Rgb { r, g, b }),
        }
    }
}

impl From<&Cell> for Style {
    fn from(cell: &Cell) -> Self {
        Self {
            foreground: cell.fg.into(),
            background: cell.bg.into(),
            underline: cell.underline_color().map(Colour::from),
            attributes: attributes(cell.flags),
            link: cell.hyperlink().map(|link| Arc::from(link.uri())),
        }
    }
}

/// Whether two cells look the same, without building their styles.
#[inline]
pub(crate) fn same_style(a: &Cell, b: &Cell) -> bool {
    a.fg == b.fg
        && a.bg == b.bg
        && a.flags.symmetric_difference(b.flags).difference(LAYOUT).is_empty()
        && ((a.extra.is_none() && b.extra.is_none()) || same_extra(a, b))
}

#[cold]
fn same_extra(a: &Cell, b: &Cell) -> bool {
    a.underline_color() == b.underline_color() && a.hyperlink() == b.hyperlink()
}

/// Whether a cell shows nothing at all: no character and the terminal's own background.
#[inline]
pub(crate) fn is_blank(cell: &Cell) -> bool {
    const SEEN: Flags = Flags::ALL_UNDERLINES.union(Flags::INVERSE).union(Flags::STRIKEOUT);
    cell.c == ' '
        && cell.bg == DEFAULT_BACKGROUND
        && !cell.flags.intersects(SEEN.union(Flags::WIDE_CHAR_SPACER))
        && cell.extra.is_none()
}
