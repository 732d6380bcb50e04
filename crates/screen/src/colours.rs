//! Colours that a program has changed: entries of the palette, the terminal's own foreground and background, and
//! others. They apply to its pane alone; what it has not changed is up to the user's terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::style::{Colour, Span, Style};

pub(crate) type Rgb = (u8, u8, u8);

/// Colours of the palette.
const PALETTE: usize = 256;

/// Colours for bold, underlined, blinking, reversed and italic text. Like xterm by default, nothing is drawn in them.
const SPECIAL: usize = 5;

/// Foreground, background and cursor (OSC 10 to 12), and those of pointers and selections (13 to 19), of which only
/// the first two are drawn here.
const DYNAMIC: usize = 10;

const FOREGROUND: Rgb = (0xd8, 0xd8, 0xd8);
const BACKGROUND: Rgb = (0x18, 0x18, 0x18);

/// One of the colours that have a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// OSC 4.
    Palette(u8),
    /// OSC 5, and OSC 4 with numbers after those of the palette.
    Special(u8),
    /// OSC 10 to 19, counted from 10.
    Dynamic(u8),
}

impl Slot {
    /// The colour with this number of OSC 4.
    pub(crate) fn indexed(number: usize) -> Option<Self> {
        match number.checked_sub(PALETTE) {
            None => u8::try_from(number).ok().map(Self::Palette),
            Some(special) => Self::special(special),
        }
    }

    /// The colour with this number of OSC 5.
    pub(crate) fn special(number: usize) -> Option<Self> {
        (number < SPECIAL).then_some(Self::Special(number as u8))
    }

    /// The colour that this OSC sets; `None` if it sets none.
    pub(crate) fn dynamic(code: usize) -> Option<Self> {
        let number = code.checked_sub(10)?;
        (number < DYNAMIC).then_some(Self::Dynamic(number as u8))
    }

    fn place(self) -> usize {
        match self {
            Self::Palette(index) => usize::from(index),
            Self::Special(number) => PALETTE + usize::from(number),
            Self::Dynamic(number) => PALETTE + SPECIAL + usize::from(number),
        }
    }

    /// What is reported for a colour that was not changed. The real one is that of the user's terminal.
    fn default_colour(self) -> Rgb {
        match self {
            Self::Palette(index) => xterm_colour(index),
            // Backgrounds: of the terminal, the pointer, Tektronix windows; text of selections.
            Self::Dynamic(1 | 4 | 6 | 9) => BACKGROUND,
            _ => FOREGROUND,
        }
    }
}

/// The colours that a program has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Colours(Option<Box<[Option<Rgb>; PALETTE + SPECIAL + DYNAMIC]>>);

impl Colours {
    pub(crate) fn get(&self, slot: Slot) -> Rgb {
        self.changed(slot).unwrap_or_else(|| slot.default_colour())
    }

    fn changed(&self, slot: Slot) -> Option<Rgb> {
        self.0.as_ref()?[slot.place()]
    }

    pub(crate) fn set(&mut self, slot: Slot, colour: Rgb) {
        let none = || Box::new([None; PALETTE + SPECIAL + DYNAMIC]);
        self.0.get_or_insert_with(none)[slot.place()] = Some(colour);
    }

    pub(crate) fn reset(&mut self, slot: Slot) {
        if let Some(all) = &mut self.0 {
            all[slot.place()] = None;
            if all.iter().all(Option::is_none) {
                self.0 = None;
            }
        }
    }

    /// All colours that are changed, by their places.
    pub(crate) fn all_changed(&self) -> impl Iterator<Item = (usize, Rgb)> + '_ {
        let all = self.0.iter().flat_map(|all| all.iter().enumerate());
        all.filter_map(|(place, colour)| Some((place, (*colour)?)))
    }

    /// Changes the colour in this place; `None` if there is no such place.
    pub(crate) fn set_place(&mut self, place: usize, colour: Rgb) -> Option<()> {
        let none = || Box::new([None; PALETTE + SPECIAL + DYNAMIC]);
        *self.0.get_or_insert_with(none).get_mut(place)? = Some(colour);
        Some(())
    }

    /// Resets the whole palette.
    pub(crate) fn reset_palette(&mut self) {
        (0..=u8::MAX).for_each(|index| self.reset(Slot::Palette(index)));
    }

    /// Resets all special colours.
    pub(crate) fn reset_special(&mut self) {
        (0..SPECIAL).filter_map(Slot::special).for_each(|slot| self.reset(slot));
    }

    /// The spans of a row of this many columns as they are drawn. If the program has changed the background, they fill
    /// the row.
    #[must_use]
    pub fn apply<'a>(&self, spans: &'a [Span], columns: u16) -> Cow<'a, [Span]> {
        if self.0.is_none() {
            return Cow::Borrowed(spans);
        }
        let apply = |span: &Span| Span { text: span.text.clone(), style: self.style(&span.style) };
        let mut spans: Vec<_> = spans.iter().map(apply).collect();
        if self.changed(Slot::Dynamic(1)).is_some() {
            let width: usize = spans.iter().map(|span| crate::text_width(&span.text)).sum();
            let text = " ".repeat(usize::from(columns).saturating_sub(width));
            spans.push(Span { text, style: self.style(&Style::default()) });
        }
        Cow::Owned(spans)
    }

    fn style(&self, style: &Style) -> Style {
        Style {
            foreground: self.colour(style.foreground, Slot::Dynamic(0)),
            background: self.colour(style.background, Slot::Dynamic(1)),
            underline: style.underline.map(|colour| self.colour(colour, Slot::Dynamic(0))),
            ..style.clone()
        }
    }

    fn colour(&self, colour: Colour, default: Slot) -> Colour {
        let changed = match colour {
            Colour::Default => self.changed(default),
            Colour::Indexed(index) => self.changed(Slot::Palette(index)),
            Colour::Rgb(..) => None,
        };
        changed.map_or(colour, |(r, g, b)| Colour::Rgb(r, g, b))
    }

    /// The sequences that change the same colours.
    pub(crate) fn sequences(&self) -> String {
        let mut text = String::new();
        let Some(all) = &self.0 else { return text };
        for (place, colour) in all.iter().enumerate() {
            let Some((r, g, b)) = colour else { continue };
            let _ = match place.checked_sub(PALETTE + SPECIAL) {
                None => write!(text, "\x1b]4;{place};"),
                Some(number) => write!(text, "\x1b]{};", 10 + number),
            };
            let _ = write!(text, "#{r:02x}{g:02x}{b:02x}\x1b\\");
        }
        text
    }
}

