//! A dialog on an agent's screen: its question, its options and how to choose one; never its footer.

use std::sync::LazyLock;

use patterm_screen::{Screen, Style};
use patterm_store::hex;
use regex::Regex;
use sha2::{Digest as _, Sha256};

use crate::activity_state::{AnswerWay, Dialog};
use crate::presets::Rule;

/// Characters of one option in one line with the others: enough to tell them apart.
const OPTION_CHARS: usize = 48;

/// Characters of an option by itself: a long command prefix that it allows, but not a whole screen.
const LABEL_CHARS: usize = 400;

/// Characters of the question and its subject together: a long command, but not a whole file.
const QUESTION_CHARS: usize = 2_000;

/// Characters of the question in one line with its options: what a notification shows.
const LINE_QUESTION_CHARS: usize = 200;

/// A program may have shortened a report of this length itself.
const LONG_REPORT_CHARS: usize = 100;

/// How many rows above its options a question may begin: its subject may be in between.
const ROWS_ABOVE: usize = 12;

/// A question has no more rows, even in a narrow pane.
const QUESTION_ROWS: usize = 5;

/// How many rows a dialog without a border at its top is assumed to have: those that are searched for its question.
const UNFRAMED_ROWS: usize = 24;

/// The shortest drawn line that is the top of a dialog; a shorter one may be a table in it.
const TOP_LINE_CHARS: usize = 10;

/// Rows of hints below options that share one row; narrow panes wrap them.
const HINT_ROWS: usize = 4;

/// Digits of the hash that identifies a dialog: no two share them by chance, or by design.
const HASH_DIGITS: usize = 32;

/// The patterns that find the parts of a dialog.
struct Patterns {
    /// An option with its number, and the mark before it.
    numbered: Regex,
    /// The row of a list without numbers on which the cursor is.
    at_cursor: Regex,
    /// A question: it begins with its row, or after another sentence.
    question: Regex,
    /// A question that does not say what it is about.
    general: Regex,
}

/// The marks of the option with the cursor.
const CURSORS: [char; 5] = ['❯', '›', '>', '●', '▶'];

/// Never `None`: a test compiles them.
static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let general = "^(?:Do you want to proceed|Would you like to (?:run|make) the following|\
                   Do you want to allow Claude|Allow execution of \\[|Apply this change)";
    Some(Patterns {
        numbered: Regex::new(r"^(?:([❯›>●○•▶]) *)?(\d{1,2})[.)] +(\S.*)$").ok()?,
        at_cursor: Regex::new(r"^[❯›●] +\S").ok()?,
        question: Regex::new(r#"(?:^|[.:!] )([^.:!?]*[\w"'\])]\?)(?:\s|$)"#).ok()?,
        general: Regex::new(general).ok()?,
    })
});

/// One row of a dialog.
#[derive(Debug)]
struct Row {
    /// Its words, without borders and blanks around them.
    text: String,
    /// The column in which they begin.
    column: usize,
    /// It is a drawn line.
    is_line: bool,
    /// It has a border at its left.
    barred: bool,
}

fn is_border(c: char) -> bool {
    c.is_whitespace() || matches!(c, '│' | '┃')
}

impl Row {
    fn of(row: &str) -> Self {
        let column = row.chars().take_while(|c| is_border(*c)).count();
        let text = row.trim_matches(is_border).to_owned();
        let is_line = !text.chars().any(char::is_alphanumeric) && !text.is_empty();
        let barred = row.trim_start().starts_with(['│', '┃']);
        Self { text, column, is_line, barred }
    }

    /// Whether it is the top of a dialog.
    fn is_top(&self) -> bool {
        let drawn = self.text.chars().filter(|c| matches!(c, '─' | '━' | '═' | '▔')).count();
        self.is_line && (drawn >= TOP_LINE_CHARS || self.text.starts_with(['╭', '┌', '╔']))
    }

