//! Key frames: all state of a terminal, exactly, in a few kilobytes, so that a screen can be had again without parsing
//! the output before it. Only the rows above the screen are not part of it.
//!
//! A frame is for the same build of this crate; one of another version is refused, since that might have parsed the
//! output differently.

use alacritty_terminal::grid::Cursor;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::StandardCharset;

use crate::colours::Colours;
use crate::emulator::{CHARSETS, Emulator, MAX_LEVEL};
use crate::frame_bytes::{FrameReader, FrameWriter};
use crate::frame_cells::{CellReader, CellWriter};
use crate::history::History;
use crate::kitty_keyboard::{self, KittyKeyboard};
use crate::modes::{Modes, Mouse, MouseEncoding};
use crate::notice::{Notices, ProgressReport};
use crate::pack::{pack, unpack};
use crate::page::{Page, RowInfo, SavedCursor, line};
use crate::replies::Replies;
use crate::size::{CursorShape, Size};
use crate::tabs::Tabs;
use crate::terminal_name::TerminalName;
use crate::title::{self, Title};

/// The version of the emulation and of the frames: that of the release, and a number to be raised with any change
/// after it that gives another screen for the same output.
const ENGINE: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");

/// Larger screens have no frames. Each cell costs a few nanoseconds while the screen is locked.
const MAX_CELLS: usize = 64 << 10;

/// Bytes of a frame before it is packed. One with more would be too large for a log's index anyway.
const MAX_BYTES: usize = 128 << 10;

/// Saved modes and changed colours: more than there are.
const MAX_LISTED: usize = 512;

const MICE: [Mouse; 5] = [Mouse::Off, Mouse::Press, Mouse::Click, Mouse::Drag, Mouse::Motion];

const MOUSE_ENCODINGS: [MouseEncoding; 5] = [
    MouseEncoding::Bytes,
    MouseEncoding::Utf8,
    MouseEncoding::Sgr,
    MouseEncoding::Urxvt,
    MouseEncoding::SgrPixels,
];

const SHAPES: [CursorShape; 3] = [CursorShape::Block, CursorShape::Underline, CursorShape::Bar];

/// All state of an emulator between two sequences; `None` if it is too much.
pub(crate) fn encode(emulator: &Emulator) -> Option<Vec<u8>> {
    let mut out = FrameWriter::default();
    put_emulator(&mut out, emulator)?;
    if out.bytes.len() > MAX_BYTES {
        return None;
    }
    let mut frame = FrameWriter::default();
    frame.text(ENGINE);
    frame.bytes.extend_from_slice(&pack(&out.bytes));
    Some(frame.bytes)
}

/// The emulator of a frame, without the rows above its screen; `None` if it is damaged or of another version.
pub(crate) fn decode(frame: &[u8]) -> Option<Emulator> {
    let packed = frame.strip_prefix(&[ENGINE.len() as u8])?.strip_prefix(ENGINE.as_bytes())?;
    let bytes = unpack(packed, MAX_BYTES)?;
    let mut input = FrameReader::new(&bytes);
    let emulator = take_emulator(&mut input)?;
    input.is_empty().then_some(emulator)
}

// Each pair of functions names all fields, so that a new one cannot be forgotten.

