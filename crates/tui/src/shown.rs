//! The frame that the terminal shows. When only programs have printed, just the rows that they changed are drawn.

use patterm_screen::RowCopies;

use crate::canvas::{Canvas, Cell};
use crate::model::Model;
use crate::paint::{ColourDepth, paint, paint_rows};
use crate::view::{PlainPane, plain_panes, redraw, view};

/// The frame, with copies of the rows of panes that show only their programs' screens.
#[derive(Debug)]
pub(crate) struct ShownFrame {
    canvas: Canvas,
    panes: Vec<(PlainPane, RowCopies)>,
}

impl ShownFrame {
    /// Draws everything; returns the frame, and the bytes that turn the previous one into it.
    pub(crate) fn draw(
        before: Option<&Self>,
        model: &Model,
        depth: ColourDepth,
    ) -> (Self, Vec<u8>) {
        let canvas = view(model);
        let bytes = paint(before.map(|before| &before.canvas), &canvas, depth);
        let panes = plain_panes(model).into_iter().map(|plain| (plain, copy(model, plain)));
        (Self { panes: panes.collect(), canvas }, bytes)
    }

    /// Draws the rows that programs have changed; returns the bytes for that. `None` if that may not be all that has to
    /// be drawn.
    pub(crate) fn draw_screens(&mut self, model: &Model, depth: ColourDepth) -> Option<Vec<u8>> {
        let plain = plain_panes(model);
        let is_same = plain.len() == model.places().0.len()
            && plain.iter().eq(self.panes.iter().map(|(plain, _)| plain))
            && (self.canvas.width, self.canvas.height) == (model.width, model.height);
        if !is_same {
            return None;
        }
        let caret = self.canvas.caret;
        let mut before = Vec::<(u16, Vec<Cell>)>::new();
        for (plain, copies) in &mut self.panes {
            let rows = copies.update(&model.panes.get(&plain.id)?.screen);
            for y in rows.iter().map(|row| plain.body.y + row) {
                // Panes beside each other share rows.
                if !before.iter().any(|(known, _)| *known == y) {
                    before.push((y, self.canvas.row(y).to_vec()));
                }
            }
            redraw(model, *plain, &rows, &mut self.canvas);
        }
        Some(paint_rows(&before, caret, &self.canvas, depth))
    }
}

fn copy(model: &Model, plain: PlainPane) -> RowCopies {
    let mut rows = RowCopies::default();
    if let Some(pane) = model.panes.get(&plain.id) {
        rows.update(&pane.screen);
    }
    rows
}

#[cfg(test)]
mod tests {
    use arbtest::arbtest;
    use patterm_screen::{Colour, Screen, Size};
    use patterm_wire::view::ToView;

    use super::*;
    use crate::sample::Sample;
    use crate::update::Event;

    /// Pieces of output that change a screen in every way.
    const PIECES: [&str; 19] = [
        "x",
        "漢",
        "e\u{301}",
        "❤\u{fe0f}",
        "\r",
        "\r\n",
        "\n\n\n",
        "\x1b[31mred\x1b[m",
        "\x1b[2J",
        "\x1b[K",
        "\x1b[5;7H",
        "\x1b[2L\x1b[3P",
        "\x1b[?1049h\x1b[44m\x1b[J",
        "\x1b[?1049l",
        "\x1b]4;1;#123456\x07",
        "\x1b]11;rgb:10/20/30\x07",
        "\x1b]104\x07\x1b]111\x07",
        "\x1b[?25l",
        "\x1b[?25h\x1b[4 q",
    ];

    fn print(sample: &mut Sample, pane: u32, text: &str) {
        let frame = ToView::Output { offset: 0, bytes: text.as_bytes().to_vec() };
        sample.handle(Event::Frame(pane, frame));
    }

