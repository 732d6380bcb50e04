//! `patterm complete`: prints completions for the shells' scripts. They come from the definitions of all verbs, from
//! a running server or from disk. It starts nothing, and prints nothing if anything fails.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Args, Command, ValueEnum};

use super::help::{self, START_FOLDER};
use crate::complete::{Candidate, CandidateKind};
use crate::print::print_bytes;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct CompleteVerb {
    /// How candidates are printed
    #[arg(long, value_enum)]
    shell: Shell,
    /// The index of the word to complete; 0 is the program's name
    #[arg(long)]
    index: usize,
    /// The words of the command line
    #[arg(last = true)]
    words: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Fish,
    Zsh,
}

impl CompleteVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let words: Vec<_> =
            self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let current = words.get(self.index).cloned().unwrap_or_default();
        let before = words.get(1..self.index.min(words.len())).unwrap_or_default();
        let mut text = String::new();
        for candidate in candidates(before, &current) {
            if candidate.value.starts_with(&current) && !candidate.value.contains(['\n', '\t']) {
                text += &line(&candidate, self.shell);
            }
        }
        print_bytes(text.as_bytes());
        Ok(())
    }
}

/// A candidate as the shell's script reads it.
fn line(candidate: &Candidate, shell: Shell) -> String {
    let Candidate { value, help } = candidate;
    let help = help.replace(['\n', '\t'], " ");
    match shell {
        Shell::Bash => format!("{value}\n"),
        Shell::Fish => format!("{value}\t{help}\n"),
        // `_describe` splits at the first colon that is not escaped.
        Shell::Zsh if help.is_empty() => format!("{}\n", value.replace(':', "\\:")),
        Shell::Zsh => format!("{}:{help}\n", value.replace(':', "\\:")),
    }
}

/// Where on the command line the word to complete is.
struct Place<'a> {
    /// The verb so far.
    command: &'a Command,
    /// Its full name, such as `token new`.
    path: String,
    /// The option whose value is completed.
    option: Option<&'a Arg>,
    /// How many positional arguments are before the word.
    positionals: usize,
    /// The folder given with `-C`.
    folder: Option<PathBuf>,
    /// After `--`, everything is an argument.
    only_arguments: bool,
}

/// Reads the words before the one to complete.
fn place<'a>(root: &'a Command, before: &[String]) -> Place<'a> {
    let mut place = Place {
        command: root,
        path: String::new(),
        option: None,
        positionals: 0,
        folder: None,
        only_arguments: false,
    };
    for word in before {
        if let Some(option) = place.option.take() {
            if option.get_id() == START_FOLDER {
                place.folder = Some(word.into());
            }
            continue;
        }
        if place.only_arguments {
            place.positionals += 1;
        } else if word == "--" {
            place.only_arguments = true;
        } else if word.starts_with('-') && word.len() > 1 {
            let name = word.trim_start_matches('-');
            let is_it = |arg: &&Arg| {
                arg.get_long() == Some(name)
                    || arg.get_short().is_some_and(|c| name == c.to_string())
            };
            let known = || place.command.get_arguments().chain(root.get_arguments());
            place.option = known().find(is_it).filter(|arg| takes_value(arg));
        } else if let Some(verb) = place.command.find_subcommand(word) {
            place.path = format!("{} {}", place.path, verb.get_name()).trim().to_owned();
            (place.command, place.positionals) = (verb, 0);
        } else {
            place.positionals += 1;
        }
    }
    place
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Everything that could replace the current word.
fn candidates(before: &[String], current: &str) -> Vec<Candidate> {
    let root = help::command();
    let place = place(&root, before);
    if let Some(option) = place.option {
        return values(&place, option);
    }
    if current.starts_with('-') && !place.only_arguments {
        return options(&root, &place);
    }
    if place.command.has_subcommands() && place.positionals == 0 {
        let visible = place.command.get_subcommands().filter(|verb| !verb.is_hide_set());
        return visible
            .map(|verb| {
                let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
                Candidate { value: verb.get_name().to_owned(), help: about }
            })
            .collect();
    }
    let positionals: Vec<_> = place.command.get_positionals().collect();
    // The last one may take any number of values; so does the first of `send ID… TEXT`.
    let at = place.positionals.min(positionals.len().saturating_sub(1));
    positionals.get(at).map(|arg| values(&place, arg)).unwrap_or_default()
}

