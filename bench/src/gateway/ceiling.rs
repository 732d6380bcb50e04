//! Each kind of call through patterm and through the bare relay, which is the upper bound: at least seven
//! alternating rounds, of which the median ratio counts.

use std::time::Duration;

use super::load::Style;
use super::relays::{Relay, Relays, Subject};
use super::{Cell, failed};
use crate::row::{Row, Target, middle};
use crate::session::Workspace;
use crate::{Measured, long};

/// Alternating rounds.
const ROUNDS: usize = 7;

/// Duration of a round, in the short and the long form.
const ROUND: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Clients of the last rows, and the servers over which they are spread.
const CLIENTS: usize = 100;
const SERVERS: [usize; 2] = [10, 100];

const KINDS: [(Style, &str); 3] = [
    (Style::Stateful, "in a session"),
    (Style::Stateless, "stateless"),
    (Style::Events, "answered as events"),
];

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let workspace = Workspace::new()?;
    let relays = Relays::new();
    let mut one = [Subject::Patterm, Subject::Bare].map(|of| relays.start(of, 1, &workspace));
    let mut rows = Vec::new();
    for (style, name) in KINDS {
        for clients in [1, 64] {
            let target = match (style, clients) {
                (_, 1) => Target::AtLeast(0.95),
                (Style::Events, _) => Target::AtLeast(0.7),
                _ => Target::AtLeast(0.9),
            };
            let what = match clients {
                1 => format!("a call {name}, 1 client"),
                _ => format!("a call {name}, {clients} clients"),
            };
            let cells = alternate(&mut one, clients, style);
            rows.push(Row { what, target, ..row(&cells) });
        }
    }
    let single = alternate(&mut one, CLIENTS, Style::Stateful);
    drop(one);
    let what = format!("a call in a session, {CLIENTS} clients");
    rows.push(Row { what: format!("{what} of one server"), ..row(&single) });
    for servers in SERVERS {
        let mut many =
            [Subject::Patterm, Subject::Bare].map(|of| relays.start(of, servers, &workspace));
        let spread = alternate(&mut many, CLIENTS, Style::Stateful);
        rows.push(Row { what: format!("{what} of {servers} servers"), ..row(&spread) });
        rows.extend(spread_rows(servers, &single, &spread));
    }
    Ok(rows.into())
}

/// What it costs each of both that its calls are spread over servers.
fn spread_rows(servers: usize, single: &[Cell; 2], spread: &[Cell; 2]) -> Vec<Row> {
    let micros = |cell: &Cell| middle(cell.cpu.clone()) * 1e6;
    let names = ["patterm", "the bare relay"].into_iter();
    let cells = names.zip(single.iter().zip(spread));
    let measured = cells.filter(|(_, (one, many))| one.failure.is_none() && many.failure.is_none());
    let row = |(name, (one, many)): (&str, (&Cell, &Cell))| {
        let what = format!("{name}: CPU time of a call, spread over {servers} servers");
        Row::ratio(what, micros(many), ("one server", micros(one)), "µs", Target::Less)
    };
    measured.map(row).collect()
}

/// Rounds of patterm and the bare relay, alternating.
fn alternate(relays: &mut [anyhow::Result<Relay>; 2], clients: usize, style: Style) -> [Cell; 2] {
    let mut cells: [Cell; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (relay, cell) in relays.iter_mut().zip(&mut cells) {
            let round = failed(relay.as_mut()).and_then(|relay| {
                relay.endpoint.style = style;
                failed(cell.round(relay, clients, ROUND[usize::from(long())]))
            });
            cell.failure = cell.failure.take().or(round.err());
        }
    }
    cells
}

/// The median of the rounds' ratios.
fn row([ours, bare]: &[Cell; 2]) -> Row {
    let measured = ours.failure.is_none() && bare.failure.is_none();
    let ratios = ours.rates.iter().zip(&bare.rates).map(|(ours, bare)| ours / bare).collect();
    Row {
        ours: ours.whole(),
        peer: Some((Subject::Bare.name().to_owned(), bare.whole())),
        value: measured.then(|| middle(ratios)),
        unit: "×".into(),
        target: Target::More,
        ..Row::default()
    }
}