    /// Whether it is a line around a command. An agent's text is never as far left.
    fn is_frame(&self) -> bool {
        self.is_line && self.column == 0 && self.text.starts_with('╌')
    }

    /// Whether it begins as a message, a prompt or the option with the cursor does.
    fn has_mark(&self) -> bool {
        let after = self.text.strip_prefix(CURSORS);
        after.is_some_and(|after| after.is_empty() || after.starts_with(' '))
    }

    /// The column after its words.
    fn end(&self) -> usize {
        self.column + self.text.chars().count()
    }

    /// Its words without the mark of the cursor, which may move while the dialog stays the same.
    fn without_cursor(&self) -> &str {
        self.text.trim_start_matches(CURSORS).trim_start()
    }
}

/// The options of a dialog.
#[derive(Debug, Default)]
struct Options {
    /// The rows in which they begin and end.
    first: usize,
    last: usize,
    labels: Vec<String>,
    /// They have numbers, which their labels begin with.
    numbered: bool,
    /// They share one row.
    in_one_row: bool,
    /// What that row shows before them: the question, or its end.
    before: String,
    /// The option with the cursor.
    cursor: Option<usize>,
    /// The screen ends with the last of them: there may be more below.
    is_cut: bool,
}

/// Where the dialog that a rule has matched is.
#[derive(Debug)]
pub(super) struct Place {
    /// The rows that are searched, the lowest last.
    rows: Vec<Row>,
    options: Options,
    /// Its first row: no text above it belongs to it.
    begin: usize,
}

impl Place {
    /// How many of the lowest rows it has.
    pub(super) fn height(&self) -> usize {
        self.rows.len() - self.begin
    }
}

/// Finds the dialog that a rule has matched. `bottom` are the rows of the screen, the lowest first, of which its
/// options are among the first `most`. `is_full`: the screen has no blank row below them.
pub(super) fn place(bottom: &[String], most: usize, rule: &Rule, is_full: bool) -> Option<Place> {
    let patterns = PATTERNS.as_ref()?;
    let shown = bottom.get(..most).unwrap_or(bottom);
    let all: Vec<Row> = bottom.iter().rev().map(|row| Row::of(row)).collect();
    let higher = all.len() - shown.len();
    let rows = &all[higher..];
    let in_row = rule.options.as_ref().and_then(|options| in_one_row(rows, options));
    let in_row = in_row.filter(|found| !is_old(found, shown, rows, rule));
    // An answer above a dialog may contain a list, and a list may be about such a row.
    let listed = numbered(rows, patterns)
        .filter(|listed| in_row.as_ref().is_none_or(|row| row.last < listed.first));
    let mut options = listed.or(in_row).or_else(|| in_list(rows, patterns))?;
    options.is_cut =
        is_full && rule.approves.is_some() && options.numbered && options.last + 1 == rows.len();
    (options.first, options.last) = (options.first + higher, options.last + higher);
    let begin = begin(&all, &options, rule, patterns);
    Some(Place { rows: all, options, begin })
}

/// Whether options in one row belong to an earlier dialog, below which the rule has matched another one.
fn is_old(options: &Options, bottom: &[String], rows: &[Row], rule: &Rule) -> bool {
    let below = &rows[options.last + 1..];
    let matches = |row: &String| rule.bottom.as_ref().is_some_and(|bottom| bottom.is_match(row));
    let (lower, own) = (&bottom[..below.len()], &bottom[below.len()]);
    let another = matches(own) && lower.iter().any(matches);
    another || below.len() > HINT_ROWS || below.iter().any(Row::has_mark)
}

