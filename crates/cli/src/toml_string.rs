//! TOML strings.

use std::fmt::Write as _;

use patterm_wire::printable::is_active;

/// Quotes text as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if is_active(c) => {
                let _ = match u32::from(c) {
                    code @ ..=0xffff => write!(quoted, "\\u{code:04X}"),
                    code => write!(quoted, "\\U{code:08X}"),
                };
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_interpret_is_escaped_and_reads_back() {
        let text = "a\"\\\u{1b}\u{202e}\u{e0041}漢";
        let quoted = quoted(text);
        assert_eq!(quoted, "\"a\\\"\\\\\\u001B\\u202E\\U000E0041漢\"");
        let read: toml::Table = format!("a = {quoted}").parse().unwrap();
        assert_eq!(read["a"].as_str(), Some(text));
    }
}
