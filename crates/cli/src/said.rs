//! What verbs print. A reader that has had enough is no failure, and the verb goes on with what it
//! does; anything else that keeps words from being written is.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use patterm_wire::printable;
use serde::Serialize;
use serde_json::Value;

pub(crate) use printable::one_line;

/// Why something was not written.
static UNSAID: OnceLock<io::Error> = OnceLock::new();

/// Prints a verb's own words. Names and texts of others may stand among them: whatever a terminal would
/// act on is spelt out, and each that must not begin a line of its own passes [`one_line`] before.
pub(crate) fn say(text: &str) {
    say_bytes(format!("{}\n", printable::lines(text.trim_end())).as_bytes());
}

/// Prints a value as JSON on one line.
pub(crate) fn say_json(value: &impl Serialize) -> anyhow::Result<()> {
    say_json_text(&serde_json::to_string(value)?);
    Ok(())
}

/// Prints a text that is JSON.
pub(crate) fn say_json_text(text: &str) {
    say_bytes(format!("{}\n", printable::json(text)).as_bytes());
}

/// Prints content that others wrote: unchanged for a program, escaped on a terminal. Returns false once
/// the reader is gone.
pub(crate) fn say_content(content: &str) -> bool {
    match io::stdout().is_terminal() {
        true => say_bytes(printable::lines(content).as_bytes()),
        false => say_bytes(content.as_bytes()),
    }
}

/// A string of an answer, for a place where one line is expected.
pub(crate) fn shown(value: &Value) -> String {
    one_line(value.as_str().unwrap_or_default())
}

/// A path, for a place where one line is expected.
pub(crate) fn shown_path(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

/// Prints the reason for a failure to standard error. If that cannot be written, the exit code still shows it.
pub(crate) fn complain(error: &anyhow::Error) {
    warn(&why(error));
}

/// Says something on standard error.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "patterm: {}", printable::lines(text));
}

/// Prints text that must be seen: escaped like all other text, and in red on a terminal.
pub(crate) fn say_red(text: &str) {
    let text = printable::lines(text.trim_end());
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let line = match io::stdout().is_terminal() && !plain {
        true => format!("\x1b[31m{text}\x1b[0m\n"),
        false => format!("{text}\n"),
    };
    say_bytes(line.as_bytes());
}

/// Prints bytes unchanged. Returns false once the reader is gone.
pub(crate) fn say_bytes(bytes: &[u8]) -> bool {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                let _ = UNSAID.set(error);
            }
            false
        }
    }
}

/// Whether all that was said was written, or was not wanted.
pub(crate) fn all() -> anyhow::Result<()> {
    match UNSAID.get() {
        Some(error) => anyhow::bail!("cannot write to standard output: {error}"),
        None => Ok(()),
    }
}

/// Why something failed, from the outermost reason to the innermost. Some reasons name the next one
/// themselves: that is then not told twice.
pub(crate) fn why(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for reason in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = reason;
        } else if !told.ends_with(&reason) {
            told = format!("{told}: {reason}");
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reason_is_told_twice() {
        let error = anyhow::anyhow!("no room").context("cannot write x: no room").context("failed");
        assert_eq!(why(&error), "failed: cannot write x: no room");
    }
}
