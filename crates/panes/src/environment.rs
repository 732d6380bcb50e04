//! What programs find in their environment: the user's own, without what tells of the terminal
//! that the server happened to be started in, or of who started it.

use std::collections::BTreeMap;

/// Tells a program which pane it runs in: the project's key, a slash, the process id.
pub const PANE_VARIABLE: &str = "PATTERM_PANE";

/// Variables of another terminal or multiplexer, or of a caller's identity.
const FOREIGN: [&str; 24] = [
    "COLUMNS",
    "LINES",
    "NEXTEST",
    "NOTIFY_SOCKET",
    patterm_keeper::descriptors::LIMIT_VARIABLE,
    "PATTERM_IDENTITY",
    "PATTERM_IDENTITY_FILE",
    "PATTERM_LOG",
    PANE_VARIABLE,
    "PATTERM_PROJECT_KEY",
    "PATTERM_SOCKET",
    "SHLVL",
    "STY",
    "TERMCAP",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "VTE_VERSION",
    "WINDOWID",
    "WT_SESSION",
    "ZELLIJ",
    "_",
];

/// Variables by which an agent's CLI marks what it starts: an agent outside patterm may have been
/// the first to need a server, and its own must not take themselves for that one's children.
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

/// What another project's server gets of this process's environment when it is started for somebody in
/// a pane: who the user is, where things are, and how to reach the session. Nothing that a person or an
/// agent set for their own programs is in it.
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

/// And all whose names begin so.
const MINIMAL_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The part of this process's environment that another project's server may have.
#[must_use]
pub fn minimal_environment() -> BTreeMap<String, String> {
    minimal(own())
}

fn minimal(own: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let begins = |name: &str| MINIMAL_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    own.filter(|(name, _)| MINIMAL.contains(&name.as_str()) || begins(name)).collect()
}

fn own() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The environment of this process as programs are to see it.
pub fn of_this_process() -> BTreeMap<String, String> {
    clean(own())
}

fn clean(own: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let foreign = |name: &str| FOREIGN.contains(&name) || OF_AN_AGENT.contains(&name);
    let mut clean: BTreeMap<_, _> = own.filter(|(name, _)| !foreign(name)).collect();
    clean.insert("TERM".into(), "xterm-256color".into());
    clean.insert("COLORTERM".into(), "truecolor".into());
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_stays_and_what_is_foreign_goes() {
        let own = [("HOME", "/h"), ("TMUX", "x"), ("CLAUDECODE", "1"), ("TERM", "dumb")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = [("COLORTERM", "truecolor"), ("HOME", "/h"), ("TERM", "xterm-256color")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(clean(own.into_iter()), BTreeMap::from(expected));
    }

    #[test]
    fn another_projects_server_gets_what_says_where_things_are_and_no_secret() {
        let own =
            ["HOME", "PATH", "LC_ALL", "XDG_STATE_HOME", "API_KEY", "PATTERM_LIMITS", "HOMEX"];
        let own = own.map(|name| (name.to_owned(), "x".to_owned()));
        let names: Vec<_> = minimal(own.into_iter()).into_keys().collect();
        assert_eq!(names, ["HOME", "LC_ALL", "PATH", "XDG_STATE_HOME"]);
    }
}
