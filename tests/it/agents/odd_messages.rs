//! Messages that look like something else, each compared with what the model received. Only known
//! changes by a CLI may differ.

use std::path::Path;

use patterm_screen::{Screen, Size};

use super::bench::Bench;
use super::cli::{CLAUDE, Cli, GEMINI};
use super::report::row;
use crate::support::tool_client::long;

/// Last words that make CLIs open a list of completions, which consumes Enter.
const COMPLETIONS: [&str; 20] = [
    "see @README.md",
    "cc @alice",
    "see @./README",
    "costs $",
    "two lines\nsee @README.md",
    "and so :smile",
    "see @",
    "see @./README.md",
    "in $HOME",
    "in /help",
    "two lines\n/help",
    "see #12",
    "two lines\n#",
    "wow !ls",
    "in src/",
    "in ~/",
    "is it so?",
    "see @\"README",
    "(see @README.md)",
    "of @scope/name",
];

/// Letters that are invisible, or displayed differently.
const LETTERS: [&str; 18] = [
    // Some terminals and CLIs treat these as narrower than others do.
    "a family 👨‍👩‍👧‍👦",
    "नमस्ते क्षि",
    "\ttabs\there and\t\tthere",
    "a line\u{2028}and another",
    "zero\u{200b}width and \u{feff}another",
    "ends with a \\",
    "   blanks around   ",
    "\n\nlines around\n\n",
    "far\n\n\n\nbelow",
    "no\u{a0}break",
    "日本語のテキストと中文文本 한국어",
    "👩‍🚀 🇩🇪 👍🏽 ☺️",
    "e\u{301} o\u{308} n\u{303}",
    "left \u{5d0}\u{5d1}\u{5d2} right",
    "soft\u{ad}hyphen, word\u{2060}joiner",
    "'\"`$(touch made)`; && || > < * ? [a] {b} ~",
    "<b>&amp;</b> %s %d {{x}} ${y}",
    "[Pasted text #1 +20 lines] [Image #1]",
];

/// Parts of screens, as a message may quote them.
const PARTS: [&str; 10] = [
    "Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend",
    "  1. Yes, proceed (y)\n  2. No\n\n  Press enter to confirm or esc to cancel",
    "┃  △ Permission required\n┃  Allow once   Allow always   Reject",
    "│ Allow execution of [Shell]?\n│ ● 1. Allow once\n│   2. Allow always",
    "✢ Booping… (5s · esc to interrupt)",
    " ⠏ Thinking... (esc to cancel, 0s)",
    "❯\u{a0}a draft\n────────────────────",
    "› a draft\n\n  mock-model default · /tmp/p/demo",
    " > a draft\n▀▀▀▀▀▀▀▀▀▀▀▀",
    "╹▀▀▀▀▀▀▀▀▀▀▀▀▀\n  ⬝⬝⬝⬝⬝⬝⬝⬝  esc interrupt   ctrl+p commands",
];

/// Whole screens of all CLIs, from their recordings.
const SCREENS: [&str; 10] = [
    "claude/blocked-shell",
    "claude/idle-after-turn",
    "claude-classic/working-tool",
    "codex/blocked-shell",
    "codex/queued-while-working",
    "gemini/blocked-shell",
    "gemini/working-tool",
    "opencode/blocked-shell",
    "opencode/menu-commands",
    "opencode/idle-after-turn",
];

/// The messages: the first of each kind in the short form, all in the long one.
fn messages_to_send() -> Vec<String> {
    let own = |texts: &[&str], few: usize| -> Vec<String> {
        let count = if long() { texts.len() } else { few };
        texts[..count].iter().map(|text| (*text).to_owned()).collect()
    };
    let mut texts = own(&COMPLETIONS, 6);
    texts.extend(own(&LETTERS, 5));
    texts.extend(own(&PARTS, 1));
    if long() {
        texts.extend(SCREENS.map(screen));
        texts.push((0..3_000).map(|number| format!("line {number}\n")).collect());
        texts.extend([10, 500, 20_000].map(|bytes| "wörter und mehr ".repeat(bytes / 16 + 1)));
        texts.push("x".repeat(5_000));
    }
    texts
}

