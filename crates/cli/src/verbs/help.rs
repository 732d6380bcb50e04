//! The command line, and `patterm --help` with the verbs in groups.

use clap::{Command, CommandFactory, FromArgMatches, Parser};

use super::{GROUPS, Verb};

/// Notes on all verbs.
const NOTES: &str = "Without a command, patterm shows this folder's project on the terminal.\n\
    An ID may be an id, a unique name, or the start of one.\n\
    Exit codes: 0 success, 1 failure (the reason is on standard error), 2 wrong usage.";

/// The terminal in which a team of coding agents works.
#[derive(Debug, Parser)]
#[command(name = "patterm", version, about, disable_help_subcommand = true, after_help = NOTES)]
struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// Parses the command line. Help and wrong usage end the program here.
pub(crate) fn parse() -> Option<Verb> {
    let matches = command().get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).verb
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
    fn the_definitions_are_consistent() {
        command().debug_assert();
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
