//! The style of text: colours, attributes, link. alacritty's cells are translated here, so that they are
//! not visible outside this crate.

use std::sync::Arc;

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

/// A colour as the program chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Colour {
    /// The terminal's own foreground or background.
    #[default]
    Default,
    /// One of the 256 palette colours.
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
    /// Blinking.
    pub const BLINK: Self = Self(1 << 11);
    /// With a line above.
    pub const OVERLINE: Self = Self(1 << 12);

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

    /// The set without those in `other`.
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

/// The style of a span of text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Style {
    /// Colour of the text.
    pub foreground: Colour,
    /// Colour behind it.
    pub background: Colour,
    /// Colour of its underline, if the program chose one.
    pub underline: Option<Colour>,
    /// Bold, italic and so on.
    pub attributes: Attributes,
    /// Where it links to (OSC 8).
    pub link: Option<Arc<str>>,
}

/// A span of text in one style.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// The text; a wide character is one character here.
    pub text: String,
    /// Its style.
    pub style: Style,
}

// alacritty's flags have sixteen bits, one of them free, and five of them are kinds of underline, of which a cell has
// at most one. Here three bits tell these kinds apart, and the others have a meaning that alacritty does not know.

/// The bits of the kind of underline.
pub(crate) const UNDERLINES: Flags =
    Flags::UNDERLINE.union(Flags::DOUBLE_UNDERLINE).union(Flags::UNDERCURL);
pub(crate) const DOTTED_UNDERLINE: Flags = Flags::UNDERLINE.union(Flags::DOUBLE_UNDERLINE);
pub(crate) const DASHED_UNDERLINE: Flags = Flags::UNDERLINE.union(Flags::UNDERCURL);
pub(crate) const BLINK: Flags = Flags::DOTTED_UNDERLINE;
pub(crate) const OVERLINE: Flags = Flags::DASHED_UNDERLINE;
/// Selective erasing leaves the cell alone (DECSCA, SPA).
pub(crate) const PROTECTED: Flags = Flags::from_bits_retain(1 << 15);

/// The attributes and their flags, and the bits that they are compared in.
const ATTRIBUTES: [(Attributes, Flags, Flags); 13] = [
    (Attributes::BOLD, Flags::BOLD, Flags::BOLD),
    (Attributes::DIM, Flags::DIM, Flags::DIM),
    (Attributes::ITALIC, Flags::ITALIC, Flags::ITALIC),
    (Attributes::UNDERLINE, Flags::UNDERLINE, UNDERLINES),
    (Attributes::INVERSE, Flags::INVERSE, Flags::INVERSE),
    (Attributes::HIDDEN, Flags::HIDDEN, Flags::HIDDEN),
    (Attributes::STRIKEOUT, Flags::STRIKEOUT, Flags::STRIKEOUT),
    (Attributes::DOUBLE_UNDERLINE, Flags::DOUBLE_UNDERLINE, UNDERLINES),
    (Attributes::CURLY_UNDERLINE, Flags::UNDERCURL, UNDERLINES),
    (Attributes::DOTTED_UNDERLINE, DOTTED_UNDERLINE, UNDERLINES),
    (Attributes::DASHED_UNDERLINE, DASHED_UNDERLINE, UNDERLINES),
    (Attributes::BLINK, BLINK, BLINK),
    (Attributes::OVERLINE, OVERLINE, OVERLINE),
];

/// Flags of a cell that describe its position, not its style.
pub(crate) const LAYOUT: Flags = Flags::WRAPLINE
    .union(Flags::WIDE_CHAR)
    .union(Flags::WIDE_CHAR_SPACER)
    .union(Flags::LEADING_WIDE_CHAR_SPACER);

/// Cells that only fill the columns of a wide character.
pub(crate) const SPACER: Flags = Flags::WIDE_CHAR_SPACER.union(Flags::LEADING_WIDE_CHAR_SPACER);

pub(crate) const DEFAULT_FOREGROUND: Color = Color::Named(NamedColor::Foreground);
pub(crate) const DEFAULT_BACKGROUND: Color = Color::Named(NamedColor::Background);

pub(crate) fn attributes(flags: Flags) -> Attributes {
    if flags.difference(LAYOUT).is_empty() {
        return Attributes::default();
    }
    let mut bits = 0;
    for (attribute, flag, mask) in ATTRIBUTES {
        bits |= u16::from(flags.intersection(mask) == flag) * attribute.0;
    }
    Attributes(bits)
}

pub(crate) fn flags(attributes: Attributes) -> Flags {
    let set = ATTRIBUTES.iter().filter(|(attribute, ..)| attributes.contains(*attribute));
    set.fold(Flags::empty(), |all, (_, flag, _)| all | *flag)
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
    /// Converts to alacritty's colour; `default` replaces [`Colour::Default`].
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

/// Whether two cells have the same style, without building it.
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

/// The style of a cell without a link and without another colour for its underline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimpleStyle {
    pub(crate) fg: Color,
    pub(crate) bg: Color,
    pub(crate) flags: Flags,
}

impl SimpleStyle {
    pub(crate) const PLAIN: Self =
        Self { fg: DEFAULT_FOREGROUND, bg: DEFAULT_BACKGROUND, flags: Flags::empty() };

    /// The style of a template; `None` if it is not a simple one.
    pub(crate) fn of(template: &Cell) -> Option<Self> {
        let Cell { fg, bg, flags, .. } = *template;
        template.extra.is_none().then_some(Self { fg, bg, flags })
    }

    /// A template with this style.
    pub(crate) fn template(self) -> Cell {
        Cell { fg: self.fg, bg: self.bg, flags: self.flags, ..Cell::default() }
    }

    /// Whether a blank with this style is visible.
    pub(crate) fn shows_blanks(self) -> bool {
        self.bg != DEFAULT_BACKGROUND || self.flags.intersects(SEEN_ON_BLANKS)
    }
}

/// Attributes that are visible without a character.
const SEEN_ON_BLANKS: Flags =
    UNDERLINES.union(OVERLINE).union(Flags::INVERSE).union(Flags::STRIKEOUT);

/// Whether a cell is blank: no character, and the default background.
#[inline]
pub(crate) fn is_blank(cell: &Cell) -> bool {
    cell.c == ' '
        && cell.bg == DEFAULT_BACKGROUND
        && !cell.flags.intersects(SEEN_ON_BLANKS.union(Flags::WIDE_CHAR_SPACER))
        // What is left of a mark, a link or the colour of an underline may be nothing.
        && (cell.extra.is_none()
            || (cell.zerowidth().is_none_or(<[char]>::is_empty) && cell.hyperlink().is_none()))
}
