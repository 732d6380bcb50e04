//! What is found of dialogs.

use patterm_screen::Size;

use super::*;

/// A rule that says how dialogs are answered.
fn rule(text: &str) -> Rule {
    toml::from_str(&format!("state = \"blocked\"\n{text}")).unwrap()
}

fn found(screen: &str, text: &str) -> Option<Dialog> {
    let bottom: Vec<String> =
        screen.lines().rev().filter(|row| !row.trim().is_empty()).map(str::to_owned).collect();
    let rule = rule(text);
    find(&place(&bottom, 24, &rule, false)?, None, &[], ("dialog", &rule))
}

#[track_caller]
fn check(screen: &str, expected: Option<&str>) {
    let line = found(screen, "").map(|dialog| in_one_line(&dialog));
    assert_eq!(line.as_deref(), expected, "{screen}");
}

const PUSH: &str = "───────────\n Bash command\n╌╌╌\n git push\n╌╌╌\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n Esc to cancel";
const FOLDER: &str = "Check: Is this yours or\n one you trust? (Like\n code).\n ❯ No, exit\n   Yes, I do\n Enter to confirm";

#[test]
fn a_dialog_in_one_line() {
    check(PUSH, Some("Do you want to proceed? git push (1. Yes | 2. No)"));
    check(FOLDER, Some("Check: Is this yours or one you trust? (No, exit | Yes, I do)"));
    check(
        "│ ? Shell x │\n│ Allow [Shell]? │\n│ ● 1. Allow once   always │\n│   2. No (esc) │\n╰──╯",
        Some("Allow [Shell]? (1. Allow once | 2. No (esc))"),
    );
    // In a narrow pane.
    check(
        "  Reason: The change is\n  correct. May I commit\n  it?\n\n  $ git commit\n\n› 1. Yes\n  2. No",
        Some("Reason: The change is correct. May I commit it? (1. Yes | 2. No)"),
    );
    check("1. one\n2. two", None);
    check("nothing to choose?", None);
}

#[test]
fn a_dialog_is_another_if_any_of_its_text_differs_but_not_if_its_cursor_moves() {
    let version = |screen: &str| found(screen, "").unwrap().version;
    let moved = PUSH.replace("❯ 1. Yes\n   2.", "  1. Yes\n ❯ 2.");
    assert_ne!(moved, PUSH);
    assert_eq!(version(&moved), version(PUSH));
    assert_eq!(version(&format!("other words above\n{PUSH}")), version(PUSH));
    assert_eq!(version(&PUSH.replace("Esc to", "esc to")), version(PUSH), "the footer");
    for (one, other) in [("git push", "git push -f"), ("2. No", "2. No, wait"), ("Bash", "Edit")] {
        assert_ne!(version(&PUSH.replace(one, other)), version(PUSH), "{other}");
    }
    let long = |end: &str| PUSH.replace("git push", &format!("{} {end}", "x ".repeat(300)));
    let [one, other] = ["a", "b"].map(|end| found(&long(end), "").unwrap());
    assert_ne!(one.question, other.question, "its end is always shown");
    assert_ne!(one.version, other.version);
    let above = |row: &str| format!("{row}\nRun it?\n› 1. Yes\n  2. No");
    assert_ne!(version(&above("$ ls")), version(&above("$ rm")), "without a border at its top");
}

#[test]
fn each_option_is_chosen_in_the_first_way_that_applies() {
    use AnswerWay::{Label, LeftRight, Number, UpDown};
    let ways = |screen: &str, text: &str| found(screen, text).unwrap().ways;
    let both = "answer = [\"number\", \"up-down\"]";
    assert_eq!(ways(PUSH, both), [Some(Number), Some(Number)]);
    assert_eq!(ways(PUSH, "answer = [\"up-down\"]"), [Some(UpDown), Some(UpDown)]);
    assert_eq!(ways(FOLDER, both), [Some(UpDown), Some(UpDown)]);
    assert_eq!(found(FOLDER, both).unwrap().cursor, Some(0));
    assert_eq!(ways(PUSH, ""), [None, None], "a preset that does not say how");
    let row = "options = '^(Once) +(Always) +(Reject)'\nanswer = [\"left-right\"]";
    assert_eq!(ways("May I?\n Once  Always  Reject", row), [Some(LeftRight); 3]);
    let letters = "options = '\\[(y)/(no)\\]$'\nanswer = [\"label\"]";
    assert_eq!(ways("May I?\n[y/no]", letters), [Some(Label), None]);
    let line = letters.replace("\"label\"", "\"label\", \"enter\"");
    assert_eq!(ways("May I?\n[y/no]", &line), [Some(Label); 2], "it reads a line");
    assert_eq!(ways(PUSH, "answer = [\"enter\"]"), [None, None], "not a way by itself");
    let many: String = (1..=11).map(|n| format!("  {n}. option {n}\n")).collect();
    let many = ways(&format!("Which?\n{}", many.replace("  3.", "❯ 3.")), both);
    assert_eq!(many[8..], [Some(Number), Some(UpDown), Some(UpDown)]);
}

