//! Parses key names and encodes keys as bytes, in the modes that a program has set.

use std::str::FromStr;

use crate::modes::Modes;

/// A key name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no key {0:?}; known keys are enter, escape, tab, backspace, delete, insert, space, up, \
     down, left, right, home, end, page-up, page-down, f1 to f20 and any single character, each \
     with shift+, alt+, ctrl+ or super+ in front (C-c, ctrl-c and ^C work too)"
)]
pub struct UnknownKey(String);

/// A key without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyCode {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Insert.
    Insert,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow to the left.
    Left,
    /// Arrow to the right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// F1 to F20.
    Function(u8),
}

/// A key with its modifiers. Parsed from names such as `enter`, `shift+tab`, `ctrl+c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// The key.
    pub code: KeyCode,
    /// Shift is held.
    pub shift: bool,
    /// Alt is held.
    pub alt: bool,
    /// Control is held.
    pub ctrl: bool,
    /// Super is held.
    pub logo: bool,
}

impl From<KeyCode> for Key {
    fn from(code: KeyCode) -> Self {
        Self { code, shift: false, alt: false, ctrl: false, logo: false }
    }
}

impl FromStr for Key {
    type Err = UnknownKey;

    fn from_str(name: &str) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey(name.chars().take(64).collect());
        let mut key = Self::from(KeyCode::Enter);
        let mut rest = name;
        while let Some(after) = key.strip_modifier(rest) {
            rest = after;
        }
        key.code = code(rest).ok_or_else(unknown)?;
        if key.code == KeyCode::Tab && is_back_tab(rest) {
            key.shift = true;
        }
        // People write ctrl+c as `Ctrl+C` and `^C`; Shift counts only if it is spelled out.
        if let KeyCode::Char(letter) = &mut key.code
            && key.ctrl
            && !key.shift
        {
            letter.make_ascii_lowercase();
        }
        Ok(key)
    }
}

impl Key {
    /// Applies the modifier at the start of a name and returns the rest. `ctrl+c`, `ctrl-c`, `C-c` and
    /// `^C` are the same key.
    fn strip_modifier<'a>(&mut self, name: &'a str) -> Option<&'a str> {
        if let Some(after) = name.strip_prefix('^').filter(|after| !after.is_empty()) {
            self.ctrl = true;
            return Some(after);
        }
        let (modifier, after) = name.split_once(['+', '-'])?;
        // A plus or minus at the end is the key itself.
        if after.is_empty() {
            return None;
        }
        let dashed = name.as_bytes().get(modifier.len()) == Some(&b'-');
        match modifier.trim().to_ascii_lowercase().as_str() {
            "shift" => self.shift = true,
            "alt" | "option" | "meta" => self.alt = true,
            "ctrl" | "control" => self.ctrl = true,
            "super" | "cmd" | "command" | "win" => self.logo = true,
            "c" if dashed => self.ctrl = true,
            "m" | "a" if dashed => self.alt = true,
            "s" if dashed => self.shift = true,
            _ => return None,
        }
        Some(after)
    }
}

/// Whether this name of Tab means Tab with Shift.
fn is_back_tab(name: &str) -> bool {
    matches!(name.to_ascii_lowercase().as_str(), "btab" | "backtab")
}

fn code(name: &str) -> Option<KeyCode> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return (!only.is_control()).then_some(KeyCode::Char(only));
    }
    let mut plain = name.trim().to_ascii_lowercase();
    plain.retain(|c| c != '-' && c != '_');
    Some(match plain.as_str() {
        "enter" | "return" => KeyCode::Enter,
        "escape" | "esc" => KeyCode::Escape,
        "tab" | "btab" | "backtab" => KeyCode::Tab,
        "backspace" | "bspace" => KeyCode::Backspace,
        "delete" | "del" | "dc" => KeyCode::Delete,
        "insert" | "ins" | "ic" => KeyCode::Insert,
        "space" | "spacebar" => KeyCode::Char(' '),
        "plus" => KeyCode::Char('+'),
        "minus" => KeyCode::Char('-'),
        "up" | "arrowup" | "uparrow" => KeyCode::Up,
        "down" | "arrowdown" | "downarrow" => KeyCode::Down,
        "left" | "arrowleft" | "leftarrow" => KeyCode::Left,
        "right" | "arrowright" | "rightarrow" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" | "pgup" | "ppage" => KeyCode::PageUp,
        "pagedown" | "pgdn" | "pgdown" | "npage" => KeyCode::PageDown,
        _ => {
            let number = plain.strip_prefix('f')?.parse().ok()?;
            KeyCode::Function((1..=20).contains(&number).then_some(number)?)
        }
    })
}

