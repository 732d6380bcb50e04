//! Key frames: a screen that continues from one is the same as one that parsed everything.

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;

use crate::history::History;
use crate::screen_tests::{budget, random_output};
use crate::{Screen, Size};

/// What happens to a screen.
#[derive(Debug, Clone)]
enum Step {
    Output(Vec<u8>),
    Resize(Size),
}

impl Step {
    fn take(&self, screen: &mut Screen) {
        match self {
            Self::Output(bytes) => screen.feed(bytes),
            Self::Resize(size) => screen.resize(*size),
        }
    }
}

fn random_size(u: &mut Unstructured<'_>) -> Result<Size> {
    Ok(Size::new(u.int_in_range(1..=12)?, u.int_in_range(2..=30)?))
}

/// Steps with output that sets everything that a frame must have.
fn random_steps(u: &mut Unstructured<'_>) -> Result<Vec<Step>> {
    const RARE: [&str; 30] = [
        "\x1b[22t",
        "\x1b[23t",
        "\x1b]0;both\x07",
        "\x1b]1;icon\x07",
        "\x1b]9;4;1;40\x07",
        "\x1b]9;4;3\x07",
        "\x1b]7501;state=working\x1b\\",
        "\x1b]4;3;#102030\x07",
        "\x1b]11;#ffffff\x07",
        "\x1b]8;id=a;http://y\x07",
        "x\x1b[5b",
        "\x1bH\x1b[3g",
        "\x1b[3J",
        "⌚\u{fe0e}",
        "漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢",
        "\x1b[58;5;3;4mlined",
        "\x1b[59m",
        "\x1b[?1;7;25l",
        "\x1b[?1000;1006;2004;2048h",
        "\x1b[>5u",
        "\x1b[<u",
        "\x1b[>4;2m",
        "\x1b[20h",
        "\x1b[?7s\x1b[?7l",
        "\x1b[62\"p",
        "\x1b[2*x",
        "\x1b[5 q",
        "\x1bn\x1b*0",
        "\x1bc",
        "one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\nseven\r\neight\r\nnine\r\nten\r\n",
    ];
    let mut steps = Vec::new();
    for _ in 0..u.int_in_range(1..=12)? {
        steps.push(match u.int_in_range(0..=5)? {
            0 => Step::Resize(random_size(u)?),
            1..=3 => Step::Output(u.choose(&RARE)?.as_bytes().to_vec()),
            _ => {
                let mut bytes = random_output(u)?;
                // Not all of the random bytes, so that there is something left for the next steps.
                bytes.truncate(u.int_in_range(0..=600)?);
                Step::Output(bytes)
            }
        });
    }
    Ok(steps)
}

/// A frame and how many steps were before it.
type Frames = Vec<(usize, Vec<u8>)>;

/// A screen after all steps, and frames between them.
fn take_all(u: &mut Unstructured<'_>, steps: &[Step], size: Size) -> Result<(Screen, Frames)> {
    let mut screen = Screen::new(size);
    let mut frames = Frames::new();
    for (number, step) in steps.iter().enumerate() {
        step.take(&mut screen);
        if u.ratio(1, 2)?
            && let Some(frame) = screen.frame()
        {
            frames.push((number + 1, frame));
        }
    }
    Ok((screen, frames))
}

/// The screen after `until` steps from the newest frame that is enough for it, and the steps before that frame.
fn restore(frames: &Frames, steps: &[Step], until: usize, size: Size) -> (Screen, Option<usize>) {
    let earlier = frames.iter().rev().filter(|(at, _)| *at < until);
    'frames: for (at, frame) in earlier {
        let mut screen = Screen::from_frame(frame).unwrap();
        for step in &steps[*at..until] {
            if let Step::Resize(size) = step
                && !screen.has_history_for(*size)
            {
                continue 'frames;
            }
            step.take(&mut screen);
        }
        return (screen, Some(*at));
    }
    let mut screen = Screen::new(size);
    steps[..until].iter().for_each(|step| step.take(&mut screen));
    (screen, None)
}

fn rows(history: &History) -> Vec<String> {
    history.stored().iter().map(|row| format!("{row:?}")).collect()
}

/// All that a frame has of a screen, unpacked, so that two of them can be compared.
#[track_caller]
fn assert_same(a: &mut Screen, b: &mut Screen) {
    assert_eq!(a.rows(), b.rows());
    assert_eq!((a.cursor(), a.modes(), a.title()), (b.cursor(), b.modes(), b.title()));
    for row in 0..a.size().rows {
        assert_eq!(a.styled_row(row), b.styled_row(row));
    }
    assert_eq!(a.history().next_line(), b.history().next_line());
    // The end of an unfinished sequence.
    for screen in [&mut *a, b] {
        screen.feed(b"\x18\x1b\\");
    }
    let is_same = a.frame().is_some() && a.frame() == b.frame();
    assert!(is_same, "{a:#?}\n{b:#?}");
}

