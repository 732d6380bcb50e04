//! The variables that programs get: those of the caller or of the server, without those that describe
//! another terminal or carry an identity.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use patterm_git::TARGET_VARIABLE;
pub use patterm_keeper::Environment;

/// Tells a program which pane it runs in: the project's key, a slash, the process id.
pub const PANE_VARIABLE: &str = "PATTERM_PANE";

/// The folder into which git writes traces for patterm. Where this is the value of [`TARGET_VARIABLE`], too, that one is
/// not the user's.
pub(crate) const OWN_TRACES_VARIABLE: &str = "PATTERM_GIT_TRACES";

/// How many files git writes into such a folder.
pub(crate) const MOST_TRACES_VARIABLE: &str = "GIT_TRACE2_MAX_FILES";

/// The prefix of patterm's own variables. Callers cannot pass them.
pub const OWN_PREFIX: &str = "PATTERM_";

/// Variables that identify a program's owner or lead it to a server. Only patterm sets them.
pub const IDENTITY: [&str; 5] = [
    "PATTERM_IDENTITY",
    "PATTERM_IDENTITY_FILE",
    PANE_VARIABLE,
    "PATTERM_PROJECT_KEY",
    "PATTERM_SOCKET",
];

/// Variables that describe the terminal, multiplexer, shell or supervisor around the caller.
const AROUND: [&str; 34] = [
    "ALACRITTY_LOG",
    "ALACRITTY_SOCKET",
    "ALACRITTY_WINDOW_ID",
    "COLUMNS",
    "INSIDE_EMACS",
    "ITERM_PROFILE",
    "ITERM_SESSION_ID",
    "LC_TERMINAL",
    "LC_TERMINAL_VERSION",
    "LINES",
    "NEXTEST",
    "NOTIFY_SOCKET",
    "OLDPWD",
    patterm_keeper::descriptors::LIMIT_VARIABLE,
    "PATTERM_LOG",
    "SHLVL",
    "STY",
    "TERMCAP",
    "TERMINATOR_UUID",
    "TERMINFO",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TILIX_ID",
    "TMUX",
    "TMUX_PANE",
    "VTE_VERSION",
    "WINDOW",
    "WINDOWID",
    "WT_PROFILE_ID",
    "WT_SESSION",
    "XTERM_LOCALE",
    "XTERM_VERSION",
    "_",
];

/// Prefixes of further such variables.
const AROUND_PREFIXES: [&str; 7] =
    ["GHOSTTY_", "GNOME_TERMINAL_", "KITTY_", "KONSOLE_", "VSCODE_SHELL_", "WEZTERM_", "ZELLIJ"];

/// Variables by which an agent's CLI marks its children. An agent outside patterm may have been the first to need a
/// server, and agents inside must not believe that they are its children.
const OF_AN_AGENT: [&str; 16] = [
    "AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "GEMINI_CLI",
    "GEMINI_PROJECT_DIR",
    "GEMINI_SESSION_ID",
    "OPENCODE",
    "OPENCODE_PID",
];

/// The part of this process's environment that another project's server gets when it is started from a pane: who the
/// user is, where files are, and how to reach the session. It contains nothing that a person or an agent set for
/// their own programs.
const MINIMAL: [&str; 13] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSH_AUTH_SOCK",
    "TMPDIR",
    "TZ",
    "USER",
    "WAYLAND_DISPLAY",
];

/// Prefixes of further variables.
const MINIMAL_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The variables that a new attachment updates for programs that are started later, unless the settings
/// list others: the terminal that they came from may be gone.
pub const UPDATED: [&str; 11] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "KRB5CCNAME",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
];

/// The part of this process's environment that is passed to another project's server, and to programs that
/// are started with a clean environment.
#[must_use]
pub fn minimal_environment() -> Environment {
    minimal(std::env::vars_os())
}

fn minimal(own: impl Iterator<Item = (OsString, OsString)>) -> Environment {
    let is_minimal = |name: &OsStr| {
        MINIMAL.iter().any(|known| name == *known) || begins(name, &MINIMAL_PREFIXES)
    };
    own.filter(|(name, _)| is_minimal(name)).collect()
}

fn begins(name: &OsStr, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
}

/// The environment of this process, prepared for the programs it starts.
pub fn of_this_process() -> Environment {
    clean(std::env::vars_os().collect())
}

