//! The command line, and `patterm --help` with the verbs in groups.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Command, CommandFactory, FromArgMatches, Parser};
use patterm_wire::printable;

use super::{GROUPS, Verb};

/// Notes on all verbs.
const NOTES: &str = "Without a command, patterm shows this folder's project on the terminal.\n\
    An ID may be an id, a unique name, or a unique prefix of either.\n\
    Exit codes: 0 success, 1 failure (the reason is on standard error), 2 wrong usage; `wait` also \
    has its own.";

/// The id of `-C`. Clap gives the value of a global argument to every argument with the same id, so no verb may
/// have one.
pub(super) const START_FOLDER: &str = "start_folder";

/// The terminal in which a team of coding agents works.
#[derive(Debug, Parser)]
#[command(name = "patterm", version, about, disable_help_subcommand = true, after_help = NOTES)]
struct Arguments {
    /// Run as if patterm had been started in this folder
    #[arg(short = 'C', value_name = "DIR", id = START_FOLDER, global = true)]
    folder: Option<PathBuf>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// Parses the command line and changes to the folder of `-C`. Help and wrong usage end the program here.
pub(crate) fn parse() -> anyhow::Result<Option<Verb>> {
    let matches = command().try_get_matches().unwrap_or_else(|error| refuse(&error));
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&error));
    if let Some(folder) = &arguments.folder {
        std::env::set_current_dir(folder)
            .with_context(|| format!("cannot change to the folder {} (-C)", folder.display()))?;
    }
    Ok(arguments.verb)
}

/// Prints help or wrong usage, and ends the program.
fn refuse(error: &clap::Error) -> ! {
    match escaped(error) {
        None => error.exit(),
        Some(text) => {
            let _ = std::io::stderr().write_all(text.as_bytes());
            std::process::exit(error.exit_code())
        }
    }
}

/// The text of an error that quotes characters which a terminal would interpret; `None` if it has none.
fn escaped(error: &clap::Error) -> Option<String> {
    let text = error.render().to_string();
    let escaped = printable::lines(&text);
    (escaped != text).then_some(escaped)
}

/// The definition of all verbs and flags, with grouped help.
pub(super) fn command() -> Command {
    let command = Arguments::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}\n",
        groups(&command)
    );
    command.help_template(template)
}

fn groups(command: &Command) -> String {
    let about = |name: &str| {
        let verb = command.find_subcommand(name);
        verb.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default()
    };
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (title, names) in GROUPS {
        text += &format!("{title}:\n");
        for name in *names {
            text += &format!("  {name:<width$}  {}\n", about(name));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_usage_quotes_nothing_that_a_terminal_would_interpret() {
        let error = |word: &str| command().try_get_matches_from(["patterm", word]).unwrap_err();
        let text = escaped(&error("st\u{200b}op\u{e0041}")).unwrap();
        assert!(text.contains("st\\u{200b}op\\u{e0041}"), "{text}");
        assert_eq!(escaped(&error("nothing")), None);
    }

    #[test]
    fn the_definitions_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn no_verb_has_an_argument_with_the_id_of_the_folder_for_all_verbs() {
        for verb in Arguments::command().get_subcommands() {
            let clash = verb.get_arguments().any(|argument| argument.get_id() == START_FOLDER);
            assert!(!clash, "{} has an argument `{START_FOLDER}`; rename it", verb.get_name());
        }
        let folder = |words: &[&str]| {
            let matches = command().try_get_matches_from(words).unwrap();
            Arguments::from_arg_matches(&matches).unwrap().folder
        };
        assert_eq!(folder(&["patterm", "man", "pages"]), None);
        let there = Some(PathBuf::from("/there"));
        assert_eq!(folder(&["patterm", "-C", "/there", "man", "pages"]), there);
        assert_eq!(folder(&["patterm", "man", "-C", "/there", "pages"]), there);
    }

    #[test]
    fn every_visible_verb_is_in_one_group_and_fits_its_line() {
        let command = Arguments::command();
        let visible = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut visible: Vec<_> = visible.map(|verb| verb.get_name().to_owned()).collect();
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.to_vec()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
        for line in groups(&command).lines() {
            assert!(line.len() <= 80 && !line.trim_end().ends_with('.'), "{line}");
        }
    }
}
