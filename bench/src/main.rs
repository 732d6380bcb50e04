//! The benchmarks. Each row is a ratio to a peer measured in the same run, with the two alternating, so
//! that a busy machine slows both.
//!
//! `patterm-bench [--write] [FAMILY…]`: without names, runs all families and writes the report; with
//! names, runs and prints only those, and writes their rows into the report only with `--write`.
//! `--render` measures nothing and writes the report again from the record.

mod cat;
mod chart;
mod client;
mod echo;
mod flood;
mod frames;
mod gate;
mod gateway;
mod growth;
mod idle;
mod machine;
mod past;
mod peers;
mod proc;
mod proxy_call;
mod proxy_start;
mod record;
mod report;
mod restart;
mod row;
mod search;
mod session;
mod soak;
mod text;
mod tmux;
mod viewer;
mod waiters;

use std::process::ExitCode;
use std::time::Instant;

use chart::Chart;
use machine::Run;
use record::{Effort, FamilyResult};
use row::Row;

/// The results of a family.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) rows: Vec<Row>,
    pub(crate) charts: Vec<Chart>,
}

type Measure = fn() -> anyhow::Result<Measured>;

/// The families by name, in the order in which they are run.
const FAMILIES: &[(&str, Measure)] = &[
    ("proxy_call", proxy_call::measure),
    ("proxy_start", proxy_start::measure),
    ("cat", cat::measure),
    ("cat_kinds", cat::measure_kinds),
    ("cat_attached", cat::measure_attached),
    ("echo", echo::measure),
    ("echo_flood", echo::measure_flood),
    ("echo_floods", echo::measure_floods),
    ("flood", flood::measure),
    ("frames", frames::measure),
    ("gateway", gateway::measure),
    ("gateway_ceiling", gateway::measure_ceiling),
    ("sharing", gateway::measure_sharing),
    ("idle", idle::measure),
    ("search", search::measure),
    ("waiters", waiters::measure),
    ("restart", restart::measure),
    ("past", past::measure),
    ("growth", growth::measure),
    ("soak", soak::measure),
];

/// Families that run only by name, because they take long.
const ONLY_BY_NAME: &[&str] = &["soak"];

impl From<Vec<Row>> for Measured {
    fn from(rows: Vec<Row>) -> Self {
        Self { rows, charts: Vec::new() }
    }
}

#[expect(clippy::print_stdout, reason = "prints the results")]
fn main() -> anyhow::Result<ExitCode> {
    let (flags, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let all: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
    if let Some(name) = names.iter().find(|name| !all.contains(&name.as_str())) {
        anyhow::bail!("unknown family `{name}`; the families are {all:?}");
    }
    if let Some(flag) = flags.iter().find(|flag| !["--write", "--render"].contains(&flag.as_str()))
    {
        anyhow::bail!("unknown flag `{flag}`; the flags are --write and --render");
    }
    let asked = |flag: &str| flags.iter().any(|asked| asked == flag);
    let (mut record, committed) = report::load()?;
    let writes = asked("--write") || asked("--render") || names.is_empty();
    if writes {
        // Better to fail now than after an hour.
        report::save(&record, &all)?;
    }
    let run = Run::now();
    let mut failed = false;
    for (name, measure) in FAMILIES {
        let wanted = match names.is_empty() {
            true => !asked("--render") && !ONLY_BY_NAME.contains(name),
            false => names.iter().any(|wanted| wanted == name),
        };
        if !wanted {
            continue;
        }
        let (load_before, start) = (machine::load(), Instant::now());
        match measure() {
            Ok(Measured { rows, charts }) => {
                let seconds = start.elapsed().as_secs_f64().round();
                let effort = Effort { seconds, load_before, load_after: machine::load() };
                let (run, effort) = (run.clone(), Some(effort));
                let result = FamilyResult { run, effort, failure: None, rows, charts };
                record.keep(name, result, &committed);
            }
            Err(why) => {
                failed = true;
                record.fail(name, run.clone(), format!("{why:#}"));
            }
        }
        let text = record.families.get(*name).map(report::section).unwrap_or_default();
        println!("## {name}\n\n{text}");
        if writes {
            report::save(&record, &all)?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether to run the long forms.
fn long() -> bool {
    std::env::var_os("PATTERM_LONG").is_some_and(|value| value == "1")
}
