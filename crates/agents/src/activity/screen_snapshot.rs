//! A snapshot of a screen, from which activity and delivery draw their conclusions.

use std::ops::Range;

use patterm_screen::{Attributes, ProgressReport, Screen, Span};

use crate::presets::{Bar, Composer, Preset};

/// What a screen shows at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScreenSnapshot {
    /// The title that the program set.
    pub title: String,
    /// The state that the program reports (OSC 7501).
    pub report: String,
    /// How many such reports it has sent.
    pub reports: u64,
    /// Whether it reported by OSC 9;4 that it is busy; `None` without such a report.
    pub busy: Option<bool>,
    /// The rows that are not blank, lowest first.
    pub bottom: Vec<String>,
    /// The lowest row of the screen is not blank: something may continue below it.
    pub is_full: bool,
    /// The content of the prompt box; `None` if no prompt box is visible.
    pub composer: Option<String>,
    /// The cursor is where it is in an empty prompt, on a blank or a placeholder. If nothing was
    /// typed, any text after it is left over from an earlier frame: a CLI that takes a letter for
    /// narrower than it is drawn does not erase all of it (opencode and codex with `👨‍👩‍👧‍👦`).
    pub at_start: bool,
    /// How many of those rows belong to the prompt box or are below it.
    pub run: usize,
    /// The program has enabled bracketed paste.
    pub bracketed_paste: bool,
    /// The alternate screen is active.
    pub alternate_screen: bool,
}

impl ScreenSnapshot {
    /// Takes a snapshot; the preset says how to find the prompt box.
    pub fn of(screen: &Screen, preset: Option<&Preset>) -> Self {
        let modes = screen.modes();
        let composer = preset.and_then(|preset| preset.composer.as_ref());
        let rows = screen.rows();
        let is_shown = |row: &&String| !row.trim().is_empty();
        let bottom = rows.iter().rev().filter(is_shown).cloned().collect();
        let prompt = composer.and_then(|composer| rows_of(composer, screen));
        let run = prompt
            .map_or(0, |prompt| rows.iter().skip(prompt.start.into()).filter(is_shown).count());
        Self {
            title: screen.title().to_owned(),
            report: screen.report().to_owned(),
            reports: screen.reports(),
            busy: screen.progress().map(|progress| progress != ProgressReport::Off),
            bottom,
            is_full: rows.last().is_some_and(|row| !row.trim().is_empty()),
            composer: composer.and_then(|composer| composer_text(composer, screen)),
            at_start: composer.is_some_and(|composer| is_at_start(composer, screen)),
            run,
            bracketed_paste: modes.bracketed_paste,
            alternate_screen: modes.alternate_screen,
        }
    }
}

