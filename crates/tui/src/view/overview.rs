//! The overview of all projects, and the question of one agent.

use patterm_screen::Style;
use patterm_wire::follow::{DialogInfo, ProcessInfo};

use super::{overlay, style, tree};
use crate::canvas::{Canvas, Rect, text_width};
use crate::list::{number, one_line};
use crate::model::{Mode, Model};
use crate::overview::{AnswerPanel, Overview, OverviewProject, OverviewRow, Place, ProjectState};

/// Columns for the names of processes, at most.
const NAME_COLUMNS: usize = 20;

/// Columns for a path, at least.
const PATH_COLUMNS: usize = 10;

/// Columns for the words for their states.
const STATE_COLUMNS: u16 = 10;

/// Columns by which the further lines of an option are indented: the width of its number.
const OPTION_INDENT: usize = 3;

/// The widest question that is shown in one row.
const PANEL_COLUMNS: u16 = 90;

fn room(model: &Model) -> Rect {
    overlay::above_status(model)
}

/// The first row that is shown, so that the chosen one is visible with its question.
fn first_shown(overview: &Overview, place: &Place, height: u16) -> usize {
    let (rows, height) = (overview.rows(), usize::from(height));
    let chosen = overview.row_of(place);
    let asks = rows.get(chosen + 1).is_some_and(|row| row.place().is_none());
    let last = chosen + usize::from(asks && height > 1);
    (last + 1).saturating_sub(height).min(rows.len().saturating_sub(height))
}

/// The place in a row of the screen.
pub(crate) fn overview_place(model: &Model, x: u16, y: u16) -> Option<Place> {
    let (Mode::Overview(place), Some(overview)) = (&model.mode, &model.overview) else {
        return None;
    };
    let inner = room(model).inner();
    let row = usize::from(y.checked_sub(inner.y).filter(|_| inner.contains(x, y))?);
    let rows = overview.rows();
    let at = first_shown(overview, place, inner.height) + row;
    // A question belongs to the process above it.
    rows.get(..=at)?.iter().rev().find_map(OverviewRow::place)
}

pub(super) fn draw(model: &Model, place: &Place, canvas: &mut Canvas) {
    let Some(overview) = &model.overview else { return };
    let room = room(model);
    canvas.clear(room, &model.theme().text);
    canvas.frame(room, "all projects", &model.theme().accent);
    let inner = room.inner();
    let rows = overview.rows();
    if rows.is_empty() {
        let text = "no project has a server";
        canvas.put_cut(inner.x + 1, inner.y, inner.right(), text, &model.theme().dim);
    }
    let names = rows.iter().filter_map(|row| match row {
        OverviewRow::Process(_, depth, process) => Some(2 * depth + text_width(&label(process))),
        _ => None,
    });
    let names = names.max().unwrap_or(0).min(NAME_COLUMNS) as u16;
    let first = first_shown(overview, place, inner.height);
    let chosen = overview.row_of(place);
    let shown = rows.iter().enumerate().skip(first).take(usize::from(inner.height));
    for (line, (at, row)) in shown.enumerate() {
        let area = Rect { y: inner.y + line as u16, height: 1, ..inner };
        match row {
            OverviewRow::Project(project) => draw_project(model, area, project, canvas),
            OverviewRow::Process(_, depth, process) => {
                draw_process(model, area, (names, *depth, process), canvas);
            }
            OverviewRow::Hung(advice) => {
                let text = format!("✗ does not answer: {}", one_line(advice));
                canvas.put_cut(area.x + 2, area.y, area.right(), &text, &model.theme().bad);
            }
            OverviewRow::Question(dialog) => draw_options(model, area, names, dialog, canvas),
        }
        if at == chosen {
            canvas.restyle(area, |style| style::select(style, &model.theme().selected));
        }
    }
}

/// A process by its number, kind and name.
fn label(process: &ProcessInfo) -> String {
    format!("{} {} {}", number(&process.id), style::kind(process), one_line(&process.name))
}

fn draw_project(model: &Model, area: Rect, project: &OverviewProject, canvas: &mut Canvas) {
    let theme = model.theme();
    let path = one_line(&project.server.project.to_string_lossy());
    let is_here = project.server.key == model.project_key;
    let is_last = model.last_project.as_ref() == Some(&project.server.key);
    let (text, style): (String, &Style) = match &project.state {
        ProjectState::Connecting => ("…".to_owned(), &theme.dim),
        ProjectState::Hung(_) => (String::new(), &theme.dim),
        ProjectState::Live(snapshot) => {
            let all = &snapshot.processes;
            let running = all.iter().filter(|process| process.status.is_alive()).count();
            let waiting = all.iter().filter(|process| process.needs_person()).count();
            let waits = match waiting {
                0 => String::new(),
                1 => ", 1 needs you".to_owned(),
                _ => format!(", {waiting} need you"),
            };
            let what = match (is_here, is_last) {
                (true, _) => "  (shown)",
                (false, true) => "  (shown before)",
                (false, false) => "",
            };
            (format!("{running} running{waits}{what}"), &theme.dim)
        }
    };
    // The path keeps its end, which says more than its beginning.
    let width = usize::from(area.width.saturating_sub(2));
    let most =
        width.saturating_sub(text_width(&text).min(width / 2) + 2).max(PATH_COLUMNS.min(width));
    let path = end_of(&path, most);
    let x = canvas.put(area.x + 1, area.y, area.right(), &path, &theme.strong);
    canvas.put_cut(x + 2, area.y, area.right(), &text, style);
}