/// Reads a colour as X11 writes it: `#` with one to four digits for each part, of which the first two count, or
/// `rgb:` with parts that are scaled. Colours by name, and those that depend on a screen's calibration, are unknown.
pub(crate) fn parse(text: &[u8]) -> Option<Rgb> {
    let text = std::str::from_utf8(text).ok()?;
    let number = |digits: &str| {
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok()?;
        (is_hex && digits.len() <= 4).then_some(number)
    };
    if let Some(digits) = text.strip_prefix('#') {
        let length = digits.len() / 3;
        if digits.len() % 3 != 0 || !digits.is_ascii() {
            return None;
        }
        let part = |index: usize| {
            let digits = digits.get(index * length..(index + 1) * length)?;
            Some((number(digits)? << (4 * (4 - length)) >> 8) as u8)
        };
        return Some((part(0)?, part(1)?, part(2)?));
    }
    let scaled = |digits: &str| {
        let most = (1 << (4 * digits.len())) - 1;
        Some(((number(digits)? * 255 + most / 2) / most) as u8)
    };
    let mut parts = text.strip_prefix("rgb:")?.split('/');
    let colour = (scaled(parts.next()?)?, scaled(parts.next()?)?, scaled(parts.next()?)?);
    parts.next().is_none().then_some(colour)
}

/// xterm's 256 colours.
fn xterm_colour(index: u8) -> Rgb {
    const BASE: [Rgb; 16] = [
        (0x00, 0x00, 0x00),
        (0xcd, 0x00, 0x00),
        (0x00, 0xcd, 0x00),
        (0xcd, 0xcd, 0x00),
        (0x00, 0x00, 0xee),
        (0xcd, 0x00, 0xcd),
        (0x00, 0xcd, 0xcd),
        (0xe5, 0xe5, 0xe5),
        (0x7f, 0x7f, 0x7f),
        (0xff, 0x00, 0x00),
        (0x00, 0xff, 0x00),
        (0xff, 0xff, 0x00),
        (0x5c, 0x5c, 0xff),
        (0xff, 0x00, 0xff),
        (0x00, 0xff, 0xff),
        (0xff, 0xff, 0xff),
    ];
    match index {
        0..16 => BASE[usize::from(index)],
        16..232 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_as_x11_writes_them() {
        for (text, expected) in [
            ("#fff", Some((0xf0, 0xf0, 0xf0))),
            ("#12aBff", Some((0x12, 0xab, 0xff))),
            ("#123456789", Some((0x12, 0x45, 0x78))),
            ("#1234567890ab", Some((0x12, 0x56, 0x90))),
            ("rgb:f/8/0", Some((0xff, 0x88, 0))),
            ("rgb:12/34/56", Some((0x12, 0x34, 0x56))),
            ("rgb:fff/000/800", Some((0xff, 0, 0x80))),
            ("rgb:ffff/8080/0000", Some((0xff, 0x80, 0))),
            ("", None),
            ("#", None),
            ("#12345", None),
            ("#123456789012345", None),
            ("#+1+2+3", None),
            ("#éé", None),
            ("rgb:1/2", None),
            ("rgb:1/2/3/4", None),
            ("rgb:1//3", None),
            ("rgb:12345/1/1", None),
            ("rgb:+1/1/1", None),
            ("rgbi:1/1/1", None),
            ("red", None),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn resetting_the_last_one_frees_the_table() {
        let mut colours = Colours::default();
        colours.set(Slot::Palette(7), (1, 2, 3));
        colours.set(Slot::Special(4), (4, 5, 6));
        colours.set(Slot::Dynamic(9), (7, 8, 9));
        assert_eq!(
            colours.sequences(),
            "\x1b]4;7;#010203\x1b\\\x1b]4;260;#040506\x1b\\\x1b]19;#070809\x1b\\"
        );
        colours.reset_palette();
        colours.reset_special();
        assert_ne!(colours, Colours::default());
        colours.reset(Slot::Dynamic(9));
        assert_eq!(colours, Colours::default());
    }
}