/// The first row of a dialog: below a border, or below an earlier dialog or message.
fn begin(rows: &[Row], options: &Options, rule: &Rule, patterns: &Patterns) -> usize {
    let is_option = |row: &Row| patterns.numbered.is_match(&row.text);
    let answered =
        |row: &Row| rule.options.as_ref().is_some_and(|options| options.is_match(&row.text));
    let is_earlier = |row: &Row| answered(row) || is_option(row) && row.has_mark();
    let above = &rows[..options.first];
    if rule.approves.is_some() && !rows[options.first].barred {
        // Its own text is indented, whatever it contains; messages begin at the left.
        return above.iter().rposition(|row| row.column == 0).map_or(0, |at| at + 1);
    }
    let after_earlier = above.iter().rposition(is_earlier).map_or(0, |at| at + 1);
    let top = match rows[options.first].barred {
        true => {
            let inside = above.iter().rev().take_while(|row| row.barred).count();
            let first = above.len() - inside;
            first.checked_sub(1).filter(|at| above[*at].is_top()).or(Some(first))
        }
        false => above.iter().rposition(|row| row.is_top() && !row.barred && row.column == 0),
    };
    // What is between its lines may look like anything.
    if above[top.unwrap_or(0)..].iter().any(Row::is_frame) {
        return top.unwrap_or(0);
    }
    if let Some(top) = top {
        return top.max(after_earlier);
    }
    // Without a border, other text cannot be told from it: in doubt it is not part of it.
    let is_other = |row: &Row| is_option(row) || row.has_mark();
    above.iter().rposition(is_other).map_or(0, |at| at + 1).max(after_earlier)
}

/// The dialog at a place. `quotes` is what the preset quotes of it.
pub(super) fn find(
    place: &Place,
    asked: Option<&str>,
    quotes: &[String],
    (name, rule): (&str, &Rule),
) -> Option<Dialog> {
    let patterns = PATTERNS.as_ref()?;
    let (options, above) = (&place.options, &place.rows[place.begin..place.options.first]);
    let seen = match approval(above, place.begin == 0, rule) {
        Some(approval) => Some(approval),
        None if options.before.is_empty() => question(above, quotes, patterns),
        None => Some(whole_question(&options.before, above)),
    };
    let question = match asked {
        Some(asked) => reported(asked, above, seen),
        None => seen?,
    };
    let version = identity(&place.rows, options.first, options.last, &question);
    // Whoever sees only some of the options cannot choose.
    let labels = if options.is_cut { &[] } else { options.labels.as_slice() };
    let ways = if options.is_cut { Vec::new() } else { options.ways(&rule.answer) };
    Some(Dialog {
        version,
        question: cut_middle(&question, QUESTION_CHARS),
        options: labels.iter().map(|label| cut_middle(label, LABEL_CHARS)).collect(),
        ways,
        cursor: options.cursor,
        rule: name.to_owned(),
    })
}

/// A dialog in one line.
pub(super) fn in_one_line(dialog: &Dialog) -> String {
    let offered: Vec<_> = dialog.options.iter().map(|option| cut(option, OPTION_CHARS)).collect();
    let question = cut_middle(&dialog.question, LINE_QUESTION_CHARS);
    match offered.is_empty() {
        true => format!("{question} (its pane is too small for all options)"),
        false => format!("{question} ({})", offered.join(" | ")),
    }
}

/// What distinguishes a dialog from every other: all of its text, including what is not shown to
/// people.
fn identity(rows: &[Row], first: usize, last: usize, question: &str) -> String {
    let top = rows[..first].iter().rposition(Row::is_top);
    let top = top.unwrap_or_else(|| first.saturating_sub(UNFRAMED_ROWS));
    let mut hash = Sha256::new().chain_update(question);
    for row in &rows[top..=last] {
        hash.update(b"\n");
        hash.update(row.without_cursor());
    }
    let mut digits = hex::encode(&hash.finalize());
    digits.truncate(HASH_DIGITS);
    digits
}

