//! The arguments of a hook's command. A placeholder is a whole argument, so that a text of an agent can never become
//! part of a command line.

use std::fmt;

use super::HookAction;
use crate::project_file::check::Checked;
use crate::project_file::fault::nearest;

/// Shells, whose argument after `-c` is a program.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];

/// An argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookArgument {
    /// As it is written.
    Literal(String),
    /// Replaced by a text about the event.
    Placeholder(Placeholder),
}

/// Declares the placeholders with their names.
macro_rules! placeholders {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// What is put in for an argument in braces.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Placeholder {
            $($(#[$doc])* $variant,)*
        }

        impl Placeholder {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name, without braces.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

placeholders! {
    /// The label of the process, or the name of the project.
    Name = "name",
    /// What happened, as a sentence.
    Summary = "summary",
    /// The type of the event.
    Type = "type",
    /// The id of the process.
    ProcessId = "process_id",
    /// The run of the process.
    Run = "run",
    /// When it happened.
    Time = "time",
    /// The number of the event.
    Seq = "seq",
    /// The name of the project's folder.
    Project = "project",
}

impl fmt::Display for HookArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(text) => f.write_str(text),
            Self::Placeholder(placeholder) => write!(f, "{{{}}}", placeholder.name()),
        }
    }
}

/// Reads a command.
pub(super) fn arguments(
    checked: &mut Checked<'_>,
    path: &str,
    argv: Vec<String>,
) -> Option<HookAction> {
    let mut arguments: Vec<HookArgument> = Vec::new();
    let mut is_valid = true;
    for (n, text) in argv.into_iter().enumerate() {
        match argument(&text, &arguments) {
            Ok(argument) => arguments.push(argument),
            Err((message, hint)) => {
                checked.fault(&format!("{path}[{n}]"), message, hint);
                is_valid = false;
            }
        }
    }
    (is_valid && !arguments.is_empty()).then_some(HookAction::Run(arguments))
}

type Mistake = (String, Option<String>);

fn argument(text: &str, before: &[HookArgument]) -> Result<HookArgument, Mistake> {
    if text.contains('\0') {
        return Err(("a command cannot contain NUL characters".into(), None));
    }
    if before.is_empty() && text.is_empty() {
        return Err(("the command does not name a program".into(), None));
    }
    let within = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let is_word =
        |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let Some(word) = within.filter(is_word) else {
        let part = Placeholder::ALL.iter().find(|p| text.contains(&format!("{{{}}}", p.name())));
        return match part {
            Some(part) => {
                let message = format!("`{{{}}}` must be an argument of its own", part.name());
                let hint = "in a script, use \"$PATTERM_EVENT_SUMMARY\" and such variables".into();
                Err((message, Some(hint)))
            }
            None => Ok(HookArgument::Literal(text.to_owned())),
        };
    };
    let Some(placeholder) = Placeholder::ALL.iter().find(|known| known.name() == word) else {
        let names = Placeholder::ALL.iter().map(|known| known.name());
        let hint = match nearest(word, names.clone()) {
            Some(meant) => format!("did you mean `{{{meant}}}`?"),
            None => {
                let names: Vec<_> = names.map(|name| format!("{{{name}}}")).collect();
                format!("there are {}", names.join(", "))
            }
        };
        return Err((format!("`{text}` is not a placeholder"), Some(hint)));
    };
    if before.is_empty() || is_program_text(before) {
        let message = format!("`{text}` would be run as a program; agents write such texts");
        return Err((message, Some("pass it as an argument of a program".into())));
    }
    Ok(HookArgument::Placeholder(*placeholder))
}

/// Whether the next argument is a program for a shell.
fn is_program_text(before: &[HookArgument]) -> bool {
    let text = |argument: Option<&HookArgument>| match argument {
        Some(HookArgument::Literal(text)) => text.clone(),
        _ => String::new(),
    };
    let program = text(before.first());
    let is_shell = SHELLS.contains(&program.rsplit('/').next().unwrap_or_default());
    let last = text(before.last());
    let is_option = last.starts_with('-') && !last.starts_with("--") && last.contains('c');
    is_shell && is_option
}
