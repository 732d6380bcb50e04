//! Checks the terminal: its size and what it can do.

use std::io::IsTerminal;

use patterm_tui::{ColourDepth, TerminalFeatures};

use super::{Finding, fair, good};

const CHECK: &str = "terminal";

/// The smallest terminal that shows everything, in rows and columns.
const LEAST_SIZE: (u16, u16) = (24, 80);

/// Asks the terminal, if there is one.
pub(super) fn check() -> Finding {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() || !std::io::stdin().is_terminal() {
        return good(CHECK, "unknown: standard input and output are not a terminal");
    }
    let set = |name: &str| std::env::var(name).ok();
    let kind = set("TERM").unwrap_or_default();
    if kind.is_empty() || kind == "dumb" {
        return fair(
            CHECK,
            format!("TERM is {kind:?}"),
            "set TERM to your terminal's type, for example xterm-256color",
        );
    }
    let size =
        rustix::termios::tcgetwinsize(&stdout).map_or((0, 0), |size| (size.ws_row, size.ws_col));
    let features = TerminalFeatures::ask(set).ok().flatten();
    finding(&kind, size, ColourDepth::of(set), features)
}

fn finding(
    kind: &str,
    (rows, columns): (u16, u16),
    depth: ColourDepth,
    features: Option<TerminalFeatures>,
) -> Finding {
    let depth = depth.after_answer(features.and_then(|features| features.true_colour));
    let colours = match depth {
        ColourDepth::None => "no colours",
        ColourDepth::Sixteen => "16 colours",
        ColourDepth::Palette => "256 colours",
        ColourDepth::True => "24-bit colours",
    };
    let mut text = format!("{kind}, {colours}, {rows} rows, {columns} columns");
    let mut advice = Vec::new();
    if rows < LEAST_SIZE.0 || columns < LEAST_SIZE.1 {
        advice.push("24 rows and 80 columns show everything");
    }
    match features {
        Some(features) if !features.is_complete => {
            text.push_str("\nit does not answer questions about its features");
            advice.push("if the connection is not just slow, use another terminal");
        }
        Some(features) => {
            let missing = missing(depth, features);
            if !missing.is_empty() {
                text.push_str(&format!("\nwithout {}", missing.join(", ")));
                advice.push(
                    "everything works without that; newer terminals and versions of tmux may have it",
                );
            }
        }
        None => {}
    }
    match advice.is_empty() {
        true => good(CHECK, text),
        false => fair(CHECK, text, &advice.join("; ")),
    }
}

/// What a terminal lacks, and what that means.
fn missing(depth: ColourDepth, features: TerminalFeatures) -> Vec<&'static str> {
    let few_colours = matches!(depth, ColourDepth::Sixteen | ColourDepth::Palette);
    let all = [
        (few_colours, "24-bit colours (programs' colours are approximated)"),
        (!features.synchronized, "synchronized updates (drawing may flicker)"),
        (!features.kitty_keyboard, "the kitty keyboard (shift+enter may be the same as enter)"),
    ];
    all.into_iter().filter_map(|(is_missing, what)| is_missing.then_some(what)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    #[test]
    fn a_terminal_without_features_is_found() {
        let full = TerminalFeatures {
            true_colour: Some(true),
            kitty_keyboard: true,
            synchronized: true,
            is_complete: true,
        };
        let check = |features, depth| finding("xterm-256color", (30, 100), depth, features);
        let good = check(Some(full), ColourDepth::Palette);
        assert_eq!(good.health, Health::Good);
        assert_eq!(good.text, "xterm-256color, 24-bit colours, 30 rows, 100 columns");
        let bare = TerminalFeatures { is_complete: true, ..TerminalFeatures::default() };
        let poor = check(Some(bare), ColourDepth::Palette);
        assert_eq!(poor.health, Health::Fair);
        for word in ["256 colours", "without 24-bit", "flicker", "shift+enter"] {
            assert!(poor.text.contains(word), "{}", poor.text);
        }
        let silent = check(Some(TerminalFeatures::default()), ColourDepth::True);
        assert!(silent.text.contains("does not answer"), "{}", silent.text);
        assert_eq!(check(None, ColourDepth::Sixteen).health, Health::Good, "it was not asked");
        let small = finding("xterm", (10, 100), ColourDepth::True, Some(full));
        assert!(small.advice.unwrap().contains("24 rows"));
    }
}