impl Options {
    /// How each option can be chosen, if it can be.
    fn ways(&self, known: &[AnswerWay]) -> Vec<Option<AnswerWay>> {
        let is_line = known.contains(&AnswerWay::Enter);
        let applies = |way: AnswerWay, at: usize| match way {
            // Without Enter, a number with two digits begins with the number of another option.
            AnswerWay::Number => self.numbered && (at < 9 || is_line),
            AnswerWay::UpDown => self.cursor.is_some() && !self.in_one_row,
            AnswerWay::LeftRight => self.in_one_row,
            AnswerWay::Label => match self.labels[at].chars().count() {
                1 => true,
                chars => is_line && !self.numbered && chars <= LABEL_CHARS,
            },
            AnswerWay::Enter => false,
        };
        let way = |at| known.iter().copied().find(|way| applies(*way, at));
        (0..self.labels.len()).map(way).collect()
    }
}

/// The lowest list of numbered options.
fn numbered(rows: &[Row], patterns: &Patterns) -> Option<Options> {
    let mut found = Options { numbered: true, ..Options::default() };
    let mut next: Option<u32> = None;
    let widest = rows.iter().map(Row::end).max().unwrap_or_default();
    for (at, row) in rows.iter().enumerate().rev() {
        let Some(option) = patterns.numbered.captures(&row.text) else { continue };
        let number: u32 = option[2].parse().ok()?;
        if next.is_some_and(|next| next != number) {
            continue;
        }
        let (label, end) = unwrapped(rows, at, &option[3], widest, patterns);
        if found.labels.is_empty() {
            found.last = end;
        }
        if option.get(1).is_some_and(|mark| mark.as_str().starts_with(CURSORS)) {
            found.cursor = usize::try_from(number).ok()?.checked_sub(1);
        }
        found.labels.push(format!("{number}. {label}"));
        match number {
            1 if found.labels.len() > 1 => {
                found.labels.reverse();
                found.first = at;
                return Some(found);
            }
            0 | 1 => return None,
            _ => next = Some(number - 1),
        }
    }
    None
}

/// The whole text of an option that begins in a row, and the row in which it ends.
fn unwrapped(
    rows: &[Row],
    at: usize,
    begin: &str,
    widest: usize,
    patterns: &Patterns,
) -> (String, usize) {
    let (mut label, mut end) = (without_description(begin).to_owned(), at);
    if label != begin.trim_end() {
        return (label, end);
    }
    let column = rows[at].end() - begin.chars().count();
    for next in &rows[at + 1..] {
        let first = next.text.split(' ').next().unwrap_or_default().chars().count();
        let belongs = next.column == column && !next.is_line && next.barred == rows[at].barred;
        // A row that had room for the next word was not wrapped: a description follows.
        let was_full = rows[end].end() + 1 + first > widest;
        if !belongs || !was_full || patterns.numbered.is_match(&next.text) {
            break;
        }
        if !label.ends_with('/') {
            label.push(' ');
        }
        label.push_str(&next.text);
        end += 1;
    }
    (label, end)
}

/// What may be between a question and its options in the same row.
fn is_opening(c: char) -> bool {
    c.is_whitespace() || matches!(c, '[' | '(' | '{' | '<')
}

/// Options that a preset finds in one row.
fn in_one_row(rows: &[Row], options: &Regex) -> Option<Options> {
    rows.iter().enumerate().rev().find_map(|(at, row)| {
        let found = options.captures(&row.text)?;
        let labels = found.iter().skip(1).flatten().map(|option| option.as_str().to_owned());
        let labels = labels.collect();
        let before = row.text[..found.get(1)?.start()].trim_end_matches(is_opening).to_owned();
        let in_one_row = true;
        Some(Options { first: at, last: at, labels, in_one_row, before, ..Options::default() })
    })
}

/// The rows of a list without numbers, one of which has the cursor.
fn in_list(rows: &[Row], patterns: &Patterns) -> Option<Options> {
    let cursor = rows.iter().rposition(|row| patterns.at_cursor.is_match(&row.text))?;
    if patterns.numbered.is_match(&rows[cursor].text) {
        // The first of its options are not on the screen.
        return None;
    }
    let bare = |row: &Row| row.text.trim_start_matches(['❯', '›', '●', ' ']).to_owned();
    let begins = |row: &Row| row.column + row.text.chars().count() - bare(row).chars().count();
    let column = begins(&rows[cursor]);
    let belongs = |row: &&Row| !row.is_line && begins(row) == column;
    let above = rows[..cursor].iter().rev().take_while(belongs).count();
    let below = rows[cursor + 1..].iter().take_while(belongs).count();
    let (first, last) = (cursor - above, cursor + below);
    let labels: Vec<String> = rows[first..=last].iter().map(bare).collect();
    let options = Options { first, last, labels, cursor: Some(above), ..Options::default() };
    (options.labels.len() > 1).then_some(options)
}

