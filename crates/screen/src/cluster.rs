//! Which characters share a cell, and how many columns it takes: the clusters of Unicode (UAX 29), each one or two
//! columns wide. Printing and reading text back use the same rules, so that text gives the same cells again.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Characters kept in one cell after the first. Marks on a letter are up to four, joined emoji up to nine; a program
/// that never stops sending them must not exhaust memory.
pub(crate) const MAX_MARKS: usize = 16;

/// Joins emoji.
pub(crate) const JOINER: char = '\u{200d}';

/// Asks for a symbol as text, in one column.
pub(crate) const AS_TEXT: char = '\u{fe0e}';

/// Asks for a symbol as emoji, in two columns.
pub(crate) const AS_EMOJI: char = '\u{fe0f}';

/// The width of a character by itself, in columns: 0, 1 or 2.
#[inline]
#[must_use]
pub fn width(character: char) -> usize {
    match character.width() {
        // The fillers show as a blank syllable and a blank half of one.
        Some(0) | None => match character {
            '\u{3164}' => 2,
            '\u{ffa0}' => 1,
            _ => 0,
        },
        // Half of a flag is as wide as the flag.
        Some(1) => 1 + usize::from(matches!(character, '\u{1f1e6}'..='\u{1f1ff}')),
        // One character counts as three columns; no terminal follows.
        Some(2) => 2,
        Some(_) => 1,
    }
}

/// The width of a character that is in a cell of its own unless a joiner is before it; `None` if only [`width`] and
/// [`is_joining`] can tell. Most characters of most scripts, without a table.
#[inline]
pub(crate) fn simple_width(character: char) -> Option<usize> {
    match u32::from(character) {
        // Latin; Greek and Cyrillic.
        0xa0..=0xac | 0xae..=0x2ff | 0x370..0x483 | 0x48a..0x530 => Some(1),
        // Punctuation, arrows and mathematics, lines and blocks.
        0x2010..0x2028 | 0x2030..0x2060 | 0x2190..0x231a | 0x2500..0x25fd => Some(1),
        // Kana, ideographs, Hangul, and Latin in two columns.
        0x3041..0x3097 | 0x30a0..0x3100 | 0x3400..0x4dc0 | 0x4e00..0xa48d => Some(2),
        0xac00..0xd7a4 | 0xff01..0xff61 => Some(2),
        _ => None,
    }
}

/// A cheap check: false if `character`, which has columns of its own, certainly begins a new cluster after `before`.
#[inline]
pub(crate) fn may_join(before: char, character: char) -> bool {
    match u32::from(character) {
        0..0x900 => false,
        // Scripts with conjuncts and with vowels that take a column.
        0x900..0x2000 | 0xa800..0xac00 | 0x1_1000..0x1_2000 => u32::from(before) >= 0x900,
        // Half of a flag; skin tones.
        0x1_f1e6..=0x1_f1ff | 0x1_f3fb..=0x1_f3ff => before > '\u{7f}',
        _ => before == JOINER,
    }
}

/// Whether a character could join some other, as far as it alone tells; a joiner before it joins more.
#[inline]
pub(crate) fn is_joining(character: char) -> bool {
    // The most frequent first: Latin and its neighbours, then East Asian text.
    match u32::from(character) {
        0..0x900 => false,
        0x2000..0xa800 => false,
        0x900..0x2000 | 0xa800..0xac00 | 0x1_1000..0x1_2000 => true,
        code => matches!(code, 0x1_f1e6..=0x1_f1ff | 0x1_f3fb..=0x1_f3ff),
    }
}

/// Whether a character with columns of its own continues a cluster, given as its first character and the others.
pub(crate) fn joins(first: char, others: &[char], character: char) -> bool {
    match character {
        '\u{1f1e6}'..='\u{1f1ff}' if others.is_empty() => {
            matches!(first, '\u{1f1e6}'..='\u{1f1ff}')
        }
        // By the letter of UAX 29 a skin tone joins anything; on anything but emoji it is shown by itself.
        '\u{1f3fb}'..='\u{1f3ff}' => is_pictographic(first),
        _ if others.last() == Some(&JOINER) && is_emoji(first) && is_emoji(character) => true,
        _ => is_one(std::iter::once(first).chain(others.iter().copied()).chain([character])),
    }
}

/// Whether characters, as many as a cell has at most and one more, are one cluster.
fn is_one(characters: impl Iterator<Item = char>) -> bool {
    let (mut bytes, mut length) = ([0; 4 * (MAX_MARKS + 2)], 0);
    for character in characters {
        let Some(rest) = bytes.get_mut(length..length + 4) else { return false };
        length += character.encode_utf8(rest).len();
    }
    let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
    text.graphemes(true).nth(1).is_none()
}

/// Most emoji, without a table.
fn is_emoji(character: char) -> bool {
    matches!(u32::from(character), 0x1_f300..=0x1_f3fa | 0x1_f400..=0x1_f53d | 0x1_f546..=0x1_f64f
        | 0x1_f680..=0x1_f6ff | 0x1_f90c..=0x1_f93a | 0x1_f947..=0x1_faff)
}

