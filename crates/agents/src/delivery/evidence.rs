//! Whether a text that a CLI reports or shows is the one that was typed.

use crate::presets::Composer;

/// How many characters of a difference evidence shows.
const SHOWN_CHARS: usize = 20;

/// A shorter text may appear in a conversation by chance.
const CONVERSATION_CHARS: usize = 8;

/// With this many letters in common at the beginning, the text in a prompt is one that was typed
/// and changed there: tags make the first letters alike.
const BEGINNING_CHARS: usize = 12;

/// Whether two texts have the same words, whatever their blanks and line breaks.
pub(super) fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// The evidence in a text that a hook reported: `None` if it is another text. Differences are
/// stated.
pub(super) fn match_report(reported: &str, text: &str) -> Option<String> {
    let is_empty = text.trim().is_empty();
    if !is_empty && reported.trim() == text.trim() {
        return Some("a hook of its CLI reported the same text".into());
    }
    let evidence = match () {
        () if is_empty => return None,
        () if same_words(reported, text) => "a hook of its CLI reported the same words",
        () if visible(reported).eq(visible(text)) => {
            "a hook of its CLI reported the same text without some invisible characters"
        }
        () => return None,
    };
    Some(format!("{evidence}; {}", difference(reported, text)))
}

/// Where two texts begin to differ.
pub(super) fn difference(reported: &str, text: &str) -> String {
    let (reported, text) = (reported.trim(), text.trim());
    let same = reported.chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
    let rest = |of: &str| -> String {
        let rest: String = of.chars().skip(same).take(SHOWN_CHARS).collect();
        rest.escape_debug().to_string()
    };
    format!("from character {}: `{}` instead of `{}`", same + 1, rest(reported), rest(text))
}

/// Whether the lines of a conversation contain a text as a complete message of the user. Blanks do
/// not count: rows may be wrapped anywhere.
pub(super) fn is_shown<'a>(
    lines: impl IntoIterator<Item = &'a str>,
    composer: &Composer,
    text: &str,
) -> bool {
    let Some(said) = &composer.said else { return false };
    let wanted: Vec<char> = visible(text).collect();
    if wanted.len() < CONVERSATION_CHARS {
        return false;
    }
    let lines: Vec<&str> = lines.into_iter().collect();
    let follows = |line: &'a str| {
        if line.trim().is_empty() {
            return Some("");
        }
        let mark = said.find(line).or_else(|| composer.more.as_ref()?.find(line));
        mark.map(|mark| &line[mark.end()..])
    };
    let begins_at = |first: usize| {
        let Some(mark) = said.find(lines[first]) else { return false };
        let mut rest = wanted.as_slice();
        let mut row = Some(&lines[first][mark.end()..]);
        let mut next = first + 1;
        while !rest.is_empty() {
            let Some(shown) = row else { return false };
            let shown: Vec<char> = visible(shown).collect();
            let Some(left) = rest.strip_prefix(shown.as_slice()) else { return false };
            rest = left;
            row = lines.get(next).and_then(|line| follows(line));
            next += 1;
        }
        // A longer message begins with the same text.
        while row.is_some_and(|row| row.trim().is_empty()) {
            row = lines.get(next).and_then(|line| follows(line));
            next += 1;
        }
        row.is_none()
    };
    (0..lines.len()).any(begins_at)
}

/// Whether a prompt contains a text that was typed there, although something may have changed it
/// since. A person's draft may begin with a short text by chance, so a short text must match
/// exactly.
pub(super) fn is_left_of(text: &str, in_prompt: &str) -> bool {
    let same = visible(in_prompt).zip(visible(text)).take_while(|(a, b)| a == b).count();
    match same >= BEGINNING_CHARS {
        true => true,
        false => same > 0 && visible(in_prompt).eq(visible(text)),
    }
}

/// Whether a prompt contains a text, alone or among others.
pub(super) fn contains_text(in_prompt: &str, text: &str) -> bool {
    let (in_prompt, text): (String, String) =
        (visible(in_prompt).collect(), visible(text).collect());
    let is_among = text.chars().count() >= BEGINNING_CHARS && in_prompt.contains(&text);
    !text.is_empty() && (is_among || in_prompt == text)
}

/// The part of a prompt before a text that was typed there, if that is not part of the text.
pub(super) fn draft_before<'a>(text: &str, held: &'a str) -> Option<&'a str> {
    let begin: String = text.trim_start().chars().take(BEGINNING_CHARS).collect();
    let begin = begin.lines().next().unwrap_or_default().trim_end();
    let (all, shown): (String, String) = (visible(text).collect(), visible(held).collect());
    // The prompt may show only a part of a long text.
    if begin.is_empty() || all.contains(&shown) {
        return None;
    }
    let before = held[..held.find(begin)?].trim();
    (!before.is_empty()).then_some(before)
}