/// Which of the options in one row is highlighted: the one whose style differs from that of the others.
pub(crate) fn highlighted(screen: &Screen, options: &Regex) -> Option<usize> {
    (0..screen.size().rows).rev().find_map(|row| {
        let spans = screen.styled_row(row).spans;
        let text: String = spans.iter().map(|span| span.text.as_str()).collect();
        let begin = text.find(|c: char| !is_border(c))?;
        let found = options.captures(text[begin..].trim_end_matches(is_border))?;
        let style = |byte: usize| -> Option<&Style> {
            let mut end = 0;
            let at = spans.iter().position(|span| {
                end += span.text.len();
                byte < end
            });
            at.map(|at| &spans[at].style)
        };
        let options = found.iter().skip(1).flatten();
        let styles: Vec<_> = options.map(|option| style(begin + option.start())).collect();
        let differs = |at: &usize| {
            let mut others = styles.iter().enumerate().filter(|(other, _)| other != at);
            let first = others.next().map(|(_, style)| style);
            first.is_some_and(|first| *first != styles[*at])
                && others.all(|(_, style)| Some(style) == first)
        };
        let mut different = (0..styles.len()).filter(differs);
        different.next().filter(|_| different.next().is_none())
    })
}

/// A question that ends in the row of its options; it may have begun in the rows above.
fn whole_question(end: &str, above: &[Row]) -> String {
    let mut question = end.to_owned();
    for before in above.iter().rev().take(QUESTION_ROWS - 1) {
        if before.is_line || !question.starts_with(char::is_lowercase) {
            break;
        }
        question = format!("{} {question}", before.text);
    }
    question
}

