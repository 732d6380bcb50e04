//! One look at a screen: what activity and delivery conclude from.

use std::ops::Range;

use patterm_screen::{Attributes, ProgressReport, Screen, Span};

use crate::presets::{Bar, Composer, Preset};

/// What a screen shows at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Glimpse {
    /// The title the program gave itself.
    pub(crate) title: String,
    /// What the program says of its own state (OSC 7501).
    pub(crate) report: String,
    /// How often it did.
    pub(crate) reports: u64,
    /// It said by OSC 9;4 that it is busy, or that it is not.
    pub(crate) busy: Option<bool>,
    /// The rows that are not blank, lowest first.
    pub(crate) bottom: Vec<String>,
    /// What stands in the prompt box; `None` where no prompt box is seen.
    pub(crate) composer: Option<String>,
    /// The cursor is where an empty prompt has it, on a blank or a placeholder. If nothing was typed, what
    /// stands behind it is left of an earlier picture: a CLI that takes a letter for narrower than it is
    /// drawn does not erase all of it (opencode and codex with `👨‍👩‍👧‍👦`).
    pub(crate) at_start: bool,
    /// How many of those rows belong to the prompt box or stand below it.
    pub(crate) live: usize,
    /// The program takes pastes as such.
    pub(crate) bracketed_paste: bool,
    /// A full-screen program is shown.
    pub(crate) alternate_screen: bool,
}

impl Glimpse {
    /// Looks at a screen as one who knows this CLI.
    pub(crate) fn of(screen: &Screen, preset: Option<&Preset>) -> Self {
        let modes = screen.modes();
        let composer = preset.and_then(|preset| preset.composer.as_ref());
        let rows = screen.rows();
        let is_shown = |row: &&String| !row.trim().is_empty();
        let bottom = rows.iter().rev().filter(is_shown).cloned().collect();
        let prompt = composer.and_then(|composer| rows_of(composer, screen));
        let live = prompt
            .map_or(0, |prompt| rows.iter().skip(prompt.start.into()).filter(is_shown).count());
        Self {
            title: screen.title().to_owned(),
            report: screen.report().to_owned(),
            reports: screen.reports(),
            busy: screen.progress().map(|progress| progress != ProgressReport::Off),
            bottom,
            composer: composer.and_then(|composer| read(composer, screen)),
            at_start: composer.is_some_and(|composer| is_at_start(composer, screen)),
            live,
            bracketed_paste: modes.bracketed_paste,
            alternate_screen: modes.alternate_screen,
        }
    }
}

/// What stands in the prompt box. Faint text is what the CLI itself shows there, a placeholder or a
/// suggestion, and does not count. Rows are joined by line ends.
fn read(composer: &Composer, screen: &Screen) -> Option<String> {
    let rows = rows_of(composer, screen)?;
    let cursor = screen.cursor();
    if composer.has_cursor && !(cursor.visible && rows.contains(&cursor.row)) {
        return None;
    }
    let mut lines = Vec::new();
    for row in rows.clone() {
        let first = row == rows.start || composer.bar.is_some();
        let before = if first { Some(&composer.begin) } else { composer.more.as_ref() };
        lines.push(typed_text(composer, screen, row, before));
    }
    let text = lines.join("\n").trim_matches('\n').trim_end().to_owned();
    match &composer.placeholder {
        Some(placeholder) if placeholder.is_match(&text) => Some(String::new()),
        _ => Some(text),
    }
}

/// Whether the cursor is at the beginning of the prompt, on a blank or a placeholder; only of a CLI with a
/// cursor of the terminal's.
fn is_at_start(composer: &Composer, screen: &Screen) -> bool {
    let cursor = screen.cursor();
    let rows = rows_of(composer, screen);
    let Some(rows) = rows.filter(|rows| composer.has_cursor && rows.contains(&cursor.row)) else {
        return false;
    };
    let behind_mark = |row: u16| {
        let whole = screen.row(row);
        let first = row == rows.start || composer.bar.is_some();
        let before = if first { Some(&composer.begin) } else { composer.more.as_ref() };
        let begin = before.and_then(|before| before.find(&whole)).map_or(0, |found| found.end());
        (begin, whole)
    };
    let above_is_blank = || {
        (rows.start..cursor.row).map(behind_mark).all(|(begin, row)| row[begin..].trim().is_empty())
    };
    let (begin, row) = behind_mark(cursor.row);
    let is_text = row[begin..].starts_with(|c: char| !c.is_whitespace());
    // Marks are of narrow letters.
    usize::from(cursor.column) == row[..begin].chars().count()
        && (!is_text || is_faint_at(screen, cursor.row, begin))
        && above_is_blank()
}