/// The end of a path, in at most this many columns.
fn end_of(path: &str, most: usize) -> String {
    if text_width(path) <= most {
        return path.to_owned();
    }
    let mut kept = path.chars();
    while text_width(kept.as_str()) >= most.max(1) && kept.next().is_some() {}
    format!("…{}", kept.as_str())
}

fn draw_process(
    model: &Model,
    area: Rect,
    (names, depth, process): (u16, usize, &ProcessInfo),
    canvas: &mut Canvas,
) {
    let theme = model.theme();
    let (sign, word, state) = style::state(process, theme);
    let mark = if process.attention.is_some() { "!" } else { " " };
    let x = canvas.put(area.x + 1, area.y, area.right(), mark, &theme.bad);
    let x = canvas.put(x, area.y, area.right(), sign, state) + 1;
    let name = format!("{}{}", "  ".repeat(depth.min(4)), label(process));
    let edge = (x + names).min(area.right());
    canvas.put_cut(x, area.y, edge, &name, &theme.text);
    canvas.put_cut(edge + 2, area.y, (edge + 2 + STATE_COLUMNS).min(area.right()), &word, state);
    // The options are in the next row.
    let why = process.dialog.as_ref().filter(|_| process.attention.is_none());
    let why = one_line(why.map_or(process.why(), |dialog| &dialog.question));
    canvas.put_cut(edge + 2 + STATE_COLUMNS, area.y, area.right(), &why, &theme.dim);
}

fn draw_options(model: &Model, area: Rect, names: u16, dialog: &DialogInfo, canvas: &mut Canvas) {
    let options: Vec<_> = dialog.options.iter().map(|option| one_line(&option.label)).collect();
    let begin = area.x + 5 + names + STATE_COLUMNS;
    // On a narrow terminal they begin further left.
    let begin = if begin + 20 > area.right() { area.x + 4 } else { begin };
    let how = if dialog.is_answerable() { "→ " } else { "" };
    let x = canvas.put(begin, area.y, area.right(), how, &model.theme().accent);
    let offered = match options.is_empty() {
        true => "answer it in its pane, which is too small for all options".to_owned(),
        false => options.join(" | "),
    };
    canvas.put_cut(x, area.y, area.right(), &offered, &model.theme().text);
}

/// The question of one agent, with its options to choose from.
pub(super) fn draw_answer(model: &Model, panel: &AnswerPanel, canvas: &mut Canvas) {
    if let Some(key) = &panel.project {
        let process = Some(panel.process.clone());
        draw(model, &Place { key: key.clone(), process }, canvas);
    }
    let area = overlay::above_status(model);
    let width = area.width.saturating_sub(4).clamp(20.min(area.width), PANEL_COLUMNS);
    let columns = usize::from(width.saturating_sub(4));
    let question = tree::wrap(&one_line(&panel.dialog.question), columns);
    let options = option_lines(panel, columns);
    let rows = u16::try_from(question.len() + options.len() + 3).unwrap_or(u16::MAX);
    let room = area.middle(width, rows.min(area.height));
    canvas.clear(room, &model.theme().text);
    canvas.frame(room, &format!("{} asks", one_line(&panel.name)), &model.theme().accent);
    let inner = room.inner();
    let height = usize::from(inner.height);
    // What is approved is at the beginning of the question, and at its end.
    let least = question.len().min(height / 2);
    let above = question.len().min(height.saturating_sub(options.len())).max(least);
    for (row, line) in shortened(&question, above).iter().enumerate() {
        let y = inner.y + row as u16;
        canvas.put_cut(inner.x + 1, y, inner.right(), line, &model.theme().strong);
    }
    let gap = usize::from(height > above + options.len());
    let (_, list) = inner.cut_top((above + gap) as u16);
    let height = usize::from(list.height);
    let end = options.iter().rposition(|(at, _)| *at == panel.chosen).map_or(0, |line| line + 1);
    let first = end.saturating_sub(height).min(options.len().saturating_sub(height));
    for (line, (at, text)) in options.iter().skip(first).take(height).enumerate() {
        let row = Rect { y: list.y + line as u16, height: 1, ..list };
        let known = panel.dialog.options[*at].answerable;
        let style = if known { &model.theme().text } else { &model.theme().dim };
        canvas.put_cut(row.x + 1, row.y, row.right(), text, style);
        if *at == panel.chosen {
            canvas.restyle(row, |style| style::select(style, &model.theme().selected));
        }
    }
}

/// The options, wrapped, with the place of the option in each line.
fn option_lines(panel: &AnswerPanel, columns: usize) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    for (at, option) in panel.dialog.options.iter().enumerate() {
        let label = one_line(&option.label);
        let is_numbered = label.starts_with(&format!("{}.", at + 1));
        let text = if is_numbered { label } else { format!("{}  {label}", at + 1) };
        let wrapped = tree::wrap(&text, columns.saturating_sub(OPTION_INDENT));
        lines.extend(wrapped.into_iter().enumerate().map(|(line, text)| match line {
            0 => (at, text),
            _ => (at, format!("{}{text}", " ".repeat(OPTION_INDENT))),
        }));
    }
    lines
}

/// As many lines of a question as there is room for: its beginning and its end.
fn shortened(question: &[String], most: usize) -> Vec<String> {
    if question.len() <= most || most == 0 {
        return question.iter().take(most).cloned().collect();
    }
    let end = (most - 1) / 2;
    let begin = most - 1 - end;
    let cut = ["… (its pane shows all of it)".to_owned()];
    let last = &question[question.len() - end..];
    question[..begin].iter().chain(&cut).chain(last).cloned().collect()
}