/// The text of rows in one line.
fn joined<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let words = rows.into_iter().filter(|row| !row.is_line && !row.text.is_empty());
    words.map(|row| row.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// A request for an approval: what the CLI asks, then the command, then the rest, which the agent may have chosen.
/// All of it, so that no text can hide another.
fn approval(above: &[Row], is_topmost: bool, rule: &Rule) -> Option<String> {
    let approves = rule.approves.as_ref()?;
    let head = above.iter().position(|row| approves.is_match(&row.text));
    let Some(head) = head.filter(|head| *head == 0 || !is_topmost) else {
        // Its beginning may not be on the screen.
        return Some(joined(above)).filter(|text| !text.is_empty()).map(|text| format!("… {text}"));
    };
    let rows = &above[head..];
    let command = |row: &Row| rule.command.as_ref().is_some_and(|begin| begin.is_match(&row.text));
    let at = rows.iter().position(command);
    let before = &rows[..at.unwrap_or(rows.len())];
    let is_question = |row: &Row| row.text.ends_with('?');
    // A title is no sentence that could go on in the next rows.
    let is_sentence = rows[0].text.starts_with(char::is_alphabetic);
    let wrapped = before.iter().take(QUESTION_ROWS).filter(|_| is_sentence).position(is_question);
    let end = wrapped.unwrap_or(0) + 1;
    let (asks, rest) = before.split_at(end.min(before.len()));
    let mut question = joined(asks);
    let command = joined(&rows[before.len()..]);
    let mark = rule.command.as_ref().and_then(|begin| begin.find(&command));
    let command = command[mark.map_or(0, |mark| mark.end())..].to_owned();
    let parts = [command, joined(rest)];
    for (place, part) in parts.iter().filter(|part| !part.is_empty()).enumerate() {
        let colon = place == 0 && !question.ends_with('?');
        question.push_str(match (place, colon) {
            (0, true) => ": ",
            (0, false) => " ",
            _ => " — ",
        });
        question.push_str(part);
    }
    Some(question)
}

/// The question that a program reports. What it approves is read from the screen: a report may be shortened.
fn reported(asked: &str, above: &[Row], seen: Option<String>) -> String {
    let proceeds = |seen: &String| seen.starts_with("Do you want to proceed");
    if seen.as_ref().is_some_and(proceeds)
        && let Some(command) = framed(above)
        && let Some((kind, _)) = asked.split_once(": ")
    {
        return format!("{kind}: {command}");
    }
    match seen {
        Some(seen) if asked.chars().count() >= LONG_REPORT_CHARS => format!("{asked}… {seen}"),
        _ => asked.to_owned(),
    }
}

/// The question above its options, with its subject if the question does not name it.
fn question(above: &[Row], quotes: &[String], patterns: &Patterns) -> Option<String> {
    let near = &above[above.len().saturating_sub(ROWS_ABOVE)..];
    // What is between lines was written by the agent.
    let near = &near[near.iter().rposition(Row::is_frame).map_or(0, |at| at + 1)..];
    let found = near.iter().enumerate().rev().find_map(|(at, row)| {
        let end = patterns.question.captures_iter(&row.text).last()?[1].trim().to_owned();
        Some((whole_question(&end, &near[..at]), above.len() - near.len() + at))
    });
    let Some((question, at)) = found else {
        let quoted: Vec<_> = quotes.iter().rev().map(String::as_str).collect();
        let nearest = above.iter().rev().find(|row| !row.is_line).map(|row| row.text.clone());
        return if quoted.is_empty() { nearest } else { Some(quoted.join(": ")) };
    };
    if !patterns.general.is_match(&question) {
        return Some(question);
    }
    let all = || Some(joined(&above[..at])).filter(|_| question.starts_with("Do you want to"));
    let quote = || {
        let is_other = |quote: &&String| !question.contains(quote.as_str()) && **quote != question;
        quotes.iter().find(is_other).cloned()
    };
    let boxed = || boxed(above).filter(|_| question.starts_with("Allow execution of ["));
    let about = framed(above).or_else(boxed).or_else(all).or_else(quote);
    let about = about.filter(|about| !about.is_empty());
    Some(about.map_or(question.clone(), |about| format!("{question} {about}")))
}

/// The rows between two lines: the command that is asked about. Its beginning may not be on the screen.
fn framed(above: &[Row]) -> Option<String> {
    let end = above.iter().rposition(Row::is_frame)?;
    within(above, above[..end].iter().position(Row::is_frame), end)
}

/// The same in a box inside the dialog.
fn boxed(above: &[Row]) -> Option<String> {
    let end = above.iter().rposition(|row| row.barred && row.text.starts_with('╰'))?;
    let begins = |row: &Row| row.barred && row.text.starts_with('╭');
    within(above, above[..end].iter().position(begins), end)
}

fn within(above: &[Row], begin: Option<usize>, end: usize) -> Option<String> {
    let text = joined(&above[begin.map_or(0, |at| at + 1)..end]);
    let missing = if begin.is_none() { "… " } else { "" };
    (!text.is_empty()).then(|| format!("{missing}{text}"))
}

/// An option without the description beside it.
fn without_description(option: &str) -> &str {
    option.split("   ").next().unwrap_or(option).trim_end()
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// A text without its middle if it is too long: both its beginning and its end tell what it does.
pub(super) fn cut_middle(text: &str, most: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= most {
        return text.to_owned();
    }
    let part = |chars: &[char]| chars.iter().collect::<String>();
    let (begin, end) = (part(&chars[..most / 2]), part(&chars[chars.len() - most / 2..]));
    format!("{} … {}", begin.trim_end(), end.trim_start())
}

#[cfg(test)]
#[path = "dialog_tests.rs"]
mod tests;