/// Whether a character can be part of a joined emoji.
fn is_pictographic(character: char) -> bool {
    is_emoji(character)
        || (character != JOINER && is_one([character, JOINER, character].into_iter()))
}

/// The width of a cluster of this first character and width after another character was added to it. `is_second`: only
/// a selector right after the first character changes its presentation.
pub(crate) fn extended(first: char, columns: usize, added: char, is_second: bool) -> usize {
    let presented = || {
        let mut bytes = [0; 8];
        let start = first.encode_utf8(&mut bytes).len();
        let end = start + added.encode_utf8(&mut bytes[start..]).len();
        std::str::from_utf8(&bytes[..end]).map_or(0, UnicodeWidthStr::width)
    };
    match added {
        AS_EMOJI if is_second && presented() == 2 => 2,
        AS_TEXT if is_second && columns == 2 && presented() == 1 => 1,
        AS_EMOJI | AS_TEXT => columns,
        _ if width(added) > 0 => 2,
        _ => columns,
    }
}

/// Splits text into clusters, each with its width. One of width 0 has no character of its own: its marks belong to
/// the cell before it.
pub fn clusters(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (cluster, columns) = first_cluster(rest)?;
        rest = &rest[cluster.len()..];
        Some((cluster, columns))
    })
}

fn first_cluster(text: &str) -> Option<(&str, usize)> {
    let bytes = text.as_bytes();
    let first = text.chars().next()?;
    if first.is_ascii() && bytes.get(1).is_none_or(u8::is_ascii) {
        return Some((&text[..1], width(first)));
    }
    let (mut columns, mut end) = (width(first), first.len_utf8());
    let mut others = Vec::new();
    for (at, character) in text.char_indices().skip(1) {
        let takes_columns = width(character) > 0;
        let last = *others.last().unwrap_or(&first);
        if takes_columns
            && (columns == 0 || !may_join(last, character) || !joins(first, &others, character))
        {
            break;
        }
        if columns > 0 {
            columns = extended(first, columns, character, others.is_empty());
        }
        others.push(character);
        end = at + character.len_utf8();
    }
    Some((&text[..end], columns))
}

/// Whether a text has a character that can be seen: not only blanks, joiners or marks without a letter.
#[must_use]
pub fn has_visible_character(text: &str) -> bool {
    /// The pattern without dots is as wide as the others.
    const EMPTY_BRAILLE: char = '\u{2800}';
    text.chars()
        .any(|c| width(c) > 0 && !c.is_whitespace() && !c.is_control() && c != EMPTY_BRAILLE)
}

/// The width of a text in columns.
#[must_use]
pub fn text_width(text: &str) -> usize {
    clusters(text).map(|(_, columns)| columns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, usize)]) {
        assert_eq!(clusters(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn simple_characters_have_the_width_of_the_table_and_join_nothing() {
        let mut count = 0;
        for character in '\0'..=char::MAX {
            let Some(simple) = simple_width(character) else { continue };
            assert_eq!(simple, width(character), "U+{:04X}", u32::from(character));
            assert!(!is_joining(character) && !character.is_control());
            assert!(![JOINER, AS_TEXT, AS_EMOJI].contains(&character));
            for before in ['a', '漢', '가', '🇩', 'क', '\u{94d}', '\u{fe0f}'] {
                assert!(!may_join(before, character), "U+{:04X}", u32::from(character));
            }
            count += 1;
        }
        assert!(count > 40_000, "{count}");
    }

    #[test]
    fn clusters_have_their_widths() {
        check("ab", &[("a", 1), ("b", 1)]);
        check("漢字", &[("漢", 2), ("字", 2)]);
        check("e\u{301}x", &[("e\u{301}", 1), ("x", 1)]);
        check("👨\u{200d}👩\u{200d}👧!", &[("👨\u{200d}👩\u{200d}👧", 2), ("!", 1)]);
        check("❤\u{fe0f}❤", &[("❤\u{fe0f}", 2), ("❤", 1)]);
        check("⌚\u{fe0e}⌚", &[("⌚\u{fe0e}", 1), ("⌚", 2)]);
        check("1\u{fe0f}\u{20e3}1", &[("1\u{fe0f}\u{20e3}", 2), ("1", 1)]);
        check("👍🏽👍", &[("👍🏽", 2), ("👍", 2)]);
        check("a🏽", &[("a", 1), ("🏽", 2)]);
        check("🇩🇪🇫🇷🇮", &[("🇩🇪", 2), ("🇫🇷", 2), ("🇮", 2)]);
        check("क्षत", &[("क्ष", 2), ("त", 1)]);
        check("नि", &[("नि", 2)]);
        check("각가", &[("각", 2), ("가", 2)]);
        check("\u{301}a", &[("\u{301}", 0), ("a", 1)]);
        check("\u{3164}", &[("\u{3164}", 2)]);
        check("🏴\u{e0067}\u{e0062}\u{e007f}", &[("🏴\u{e0067}\u{e0062}\u{e007f}", 2)]);
    }
}