#[test]
fn the_highlighted_option_of_a_row_is_the_one_that_looks_different() {
    let options = Regex::new("^(Once) +(Always) +(Reject)").unwrap();
    let at = |bytes: &str| {
        let mut screen = Screen::new(Size::new(5, 40));
        screen.feed(bytes.as_bytes());
        highlighted(&screen, &options)
    };
    assert_eq!(at("┃ \x1b[43m Once \x1b[0m  Always   Reject"), Some(0));
    assert_eq!(at("┃  Once   Always  \x1b[7m Reject \x1b[0m"), Some(2));
    assert_eq!(at("┃  Once   Always   Reject"), None);
    assert_eq!(at("┃ \x1b[43mOnce\x1b[44m Always \x1b[0m Reject"), None);
}

/// The rule of `docs/examples/preset.toml`.
const LETTERS: &str = "bottom = '\\[y/n\\]$'\noptions = '\\[(y)/(n)\\]$'\nanswer = [\"label\"]";

#[test]
fn an_earlier_dialog_that_is_still_on_the_screen_is_never_shown() {
    let check = |screen: &str, text: &str, expected: Option<&str>| {
        let line = found(screen, text).map(|dialog| in_one_line(&dialog));
        assert_eq!(line.as_deref(), expected, "{screen}");
    };
    let first = "> push ls\nDo you want to run: ls? [y/n]\nn\nnot run\n";
    let run = |end: &str| format!("{first}> push rm\n{end}");
    let whole = Some("Do you want to run: rm -rf build? (y | n)");
    check(&run("Do you want to run: rm -rf build? [y/n]"), LETTERS, whole);
    check(&run("Do you want to run: rm -rf\nbuild? [y/n]"), LETTERS, whole);
    check(&run("Delete build? It is large.\n[y/n]"), LETTERS, Some("Delete build? (y | n)"));
    check(&run("Delete build\n[y/n]"), LETTERS, Some("Delete build (y | n)"));
    check(&run("[y/n]"), LETTERS, None);
    check(&run("1. one\n2. two\nDelete build? [y/n]"), LETTERS, Some("Delete build? (y | n)"));
    let other = LETTERS.replacen("y/n", "y/n(/a)?", 1);
    check(&run("Delete build? [y/n/a]"), &other, None);
    check("Run ls? [y/n] n\nDelete it?\n[y/n]", LETTERS, Some("Delete it? (y | n)"));
    for mark in ["❯ ", ""] {
        let list = format!("{mark}1. Yes\n2. No\n");
        let screen = format!("Run ls?\n{list}2\nDelete build\n{list}");
        check(&screen, "", Some("Delete build (1. Yes | 2. No)"));
    }
    let second = PUSH.replace("Do you want to proceed?", "Delete build");
    check(&format!("{PUSH}\n{second}"), "", Some("Delete build (1. Yes | 2. No)"));
}

/// What a preset that is built in shows of a dialog.
fn shown(preset: &str, rule: &str, screen: &str, asked: Option<&str>) -> Dialog {
    let preset = crate::presets::Catalogue::read(None).presets.remove(preset).unwrap();
    let preset = preset.preset.unwrap();
    let rule = (rule, &preset.rules[rule]);
    let rows = screen.lines().rev().filter(|row| !row.trim().is_empty());
    let bottom: Vec<String> = rows.map(str::to_owned).collect();
    let place = place(&bottom, 24, rule.1, false).unwrap();
    find(&place, asked, &[], rule).unwrap()
}

