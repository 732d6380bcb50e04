//! What verbs print. A reader that has had enough is no failure, and the verb goes on with what it
//! does; anything else that keeps words from being written is.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

/// Why something was not written.
static UNSAID: OnceLock<io::Error> = OnceLock::new();

/// Prints a verb's own words.
pub(crate) fn say(text: &str) {
    say_bytes(format!("{}\n", text.trim_end()).as_bytes());
}

/// Prints words of our own that must be seen: in red where somebody reads them on a terminal.
pub(crate) fn say_red(text: &str) {
    say(&red(text));
}

/// Words of our own in red, where standard output is a terminal and its user has nothing against it.
pub(crate) fn red(text: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match io::stdout().is_terminal() && !plain {
        true => format!("\x1b[31m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Prints bytes as they are; false when nobody reads any more.
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