fn options(root: &Command, place: &Place<'_>) -> Vec<Candidate> {
    let own = place.command.get_arguments();
    let global = root.get_arguments().filter(|arg| arg.is_global_set());
    let mut all = Vec::new();
    for arg in own.chain(global).filter(|arg| !arg.is_hide_set() && !arg.is_positional()) {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let long = arg.get_long().map(|long| format!("--{long}"));
        let value = long.or_else(|| arg.get_short().map(|short| format!("-{short}")));
        all.extend(value.map(|value| Candidate { value, help }));
    }
    all.push(Candidate { value: "--help".into(), help: "Print help".into() });
    all.dedup_by(|a, b| a.value == b.value);
    all
}

/// The values of an argument. None for files: the shells complete those themselves.
fn values(place: &Place<'_>, arg: &Arg) -> Vec<Candidate> {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let visible = possible.iter().filter(|value| !value.is_hide_set());
        return visible.map(possible_value).collect();
    }
    let value_name = arg.get_value_names().and_then(|names| names.first()).map(AsRef::as_ref);
    let kind = match (place.path.as_str(), arg.get_id().as_str(), value_name) {
        ("message", _, Some("ID")) => CandidateKind::Agents,
        ("attach", _, _) => CandidateKind::ProcessesAndProjects,
        ("start", _, _) => CandidateKind::ProcessesAndDeclared,
        ("up" | "down", _, Some("NAME")) => CandidateKind::DeclaredAndGroups,
        (_, _, Some("ID")) => CandidateKind::Processes,
        ("agent", "preset", _) => CandidateKind::Presets,
        ("pad", "name", _) => CandidateKind::Pads,
        ("hooks test", "name", _) => CandidateKind::Hooks,
        ("servers restart", "name", _) | ("token new", "servers", _) => CandidateKind::Servers,
        _ => return Vec::new(),
    };
    kind.candidates(place.folder.as_deref())
}

fn possible_value(value: &PossibleValue) -> Candidate {
    let help = value.get_help().map(ToString::to_string).unwrap_or_default();
    Candidate { value: value.get_name().to_owned(), help }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The candidates that begin with the last word.
    fn complete(line: &str) -> Vec<String> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let (current, before) = words.split_last().unwrap();
        let all = candidates(before, current).into_iter().map(|candidate| candidate.value);
        all.filter(|value| value.starts_with(current.as_str())).collect()
    }

    #[test]
    fn verbs_flags_and_values_come_from_the_definitions() {
        assert_eq!(complete("rest"), ["restart", "restore"]);
        assert_eq!(complete("comp"), ["completions"], "hidden verbs are not offered");
        assert_eq!(complete("token re"), ["revoke"]);
        assert_eq!(complete("token new --re"), ["--read-only"]);
        assert_eq!(complete("-C /tmp rest"), ["restart", "restore"]);
        assert_eq!(complete("completions ba"), ["bash"]);
        assert_eq!(complete("close --ex"), ["--exited"]);
        assert_eq!(complete("ps -"), ["--json", "-C", "--help"]);
        assert_eq!(complete("run -- --na"), [""; 0], "arguments of another program");
    }

    #[test]
    fn each_shell_gets_its_own_form() {
        let candidate = Candidate { value: "a:b".into(), help: "two\tlines\n".into() };
        assert_eq!(line(&candidate, Shell::Bash), "a:b\n");
        assert_eq!(line(&candidate, Shell::Fish), "a:b\ttwo lines \n");
        assert_eq!(line(&candidate, Shell::Zsh), "a\\:b:two lines \n");
    }
}
