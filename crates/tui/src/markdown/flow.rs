//! Text with styles, wrapped into rows between words.

use patterm_screen::{Span, Style};

use super::Row;
use crate::canvas::width_of;

/// A character, and the index of its style.
type Letter = (char, usize);

/// Text before it is wrapped.
#[derive(Debug, Default)]
pub(super) struct Flow {
    styles: Vec<Style>,
    letters: Vec<Letter>,
}

/// What a character is shown as: one that a terminal would interpret, or that hides text, is made visible.
fn visible(letter: char) -> char {
    match letter {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '␡',
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        letter => letter,
    }
}

/// The characters of a text as they are shown; tabs become blanks.
fn shown(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(|letter| {
        let (letter, times) = if letter == '\t' { (' ', 4) } else { (visible(letter), 1) };
        std::iter::repeat_n(letter, times)
    })
}

impl Flow {
    pub(super) fn add(&mut self, text: &str, style: &Style) {
        if self.styles.last() != Some(style) {
            self.styles.push(style.clone());
        }
        let style_index = self.styles.len() - 1;
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.end_line();
            }
            self.letters.extend(shown(line).map(|letter| (letter, style_index)));
        }
    }

    /// Starts a new row.
    pub(super) fn end_line(&mut self) {
        self.letters.push(('\n', 0));
    }

    /// The width of its longest line.
    pub(super) fn width(&self) -> usize {
        self.lines().map(columns).max().unwrap_or(0)
    }

    fn lines(&self) -> impl Iterator<Item = &[Letter]> {
        self.letters.split(|(letter, _)| *letter == '\n')
    }

    /// Its rows; none if it is empty.
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
                // A blank has a style only between words of the same style.
                let style_index = row.last().map_or(0, |(_, style_index)| *style_index);
                let blank = if style_index == word[0].1 { style_index } else { usize::MAX };
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
            style: self.styles.get(part[0].1).cloned().unwrap_or_default(),
        });
        runs.collect()
    }
}

fn columns(letters: &[Letter]) -> usize {
    letters.iter().map(|(letter, _)| usize::from(width_of(*letter))).sum()
}

/// A word in pieces that fit; a combining mark stays with its character.
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

/// A line with significant blanks, broken at the edge.
pub(super) fn hard(line: &str, width: usize, style: &Style) -> Vec<Row> {
    let letters: Vec<Letter> = shown(line).map(|letter| (letter, 0)).collect();
    let flow = Flow { styles: vec![style.clone()], letters: Vec::new() };
    pieces(&letters, width).into_iter().map(|piece| flow.runs(piece)).collect()
}
