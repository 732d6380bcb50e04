//! The time bar, and panes as they were.

use patterm_screen::Style;

use super::logs::clock;
use super::pane;
use crate::canvas::{Canvas, Rect, text_width};
use crate::list::one_line;
use crate::model::{Mode, Model, Pane};
use crate::past::{PastPane, TimeBar, TimeScope, TimeTyping};
use patterm_wire::events::format_time;

/// A moment that is less than this ago is now.
const NOW_MS: u64 = 1_000;

const DAY_MS: u64 = 86_400_000;

/// The narrowest line of time that is of any use.
const LINE_COLUMNS: u16 = 10;

/// The keys, the longest list first; the bar shows the first that leaves room.
const KEYS: [&str; 5] = [
    " ←→ 1 s  ↑↓ 10 s  pgup/dn 1 min  , change  e event  m message  s state  a attention  / search  t time  tab panes  esc now ",
    " ←→ 1 s  ↑↓ 10 s  , change  e event  / search  t time  tab panes  esc now ",
    " ←→ 1 s  , change  e event  t time  esc now ",
    " ←→ 1 s  e event  esc now ",
    " esc now ",
];

/// The open time bar.
fn bar(model: &Model) -> Option<&TimeBar> {
    model.past.as_ref().filter(|_| model.mode == Mode::Past)
}

/// The time bar, if this pane shows the past.
pub(super) fn bar_over(model: &Model, id: crate::layout::PaneId) -> Option<&TimeBar> {
    bar(model).filter(|bar| bar.covers(id))
}

/// The prompt and the text that is being typed.
pub(super) fn line(model: &Model) -> Option<(String, String)> {
    let bar = bar(model)?;
    Some(match bar.typing? {
        TimeTyping::Time => ("go to (09:12, 10m ago as 10m): ".to_owned(), bar.time.clone()),
        TimeTyping::Search => ("search back: ".to_owned(), bar.search.clone()),
    })
}

/// The time of day, with the date if that is another day.
pub(crate) fn time_of(model: &Model, wall_ms: u64) -> String {
    let local = |ms: u64| ms.saturating_add_signed(i64::from(model.utc_offset) * 1_000);
    let (at, now) = (local(wall_ms), local(model.now));
    let tenth = wall_ms % 1_000 / 100;
    let time = format!("{}.{tenth}", clock(model, wall_ms));
    match at / DAY_MS == now / DAY_MS {
        true => time,
        false => format!("{} {time}", &format_time(at)[..10]),
    }
}

