//! How things look: a style for each thing that has a look of its own.

use std::ops::Range;

use patterm_screen::{Attributes, Colour, Style};
use toml::de::{DeTable, DeValue};

use super::reading::{Placed, Reading};

/// The looks in effect. By themselves they use only the terminal's own sixteen colours, so that they
/// suit light and dark ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Theme {
    /// Text of our own.
    pub(crate) text: Style,
    /// What is beside the matter, and lines.
    pub(crate) dim: Style,
    /// Names and headings.
    pub(crate) strong: Style,
    /// Keys, titles, borders of what is open.
    pub(crate) accent: Style,
    /// What is wrong, or asks for a person.
    pub(crate) bad: Style,
    /// The line at the bottom, and marks over panes.
    pub(crate) bar: Style,
    /// The selected row.
    pub(crate) selected: Style,
    /// States of processes.
    pub(crate) working: Style,
    pub(crate) idle: Style,
    pub(crate) blocked: Style,
    pub(crate) failed: Style,
}

impl Default for Theme {
    fn default() -> Self {
        let with = |attributes| Style { attributes, ..Style::default() };
        let coloured = |index| Style { foreground: Colour::Indexed(index), ..Style::default() };
        let bold = |style| Style { attributes: Attributes::BOLD, ..style };
        Self {
            text: Style::default(),
            dim: with(Attributes::DIM),
            strong: with(Attributes::BOLD),
            accent: bold(coloured(6)),
            bad: bold(coloured(1)),
            bar: with(Attributes::INVERSE),
            selected: with(Attributes::INVERSE),
            working: coloured(2),
            idle: Style::default(),
            blocked: coloured(3),
            failed: coloured(1),
        }
    }
}

/// The looks by their names in the file.
pub(super) const ROLES: [&str; 11] = [
    "text", "dim", "strong", "accent", "bad", "bar", "selected", "working", "idle", "blocked",
    "failed",
];

/// The sixteen colours by name.
const NAMES: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
    "bright-black",
    "bright-red",
    "bright-green",
    "bright-yellow",
    "bright-blue",
    "bright-magenta",
    "bright-cyan",
    "bright-white",
];

impl Theme {
    fn role(&mut self, name: &str) -> Option<&mut Style> {
        Some(match name {
            "text" => &mut self.text,
            "dim" => &mut self.dim,
            "strong" => &mut self.strong,
            "accent" => &mut self.accent,
            "bad" => &mut self.bad,
            "bar" => &mut self.bar,
            "selected" => &mut self.selected,
            "working" => &mut self.working,
            "idle" => &mut self.idle,
            "blocked" => &mut self.blocked,
            "failed" => &mut self.failed,
            _ => return None,
        })
    }
}

/// The looks of a file.
pub(super) fn read(reading: &mut Reading<'_>, top: &DeTable<'_>) -> Theme {
    let mut theme = Theme::default();
    let Some(table) = reading.table(top, "theme") else { return theme };
    reading.refuse_unknown(table, "in [theme]", &ROLES);
    for (name, value) in table {
        let Some(style) = theme.role(name.get_ref()) else { continue };
        match value.get_ref() {
            DeValue::Table(parts) => {
                let within = "of a look";
                reading.refuse_unknown(parts, within, &["text", "background"]);
                let text = parts.get("text").and_then(|value| colour(reading, value));
                let background = parts.get("background").and_then(|value| colour(reading, value));
                paint(style, text, background);
            }
            _ => paint(style, colour(reading, value), None),
        }
    }
    theme
}

/// Gives a look its colours. What was told by dimming is told by the colour then; and a background
/// takes the place of turning the colours around.
fn paint(style: &mut Style, text: Option<Colour>, background: Option<Colour>) {
    if let Some(text) = text {
        style.foreground = text;
        style.attributes = style.attributes.without(Attributes::DIM);
    }
    if let Some(background) = background {
        style.background = background;
        style.attributes = style.attributes.without(Attributes::INVERSE);
    }
}

fn colour(reading: &mut Reading<'_>, value: Placed<'_>) -> Option<Colour> {
    let at: Range<usize> = value.span();
    let found = match value.get_ref() {
        DeValue::String(text) => named(text),
        DeValue::Integer(number) if number.radix() == 10 => {
            number.as_str().parse().ok().map(Colour::Indexed)
        }
        _ => None,
    };
    if found.is_none() {
        let names = NAMES[..8].join(", ");
        let message = format!(
            "this takes a colour: {names}, each also with bright- before it, 0 to 255, \"#rrggbb\" \
             or \"none\""
        );
        reading.fault(&at, message);
    }
    found
}

fn named(text: &str) -> Option<Colour> {
    if text == "none" {
        return Some(Colour::Default);
    }
    if let Some(at) = NAMES.iter().position(|name| *name == text) {
        return u8::try_from(at).ok().map(Colour::Indexed);
    }
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| plain)?;
    let [_, red, green, blue] = number.to_be_bytes();
    Some(Colour::Rgb(red, green, blue))
}
