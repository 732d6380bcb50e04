//! The rows of the dashboard, in the order that the user has chosen.

use std::cmp::Ordering;

use patterm_wire::follow::ProcessInfo;

use crate::dashboard::{Column, ProcessSamples};
use crate::list::number;
use crate::model::{Model, is_alive, is_blocked};

/// The processes in the order of the rows.
pub(crate) fn rows(model: &Model) -> Vec<&ProcessInfo> {
    let mut rows: Vec<_> = model.snapshot.processes.iter().collect();
    rows.sort_by(|one, other| {
        let by_value = compare(model, one, other);
        let by_value = if model.dashboard.descending { by_value.reverse() } else { by_value };
        // Rows with the same value keep their places.
        by_value.then_with(|| by_number(one).cmp(&by_number(other)))
    });
    rows
}

fn by_number(process: &ProcessInfo) -> u64 {
    number(&process.id).parse().unwrap_or(u64::MAX)
}

fn compare(model: &Model, one: &ProcessInfo, other: &ProcessInfo) -> Ordering {
    let last = |process: &ProcessInfo| samples(model, process).map(|samples| &samples.last);
    let by = |value: &dyn Fn(&ProcessInfo) -> Option<u64>| value(one).cmp(&value(other));
    match model.dashboard.sort {
        Column::Number => by_number(one).cmp(&by_number(other)),
        Column::Name => one.name.to_lowercase().cmp(&other.name.to_lowercase()),
        Column::State => state_rank(one).cmp(&state_rank(other)),
        Column::Cpu => by(&|process| samples(model, process)?.cpu_now().map(u64::from)),
        Column::Memory => by(&|process| last(process)?.memory_bytes),
        Column::Age => by(&|process| age(model, process)),
        Column::Restarts => restarts(one).cmp(&restarts(other)),
        Column::Ports => {
            let first = |process| last(process)?.ports.as_ref()?.first().copied();
            // Processes without ports come after the others.
            (first(one).is_none(), first(one)).cmp(&(first(other).is_none(), first(other)))
        }
        Column::LastLine => {
            let line = |process| last(process).map(|last| &last.last_line);
            line(one).cmp(&line(other))
        }
    }
}

/// What needs the user comes first, what has ended comes last.
fn state_rank(process: &ProcessInfo) -> (u8, &str) {
    let rank = match (is_blocked(process), is_alive(process)) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    };
    (rank, process.status.name())
}

/// The measurements of a process.
pub(crate) fn samples<'m>(model: &'m Model, process: &ProcessInfo) -> Option<&'m ProcessSamples> {
    model.dashboard.samples.get(&process.id)
}

/// How long a process has been running, or how long ago it ended, in seconds.
pub(crate) fn age(model: &Model, process: &ProcessInfo) -> Option<u64> {
    let last = &samples(model, process)?.last;
    let since = if is_alive(process) { last.started_at } else { last.ended_at };
    Some(model.now.saturating_sub(since?) / 1000)
}

/// How often a process was restarted automatically in a row, as in `patterm status`: what people start again themselves
/// says nothing about it.
pub(crate) fn restarts(process: &ProcessInfo) -> u32 {
    process.restarts.unwrap_or_default()
}

/// The place of the chosen process among the rows.
pub(crate) fn chosen(model: &Model, rows: &[&ProcessInfo]) -> usize {
    let is_chosen = |process: &&ProcessInfo| Some(&process.id) == model.dashboard.chosen.as_ref();
    rows.iter().position(is_chosen).unwrap_or(0)
}