/// The content of the prompt box, its rows joined by line feeds. Faint text does not count: the CLI
/// shows it there as a placeholder or a suggestion.
fn composer_text(composer: &Composer, screen: &Screen) -> Option<String> {
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

/// Whether the cursor is at the beginning of the prompt, on a blank or a placeholder; only for a
/// CLI that uses the terminal's cursor.
fn is_at_start(composer: &Composer, screen: &Screen) -> bool {
    let cursor = screen.cursor();
    let rows = rows_of(composer, screen);
    let Some(rows) = rows.filter(|rows| composer.has_cursor && rows.contains(&cursor.row)) else {
        return false;
    };
    let after_mark = |row: u16| {
        let whole = screen.row(row);
        let first = row == rows.start || composer.bar.is_some();
        let before = if first { Some(&composer.begin) } else { composer.more.as_ref() };
        let begin = before.and_then(|before| before.find(&whole)).map_or(0, |found| found.end());
        (begin, whole)
    };
    let above_is_blank = || {
        (rows.start..cursor.row).map(after_mark).all(|(begin, row)| row[begin..].trim().is_empty())
    };
    let (begin, row) = after_mark(cursor.row);
    let is_text = row[begin..].starts_with(|c: char| !c.is_whitespace());
    // Marks consist of narrow characters.
    usize::from(cursor.column) == row[..begin].chars().count()
        && (!is_text || is_faint_at(screen, cursor.row, begin))
        && above_is_blank()
}

/// Whether the CLI itself wrote the text at this byte of a row.
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

/// The rows of a prompt box that begins with a mark.
fn rows_from_mark(composer: &Composer, screen: &Screen) -> Option<Range<u16>> {
    let rows = screen.size().rows;
    let first = (0..rows).rev().find(|row| composer.begin.is_match(&screen.row(*row)))?;
    // A message in the conversation may begin with the same mark. It is not the prompt box if other
    // text follows before the end of the box, or if something covers the rows below it.
    let goes_on = |row: u16| {
        let text = screen.row(row);
        let more = composer.more.as_ref();
        text.trim().is_empty() || more.is_none_or(|more| more.is_match(&text))
    };
    let covers = |row: u16| {
        composer.covered.as_ref().is_some_and(|covered| covered.is_match(&screen.row(row)))
    };
    // The last possible end: text in the box may look like its end, and a CLI may leave parts of an
    // earlier frame below it.
    let reach = (first + 1..rows).find(|row| !goes_on(*row)).map_or(rows, |row| row + 1);
    let end = (first + 1..reach).rev().find(|row| composer.end.is_match(&screen.row(*row)))?;
    (!(end + 1..rows).any(covers)).then_some(first..end)
}

/// The rows of a prompt box with a bar at its left.
fn barred_rows(composer: &Composer, bar: Bar, screen: &Screen) -> Option<Range<u16>> {
    let rows = screen.size().rows;
    let end = (0..rows).rev().find(|row| composer.end.is_match(&screen.row(*row)))?;
    let barred = (0..end).rev().take_while(|row| composer.begin.is_match(&screen.row(*row)));
    let first = barred.last()?;
    Some(first..end.saturating_sub(bar.below).max(first))
}

/// Whether the CLI, not a person, wrote a piece of its prompt: it is faint, or it is the cursor's
/// cell on the first letter of faint text.
fn is_faint(run: &Span, next: Option<&Span>) -> bool {
    let has = |run: &Span, attribute| run.style.attributes.contains(attribute);
    let cursor_on_faint = || next.is_some_and(|next| has(next, Attributes::DIM));
    has(run, Attributes::DIM)
        || (has(run, Attributes::INVERSE) && run.text.chars().count() == 1 && cursor_on_faint())
}

/// The part of a row that somebody typed: without the mark before it, the border after it, and
/// faint text.
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

    /// Checks the content of the prompt box of a CLI that shows these rows; the cursor is after the
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
        assert_eq!(ScreenSnapshot::of(&screen, Some(preset)).composer.as_deref(), expected);
    }

    #[test]
    fn an_old_message_and_its_answer_are_not_a_draft() {
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
    fn leftovers_of_an_earlier_frame_below_the_prompt_box_are_ignored() {
        let footer = [" workspace (/directory)      sandbox", " /tmp/p             no sandbox", ""];
        let mut gemini = vec!["▄▄▄▄", " > a draft", "   of two", "▀▀▀▀"];
        gemini.extend(footer);
        gemini.push("▀▀▀▀");
        gemini.extend(footer);
        check("gemini", &gemini, Some("a draft\nof two"));
    }

    /// The bytes that opencode wrote: the text at the sixth column, fifteen blanks over it, and the
    /// cursor back at the sixth column. The last letters remain.
    #[test]
    fn an_empty_prompt_with_leftover_letters_is_distinguished_from_a_draft() {
        let catalogue = Catalogue::read(None);
        let preset = catalogue.presets["opencode"].preset.as_ref().unwrap();
        let mut screen = Screen::new(Size::new(24, 80));
        // A terminal that gives each character of a cluster its own columns.
        screen.feed(b"\x1b[?2027l");
        for row in 17..=20 {
            screen.feed(format!("\x1b[{row};3H┃").as_bytes());
        }
        screen.feed("\x1b[21;3H╹▀▀▀▀▀▀▀▀▀▀".as_bytes());
        let mut look = |written: &str| {
            screen.feed(written.as_bytes());
            let snapshot = ScreenSnapshot::of(&screen, Some(preset));
            (snapshot.composer.unwrap().trim().to_owned(), snapshot.at_start)
        };
        assert!(look("\x1b[18;6H").0.is_empty());
        let (text, at_start) = look("\x1b[18;6H[external] 👨‍👩‍👧‍👦\x1b[18;25H");
        assert!(text.starts_with("[external]") && !at_start, "{text}");
        let (text, at_start) = look("\x1b[18;6H               \x1b[18;6H");
        assert!(!text.is_empty() && at_start, "{text}");
        // A draft, with the cursor after it and at its beginning.
        assert!(!look("\x1b[18;6Hhello\x1b[18;11H").1);
        assert!(!look("\x1b[18;6H").1);
        // A placeholder like codex's, before such letters.
        assert!(look("\x1b[18;6H\x1b[2mAsk anything\x1b[m👧\x1b[18;6H").1);
    }
}