/// Whether the CLI wrote what stands at this byte of a row.
fn is_faint_at(screen: &Screen, row: u16, byte: usize) -> bool {
    let runs = screen.styled_row(row).spans;
    let mut end = 0;
    let at = runs.iter().position(|run| {
        end += run.text.len();
        byte < end
    });
    at.is_some_and(|at| is_faint(&runs[at], runs.get(at + 1)))
}

/// The rows of the prompt box.
fn rows_of(composer: &Composer, screen: &Screen) -> Option<Range<u16>> {
    match composer.bar {
        Some(bar) => barred_rows(composer, bar, screen),
        None => rows_from_mark(composer, screen),
    }
}

/// The rows of a prompt box that a mark begins.
fn rows_from_mark(composer: &Composer, screen: &Screen) -> Option<Range<u16>> {
    let rows = screen.size().rows;
    let first = (0..rows).rev().find(|row| composer.begin.is_match(&screen.row(*row)))?;
    // A message in the conversation may begin with the same mark. It is not the prompt box if other
    // text follows before the end of the box, or if something covers the place below it.
    let goes_on = |row: u16| {
        let text = screen.row(row);
        let more = composer.more.as_ref();
        text.trim().is_empty() || more.is_none_or(|more| more.is_match(&text))
    };
    let covers = |row: u16| {
        composer.covered.as_ref().is_some_and(|covered| covered.is_match(&screen.row(row)))
    };
    // The last one that the box reaches: what stands in the box may look like its end, and a CLI may
    // leave a piece of an earlier picture below it.
    let reach = (first + 1..rows).find(|row| !goes_on(*row)).map_or(rows, |row| row + 1);
    let end = (first + 1..reach).rev().find(|row| composer.end.is_match(&screen.row(*row)))?;
    (!(end + 1..rows).any(covers)).then_some(first..end)
}

/// The rows of a prompt box that has a bar at its left.
fn barred_rows(composer: &Composer, bar: Bar, screen: &Screen) -> Option<Range<u16>> {
    let rows = screen.size().rows;
    let end = (0..rows).rev().find(|row| composer.end.is_match(&screen.row(*row)))?;
    let barred = (0..end).rev().take_while(|row| composer.begin.is_match(&screen.row(*row)));
    let first = barred.last()?;
    Some(first..end.saturating_sub(bar.below).max(first))
}

/// Whether a CLI, not a person, wrote a piece of its prompt: it is faint, or it is the cursor's
/// cell on the first letter of something faint.
fn is_faint(run: &Span, next: Option<&Span>) -> bool {
    let has = |run: &Span, attribute| run.style.attributes.contains(attribute);
    let cursor_on_faint = || next.is_some_and(|next| has(next, Attributes::DIM));
    has(run, Attributes::DIM)
        || (has(run, Attributes::INVERSE) && run.text.chars().count() == 1 && cursor_on_faint())
}