/// A caller's environment, prepared for the programs it starts. What the caller set by name stays, even if it describes a
/// terminal. It contains none of patterm's own variables, so that a caller cannot pass an identity this way.
#[must_use]
pub fn of_a_caller(environment: Environment, set: &BTreeSet<String>) -> Environment {
    let mut clean = clean(environment.clone());
    for name in set {
        if let Some(value) = environment.get(name) {
            clean.insert(name, value);
        }
    }
    clean.retain(|name| !is_own(name));
    clean
}

/// Whether a variable is one of patterm's own.
#[must_use]
pub fn is_own(name: &OsStr) -> bool {
    begins(name, &[OWN_PREFIX])
}

fn clean(mut environment: Environment) -> Environment {
    let traces = environment.get(OWN_TRACES_VARIABLE);
    if traces.is_some() && traces == environment.get(TARGET_VARIABLE) {
        // Those of the pane from which this comes, and no setting of the user.
        environment.remove(TARGET_VARIABLE);
        environment.remove(MOST_TRACES_VARIABLE);
    }
    environment.remove(OWN_TRACES_VARIABLE);
    let listed = |name: &OsStr| {
        let mut names = AROUND.iter().chain(&IDENTITY).chain(&OF_AN_AGENT);
        names.any(|known| name == *known)
    };
    environment.retain(|name| !listed(name) && !begins(name, &AROUND_PREFIXES));
    environment.insert("TERM", "xterm-256color");
    environment.insert("COLORTERM", "truecolor");
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_stays_and_what_is_foreign_goes() {
        let own = [
            ("HOME", "/h"),
            ("TMUX", "x"),
            ("CLAUDECODE", "1"),
            ("KITTY_PID", "7"),
            ("TERM", "dumb"),
            ("PATTERM_IDENTITY_FILE", "/x"),
        ];
        let expected = [("COLORTERM", "truecolor"), ("HOME", "/h"), ("TERM", "xterm-256color")];
        assert_eq!(clean(own.into()), expected.into());
    }

    #[test]
    fn what_a_caller_sets_by_name_stays() {
        let own = [("TERM", "dumb"), ("TMUX", "x"), ("LINES", "5"), ("CLAUDECODE", "1")];
        let set = ["CLAUDECODE", "TERM", "TMUX", "UNSET"].map(str::to_owned).into();
        let expected =
            [("CLAUDECODE", "1"), ("COLORTERM", "truecolor"), ("TERM", "dumb"), ("TMUX", "x")];
        assert_eq!(of_a_caller(own.into(), &set), expected.into());
    }

    #[test]
    fn a_caller_cannot_pass_patterms_own_variables() {
        let own = [("PATTERM_ANYTHING", "x"), ("PATTERM_SOCKET", "y"), ("PATTERMX", "kept")];
        let set = ["PATTERM_SOCKET".to_owned()].into();
        let caller = of_a_caller(own.into(), &set);
        let names: Vec<_> = caller.names().map(OsStr::to_owned).collect();
        assert_eq!(names, ["COLORTERM", "PATTERMX", "TERM"]);
    }

    #[test]
    fn a_target_of_gits_traces_is_kept_only_if_the_user_set_it() {
        let of = |target: &str| {
            let own = [
                (TARGET_VARIABLE, target),
                (OWN_TRACES_VARIABLE, "/state/git/p1.1"),
                (MOST_TRACES_VARIABLE, "7"),
            ];
            let names: Vec<_> = clean(own.into()).names().map(OsStr::to_owned).collect();
            names
        };
        assert_eq!(of("/state/git/p1.1"), ["COLORTERM", "TERM"]);
        let users = ["COLORTERM", TARGET_VARIABLE, MOST_TRACES_VARIABLE, "TERM"];
        assert_eq!(of("/home/traces"), users);
    }

    #[test]
    fn another_projects_server_gets_what_says_where_things_are_and_no_secret() {
        let own =
            ["HOME", "PATH", "LC_ALL", "XDG_STATE_HOME", "API_KEY", "PATTERM_LIMITS", "HOMEX"];
        let own = own.map(|name| (name.into(), "x".into()));
        let minimal = minimal(own.into_iter());
        let names: Vec<_> = minimal.names().collect();
        assert_eq!(names, ["HOME", "LC_ALL", "PATH", "XDG_STATE_HOME"]);
    }
}
