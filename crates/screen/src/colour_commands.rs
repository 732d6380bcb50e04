//! The commands (OSC) that change colours, query and reset them. Queries are answered with numbers.

use crate::colours::{self, Slot};
use crate::emulator::Emulator;

impl Emulator {
    /// Applies a command about colours; `false` if its number is that of another.
    pub(crate) fn colour_command(&mut self, code: usize, text: &[u8], by_bell: bool) -> bool {
        let parts = text.split(|&byte| byte == b';');
        match code {
            4 => self.pairs(code, text, Slot::indexed, by_bell),
            5 => self.pairs(code, text, Slot::special, by_bell),
            // Several values are for this colour and the next ones.
            10..=19 => {
                for (code, value) in (code..).zip(parts) {
                    let Some(slot) = Slot::dynamic(code) else { break };
                    self.colour(slot, value, &code.to_string(), by_bell);
                }
            }
            104 if text.is_empty() => self.colours.reset_palette(),
            104 => parts.filter_map(number).filter_map(Slot::indexed).for_each(|slot| {
                self.colours.reset(slot);
            }),
            105 if text.is_empty() => self.colours.reset_special(),
            105 => parts.filter_map(number).filter_map(Slot::special).for_each(|slot| {
                self.colours.reset(slot);
            }),
            110..=119 => {
                if let Some(slot) = Slot::dynamic(code - 100) {
                    self.colours.reset(slot);
                }
            }
            _ => return false,
        }
        self.changed = true;
        true
    }

    /// Pairs of a colour's number and a value.
    fn pairs(&mut self, code: usize, text: &[u8], slot: fn(usize) -> Option<Slot>, by_bell: bool) {
        let mut parts = text.split(|&byte| byte == b';');
        while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            if let Some(index) = number(name)
                && let Some(slot) = slot(index)
            {
                self.colour(slot, value, &format!("{code};{index}"), by_bell);
            }
        }
    }

    /// Sets a colour, or reports it with the terminator of the query. A value that is unknown changes nothing.
    fn colour(&mut self, slot: Slot, value: &[u8], name: &str, by_bell: bool) {
        if value == b"?" {
            let (r, g, b) = self.colours.get(slot);
            let end = if by_bell { "\x07" } else { "\x1b\\" };
            let value = format!("rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}");
            self.reply(&format!("\x1b]{name};{value}{end}"));
        } else if let Some(colour) = colours::parse(value) {
            self.colours.set(slot, colour);
        }
    }
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