/// The kitty keyboard's flags that change the bytes of a key press.
const DISAMBIGUATE: u8 = 1;
const ALTERNATES: u8 = 4;
const ALL_KEYS: u8 = 8;
const TEXT: u8 = 16;

impl Key {
    /// The bytes this key sends in these modes.
    #[must_use]
    pub fn encode(&self, modes: &Modes) -> Vec<u8> {
        let text = if modes.kitty_keyboard & (DISAMBIGUATE | ALL_KEYS) != 0 {
            self.kitty(modes.kitty_keyboard)
        } else {
            self.legacy(modes)
        };
        text.into_bytes()
    }

    /// The modifier parameter: 1 for none.
    fn modifiers(&self) -> u8 {
        1 + u8::from(self.shift)
            + 2 * u8::from(self.alt)
            + 4 * u8::from(self.ctrl)
            + 8 * u8::from(self.logo)
    }

    fn kitty(&self, flags: u8) -> String {
        let modifiers = self.modifiers();
        let all = flags & ALL_KEYS != 0;
        let (number, stays) = match self.code {
            KeyCode::Char(character) => return self.kitty_character(character, flags),
            KeyCode::Escape => (27, false),
            KeyCode::Enter => (13, !all && modifiers == 1),
            KeyCode::Tab => (9, !all && modifiers == 1),
            KeyCode::Backspace => (127, !all && modifiers == 1),
            // Its old form looks like a reply to a query.
            KeyCode::Function(3) => return numbered(13, modifiers),
            _ => return self.function(false, false),
        };
        if stays {
            return char::from(if number == 13 { b'\r' } else { number }).into();
        }
        if modifiers == 1 {
            format!("\x1b[{number}u")
        } else {
            format!("\x1b[{number};{modifiers}u")
        }
    }

    fn kitty_character(&self, character: char, flags: u8) -> String {
        let lower = lower(character);
        let shift = self.shift || lower != character;
        let upper = if shift { upper(lower) } else { lower };
        let modifiers = Self { shift, ..*self }.modifiers();
        let text_key = !self.alt && !self.ctrl && !self.logo;
        if text_key && flags & ALL_KEYS == 0 {
            return upper.into();
        }
        let mut text = format!("\x1b[{}", u32::from(lower));
        if flags & ALTERNATES != 0 && upper != lower {
            text.push_str(&format!(":{}", u32::from(upper)));
        }
        let with_text = flags & TEXT != 0 && flags & ALL_KEYS != 0 && text_key;
        if modifiers > 1 || with_text {
            text.push(';');
        }
        if modifiers > 1 {
            text.push_str(&modifiers.to_string());
        }
        if with_text {
            text.push_str(&format!(";{}", u32::from(upper)));
        }
        text.push('u');
        text
    }

    fn legacy(&self, modes: &Modes) -> String {
        let modifiers = self.modifiers();
        let (plain, number) = match self.code {
            KeyCode::Char(character) => return self.legacy_character(character, modes),
            KeyCode::Enter if modes.newline => ("\r\n", 13),
            KeyCode::Enter => ("\r", 13),
            KeyCode::Escape => ("\x1b", 27),
            KeyCode::Tab if modifiers == 2 => return "\x1b[Z".into(),
            KeyCode::Tab => ("\t", 9),
            KeyCode::Backspace if self.ctrl && modes.modify_other_keys == 0 => ("\x08", 127),
            KeyCode::Backspace if modes.backspace_sends_bs => ("\x08", 127),
            KeyCode::Backspace => ("\x7f", 127),
            _ => return self.function(modes.application_cursor, true),
        };
        if modifiers > 1 && modes.modify_other_keys > 0 {
            return other(modifiers, number);
        }
        format!("{}{plain}", if self.alt { "\x1b" } else { "" })
    }