#[test]
fn no_text_of_an_agent_hides_what_is_approved() {
    let options = "› 1. Yes, proceed (y)\n  2. No (esc)\n  Press enter to confirm or esc to cancel";
    let codex = |text: &str| shown("codex", "question", &format!("{text}\n{options}"), None);
    let begin = "• Running it\n    + more\n  Would you like to run the following command?\n";
    let reason = "  Environment: local\n  Reason: May I list the files?\n";
    let dialog = codex(&format!("{begin}{reason}  $ rm -rf /tmp/x"));
    let whole = "Would you like to run the following command? rm -rf /tmp/x — Environment: local Reason: May I list \
                 the files?";
    assert_eq!(dialog.question, whole);
    // In the command, and with its beginning above the screen.
    let inside = "  $ rm -rf /tmp/x\n  1. one\n  > two\n  ──────────────\n  Would you like to run it?\n  $ ls";
    for begin in [begin, "", reason] {
        let question = codex(&format!("{begin}{inside}")).question;
        assert!(
            question.contains("rm -rf /tmp/x 1. one") && question.ends_with("$ ls"),
            "{question}"
        );
        assert_eq!(question.starts_with("… "), !begin.starts_with('•'), "{question}");
    }
    let (frame, border) = ("╌".repeat(20), "─".repeat(20));
    let command =
        format!(" rm -rf /tmp/x\n ❯ 1. Yes\n {border}\n {frame}\n May I list?\n Do you want it?");
    let proceed = " Do you want to proceed?\n ❯ 1. Yes\n   2. No\n Esc to cancel";
    let screen =
        format!("{border}\n Bash command\n List files?\n{frame}\n{command}\n{frame}\n{proceed}");
    let asked = Some("approve Bash: rm");
    let question = shown("claude", "dialog", &screen, asked).question;
    assert_eq!(question, "approve Bash: rm -rf /tmp/x ❯ 1. Yes May I list? Do you want it?");
    let question = shown("claude", "dialog", &screen, None).question;
    assert!(question.starts_with("Do you want to proceed? rm -rf /tmp/x"), "{question}");
    let cut = format!("{command}\n{frame}\n{proceed}");
    let question = shown("claude", "dialog", &cut, asked).question;
    assert!(question.starts_with("approve Bash: … rm -rf /tmp/x"), "{question}");
    let opencode = "     $ ls\n  ┃  △ Permission required\n  ┃    # List files?\n  ┃  $ rm -rf /tmp/x\n  ┃  May I list?\n  ┃   Allow once   Allow \
                    always   Reject";
    let question = shown("opencode", "permission", opencode, None).question;
    assert_eq!(question, "△ Permission required: rm -rf /tmp/x May I list? — # List files?");
}

#[test]
fn a_long_question_keeps_its_beginning_and_its_end() {
    let screen = PUSH.replace("git push", &format!("echo {}; rm -rf /tmp/x", "one ".repeat(900)));
    let dialog = found(&screen, "").unwrap();
    assert!(dialog.question.starts_with("Do you want to proceed? echo one"));
    assert!(dialog.question.contains(" … ") && dialog.question.ends_with("; rm -rf /tmp/x"));
    let line = in_one_line(&dialog);
    assert!(line.chars().count() < 300 && line.contains(" … ") && line.contains("; rm -rf /tmp/x"));
}

#[test]
fn options_that_wrap_are_joined_and_descriptions_are_not() {
    let options = |screen: &str| found(screen, "").unwrap().options;
    let narrow = "  Run it in this folder?\n\n› 1. Yes, proceed (y)\n  2. Yes, and always allow\n     access to /tmp/\n     \
                  demo.txt here\n  3. No\n  Press enter";
    let whole =
        ["1. Yes, proceed (y)", "2. Yes, and always allow access to /tmp/demo.txt here", "3. No"];
    assert_eq!(options(narrow), whole);
    let described = "Which colour do you want for it?\n❯ 1. Red\n     warm\n  2. Blue\n     cold\nEnter to select";
    assert_eq!(options(described), ["1. Red", "2. Blue"]);
}

#[test]
fn a_list_of_which_a_part_is_not_on_the_screen_offers_nothing() {
    let rows = |screen: &str| -> Vec<String> { screen.lines().rev().map(str::to_owned).collect() };
    let rule = rule("approves = '^Run'\nanswer = [\"number\", \"up-down\"]");
    let offered = |screen: &str, is_full: bool| {
        let place = place(&rows(screen), 24, &rule, is_full)?;
        find(&place, None, &[], ("dialog", &rule)).map(|dialog| in_one_line(&dialog))
    };
    let cut = "• Running\n  Run it?\n› 1. Yes\n  2. Yes, and always";
    let nothing = "Run it? (its pane is too small for all options)";
    assert_eq!(offered(cut, true).as_deref(), Some(nothing));
    assert_eq!(offered(cut, false).as_deref(), Some("Run it? (1. Yes | 2. Yes, and always)"));
    let whole = format!("{cut}\n  3. No\n  Press enter");
    assert_eq!(
        offered(&whole, true).as_deref(),
        Some("Run it? (1. Yes | 2. Yes, and always | 3. No)")
    );
    assert_eq!(offered("❯ 2. Yes, and always\n  3. No\n  Press enter", true), None);
}