/// What somebody typed of a row: without what stands before it, the border behind it, and what is
/// faint.
fn typed_text(
    composer: &Composer,
    screen: &Screen,
    row: u16,
    before: Option<&regex::Regex>,
) -> String {
    let whole = screen.row(row);
    let begin = before.and_then(|before| before.find(&whole)).map_or(0, |found| found.end());
    let border = composer.border.as_ref().and_then(|border| border.find(&whole[begin..]));
    let end = border.map_or(whole.len(), |found| begin + found.start());
    let mut typed = String::new();
    let mut at = 0;
    let runs = screen.styled_row(row).spans;
    for (number, run) in runs.iter().enumerate() {
        let from = begin.saturating_sub(at).min(run.text.len());
        let to = end.saturating_sub(at).clamp(from, run.text.len());
        let faint = is_faint(run, runs.get(number + 1));
        if let Some(piece) = run.text.get(from..to).filter(|_| !faint) {
            typed.push_str(piece);
        }
        at += run.text.len();
    }
    typed.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use patterm_screen::Size;

    use super::*;
    use crate::presets::Catalogue;

    /// What is read out of the prompt box of a CLI that shows these rows; the cursor is behind the
    /// last letter of the row that ends with `|`.
    #[track_caller]
    fn check(cli: &str, rows: &[&str], expected: Option<&str>) {
        let catalogue = Catalogue::read(None);
        let preset = catalogue.presets[cli].preset.as_ref().unwrap();
        let mut screen = Screen::new(Size::new(24, 80));
        let lines: Vec<_> = rows.iter().map(|row| row.trim_end_matches('|')).collect();
        screen.feed(lines.join("\r\n").as_bytes());
        if let Some(row) = rows.iter().position(|row| row.ends_with('|')) {
            let column = lines[row].chars().count();
            screen.feed(format!("\x1b[{};{}H", row + 1, column + 1).as_bytes());
        }
        assert_eq!(Glimpse::of(&screen, Some(preset)).composer.as_deref(), expected);
    }

    #[test]
    fn an_old_message_and_its_answer_are_no_draft() {
        let codex = ["› an old message", "", "• its answer", "", "! ls|", "", "  m · /tmp/p"];
        check("codex", &codex, None);
        let codex = [
            "› an old message",
            "",
            "• its answer",
            "",
            "› a draft|",
            "  of two",
            "",
            "  m · /tmp/p",
        ];
        check("codex", &codex, Some("a draft\nof two"));
        let gemini = ["▄▄▄▄", " > an old message", "▀▀▀▀", "✦ its answer", "╭────╮", "│ ? Shell"];
        check("gemini", &gemini, None);
        let gemini =
            ["▄▄▄▄", " > old", "▀▀▀▀", "✦ its answer", "▄▄▄▄", " > a draft", "▀▀▀▀", " /tmp"];
        check("gemini", &gemini, Some("a draft"));
    }

    #[test]
    fn what_is_left_of_an_earlier_picture_below_the_prompt_box_is_no_part_of_it() {
        let footer = [" workspace (/directory)      sandbox", " /tmp/p             no sandbox", ""];
        let mut gemini = vec!["▄▄▄▄", " > a draft", "   of two", "▀▀▀▀"];
        gemini.extend(footer);
        gemini.push("▀▀▀▀");
        gemini.extend(footer);
        check("gemini", &gemini, Some("a draft\nof two"));
    }

    /// What opencode wrote, byte for byte: the text at the sixth column, fifteen blanks over it, and the
    /// cursor back at the sixth column. The last letters stay.
    #[test]
    fn an_empty_prompt_in_which_old_letters_are_left_is_told_from_a_draft() {
        let catalogue = Catalogue::read(None);
        let preset = catalogue.presets["opencode"].preset.as_ref().unwrap();
        let mut screen = Screen::new(Size::new(24, 80));
        for row in 17..=20 {
            screen.feed(format!("\x1b[{row};3H┃").as_bytes());
        }
        screen.feed("\x1b[21;3H╹▀▀▀▀▀▀▀▀▀▀".as_bytes());
        let mut look = |written: &str| {
            screen.feed(written.as_bytes());
            let glimpse = Glimpse::of(&screen, Some(preset));
            (glimpse.composer.unwrap().trim().to_owned(), glimpse.at_start)
        };
        assert!(look("\x1b[18;6H").0.is_empty());
        let (stands, at_start) = look("\x1b[18;6H[external] 👨‍👩‍👧‍👦\x1b[18;25H");
        assert!(stands.starts_with("[external]") && !at_start, "{stands}");
        let (stands, at_start) = look("\x1b[18;6H               \x1b[18;6H");
        assert!(!stands.is_empty() && at_start, "{stands}");
        // A draft, with the cursor behind it and at its beginning.
        assert!(!look("\x1b[18;6Hhello\x1b[18;11H").1);
        assert!(!look("\x1b[18;6H").1);
        // A placeholder, as codex has one, before such letters.
        assert!(look("\x1b[18;6H\x1b[2mAsk anything\x1b[m👧\x1b[18;6H").1);
    }
}
