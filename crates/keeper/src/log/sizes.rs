//! The sizes that a terminal had: every resize, with its place in the output, in the header of the log file. A resize is
//! a store into memory that is mapped anyway, so it is recorded whatever happens to this process.

use crate::size::Size;

/// The resizes that the header of a log file has room for.
pub(super) const HEADER_SIZES: usize = 112;

/// A resize of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeMark {
    /// The offset of the first byte that was shown after it.
    pub offset: u64,
    /// The size before it.
    pub before: Size,
    /// The size after it.
    pub after: Size,
}

impl SizeMark {
    /// Both sizes as one number, which is not 0: a terminal has at least one row.
    pub(super) fn sizes(self) -> u64 {
        let all = [self.before.rows, self.before.columns, self.after.rows, self.after.columns];
        all.into_iter().fold(0, |number, part| number << 16 | u64::from(part))
    }

    pub(super) fn new(offset: u64, sizes: u64) -> Self {
        let part = |n: u32| (sizes >> (16 * n) & 0xffff) as u16;
        let (before, after) =
            (Size { rows: part(3), columns: part(2) }, Size { rows: part(1), columns: part(0) });
        Self { offset, before, after }
    }
}

/// Adds a mark that follows the others. One that does not was left by a crash in between two steps, and is ignored.
pub(super) fn push(marks: &mut Vec<SizeMark>, mark: SizeMark) {
    if marks.last().is_none_or(|last| mark.offset >= last.offset) {
        marks.push(mark);
    }
}

/// Makes room when somebody drags the edge of a window all the time: joins resizes with the least output between them
/// until `most` are left.
pub(super) fn join(marks: &mut Vec<SizeMark>, most: usize) {
    while marks.len() > most.max(1) {
        let distance = |at: &usize| marks[at + 1].offset - marks[*at].offset;
        let Some(first) = (0..marks.len() - 1).min_by_key(distance) else { return };
        marks[first + 1].before = marks[first].before;
        marks.remove(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(rows: u16) -> Size {
        Size { rows, columns: 80 }
    }

    fn mark(offset: u64, before: u16, after: u16) -> SizeMark {
        SizeMark { offset, before: size(before), after: size(after) }
    }

    #[test]
    fn a_mark_is_two_numbers() {
        let sizes = SizeMark {
            offset: 7,
            before: Size { rows: 1, columns: 2 },
            after: Size { rows: 1_000, columns: u16::MAX },
        };
        assert_eq!(SizeMark::new(7, sizes.sizes()), sizes);
    }

    #[test]
    fn resizes_with_the_least_output_between_them_are_joined() {
        let mut marks =
            vec![mark(10, 24, 30), mark(500, 30, 31), mark(501, 31, 32), mark(900, 32, 24)];
        join(&mut marks, 3);
        assert_eq!(marks, [mark(10, 24, 30), mark(501, 30, 32), mark(900, 32, 24)]);
        join(&mut marks, 1);
        assert_eq!(marks, [mark(900, 24, 24)]);
    }
}
