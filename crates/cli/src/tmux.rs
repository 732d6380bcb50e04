//! The tmux around this terminal, which intercepts its prefixes.

use std::process::{Command, Stdio};

/// The prefix that tmux has unless it is configured.
const DEFAULT_PREFIX: &str = "ctrl+b";

/// The prefixes of the tmux around this terminal, in patterm's notation; none outside of tmux.
pub(crate) fn prefixes() -> Vec<String> {
    if std::env::var_os("TMUX").is_none_or(|value| value.is_empty()) {
        return Vec::new();
    }
    known_or_default(["prefix", "prefix2"].into_iter().filter_map(option))
}

/// An option of tmux; `None` if it cannot be asked.
#[expect(clippy::disallowed_methods, reason = "asks the tmux around this terminal")]
fn option(name: &str) -> Option<String> {
    let mut command = Command::new("tmux");
    let output = command.args(["show-options", "-gv", name]).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn known_or_default(keys: impl Iterator<Item = String>) -> Vec<String> {
    let mut keys: Vec<_> = keys.map(|key| in_our_notation(&key)).collect();
    if keys.is_empty() {
        keys.push(DEFAULT_PREFIX.to_owned());
    }
    keys
}

/// A tmux key, such as `C-b`, in patterm's notation.
fn in_our_notation(key: &str) -> String {
    key.replace("C-", "ctrl+").replace("M-", "alt+").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_compared_in_our_notation() {
        let known = |keys: &[&str]| known_or_default(keys.iter().map(|key| (*key).to_owned()));
        assert_eq!(known(&["C-]", "None"]), ["ctrl+]", "none"]);
        assert_eq!(known(&["M-x"]), ["alt+x"]);
        assert_eq!(known(&[]), ["ctrl+b"], "tmux does not answer");
    }
}
