//! When output was read. The writer of a log notes the time before it reads, at most every [`INTERVAL_MS`], in the
//! header of the log file: no byte is in the log without its time, and no system call is needed. A full header is
//! moved to the [index](super::index) beside the file.

use std::io;

use super::index;
use super::segment::Segment;

/// Times are exact to this many milliseconds, so that lines of several processes are in order. A mark costs room, and
/// each 128 of them a write.
pub(super) const INTERVAL_MS: u64 = 20;

/// The times that the header of a log file has room for.
pub(super) const HEADER_MARKS: usize = 128;

/// The output from an offset on, up to the next mark, was read at this time or at most 20 ms later. Old marks are
/// thinned, and are less exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeMark {
    /// The offset of the first byte.
    pub offset: u64,
    /// Milliseconds since 1970.
    pub wall_ms: u64,
}

/// The time of the byte at an offset, according to marks in their order.
#[must_use]
pub fn time_at(marks: &[TimeMark], offset: u64) -> Option<u64> {
    let after = marks.partition_point(|mark| mark.offset <= offset);
    Some(marks[after.checked_sub(1)?].wall_ms)
}

/// The offset of the first byte that was read after a time, according to marks in their order; `None` if all were read
/// before.
#[must_use]
pub fn offset_after(marks: &[TimeMark], wall_ms: u64) -> Option<u64> {
    let at = marks.partition_point(|mark| mark.wall_ms <= wall_ms);
    marks.get(at).map(|mark| mark.offset)
}

/// Adds a mark that follows the others. One that does not was left by a crash in between two steps, and is ignored.
pub(super) fn push(marks: &mut Vec<TimeMark>, mark: TimeMark) {
    match marks.last_mut() {
        Some(last) if mark.offset < last.offset || mark.wall_ms < last.wall_ms => {}
        // Nothing was read in between.
        Some(last) if mark.offset == last.offset => *last = mark,
        _ => marks.push(mark),
    }
}

/// Leaves out marks until at most `most` are left. The distance of two marks is at most a share of their age, so
/// that new ones stay exact; the first one always stays.
pub(super) fn thin(marks: &[TimeMark], most: usize) -> Vec<TimeMark> {
    let Some(newest) = marks.last() else { return Vec::new() };
    for share in [256, 128, 64, 32, 16, 8, 4] {
        let mut kept = vec![*newest];
        let mut last = *newest;
        for (at, mark) in marks.iter().enumerate().rev().skip(1) {
            // Without it, the one before it would be the next.
            let before = marks[at.saturating_sub(1)].wall_ms;
            let age = newest.wall_ms.saturating_sub(before);
            let distance = last.wall_ms.saturating_sub(before);
            if at == 0 || distance > (age / share).max(INTERVAL_MS) {
                kept.push(*mark);
                last = *mark;
            }
        }
        kept.reverse();
        if kept.len() <= most {
            return kept;
        }
    }
    let step = marks.len().div_ceil(most.max(2) - 1).max(1);
    let mut kept: Vec<_> = marks.iter().copied().step_by(step).collect();
    push(&mut kept, *newest);
    kept
}

/// What the writer of a log knows about the times of its current file.
#[derive(Debug, Default)]
pub(super) struct TimeWriter {
    /// Marks in the header.
    used: usize,
    /// The newest mark.
    last: Option<TimeMark>,
}

impl TimeWriter {
    /// Continues in a file.
    pub(super) fn of(segment: &Segment) -> Self {
        let marks = segment.header_marks();
        if segment.header_marks_used() != marks.len() {
            // Marks that do not count now would count again once the output reaches their offsets.
            segment.replace_header_marks(&marks);
        }
        Self { used: marks.len(), last: segment.marks().pop() }
    }

    /// The time of the newest mark.
    pub(super) fn last_ms(&self) -> Option<u64> {
        self.last.map(|mark| mark.wall_ms)
    }

