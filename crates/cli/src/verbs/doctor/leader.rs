//! Checks whether patterm's leader is also a key of the multiplexer around it, which intercepts it.

use patterm_host::PANE_VARIABLE;
use patterm_host::server::settings_file;

use super::{Finding, fair, good};
use crate::settings_path::{self, TUI_SETTINGS};
use crate::tmux;

/// The leader unless the settings name another.
const DEFAULT_LEADER: &str = "ctrl+b";

/// The default prefix of GNU screen.
const SCREEN_PREFIX: &str = "ctrl+a";

/// Compares the leader with the keys of the multiplexers around this terminal.
pub(super) fn check() -> Option<Finding> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let leader = leader();
    let mut around = Vec::new();
    let prefixes = tmux::prefixes();
    if !prefixes.is_empty() {
        around.push(("tmux", prefixes));
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
    let text = settings_file(TUI_SETTINGS).and_then(|path| std::fs::read_to_string(path).ok());
    let settings: toml::Table = text.unwrap_or_default().parse().unwrap_or_default();
    let leader = settings.get("leader").and_then(toml::Value::as_str);
    leader.unwrap_or(DEFAULT_LEADER).to_lowercase()
}

fn finding(leader: &str, around: &[(&str, Vec<String>)]) -> Finding {
    let clashes = |keys: &[String]| keys.iter().any(|key| key == leader);
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
            &format!(
                "set another one, for example `leader = \"ctrl+g\"` in {}, or press it twice",
                settings_path::shown()
            ),
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
        let tmux = ("tmux", vec!["ctrl+b".to_owned(), "none".into()]);
        let screen = ("GNU screen", vec!["ctrl+a".to_owned()]);
        let check = |leader: &str| finding(leader, &[tmux.clone(), screen.clone()]);
        assert_eq!(check("ctrl+b").health, Health::Fair);
        assert!(check("ctrl+b").text.contains("prefix of the tmux around"));
        assert!(check("ctrl+a").text.contains("prefix of the GNU screen around"));
        assert_eq!(check("ctrl+g").health, Health::Good);
        assert!(check("ctrl+g").text.contains("tmux and GNU screen"));
    }
}