fn put_emulator(out: &mut FrameWriter, emulator: &Emulator) -> Option<()> {
    let Emulator {
        page,
        hidden_main,
        top,
        bottom,
        left,
        right,
        alternate_saved,
        guarded,
        in_rectangle,
        saved_modes,
        checksums: _,
        level,
        modes,
        keyboard,
        tabs,
        title,
        colours,
        report,
        reports,
        progress,
        shape,
        blinking,
        charset,
        last_character,
        wide,
        history,
        // Whoever parses has taken them.
        replies: _,
        notices: _,
        base_offset: _,
        offset,
        changed: _,
        // Whoever continues the screen knows it.
        terminal_name: _,
        replay: _,
    } = emulator;
    let size = emulator.size();
    if usize::from(size.rows) * usize::from(size.columns) > MAX_CELLS {
        return None;
    }
    out.number(*offset);
    out.number(u64::from(size.rows));
    out.number(u64::from(size.columns));
    let mut cells = CellWriter::default();
    // The margins of the page that is shown are not in it: what is there may be those of another size.
    put_page(out, page, (0, page.rows() - 1), *offset, &mut cells)?;
    out.flag(hidden_main.is_some());
    if let Some(main) = hidden_main {
        put_page(out, main, main.margins, *offset, &mut cells)?;
    }
    [top, bottom, left, right].into_iter().for_each(|margin| out.size(*margin));
    put_saved(out, alternate_saved, &mut cells)?;
    out.flag(*guarded);
    out.flag(*in_rectangle);
    out.size(saved_modes.len());
    for (number, on) in saved_modes {
        out.number(u64::from(*number));
        out.flag(*on);
    }
    out.byte(*level);
    put_modes(out, modes);
    let (shown, other) = keyboard.stacks();
    for stack in [shown, other] {
        out.size(stack.len());
        stack.iter().for_each(|flags| out.byte(*flags));
    }
    tabs.stops().iter().for_each(|stop| out.flag(*stop));
    put_title(out, title);
    out.size(colours.all_changed().count());
    for (place, (r, g, b)) in colours.all_changed() {
        out.size(place);
        [r, g, b].into_iter().for_each(|part| out.byte(part));
    }
    out.text(report);
    out.number(*reports);
    put_progress(out, *progress);
    out.size(SHAPES.iter().position(|known| known == shape)?);
    out.flag(*blinking);
    out.size(*charset);
    out.flag(last_character.is_some());
    if let Some(character) = last_character {
        out.character(*character);
    }
    out.flag(*wide);
    out.number(history.next_line());
    out.flag(history.is_open());
    out.flag(history.may_join);
    out.flag(history.last_offset().is_some());
    out.number(history.last_offset().unwrap_or(0));
    Some(())
}

fn take_emulator(input: &mut FrameReader<'_>) -> Option<Emulator> {
    let offset = input.number()?;
    let (rows, columns) = (input.at_most(usize::from(Size::MAX_ROWS))?, input.size()?);
    let columns = Some(columns).filter(|columns| *columns <= usize::from(Size::MAX_COLUMNS))?;
    let size = Size::new(rows as u16, columns as u16);
    if (usize::from(size.rows), usize::from(size.columns)) != (rows, columns) {
        return None;
    }
    let mut cells = CellReader::default();
    let page = take_page(input, size, offset, &mut cells)?;
    let hidden_main = match input.flag()? {
        true => Some(take_page(input, size, offset, &mut cells)?),
        false => None,
    };
    let (top, bottom) = take_range(input, rows)?;
    let (left, right) = take_range(input, columns)?;
    Some(Emulator {
        page,
        hidden_main,
        top,
        bottom,
        left,
        right,
        alternate_saved: take_saved(input, size, &mut cells)?,
        guarded: input.flag()?,
        in_rectangle: input.flag()?,
        saved_modes: take_saved_modes(input)?,
        checksums: false,
        level: input.byte().filter(|level| *level <= MAX_LEVEL)?,
        modes: take_modes(input)?,
        keyboard: KittyKeyboard::from_stacks(take_stack(input)?, take_stack(input)?),
        tabs: Tabs::from_stops((0..columns).map(|_| input.flag()).collect::<Option<_>>()?),
        title: take_title(input)?,
        colours: take_colours(input)?,
        report: input.text()?,
        reports: input.number()?,
        progress: take_progress(input)?,
        shape: *SHAPES.get(input.size()?)?,
        blinking: input.flag()?,
        charset: input.at_most(CHARSETS.len() - 1)?,
        last_character: match input.flag()? {
            true => Some(input.character()?),
            false => None,
        },
        wide: input.flag()?,
        history: take_history(input)?,
        replies: Replies::default(),
        notices: Notices::default(),
        base_offset: offset,
        offset,
        changed: false,
        terminal_name: TerminalName::default(),
        replay: false,
    })
}

fn put_page(
    out: &mut FrameWriter,
    page: &Page,
    margins: (usize, usize),
    offset: u64,
    cells: &mut CellWriter,
) -> Option<()> {
    let Page { grid, info, saved, margins: _ } = page;
    for (row, RowInfo { offset: begun, extent }) in info.iter().enumerate() {
        // Small numbers: most rows began a little before.
        out.number(if *begun == 0 { 0 } else { offset.wrapping_sub(*begun).wrapping_add(1) });
        out.size(*extent);
        cells.row(out, &grid[line(row)][..])?;
        if out.bytes.len() > MAX_BYTES {
            return None;
        }
    }
    put_cursor(out, &grid.cursor, cells)?;
    put_saved(out, saved, cells)?;
    out.size(margins.0);
    out.size(margins.1);
    Some(())
}

