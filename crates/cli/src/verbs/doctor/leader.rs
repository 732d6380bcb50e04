//! Checks whether patterm's leader is also a key of the multiplexer around it, which intercepts it.

use std::process::{Command, Stdio};

use patterm_host::PANE_VARIABLE;
use patterm_host::server::settings_file;

use super::{Finding, fair, good};

/// The leader unless the settings name another.
const DEFAULT_LEADER: &str = "ctrl+b";

/// The default prefix of GNU screen.
const SCREEN_PREFIX: &str = "ctrl+a";

/// Compares the leader with the keys of the multiplexers around this terminal.
pub(super) fn check() -> Option<Finding> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let leader = leader();
    let mut around = Vec::new();
    if is_set("TMUX") {
        around.push(("tmux", prefixes()));
    }
    if is_set("STY") {
        around.push(("GNU screen", vec![SCREEN_PREFIX.to_owned()]));
    }
    if is_set(PANE_VARIABLE) {
        // The settings are the user's, so they are the same.
        around.push(("patterm", vec![leader.clone()]));
    }
    (!around.is_empty()).then(|| finding(&leader, &around))
}

/// The leader in the user's settings.
fn leader() -> String {
    let text = settings_file("tui.toml").and_then(|path| std::fs::read_to_string(path).ok());
    let settings: toml::Table = text.unwrap_or_default().parse().unwrap_or_default();
    let leader = settings.get("leader").and_then(toml::Value::as_str);
    leader.unwrap_or(DEFAULT_LEADER).to_lowercase()
}

/// tmux's prefixes, as it names them, such as `C-b`.
#[expect(clippy::disallowed_methods, reason = "asks the tmux around this terminal")]
fn prefixes() -> Vec<String> {
    let prefix = |option: &str| {
        let mut command = Command::new("tmux");
        let output =
            command.args(["show-options", "-gv", option]).stdin(Stdio::null()).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    ["prefix", "prefix2"].into_iter().filter_map(prefix).collect()
}

/// A tmux key in patterm's notation.
fn in_our_notation(key: &str) -> String {
    key.replace("C-", "ctrl+").replace("M-", "alt+").to_lowercase()
}

fn finding(leader: &str, around: &[(&str, Vec<String>)]) -> Finding {
    let clashes = |keys: &[String]| keys.iter().any(|key| in_our_notation(key) == leader);
    let names = |only: bool| {
        let chosen = around.iter().filter(|(_, keys)| !only || clashes(keys));
        chosen.map(|(name, _)| *name).collect::<Vec<_>>().join(" and ")
    };
    match around.iter().any(|(_, keys)| clashes(keys)) {
        true => fair(
            "leader",
            format!(
                "{leader} is also the prefix of the {} around this terminal, which intercepts it",
                names(true)
            ),
            "set another one, for example `leader = \"ctrl+g\"` in ~/.config/patterm/tui.toml, or press it twice",
        ),
        false => {
            good("leader", format!("{leader}; the {} around it uses another key", names(false)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    #[test]
    fn the_same_key_is_a_clash() {
        let tmux = ("tmux", vec!["C-b".to_owned(), "None".into()]);
        let screen = ("GNU screen", vec!["ctrl+a".to_owned()]);
        let check = |leader: &str| finding(leader, &[tmux.clone(), screen.clone()]);
        assert_eq!(check("ctrl+b").health, Health::Fair);
        assert!(check("ctrl+b").text.contains("prefix of the tmux around"));
        assert!(check("ctrl+a").text.contains("prefix of the GNU screen around"));
        assert_eq!(check("ctrl+g").health, Health::Good);
        assert!(check("ctrl+g").text.contains("tmux and GNU screen"));
    }
}
