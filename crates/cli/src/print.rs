//! What verbs print. A reader that closes its end is not an error, and the verb continues; any other reason
//! why output cannot be written is.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use patterm_wire::printable;
use serde::Serialize;

pub(crate) use printable::one_line;

/// Why output could not be written.
static WRITE_ERROR: OnceLock<io::Error> = OnceLock::new();

/// Prints text. It may contain third-party text: whatever a terminal would interpret is escaped, and names
/// that must not start a line of their own have to pass through [`one_line`] before.
pub(crate) fn print(text: &str) {
    print_bytes(format!("{}\n", printable::lines(text.trim_end())).as_bytes());
}

/// Prints a value as JSON on one line.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_json_text(&serde_json::to_string(value)?);
    Ok(())
}

/// Prints a JSON text. Returns false once the reader is gone.
pub(crate) fn print_json_text(text: &str) -> bool {
    print_bytes(format!("{}\n", printable::json(text)).as_bytes())
}

/// Prints third-party content: unchanged for a program, escaped on a terminal. Returns false once the
/// reader is gone.
pub(crate) fn print_content(content: &str) -> bool {
    match io::stdout().is_terminal() {
        true => print_bytes(printable::lines(content).as_bytes()),
        false => print_bytes(content.as_bytes()),
    }
}

/// A path for one line.
pub(crate) fn printable_path(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

/// Prints the reason for a failure to standard error. If that cannot be written, the exit code still shows
/// it.
pub(crate) fn report_error(error: &anyhow::Error) {
    warn(&error_chain(error));
}

/// Prints a warning to standard error.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "patterm: {}", printable::lines(text));
}

/// Prints text in red on a terminal, escaped like all other text.
pub(crate) fn print_red(text: &str) {
    let text = printable::lines(text.trim_end());
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let line = match io::stdout().is_terminal() && !plain {
        true => format!("\x1b[31m{text}\x1b[0m\n"),
        false => format!("{text}\n"),
    };
    print_bytes(line.as_bytes());
}

/// Prints bytes unchanged. Returns false once the reader is gone.
pub(crate) fn print_bytes(bytes: &[u8]) -> bool {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                let _ = WRITE_ERROR.set(error);
            }
            false
        }
    }
}

/// Fails if output could not be written.
pub(crate) fn check_written() -> anyhow::Result<()> {
    match WRITE_ERROR.get() {
        Some(error) => anyhow::bail!("cannot write to standard output: {error}"),
        None => Ok(()),
    }
}

/// An error with its causes, outermost first. A cause that the text before it already names is not
/// repeated.
pub(crate) fn error_chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_is_repeated() {
        let error =
            anyhow::anyhow!("no space").context("cannot write x: no space").context("failed");
        assert_eq!(error_chain(&error), "failed: cannot write x: no space");
    }
}