fn take_page(
    input: &mut FrameReader<'_>,
    size: Size,
    offset: u64,
    reader: &mut CellReader,
) -> Option<Page> {
    let (rows, columns) = (usize::from(size.rows), usize::from(size.columns));
    let mut page = Page::new(size);
    for row in 0..rows {
        let begun = input.number()?;
        page.info[row] = RowInfo {
            offset: if begun == 0 { 0 } else { offset.wrapping_sub(begun - 1) },
            extent: input.at_most(columns)?,
        };
        let cells = reader.row(input, columns)?;
        page.grid[line(row)][Column(0)..Column(columns)].clone_from_slice(&cells);
    }
    page.grid.cursor = take_cursor(input, size, reader)?;
    page.saved = take_saved(input, size, reader)?;
    page.margins = take_range(input, rows)?;
    Some(page)
}

fn put_cursor(out: &mut FrameWriter, cursor: &Cursor<Cell>, cells: &mut CellWriter) -> Option<()> {
    let Cursor { point, template, charsets, input_needs_wrap } = cursor;
    out.size(usize::try_from(point.line.0).ok()?);
    out.size(point.column.0);
    cells.row(out, std::slice::from_ref(template))?;
    CHARSETS.iter().for_each(|index| out.flag(charsets[*index] != StandardCharset::Ascii));
    out.flag(*input_needs_wrap);
    Some(())
}

fn take_cursor(
    input: &mut FrameReader<'_>,
    size: Size,
    cells: &mut CellReader,
) -> Option<Cursor<Cell>> {
    let mut cursor = Cursor::<Cell>::default();
    cursor.point.line = line(input.at_most(usize::from(size.rows) - 1)?);
    cursor.point.column = Column(input.at_most(usize::from(size.columns) - 1)?);
    cursor.template = cells.row(input, 1)?.pop()?;
    for index in CHARSETS {
        if input.flag()? {
            cursor.charsets[index] = StandardCharset::SpecialCharacterAndLineDrawing;
        }
    }
    cursor.input_needs_wrap = input.flag()?;
    Some(cursor)
}

fn put_saved(out: &mut FrameWriter, saved: &SavedCursor, cells: &mut CellWriter) -> Option<()> {
    let SavedCursor { cursor, origin, charset } = saved;
    put_cursor(out, cursor, cells)?;
    out.flag(*origin);
    out.size(*charset);
    Some(())
}

fn take_saved(
    input: &mut FrameReader<'_>,
    size: Size,
    cells: &mut CellReader,
) -> Option<SavedCursor> {
    Some(SavedCursor {
        cursor: take_cursor(input, size, cells)?,
        origin: input.flag()?,
        charset: input.at_most(CHARSETS.len() - 1)?,
    })
}

/// The first and the last of some rows or columns.
fn take_range(input: &mut FrameReader<'_>, count: usize) -> Option<(usize, usize)> {
    let (first, last) = (input.size()?, input.at_most(count - 1)?);
    (first <= last).then_some((first, last))
}

fn take_saved_modes(input: &mut FrameReader<'_>) -> Option<Vec<(u16, bool)>> {
    let count = input.at_most(MAX_LISTED)?;
    let mut one = || Some((u16::try_from(input.number()?).ok()?, input.flag()?));
    (0..count).map(|_| one()).collect()
}

fn put_modes(out: &mut FrameWriter, modes: &Modes) {
    let Modes {
        alternate_screen,
        application_cursor,
        application_keypad,
        bracketed_paste,
        focus_reports,
        scheme_reports,
        mouse,
        mouse_encoding,
        alternate_scroll,
        synchronized,
        cursor_visible,
        reverse_video,
        wrap,
        origin,
        reverse_wrap,
        far_reverse_wrap,
        side_margins,
        size_reports,
        tab_wraps,
        column_mode,
        backspace_sends_bs,
        without_effect: [smooth, printer_feed, printer_extent],
        clusters,
        insert,
        newline,
        kitty_keyboard,
        modify_other_keys,
    } = modes;
    out.size(MICE.iter().position(|known| known == mouse).unwrap_or(0));
    out.size(MOUSE_ENCODINGS.iter().position(|known| known == mouse_encoding).unwrap_or(0));
    out.byte(*kitty_keyboard);
    out.byte(*modify_other_keys);
    let flags = [
        alternate_screen,
        application_cursor,
        application_keypad,
        bracketed_paste,
        focus_reports,
        scheme_reports,
        alternate_scroll,
        synchronized,
        cursor_visible,
        reverse_video,
        wrap,
        origin,
        reverse_wrap,
        far_reverse_wrap,
        side_margins,
        size_reports,
        tab_wraps,
        column_mode,
        backspace_sends_bs,
        smooth,
        printer_feed,
        printer_extent,
        clusters,
        insert,
        newline,
    ];
    flags.into_iter().for_each(|flag| out.flag(*flag));
}

