//! `patterm --help`: the verbs in groups.

use clap::{Command, CommandFactory};

use crate::Arguments;
use crate::verbs::GROUPS;

/// The definition of all verbs and flags, with grouped help.
pub(crate) fn command() -> Command {
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