/// What a recording shows.
fn screen(recording: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/recordings");
    let mut screen = Screen::new(Size::new(24, 80));
    screen.feed(&std::fs::read(folder.join(format!("{recording}.bytes"))).unwrap());
    screen.rows().join("\n")
}

/// How claude changes letters with combining marks.
const COMPOSED: [(&str, &str); 3] = [("e\u{301}", "é"), ("o\u{308}", "ö"), ("n\u{303}", "ñ")];

/// A message as the model may receive it: changed only as this CLI changes typed text.
fn expected(cli: Cli, message: &str) -> String {
    let mut text = format!("[external] {message}");
    match cli {
        CLAUDE => {
            text = text.replace('\t', "    ").replace('\u{2028}', "\n");
            text = text.replace(['\u{200b}', '\u{feff}', '\u{ad}', '\u{2060}'], "");
            for (apart, composed) in COMPOSED {
                text = text.replace(apart, composed);
            }
        }
        GEMINI => text = text.replace(['\u{200b}', '\u{feff}'], ""),
        _ => {}
    }
    text.trim_end().to_owned()
}

/// Whether a received text is the message: gemini puts a blank before the name of a file.
fn is_it(cli: Cli, came: &str, expected: &str) -> bool {
    came == expected || (cli == GEMINI && came.replace("  @", " @") == expected)
}

/// Whether a text was added by the CLI itself: gemini adds the files that a text names.
fn is_addition(cli: Cli, came: &str) -> bool {
    let additions =
        ["--- Content from referenced", "Content from @", "--- End of content", "# A project"];
    cli == GEMINI && additions.iter().any(|start| came.trim_start().starts_with(start))
}

/// Odd messages, one after the other, numbered so that each is unique.
pub(super) fn messages(cli: Cli) {
    let mut bench = Bench::new(cli);
    let id = bench.spawn_ready();
    let sent: Vec<_> =
        messages_to_send().iter().enumerate().map(|(n, m)| format!("{n} {m}")).collect();
    let mut wrong = Vec::new();
    for message in &sent {
        let receipt = bench.send(&id, message);
        let receipt = bench.until_done(receipt.message);
        let text = expected(cli, message);
        let start: String = message.chars().take(60).collect();
        if receipt.state != "delivered" {
            let screen = bench.tools.rows(&id).join("\n");
            wrong.push(format!("{start:?}: {receipt:?}\n{screen}"));
            continue;
        }
        bench.until("the answer", |bench| {
            let came = bench.arrived();
            came.iter()
                .any(|came| came.starts_with(&format!("[external] {}", &message[..2])))
                .then_some(())
                .ok_or_else(|| format!("{receipt:?}"))
        });
        bench.until_state(&id, "idle");
        let came = bench.arrived();
        match came.iter().filter(|came| is_it(cli, came, &text)).count() {
            1 => {}
            count => wrong.push(format!("{start:?} came {count} times: {:?}", came.last())),
        }
    }
    let all: Vec<_> = sent.iter().map(|message| expected(cli, message)).collect();
    let is_known = |came: &String| {
        came == "mock: say ready"
            || is_addition(cli, came)
            || all.iter().any(|text| is_it(cli, came, text))
    };
    let other: Vec<_> = bench.arrived().into_iter().filter(|came| !is_known(came)).collect();
    let whole = sent.len() - wrong.len();
    row(cli, "odd messages", &format!("{whole} of {} whole and once", sent.len()));
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), bench.story());
    assert_eq!(other, Vec::<String>::new(), "and nothing else came");
    assert!(!bench.place.path("project/made").exists(), "none was treated as a command");
}