    /// Notes the time of what is read next, if a mark is due.
    pub(super) fn note(&mut self, segment: &Segment, wall_ms: u64) {
        let mark = TimeMark { offset: segment.end(), wall_ms };
        if self.last.is_some_and(|last| wall_ms < last.wall_ms.saturating_add(INTERVAL_MS)) {
            return;
        }
        let replaces = self.last.is_some_and(|last| last.offset == mark.offset);
        if replaces && self.used > 0 {
            segment.set_header_mark(self.used - 1, mark);
        } else if self.used < HEADER_MARKS || self.make_room(segment) {
            segment.set_header_mark(self.used, mark);
            self.used += 1;
        } else {
            // A reader is busy with the marks; the next time counts from the last one.
            return;
        }
        self.last = Some(mark);
    }

    /// Moves the marks from the header to the index, or thins them if that cannot be written.
    fn make_room(&mut self, segment: &Segment) -> bool {
        let Some(_guard) = segment.try_lock_marks() else { return false };
        let marks = segment.header_marks();
        let kept = match move_to_index(segment, &marks) {
            Ok(()) => Vec::new(),
            Err(_) => thin(&marks, HEADER_MARKS / 2),
        };
        segment.replace_header_marks(&kept);
        self.used = kept.len();
        true
    }
}

fn move_to_index(segment: &Segment, marks: &[TimeMark]) -> io::Result<()> {
    // A file that was removed needs no index.
    if !segment.path().exists() {
        return Err(io::ErrorKind::NotFound.into());
    }
    index::append(segment.path(), segment.start(), marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(offset: u64, wall_ms: u64) -> TimeMark {
        TimeMark { offset, wall_ms }
    }

    #[test]
    fn the_time_of_a_byte_is_that_of_the_last_mark_before_it() {
        let marks = [mark(10, 1_000), mark(20, 2_000)];
        let times = [9, 10, 19, 20, 1 << 50].map(|at| time_at(&marks, at));
        assert_eq!(times, [None, Some(1_000), Some(1_000), Some(2_000), Some(2_000)]);
        assert_eq!(time_at(&[], 5), None);
        let offsets = [999, 1_000, 1_999, 2_000].map(|time| offset_after(&marks, time));
        assert_eq!(offsets, [Some(10), Some(20), Some(20), None]);
    }

    #[test]
    fn a_mark_that_goes_back_is_ignored() {
        let mut marks = Vec::new();
        for (offset, wall_ms) in [(5, 50), (5, 60), (9, 70), (7, 80), (9, 65), (12, 70)] {
            push(&mut marks, mark(offset, wall_ms));
        }
        assert_eq!(marks, [mark(5, 60), mark(9, 70), mark(12, 70)]);
    }

    #[test]
    fn new_marks_stay_exact_and_old_ones_become_rare() {
        // A line each second, for a day.
        let mut marks: Vec<TimeMark> = Vec::new();
        for n in 0..86_400 {
            marks.push(mark(n * 60, n * 1_000));
            if marks.len() > 256 + HEADER_MARKS {
                marks = thin(&marks, 256);
                assert!(marks.len() <= 256);
            }
            for age in [1, 10, 60, 3_600, 40_000] {
                let Some(then) = n.checked_sub(age) else { continue };
                let error = then * 1_000 - time_at(&marks, then * 60).unwrap();
                assert!(error <= 1_000.max(age * 1_000 / 8), "{error} ms at {age} s");
            }
        }
    }

    #[test]
    fn thinning_is_bounded_whatever_the_times_are() {
        let all_at_once: Vec<_> = (0..1_000).map(|n| mark(n, 5)).collect();
        let growing: Vec<_> = (0..60).map(|n| mark(n, 1 << n)).collect();
        for marks in [all_at_once, growing, vec![mark(1, 1)], Vec::new()] {
            for most in [2, 7, 64] {
                let kept = thin(&marks, most);
                assert!(kept.len() <= most && kept.is_empty() == marks.is_empty());
                assert_eq!((kept.first(), kept.last()), (marks.first(), marks.last()));
            }
        }
    }
}