/// The visible characters of a text.
fn visible(text: &str) -> impl Iterator<Item = char> + '_ {
    let unseen = |letter: &char| matches!(letter, '\u{200b}' | '\u{2060}' | '\u{feff}');
    text.chars().filter(move |letter| !letter.is_whitespace() && !unseen(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Catalogue;

    #[track_caller]
    fn check_report(hook: &str, text: &str, expected: Option<&str>) {
        assert_eq!(match_report(hook, text).as_deref(), expected, "{hook:?} {text:?}");
    }

    #[test]
    fn a_hooks_report_matches_only_the_same_text() {
        check_report("a b\n", " a b", Some("a hook of its CLI reported the same text"));
        let tabs = "a hook of its CLI reported the same words; from character 2: `    b` instead of \
            `\\tb`";
        check_report("a    b", "a\tb", Some(tabs));
        let unseen = "a hook of its CLI reported the same text without some invisible characters; from \
            character 2: `b` instead of `\\u{200b}b`";
        check_report("ab", "a\u{200b}b", Some(unseen));
        check_report("see README.md", "see @README.md", None);
        check_report("", "", None);
    }

    #[test]
    fn a_text_is_found_only_as_a_complete_message_of_the_user() {
        let catalogue = Catalogue::read(None);
        let shown = |cli: &str, lines: &[&str], text: &str| {
            let preset = catalogue.presets[cli].preset.as_ref().unwrap();
            is_shown(lines.iter().copied(), preset.composer.as_ref().unwrap(), text)
        };
        let codex = ["› [external] killed mean", "  while 3", "", "• killed", "› Ask anything"];
        assert!(shown("codex", &codex, "[external] killed meanwhile 3"));
        assert!(!shown("codex", &codex, "[external] killed meanwhile"), "the message is longer");
        assert!(!shown("codex", &codex, "[external] killed meanwhile 34"));
        let answer = ["• › [external] killed meanwhile", "  › [external] killed meanwhile"];
        assert!(!shown("codex", &answer, "[external] killed meanwhile"), "the model quotes it");
        let opencode = ["  ┃", "  ┃  [external] two", "  ┃  lines", "  ┃", "", "     OK."];
        assert!(shown("opencode", &opencode, "[external] two\nlines"));
        assert!(!shown("opencode", &opencode, "[external] two"));
        let gemini = [" > [external] one line", "▀▀▀▀▀▀▀▀", "✦ echo"];
        assert!(shown("gemini", &gemini, "[external] one line "));
        let claude = ["❯ [external] one", "", "  line", "", "● echo"];
        assert!(shown("claude", &claude, "[external] one\n\nline"));
        assert!(!shown("claude", &claude, "[external] one"), "the message is longer");
        assert!(!shown("claude", &claude, "one"), "too short to be evidence");
    }

    #[test]
    fn a_draft_before_a_text_is_distinguished_from_the_text() {
        let text = "[external] see the readme\nand more";
        assert_eq!(draft_before(text, "hel[external] see the readme\nand more"), Some("hel"));
        for shown in [text, "readme and more", "[Pasted text #1 +2 lines]", ""] {
            assert_eq!(draft_before(text, shown), None, "{shown:?}");
        }
        assert!(is_left_of("[external] see @README.md", "[external] see README.md"));
        assert!(!is_left_of("[external] see @README.md", "[external] do something else"));
    }

    #[test]
    fn a_text_is_found_in_a_prompt_among_others_unless_it_is_short() {
        assert!(contains_text("[lead] one two\n three\n[lead] four", "[lead] one two three"));
        assert!(contains_text("go\n", "go"));
        for draft in ["good", "", "[lead] one"] {
            assert!(!contains_text(draft, "go") && !contains_text(draft, "[lead] one two three"));
        }
        assert!(!contains_text("", ""));
    }

    #[test]
    fn a_draft_that_begins_with_a_short_text_is_not_that_text() {
        assert!(is_left_of("go", "go"));
        assert!(is_left_of("go on", "go\non "), "blanks do not count");
        for draft in ["good morning", "go home", "g", ""] {
            assert!(!is_left_of("go", draft), "{draft:?}");
        }
        assert!(!is_left_of("", ""));
        assert!(!is_left_of("[external] see @README.md", "[external"), "a draft of few letters");
    }
}
