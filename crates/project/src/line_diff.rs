//! The difference between two texts, line by line.

/// Lines around a change that are shown with it.
const CONTEXT: usize = 2;

/// The size limit of the comparison table. Beyond it, everything between the first and the last change counts as
/// changed.
const MOST_CELLS: usize = 4 << 20;

/// A line of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

/// The changed lines, marked with `-` and `+`, with some context; `...` replaces lines that are left out. Each line
/// is passed through `show`.
pub fn diff(before: &str, now: &str, show: impl Fn(&str) -> String) -> String {
    let (before, now): (Vec<_>, Vec<_>) = (before.lines().collect(), now.lines().collect());
    let lines = compare(&before, &now);
    let is_change = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let is_near = |at: usize| {
        let from = at.saturating_sub(CONTEXT);
        lines[from..(at + CONTEXT + 1).min(lines.len())].iter().any(is_change)
    };
    let mut text = String::new();
    let mut left_out = false;
    for (at, line) in lines.iter().enumerate() {
        if !is_near(at) {
            left_out = true;
            continue;
        }
        if std::mem::take(&mut left_out) {
            text += "  ...\n";
        }
        text += &match line {
            Line::Same(line) => format!("  {}\n", show(line)),
            Line::Removed(line) => format!("- {}\n", show(line)),
            Line::Added(line) => format!("+ {}\n", show(line)),
        };
    }
    text
}

/// Compares the lines by their longest common subsequence.
fn compare<'a>(before: &[&'a str], now: &[&'a str]) -> Vec<Line<'a>> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let start = before.iter().zip(now).take_while(same).count();
    let rest = before.len().min(now.len()) - start;
    let end = before.iter().rev().zip(now.iter().rev()).take(rest).take_while(same).count();
    let (old, new) = (&before[start..before.len() - end], &now[start..now.len() - end]);
    let mut lines: Vec<_> = before[..start].iter().map(|line| Line::Same(line)).collect();
    lines.extend(middle(old, new));
    lines.extend(before[before.len() - end..].iter().map(|line| Line::Same(line)));
    lines
}

fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let width = new.len() + 1;
    let mut lines = Vec::new();
    let (mut i, mut j) = (0, 0);
    if (old.len() + 1).saturating_mul(width) <= MOST_CELLS {
        // For each pair of positions, the length of the longest common subsequence of the rest.
        let mut longest = vec![0_u32; (old.len() + 1) * width];
        for i in (0..old.len()).rev() {
            for j in (0..new.len()).rev() {
                longest[i * width + j] = match old[i] == new[j] {
                    true => longest[(i + 1) * width + j + 1] + 1,
                    false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
                };
            }
        }
        while i < old.len() && j < new.len() {
            if old[i] == new[j] {
                lines.push(Line::Same(old[i]));
                (i, j) = (i + 1, j + 1);
            } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
                lines.push(Line::Removed(old[i]));
                i += 1;
            } else {
                lines.push(Line::Added(new[j]));
                j += 1;
            }
        }
    }
    lines.extend(old[i..].iter().map(|line| Line::Removed(line)));
    lines.extend(new[j..].iter().map(|line| Line::Added(line)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let now = "a\nb\nc\nd\nE\nf\ng\nh\ni\n";
        let shown = diff(before, now, str::to_owned);
        assert_eq!(shown, "  ...\n  c\n  d\n- e\n+ E\n  f\n  g\n  h\n+ i\n");
        assert_eq!(diff("a\n", "a\n", str::to_owned), "");
        assert_eq!(diff("", "x\ny\n", str::to_owned), "+ x\n+ y\n");
        assert_eq!(diff("x\ny\n", "y\n", str::to_owned), "- x\n  y\n");
    }

    #[test]
    fn large_texts_are_compared_without_a_table() {
        let lines = |mark: &str| (0..3_000).map(|n| format!("{mark}{n}\n")).collect::<String>();
        let shown = diff(&lines("a"), &lines("b"), str::to_owned);
        assert_eq!(shown.lines().count(), 6_000);
        assert!(shown.starts_with("- a0\n"));
    }
}
