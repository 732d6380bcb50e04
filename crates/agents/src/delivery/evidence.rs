//! Whether a text that a CLI tells of or shows is the one that was typed in.

use crate::presets::Composer;

/// Characters of a difference that evidence shows.
const SHOWN_CHARS: usize = 20;

/// A shorter text may stand in a conversation by chance.
const CONVERSATION_CHARS: usize = 8;

/// So many letters in common at the beginning, and a text in a prompt is one that was typed in and
/// changed there: tags make the first ones alike.
const BEGINNING_CHARS: usize = 12;

/// Whether two texts say the same, however their blanks and lines were broken.
pub(super) fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// What is concluded from a text that a hook told: `None` if it is another one. What differs is
/// said.
pub(super) fn told(told: &str, text: &str) -> Option<String> {
    let is_empty = text.trim().is_empty();
    if !is_empty && told.trim() == text.trim() {
        return Some("a hook of its CLI reported the same text".into());
    }
    let evidence = match () {
        () if is_empty => return None,
        () if same_words(told, text) => "a hook of its CLI reported the same words",
        () if letters(told).eq(letters(text)) => {
            "a hook of its CLI reported the same text without some invisible characters"
        }
        () => return None,
    };
    Some(format!("{evidence}; {}", difference(told, text)))
}

/// Where a text begins to be another.
pub(super) fn difference(told: &str, text: &str) -> String {
    let (told, text) = (told.trim(), text.trim());
    let same = told.chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
    let rest = |of: &str| -> String {
        let rest: String = of.chars().skip(same).take(SHOWN_CHARS).collect();
        rest.escape_debug().to_string()
    };
    format!("from character {}: `{}` instead of `{}`", same + 1, rest(told), rest(text))
}

/// Whether the lines of a conversation have a text among what the user said, whole. Blanks do not
/// count: rows are broken anywhere.
pub(super) fn is_said<'a>(
    lines: impl IntoIterator<Item = &'a str>,
    composer: &Composer,
    text: &str,
) -> bool {
    let Some(said) = &composer.said else { return false };
    let wanted: Vec<char> = letters(text).collect();
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
            let shown: Vec<char> = letters(shown).collect();
            let Some(left) = rest.strip_prefix(shown.as_slice()) else { return false };
            rest = left;
            row = lines.get(next).and_then(|line| follows(line));
            next += 1;
        }
        // A longer message begins so too.
        while row.is_some_and(|row| row.trim().is_empty()) {
            row = lines.get(next).and_then(|line| follows(line));
            next += 1;
        }
        row.is_none()
    };
    (0..lines.len()).any(begins_at)
}

/// Whether what stands in a prompt is a text that was typed in there, though something may have
/// changed it since. A person's draft may begin with a short text by chance: that must be the same.
pub(super) fn is_left_of(text: &str, stands: &str) -> bool {
    let same = letters(stands).zip(letters(text)).take_while(|(a, b)| a == b).count();
    match same >= BEGINNING_CHARS {
        true => true,
        false => same > 0 && letters(stands).eq(letters(text)),
    }
}

/// Whether what stands in a prompt has a text in it, alone or among others.
pub(super) fn has_words_of(stands: &str, text: &str) -> bool {
    let (stands, text): (String, String) = (letters(stands).collect(), letters(text).collect());
    let is_among = text.chars().count() >= BEGINNING_CHARS && stands.contains(&text);
    !text.is_empty() && (is_among || stands == text)
}

/// What stands in a prompt before a text that was typed in there, and is no part of it.
pub(super) fn stands_before<'a>(text: &str, held: &'a str) -> Option<&'a str> {
    let begin: String = text.trim_start().chars().take(BEGINNING_CHARS).collect();
    let begin = begin.lines().next().unwrap_or_default().trim_end();
    let (all, shown): (String, String) = (letters(text).collect(), letters(held).collect());
    // A part of a long text may be all that is shown.
    if begin.is_empty() || all.contains(&shown) {
        return None;
    }
    let before = held[..held.find(begin)?].trim();
    (!before.is_empty()).then_some(before)
}