#[test]
fn a_frame_and_the_output_after_it_give_the_same_as_all_output() {
    arbtest(|u| {
        let size = random_size(u)?;
        let steps = random_steps(u)?;
        let (mut full, frames) = take_all(u, &steps, size)?;
        let (mut restored, mut base) = restore(&frames, &steps, steps.len(), size);
        // The rows above, the newest first.
        while restored.history().is_incomplete() {
            let until = base.expect("nothing is missing after a full replay");
            let (older, next) = restore(&frames, &steps, until, size);
            restored.history_mut().restore_older(older.into_history());
            base = next;
        }
        assert_eq!(rows(full.history()), rows(restored.history()));
        assert_eq!(restored.history().first_line(), full.history().first_line());
        assert_same(&mut full, &mut restored);
        // What follows gives the same, too.
        for step in random_steps(u)? {
            step.take(&mut full);
            step.take(&mut restored);
        }
        assert_eq!(rows(full.history()), rows(restored.history()));
        assert_same(&mut full, &mut restored);
        Ok(())
    })
    .budget_ms(2 * budget());
}

#[test]
fn a_frame_taken_at_once_is_the_same_again() {
    arbtest(|u| {
        let mut screen = Screen::new(random_size(u)?);
        random_steps(u)?.iter().for_each(|step| step.take(&mut screen));
        let Some(frame) = screen.frame() else { return Ok(()) };
        let copy = Screen::from_frame(&frame).unwrap();
        assert_eq!(copy.offset(), screen.offset());
        assert_eq!(copy.frame().unwrap(), frame);
        assert_eq!((copy.report(), copy.reports()), (screen.report(), screen.reports()));
        assert_eq!((copy.progress(), copy.colours()), (screen.progress(), screen.colours()));
        Ok(())
    })
    .budget_ms(budget());
}

#[test]
fn a_damaged_frame_is_refused_or_gives_some_screen() {
    arbtest(|u| {
        let mut screen = Screen::new(random_size(u)?);
        random_steps(u)?.iter().for_each(|step| step.take(&mut screen));
        let Some(mut frame) = screen.frame() else { return Ok(()) };
        for _ in 0..u.int_in_range(1..=3)? {
            let at = u.choose_index(frame.len())?;
            frame[at] = u.arbitrary()?;
        }
        frame.truncate(u.int_in_range(0..=frame.len())?);
        if let Some(mut copy) = Screen::from_frame(&frame) {
            copy.feed(b"and on\r\n");
            copy.resize(Size::new(9, 9));
        }
        Ok(())
    })
    .budget_ms(budget());
}

#[test]
fn a_frame_of_another_version_is_refused() {
    let frame = Screen::new(Size::DEFAULT).frame().unwrap();
    assert!(Screen::from_frame(&frame).is_some());
    let mut other = frame.clone();
    other[1] ^= 1;
    assert!(Screen::from_frame(&other).is_none());
    let longer = [&[frame[0] + 1], &b"x"[..], &frame[1..]].concat();
    assert!(Screen::from_frame(&longer).is_none());
    assert!(Screen::from_frame(&[]).is_none());
}

#[test]
fn usual_screens_take_a_few_kilobytes() {
    let mut screen = Screen::new(Size::new(50, 200));
    let blank = screen.frame().unwrap().len();
    assert!(blank < 300, "{blank}");
    for n in 0..200 {
        let text = format!(
            "\x1b[3{}mcrates/panes/src/file_{n}.rs\x1b[0m:{}: \x1b[1mlet value\x1b[0m = compute({n}, &mut state, {});\r\n",
            n % 7,
            n * 37 % 991,
            n * n % 1009,
        );
        screen.feed(text.as_bytes());
    }
    let full = screen.frame().unwrap().len();
    assert!(full < 3_500, "{full}");
}

#[test]
fn nothing_is_restored_above_rows_that_were_cleared_or_dropped() {
    let mut screen = Screen::new(Size::new(4, 20));
    screen.feed(b"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n");
    let frame = screen.frame().unwrap();
    let older = || {
        let mut screen = Screen::new(Size::new(4, 20));
        screen.feed(b"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n");
        screen.into_history()
    };
    let mut restored = Screen::from_frame(&frame).unwrap();
    assert!(restored.history().is_incomplete());
    restored.history_mut().restore_older(older());
    assert_eq!(rows(restored.history()), rows(screen.history()));
    let mut cleared = Screen::from_frame(&frame).unwrap();
    cleared.feed(b"\x1b[3J");
    cleared.history_mut().restore_older(older());
    assert!(cleared.history().is_empty() && !cleared.history().is_incomplete());
    let mut dropped = Screen::from_frame(&frame).unwrap();
    dropped.feed(b"8\r\n9\r\n10\r\n");
    dropped.history_mut().drop_oldest(1);
    dropped.history_mut().restore_older(older());
    assert!(dropped.history().is_empty() && !dropped.history().is_incomplete());
}
