//! An error in a project file: its position, the message and a hint.

use std::fmt;
use std::ops::Range;

use super::visible::visible;

/// An error in a project file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl Fault {
    /// An error at a position in the text.
    pub(super) fn new(text: &str, at: &Range<usize>, message: impl Into<String>) -> Self {
        let before = text.get(..at.start.min(text.len())).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let line_start = before.rsplit('\n').next().unwrap_or_default();
        Self { line, column: line_start.chars().count() + 1, message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

/// The reader has not trusted the file, so text from it must not contain control characters.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, visible(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "; {}", visible(hint)),
            None => Ok(()),
        }
    }
}

/// The known word that is most similar to a misspelled one, if any is similar enough.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Up to a third of the letters may differ, and always one.
    let most = (word.chars().count() / 3).max(1);
    let near = known.map(|known| (distance(word, known), known));
    let (changes, known) = near.min_by_key(|(changes, _)| *changes)?;
    (changes <= most).then_some(known)
}

/// The number of edits between two words: letters changed, added, removed, or two swapped.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut least = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                let swapped: &Vec<usize> = &before_last;
                least = least.min(swapped[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_word_is_found() {
        let known = ["command", "directory", "environment", "restart", "ready"];
        let meant = |word| nearest(word, known.into_iter());
        assert_eq!(meant("comand"), Some("command"));
        assert_eq!(meant("cmomand"), Some("command"));
        assert_eq!(meant("enviroment"), Some("environment"));
        assert_eq!(meant("redy"), Some("ready"));
        assert_eq!(meant("x"), None);
        assert_eq!(meant("autorun"), None);
    }

    #[test]
    fn positions_are_counted_in_characters() {
        let text = "a = 1\nü = \"é\" # x\n";
        let at = |start| Fault::new(text, &(start..start), "").to_string();
        assert_eq!(at(0), "1:1: ");
        assert_eq!(at(text.find('#').unwrap()), "2:9: ");
        assert_eq!(at(999), "3:1: ");
    }
}