/// How long ago something was, in its two largest units.
fn ago(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Draws a pane as it was.
pub(super) fn draw_pane(
    model: &Model,
    bar: &TimeBar,
    pane: &Pane,
    body: Rect,
    canvas: &mut Canvas,
) {
    let name = model.process(&pane.process).map_or("", |process| process.name.as_str());
    let at = |ms: &Option<u64>, before: &str| {
        ms.map_or_else(String::new, |ms| format!("{before}{}", time_of(model, ms)))
    };
    let text = match bar.pane(&pane.process) {
        Some(PastPane::Screen(screen)) => {
            pane::draw_screen(model, screen, body, canvas);
            let size = screen.size();
            if (size.columns, size.rows) != (body.width, body.height) {
                let text = format!(" it was {}×{} ", size.columns, size.rows);
                let x = body.right().saturating_sub(text_width(&text) as u16).max(body.x);
                let y = body.bottom().saturating_sub(1);
                canvas.put_cut(x, y, body.right(), &text, &model.theme().bar);
            }
            return;
        }
        Some(PastPane::NotStarted(at_ms)) => {
            format!("{name} did not exist yet{}", at(at_ms, "; it was started at "))
        }
        Some(PastPane::Dropped(at_ms)) => {
            format!("this is gone: logs have a limited size{}", at(at_ms, "; this one begins at "))
        }
        Some(PastPane::Nothing) => format!("{name} has printed nothing"),
        None => "reading…".to_owned(),
    };
    let rows = super::tree::wrap(&one_line(&text), usize::from(body.width.max(1)));
    for (row, text) in rows.iter().take(usize::from(body.height)).enumerate() {
        canvas.put(body.x, body.y + row as u16, body.right(), text, &model.theme().dim);
    }
}

/// Where the parts of the bar are.
struct Parts {
    /// The moment, and how long ago it was.
    moment: String,
    keys: &'static str,
    /// The columns between them.
    middle: Rect,
    /// What is shown there instead of the line of time.
    found: Option<String>,
}

fn parts(model: &Model, bar: &TimeBar) -> Parts {
    let whole = match bar.scope {
        TimeScope::Page if model.panes.len() > 1 => " all panes",
        _ => "",
    };
    let moment = match bar.at_ms {
        None => " …".to_owned(),
        Some(at_ms) => {
            let since = model.now.max(bar.now_ms).saturating_sub(at_ms);
            let ago = if since < NOW_MS { "now".to_owned() } else { format!("{} ago", ago(since)) };
            format!(" ◂{whole} {} · {ago} ", time_of(model, at_ms))
        }
    };
    let left = (text_width(&moment) as u16).min(model.width);
    let found = found(model, bar);
    // What was found is more important than keys.
    let needed = found.as_ref().map_or(0, |text| text_width(text) as u16).min(model.width / 2);
    let needed = needed.max(LINE_COLUMNS);
    let fits = |keys: &&&str| left + text_width(keys) as u16 + needed <= model.width;
    let keys = KEYS.iter().find(fits).copied().unwrap_or(KEYS[KEYS.len() - 1]);
    let right = model.width.saturating_sub(text_width(keys) as u16);
    let middle = Rect::new(left, model.height - 1, right.saturating_sub(left), 1);
    Parts { moment, keys, middle, found }
}

/// Draws the bar in place of the status bar.
pub(super) fn draw_bar(model: &Model, canvas: &mut Canvas) {
    let Some(bar) = bar(model) else { return };
    let style = &model.theme().bar;
    let Parts { moment, keys, middle, found } = parts(model, bar);
    let y = middle.y;
    canvas.put_cut(0, y, model.width, &moment, style);
    if middle.right() > middle.x || middle.x < model.width / 2 {
        canvas.put(
            model.width.saturating_sub(text_width(keys) as u16),
            y,
            model.width,
            keys,
            style,
        );
    }
    match found {
        Some(text) => {
            canvas.put_cut(middle.x, y, middle.right(), &text, style);
        }
        None => draw_line(bar, middle, style, canvas),
    }
}

/// What is at the moment.
fn found(model: &Model, bar: &TimeBar) -> Option<String> {
    let found = bar.found.as_ref()?;
    let name = |id: &String| model.process(id).map_or(id.clone(), |process| process.name.clone());
    let name = found.process_id.as_ref().map(name);
    let kind = found.kind.as_ref().map(|kind| kind.replace(['.', '_'], " "));
    let text = Some(found.text.clone()).filter(|text| !text.is_empty());
    let parts: Vec<String> = [name, kind, text].into_iter().flatten().collect();
    Some(one_line(&parts.join(": ")))
}

/// The time from the beginning until now, with the moment on it.
fn draw_line(bar: &TimeBar, room: Rect, style: &Style, canvas: &mut Canvas) {
    let Some(at_ms) = bar.at_ms.filter(|_| room.width >= LINE_COLUMNS) else { return };
    let last = u64::from(room.width - 1);
    let whole = bar.now_ms.saturating_sub(bar.first_ms).max(1);
    let place = at_ms.saturating_sub(bar.first_ms).min(whole) * last / whole;
    for column in 0..=last {
        let mark = match column {
            _ if column == place => "●",
            0 => "├",
            _ if column == last => "┤",
            _ => "─",
        };
        canvas.put(room.x + column as u16, room.y, room.right(), mark, style);
    }
}

/// The moment at a place of the bar, if its line is there.
pub(crate) fn moment_at(model: &Model, x: u16, y: u16) -> Option<u64> {
    let bar = bar(model).filter(|bar| bar.found.is_none())?;
    let room = parts(model, bar).middle;
    if !room.contains(x, y) || room.width < LINE_COLUMNS {
        return None;
    }
    let whole = bar.now_ms.saturating_sub(bar.first_ms);
    Some(bar.first_ms + whole * u64::from(x - room.x) / u64::from(room.width - 1))
}