fn take_modes(input: &mut FrameReader<'_>) -> Option<Modes> {
    Some(Modes {
        mouse: *MICE.get(input.size()?)?,
        mouse_encoding: *MOUSE_ENCODINGS.get(input.size()?)?,
        kitty_keyboard: input.byte()?,
        modify_other_keys: input.byte()?,
        alternate_screen: input.flag()?,
        application_cursor: input.flag()?,
        application_keypad: input.flag()?,
        bracketed_paste: input.flag()?,
        focus_reports: input.flag()?,
        scheme_reports: input.flag()?,
        alternate_scroll: input.flag()?,
        synchronized: input.flag()?,
        cursor_visible: input.flag()?,
        reverse_video: input.flag()?,
        wrap: input.flag()?,
        origin: input.flag()?,
        reverse_wrap: input.flag()?,
        far_reverse_wrap: input.flag()?,
        side_margins: input.flag()?,
        size_reports: input.flag()?,
        tab_wraps: input.flag()?,
        column_mode: input.flag()?,
        backspace_sends_bs: input.flag()?,
        without_effect: [input.flag()?, input.flag()?, input.flag()?],
        clusters: input.flag()?,
        insert: input.flag()?,
        newline: input.flag()?,
    })
}

fn take_history(input: &mut FrameReader<'_>) -> Option<History> {
    let (next_line, open, may_join) = (input.number()?, input.flag()?, input.flag()?);
    let (has_older, offset) = (input.flag()?, input.number()?);
    Some(History::continued(next_line, open, may_join, has_older.then_some(offset)))
}

fn take_stack(input: &mut FrameReader<'_>) -> Option<Vec<u8>> {
    let count = input.at_most(kitty_keyboard::STACK_LIMIT)?;
    (0..count).map(|_| input.byte()).collect()
}

fn put_title(out: &mut FrameWriter, title: &Title) {
    let Title { text, icon, stack } = title;
    out.text(text);
    out.text(icon);
    out.size(stack.len());
    for (text, icon) in stack {
        out.text(text);
        out.text(icon);
    }
}

fn take_title(input: &mut FrameReader<'_>) -> Option<Title> {
    let (text, icon) = (input.text()?, input.text()?);
    let count = input.at_most(title::STACK_LIMIT)?;
    let stack = (0..count).map(|_| Some((input.text()?, input.text()?))).collect::<Option<_>>()?;
    Some(Title { text, icon, stack })
}

fn take_colours(input: &mut FrameReader<'_>) -> Option<Colours> {
    let mut colours = Colours::default();
    for _ in 0..input.at_most(MAX_LISTED)? {
        let place = input.size()?;
        colours.set_place(place, (input.byte()?, input.byte()?, input.byte()?))?;
    }
    Some(colours)
}

fn put_progress(out: &mut FrameWriter, progress: Option<ProgressReport>) {
    let (kind, percent) = match progress {
        None => (0, 0),
        Some(ProgressReport::Off) => (1, 0),
        Some(ProgressReport::Percent(percent)) => (2, percent),
        Some(ProgressReport::Failed(percent)) => (3, percent),
        Some(ProgressReport::Busy) => (4, 0),
        Some(ProgressReport::Paused(percent)) => (5, percent),
    };
    out.byte(kind);
    out.byte(percent);
}

fn take_progress(input: &mut FrameReader<'_>) -> Option<Option<ProgressReport>> {
    let (kind, percent) = (input.byte()?, input.byte()?);
    Some(match kind {
        0 => None,
        1 => Some(ProgressReport::Off),
        2 => Some(ProgressReport::Percent(percent)),
        3 => Some(ProgressReport::Failed(percent)),
        4 => Some(ProgressReport::Busy),
        5 => Some(ProgressReport::Paused(percent)),
        _ => return None,
    })
}