    fn legacy_character(&self, character: char, modes: &Modes) -> String {
        let shift = self.shift || lower(character) != character;
        let held = Self { shift, ..*self }.modifiers();
        let typed = if self.shift { upper(character) } else { character };
        let control = self.ctrl.then(|| control(character)).flatten();
        let well_known = !self.ctrl || control.is_some();
        let escaped = match modes.modify_other_keys {
            0 => false,
            1 => !well_known || (self.ctrl && shift),
            _ => self.ctrl || self.alt,
        };
        if escaped {
            return other(held, u32::from(typed));
        }
        format!("{}{}", if self.alt { "\x1b" } else { "" }, control.unwrap_or(typed))
    }

    /// Keys that have a sequence of their own in every mode.
    fn function(&self, application: bool, old: bool) -> String {
        let modifiers = self.modifiers();
        let letter = match self.code {
            KeyCode::Up => 'A',
            KeyCode::Down => 'B',
            KeyCode::Right => 'C',
            KeyCode::Left => 'D',
            KeyCode::Home => 'H',
            KeyCode::End => 'F',
            KeyCode::Function(number @ 1..=4) => {
                let letter = char::from(b'P' + number - 1);
                return lettered(letter, modifiers, old);
            }
            KeyCode::Insert => return numbered(2, modifiers),
            KeyCode::Delete => return numbered(3, modifiers),
            KeyCode::PageUp => return numbered(5, modifiers),
            KeyCode::PageDown => return numbered(6, modifiers),
            KeyCode::Function(number) => {
                const NUMBERS: [u8; 16] =
                    [15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34];
                let index = usize::from(number.clamp(5, 20) - 5);
                return numbered(NUMBERS[index], modifiers);
            }
            _ => return String::new(),
        };
        lettered(letter, modifiers, application)
    }
}

fn lettered(letter: char, modifiers: u8, single_shift: bool) -> String {
    match (modifiers, single_shift) {
        (1, true) => format!("\x1bO{letter}"),
        (1, false) => format!("\x1b[{letter}"),
        _ => format!("\x1b[1;{modifiers}{letter}"),
    }
}

fn numbered(number: u8, modifiers: u8) -> String {
    if modifiers == 1 { format!("\x1b[{number}~") } else { format!("\x1b[{number};{modifiers}~") }
}

/// A key in the form of modifyOtherKeys.
fn other(modifiers: u8, number: u32) -> String {
    format!("\x1b[27;{modifiers};{number}~")
}

/// The control character for Control and this character.
fn control(character: char) -> Option<char> {
    let byte = u8::try_from(character).ok()?.to_ascii_lowercase();
    Some(char::from(match byte {
        b'a'..=b'z' => byte - b'a' + 1,
        b' ' | b'@' | b'2' => 0,
        b'[' | b'3' => 0x1b,
        b'\\' | b'4' => 0x1c,
        b']' | b'5' => 0x1d,
        b'^' | b'~' | b'6' => 0x1e,
        b'_' | b'-' | b'/' | b'7' => 0x1f,
        b'?' | b'8' => 0x7f,
        _ => return None,
    }))
}

/// The lower-case letter, if there is exactly one.
fn lower(character: char) -> char {
    let mut small = character.to_lowercase();
    small.next().filter(|_| small.next().is_none()).unwrap_or(character)
}

/// The upper-case letter, if there is exactly one.
fn upper(character: char) -> char {
    let mut capital = character.to_uppercase();
    capital.next().filter(|_| capital.next().is_none()).unwrap_or(character)
}