/// The characters of a text that are seen.
fn letters(text: &str) -> impl Iterator<Item = char> + '_ {
    let unseen = |letter: &char| matches!(letter, '\u{200b}' | '\u{2060}' | '\u{feff}');
    text.chars().filter(move |letter| !letter.is_whitespace() && !unseen(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Catalogue;

    #[track_caller]
    fn check_told(hook: &str, text: &str, expected: Option<&str>) {
        assert_eq!(told(hook, text).as_deref(), expected, "{hook:?} {text:?}");
    }

    #[test]
    fn a_hook_told_the_same_text_only_where_it_is_the_same() {
        check_told("a b\n", " a b", Some("a hook of its CLI reported the same text"));
        let tabs = "a hook of its CLI reported the same words; from character 2: `    b` instead of \
            `\\tb`";
        check_told("a    b", "a\tb", Some(tabs));
        let unseen = "a hook of its CLI reported the same text without some invisible characters; from \
            character 2: `b` instead of `\\u{200b}b`";
        check_told("ab", "a\u{200b}b", Some(unseen));
        check_told("see README.md", "see @README.md", None);
        check_told("", "", None);
    }

    #[test]
    fn a_text_is_found_whole_among_what_was_said_and_nowhere_else() {
        let catalogue = Catalogue::read(None);
        let said = |cli: &str, lines: &[&str], text: &str| {
            let preset = catalogue.presets[cli].preset.as_ref().unwrap();
            is_said(lines.iter().copied(), preset.composer.as_ref().unwrap(), text)
        };
        let codex = ["› [external] killed mean", "  while 3", "", "• killed", "› Ask anything"];
        assert!(said("codex", &codex, "[external] killed meanwhile 3"));
        assert!(!said("codex", &codex, "[external] killed meanwhile"), "it is a longer one");
        assert!(!said("codex", &codex, "[external] killed meanwhile 34"));
        let answer = ["• › [external] killed meanwhile", "  › [external] killed meanwhile"];
        assert!(!said("codex", &answer, "[external] killed meanwhile"), "the model quotes it");
        let opencode = ["  ┃", "  ┃  [external] two", "  ┃  lines", "  ┃", "", "     OK."];
        assert!(said("opencode", &opencode, "[external] two\nlines"));
        assert!(!said("opencode", &opencode, "[external] two"));
        let gemini = [" > [external] one line", "▀▀▀▀▀▀▀▀", "✦ echo"];
        assert!(said("gemini", &gemini, "[external] one line "));
        let claude = ["❯ [external] one", "", "  line", "", "● echo"];
        assert!(said("claude", &claude, "[external] one\n\nline"));
        assert!(!said("claude", &claude, "[external] one"), "it is a longer one");
        assert!(!said("claude", &claude, "one"), "too short to tell");
    }

    #[test]
    fn what_stands_before_a_text_is_told_from_what_is_shown_of_it() {
        let text = "[external] see the readme\nand more";
        assert_eq!(stands_before(text, "hel[external] see the readme\nand more"), Some("hel"));
        for shown in [text, "readme and more", "[Pasted text #1 +2 lines]", ""] {
            assert_eq!(stands_before(text, shown), None, "{shown:?}");
        }
        assert!(is_left_of("[external] see @README.md", "[external] see README.md"));
        assert!(!is_left_of("[external] see @README.md", "[external] do something else"));
    }

    #[test]
    fn a_text_is_found_in_a_prompt_among_others_unless_it_is_short() {
        assert!(has_words_of("[lead] one two\n three\n[lead] four", "[lead] one two three"));
        assert!(has_words_of("go\n", "go"));
        for draft in ["good", "", "[lead] one"] {
            assert!(!has_words_of(draft, "go") && !has_words_of(draft, "[lead] one two three"));
        }
        assert!(!has_words_of("", ""));
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
