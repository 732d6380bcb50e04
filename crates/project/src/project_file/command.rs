//! Commands in a project file: a line for `sh -c`, or a program and its arguments.

use serde::Deserialize;

use super::check::Checked;
use super::schema::{COMMAND, Schema};

/// A command line, or an array of a program and its arguments.
pub(super) const COMMAND_OR_LINE: Schema = Schema::Either(&Schema::Text, &COMMAND);

/// A command as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawCommand {
    Line(String),
    Words(Vec<String>),
}

/// The program and its arguments; `path` is the key of the command.
pub(super) fn argv(checked: &mut Checked<'_>, path: &str, raw: RawCommand) -> Vec<String> {
    let argv = match raw {
        RawCommand::Line(line) => vec!["sh".into(), "-c".into(), line],
        RawCommand::Words(words) => words,
    };
    let is_empty = argv.first().is_none_or(|program| program.is_empty())
        || argv.last().is_some_and(|last| argv[0] == "sh" && last.trim().is_empty());
    if is_empty {
        checked.fault(path, "the command does not name a program".into(), None);
    }
    if argv.iter().any(|word| word.contains('\0')) {
        checked.fault(path, "a command cannot contain NUL characters".into(), None);
    }
    argv
}
