//! The theme: a style for each element.

use std::ops::Range;

use patterm_screen::{Attributes, Colour, Style};
use toml::de::{DeTable, DeValue};

use super::reader::{SettingsReader, SpannedValue};

/// The styles in effect. The default uses only the terminal's own sixteen colours, so that it suits light and
/// dark terminals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Theme {
    /// The TUI's own text.
    pub(crate) text: Style,
    /// Secondary text, and lines.
    pub(crate) dim: Style,
    /// Names and headings.
    pub(crate) strong: Style,
    /// Keys, titles, and the borders of dialogs.
    pub(crate) accent: Style,
    /// Errors, and requests for attention.
    pub(crate) bad: Style,
    /// The status bar, and notes over panes.
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

/// The names of the styles in the file.
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

/// Reads the theme.
pub(super) fn read(reader: &mut SettingsReader<'_>, top: &DeTable<'_>) -> Theme {
    let mut theme = Theme::default();
    let Some(table) = reader.table(top, "theme") else { return theme };
    reader.reject_unknown(table, " in [theme]", &ROLES);
    for (name, value) in table {
        let Some(style) = theme.role(name.get_ref()) else { continue };
        match value.get_ref() {
            DeValue::Table(parts) => {
                reader.reject_unknown(parts, " in a style", &["text", "background"]);
                let text = parts.get("text").and_then(|value| colour(reader, value));
                let background = parts.get("background").and_then(|value| colour(reader, value));
                paint(style, text, background);
            }
            _ => paint(style, colour(reader, value), None),
        }
    }
    theme
}

/// Sets the colours of a style. A text colour replaces dimming, and a background replaces inverse video.
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

fn colour(reader: &mut SettingsReader<'_>, value: SpannedValue<'_>) -> Option<Colour> {
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
            "this must be a colour: {names}, or one of these with bright-, 0 to 255, \"#rrggbb\" or \
             \"none\""
        );
        reader.report(&at, message);
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