    #[test]
    fn rows_drawn_alone_are_those_of_the_whole_frame_and_the_terminal_shows_them() {
        arbtest(|u| {
            let mut sample = Sample::new(90, 20);
            if u.arbitrary()? {
                sample.type_in("\x02|2\r");
                let other = sample.model.focus;
                sample.show(other, "other\r\n");
            }
            let panes: Vec<u32> = sample.model.panes.keys().copied().collect();
            let (mut shown, bytes) = ShownFrame::draw(None, &sample.model, ColourDepth::True);
            let mut terminal = Screen::new(Size::new(20, 90));
            terminal.feed(&bytes);
            for _ in 0..u.int_in_range(1..=8)? {
                for _ in 0..u.int_in_range(1..=4)? {
                    let (pane, piece) = (*u.choose(&panes)?, *u.choose(&PIECES)?);
                    print(&mut sample, pane, piece);
                }
                let bytes = match shown.draw_screens(&sample.model, ColourDepth::True) {
                    Some(bytes) => bytes,
                    // A pane whose first snapshot has not come yet needs a whole frame.
                    None => {
                        let (next, bytes) =
                            ShownFrame::draw(None, &sample.model, ColourDepth::True);
                        shown = next;
                        bytes
                    }
                };
                terminal.feed(&bytes);
                assert_eq!(shown.canvas, view(&sample.model));
            }
            let mut anew = Screen::new(Size::new(20, 90));
            anew.feed(&ShownFrame::draw(None, &sample.model, ColourDepth::True).1);
            let rows = |screen: &Screen| (0..20).map(|y| screen.styled_row(y)).collect::<Vec<_>>();
            assert_eq!(rows(&terminal), rows(&anew));
            // Where a hidden cursor is does not matter.
            let caret = |screen: &Screen| Some(screen.cursor()).filter(|cursor| cursor.visible);
            assert_eq!(caret(&terminal), caret(&anew));
            Ok(())
        });
    }

    #[test]
    fn colours_that_a_program_sets_are_drawn_in_its_pane_and_not_set_in_the_terminal() {
        let mut sample = Sample::new(90, 20);
        let pane = sample.model.focus;
        let text = "\x1b]4;1;#123456;2;#654321\x07\x1b]11;#102030\x07\x1b[31mred\x1b[m plain\r\n";
        sample.show(pane, text);
        let (mut shown, bytes) = ShownFrame::draw(None, &sample.model, ColourDepth::True);
        assert!(!bytes.windows(2).any(|pair| pair == b"\x1b]"), "no OSC");
        let mut terminal = Screen::new(Size::new(20, 90));
        let row = |terminal: &Screen| {
            let row = (0..20).find(|row| terminal.row(*row).contains("red plain"));
            terminal.styled_row(row.unwrap()).spans
        };
        let look = |terminal: &Screen, text: &str| {
            let spans = row(terminal);
            let span = spans.iter().find(|span| span.text.starts_with(text)).unwrap();
            (span.style.foreground, span.style.background)
        };
        terminal.feed(&bytes);
        let background = Colour::Rgb(0x10, 0x20, 0x30);
        assert_eq!(look(&terminal, "red"), (Colour::Rgb(0x12, 0x34, 0x56), background));
        assert_eq!(look(&terminal, " plain"), (Colour::Default, background));
        assert!(row(&terminal).iter().map(|span| span.text.len()).sum::<usize>() >= 60);
        print(&mut sample, pane, "\x1b]104;1\x07\x1b]111\x07");
        terminal.feed(&shown.draw_screens(&sample.model, ColourDepth::True).unwrap());
        assert_eq!(look(&terminal, "red"), (Colour::Indexed(1), Colour::Default));
        let (_, bytes) = ShownFrame::draw(None, &sample.model, ColourDepth::Palette);
        assert!(!String::from_utf8_lossy(&bytes).contains("38;2"), "the nearest of the palette");
    }

    #[test]
    fn everything_is_drawn_when_more_than_rows_may_have_changed() {
        let mut sample = Sample::new(90, 20);
        let (mut shown, _) = ShownFrame::draw(None, &sample.model, ColourDepth::True);
        assert_eq!(shown.draw_screens(&sample.model, ColourDepth::True), Some(Vec::new()));
        let pane = sample.model.focus;
        print(&mut sample, pane, "\x1b[?5h");
        assert_eq!(shown.draw_screens(&sample.model, ColourDepth::True), None, "reverse video");
        print(&mut sample, pane, "\x1b[?5l");
        assert!(shown.draw_screens(&sample.model, ColourDepth::True).is_some());
        sample.type_in("\x02?");
        assert_eq!(
            shown.draw_screens(&sample.model, ColourDepth::True),
            None,
            "the help covers it"
        );
    }
}
