//! Text that flows: letters with their looks, broken into rows between words.

use patterm_screen::{Span, Style};

use super::Row;
use crate::canvas::width_of;

/// A letter, and the number of its look.
type Letter = (char, usize);

/// Text in one line or more, before it has a width.
#[derive(Debug, Default)]
pub(super) struct Flow {
    looks: Vec<Style>,
    letters: Vec<Letter>,
}

/// What a letter is shown as: one that would do something to a terminal, or hide what is said, is
/// made visible.
fn visible(letter: char) -> char {
    match letter {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '␡',
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        letter => letter,
    }
}

/// The letters of a text as they are shown; tabs are blanks.
fn shown(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(|letter| {
        let (letter, times) = if letter == '\t' { (' ', 4) } else { (visible(letter), 1) };
        std::iter::repeat_n(letter, times)
    })
}

impl Flow {
    pub(super) fn add(&mut self, text: &str, style: &Style) {
        if self.looks.last() != Some(style) {
            self.looks.push(style.clone());
        }
        let look = self.looks.len() - 1;
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.end_line();
            }
            self.letters.extend(shown(line).map(|letter| (letter, look)));
        }
    }

    /// What comes next stands in a new row.
    pub(super) fn end_line(&mut self) {
        self.letters.push(('\n', 0));
    }

    /// Columns of its longest line.
    pub(super) fn width(&self) -> usize {
        self.lines().map(columns).max().unwrap_or(0)
    }

    fn lines(&self) -> impl Iterator<Item = &[Letter]> {
        self.letters.split(|(letter, _)| *letter == '\n')
    }

    /// Its rows; none where there is nothing.
    pub(super) fn wrap(&self, width: usize) -> Vec<Row> {
        if self.letters.iter().all(|(letter, _)| matches!(letter, ' ' | '\n')) {
            return Vec::new();
        }
        let mut rows = Vec::new();
        for line in self.lines() {
            self.wrap_line(line, width, &mut rows);
        }
        rows
    }

    fn wrap_line(&self, line: &[Letter], width: usize, rows: &mut Vec<Row>) {
        let mut row: Vec<Letter> = Vec::new();
        let mut taken = 0;
        for word in line.split(|(letter, _)| *letter == ' ').filter(|word| !word.is_empty()) {
            if taken > 0 && taken + 1 + columns(word) > width {
                rows.push(self.runs(&row));
                row.clear();
                taken = 0;
            }
            if taken > 0 {
                // A blank looks like what follows only where that goes on.
                let look = row.last().map_or(0, |(_, look)| *look);
                let blank = if look == word[0].1 { look } else { usize::MAX };
                row.push((' ', blank));
                taken += 1;
            }
            for piece in pieces(word, width) {
                if taken > 0 && taken + columns(piece) > width {
                    rows.push(self.runs(&row));
                    row.clear();
                    taken = 0;
                }
                row.extend(piece);
                taken += columns(piece);
            }
        }
        rows.push(self.runs(&row));
    }

    fn runs(&self, letters: &[Letter]) -> Row {
        let runs = letters.chunk_by(|(_, one), (_, other)| one == other);
        let runs = runs.map(|part| Span {
            text: part.iter().map(|(letter, _)| *letter).collect(),
            style: self.looks.get(part[0].1).cloned().unwrap_or_default(),
        });
        runs.collect()
    }
}

fn columns(letters: &[Letter]) -> usize {
    letters.iter().map(|(letter, _)| usize::from(width_of(*letter))).sum()
}

/// A word in pieces that fit; a mark stays with its letter.
fn pieces(word: &[Letter], width: usize) -> Vec<&[Letter]> {
    let (mut pieces, mut begin, mut taken) = (Vec::new(), 0, 0);
    for (at, (letter, _)) in word.iter().enumerate() {
        let wide = usize::from(width_of(*letter));
        if taken + wide > width && wide > 0 && at > begin {
            pieces.push(&word[begin..at]);
            (begin, taken) = (at, 0);
        }
        taken += wide;
    }
    pieces.push(&word[begin..]);
    pieces
}

/// A line whose blanks count, broken where the room ends.
pub(super) fn hard(line: &str, width: usize, style: &Style) -> Vec<Row> {
    let letters: Vec<Letter> = shown(line).map(|letter| (letter, 0)).collect();
    let flow = Flow { looks: vec![style.clone()], letters: Vec::new() };
    pieces(&letters, width).into_iter().map(|piece| flow.runs(piece)).collect()
}
