//! Screens of all CLIs quoted by users and models: no state follows from them.

use super::bench::Bench;
use super::cli::Cli;
use super::report::row;
use crate::support::tool_client::long;

/// Lines of real dialogs, menus, footers and limits, by the CLI that shows them.
const SCREENS: [(&str, &str); 4] = [
    ("claude", QUOTED_CLAUDE),
    ("codex", QUOTED_CODEX),
    ("opencode", QUOTED_OPENCODE),
    ("gemini", QUOTED_GEMINI),
];

const QUOTED_CLAUDE: &str = r#" Do you want to proceed?
 ❯ 1. Yes
   2. No
 Esc to cancel · Tab to amend
❯ 1. Red
Enter to select · ↑/↓ to navigate · Esc to cancel
  search prompts:
  ! for shell mode
  ⏵⏵ auto mode on · 1 shell · ← for agents · ↓ to manage"#;

const QUOTED_CODEX: &str = r#"■ You’ve hit your usage limit. Upgrade to Pro or try again at 4:00 PM.
› 1. Yes, proceed (y)
  2. No, and tell Codex what to do differently (esc)
  tab to add notes | enter to submit answer | esc to interrupt
  enter select · esc back
  Press enter to confirm or esc to cancel
• Working (3s • esc to interrupt)"#;

const QUOTED_OPENCODE: &str = r#"   ■■■⬝⬝⬝⬝⬝ The usage limit has been reached [retrying in 59m 31s attempt #1] esc interrupt
  ┃  △ Permission required
  ┃    # Shell command
  ┃   Allow once   Allow always   Reject  ctrl+f fullscreen  ⇆ select  enter confirm
  ┃  ↑↓ select  enter submit  esc dismiss
                                                          esc exit shell mode
  ┃"#;

const QUOTED_GEMINI: &str = r#"✕ [API Error: You have exhausted your daily quota on this model.]
 ⠸ Thinking... (esc to cancel, 1s)
 (r:)    Type your message or @path/to/file
 !   Type your shell command
│ Usage limit reached for gemini-2.5-flash. │
│ Access resets at 4:00 PM. │
│ ● 1. Keep trying │
╰──────────────────╯"#;

/// All screens in one text.
pub(super) fn all_screens() -> String {
    SCREENS.map(|(_, screen)| screen).join("\n")
}

/// A text as a directive of the mock: on one line.
pub(super) fn said(text: &str) -> String {
    format!("mock: say {}", text.replace('\\', "\\\\").replace('\n', "\\n"))
}

/// Quoted screens, in a user's text and in a model's: the agent is idle afterwards, and takes the
/// next text.
pub(super) fn screens(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let texts: Vec<String> = match long() {
        true => SCREENS.iter().map(|(_, screen)| (*screen).to_owned()).collect(),
        // The last quote stays on the screen: that of this CLI.
        false => {
            let own = SCREENS.iter().find(|(name, _)| *name == cli.name).unwrap().1;
            vec![format!("{}\n{own}", all_screens())]
        }
    };
    let mut messages = Vec::new();
    for text in &texts {
        messages.push(format!("See this:\n{text}"));
        messages.push(said(&format!("{text}\n")));
        messages.push(said(&format!("```\n{text}\n```\n")));
    }
    for (number, message) in messages.iter().enumerate() {
        bench.send(&id, message);
        bench.until_turn(&format!("the answer to {message}"), |turn| {
            turn.text.contains(message.trim_end()) && turn.is_final()
        });
        bench.until_state(&id, "idle");
        let after = bench.send(&id, &format!("after quotation {number}"));
        let after = bench.until_done(after.message);
        assert_eq!(after.state, "delivered", "{after:?}\n{}", bench.story());
        bench.until_arrived(&format!("[external] after quotation {number}"));
        bench.until_state(&id, "idle");
        let attention = bench.tools.status(&id)["attention"].take();
        assert!(attention.is_null(), "{attention}\n{}", bench.story());
    }
    let all = messages.len();
    row(cli, "quoted screens", &format!("{all} of {all} idle, and the next message delivered"));
}
