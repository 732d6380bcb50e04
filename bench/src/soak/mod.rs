//! The soak test: an hour with fifty panes, agents, timers, scratchpads, HTTP and a user, all at once. It
//! looks for what only time shows: memory that grows, descriptors that leak, and wake-ups that never
//! stop. Runs only by name; a minute in the short form, an hour in the long one, or
//! `PATTERM_SOAK_MINUTES`.

mod agents;
mod harness;
mod http;
mod journal;
mod pads;
mod panes;
mod person;
mod sample;
mod timers;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;

use crate::chart::{Axis, Chart, Series};
use crate::row::{Row, Target};
use crate::{Measured, long, proc};
use harness::Harness;
use sample::{Column, Sampler};

/// Duration in the short and the long form.
const MINUTES: [f64; 2] = [1.0, 60.0];

/// Number of samples.
const LOOKS: f64 = 240.0;

/// Longer than any working operation takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Time for all workers to start.
const SETTLE: Duration = Duration::from_secs(10);

/// A program that prints nothing counts as idle after ten seconds, and its observer sleeps a second later;
/// the shared server is stopped after twenty.
const REST: Duration = Duration::from_secs(30);

/// How long wake-ups are counted at the end.
const QUIET: Duration = Duration::from_secs(20);

/// A worker that repeats a step.
trait Worker: Send + Sized + 'static {
    const NAME: &str;
    /// Between two steps.
    const PAUSE: Duration;

    fn step(&mut self) -> anyhow::Result<()>;

    /// Checks after the end.
    fn finish(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

fn work<W: Worker>(
    harness: &Arc<Harness>,
    worker: anyhow::Result<W>,
) -> anyhow::Result<JoinHandle<()>> {
    let (harness, mut worker) = (harness.clone(), worker.context(W::NAME)?);
    let name = |why: anyhow::Error| format!("{}: {why:#}", W::NAME);
    Ok(std::thread::spawn(move || {
        while harness.journal.rest(W::PAUSE) {
            if let Err(why) = worker.step() {
                harness.journal.wrong(name(why));
            }
        }
        if let Err(why) = worker.finish() {
            harness.journal.wrong(name(why));
        }
    }))
}

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let minutes = match std::env::var("PATTERM_SOAK_MINUTES") {
        Ok(minutes) => minutes.parse().context("PATTERM_SOAK_MINUTES")?,
        Err(_) => MINUTES[usize::from(long())],
    };
    let time = Duration::from_secs_f64(minutes * 60.0);
    let harness = Harness::new()?;
    pads::begin(&harness)?;
    let workers = begin(&harness)?;
    proc::pause(SETTLE);
    let mut sampler = Sampler::new(&harness)?;
    sample(&harness, &mut sampler, time)?;
    harness.journal.end();
    for worker in workers {
        if worker.join().is_err() {
            harness.journal.wrong("a worker panicked".into());
        }
    }
    if let Err(why) = pads::check(&harness) {
        harness.journal.wrong(format!("{why:#}"));
    }
    let rest = idle_wakeups(&harness)?;
    write_down(&sampler)?;
    Ok(Measured { rows: rows(&harness, &sampler, &rest, minutes), charts: vec![chart(&sampler)] })
}

fn begin(harness: &Arc<Harness>) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let mut workers = vec![
        work(harness, panes::Counters::new(harness))?,
        work(harness, panes::Lives::new(harness))?,
        work(harness, panes::Waits::new(harness))?,
        work(harness, panes::InVain::new(harness))?,
        work(harness, timers::Timers::new(harness))?,
        work(harness, agents::Messages::new(harness))?,
        work(harness, http::Own::new(harness))?,
        work(harness, http::Shared::new(harness))?,
        work(harness, http::Proxies::new(harness))?,
        work(harness, person::Person::new(harness))?,
    ];
    for number in 0..3 {
        workers.push(work(harness, pads::Pads::new(harness, number))?);
    }
    if let Some(claude) = &harness.claude {
        workers.push(work(harness, agents::Rounds::new(harness, claude))?);
    }
    Ok(workers)
}

/// Takes samples until the time is over, and prints progress: an hour is long.
#[expect(clippy::print_stderr, reason = "somebody may be watching")]
fn sample(harness: &Harness, sampler: &mut Sampler, time: Duration) -> anyhow::Result<()> {
    let start = Instant::now();
    while start.elapsed() < time {
        proc::pause(time.div_f64(LOOKS));
        let now = sampler.look(harness)?.clone();
        if sampler.samples.len().is_multiple_of(4) {
            let errors = harness.journal.errors().len();
            eprintln!("{now:.1?} errors {errors}");
            write_down(sampler)?;
        }
    }
    Ok(())
}

/// Writes the samples as a table beside the programs.
fn write_down(sampler: &Sampler) -> anyhow::Result<()> {
    Ok(std::fs::write(std::env::current_exe()?.with_file_name("soak.tsv"), sampler.table())?)
}

/// Wake-ups per second, and the number of processes.
struct Rest {
    wakeups: f64,
    processes: usize,
    rss: f64,
    anonymous: f64,
}

/// Wake-ups with all printing programs stopped and no requests.
fn idle_wakeups(harness: &Harness) -> anyhow::Result<Rest> {
    let mut tools = harness.connect()?;
    for id in harness.printing() {
        let status = tools.call("get_process_status", &json!({"process_id": id}))?;
        if status["status"] == "running" {
            tools.call("stop_process", &json!({"process_id": id}))?;
        }
    }
    proc::pause(REST);
    let pids = proc::patterm_processes(harness.workspace.folder());
    let before = proc::wakeups(&pids);
    proc::pause(QUIET);
    let after = proc::wakeups(&pids);
    let woken = |(thread, count): (_, &u64)| count - before.get(thread).unwrap_or(&0);
    let woken: u64 = after.iter().map(woken).sum();
    Ok(Rest {
        wakeups: woken as f64 / QUIET.as_secs_f64(),
        processes: pids.len(),
        rss: proc::memory_mib(harness.workspace.server, "Rss:")?,
        anonymous: proc::memory_mib(harness.workspace.server, "Anonymous:")?,
    })
}

/// Memory over time.
fn chart(sampler: &Sampler) -> Chart {
    let of = |name: &str, column: Column| {
        let points = sampler.samples.iter().map(|s| (s.seconds / 60.0, column(s))).collect();
        Series { name: name.to_owned(), points }
    };
    let series = vec![
        of("server, resident", |s| s.server_rss),
        of("server, without files", |s| s.server_anonymous),
        of("keeper, without files", |s| s.keeper_anonymous),
    ];
    let axes = (Axis::linear("minutes"), Axis::linear("MiB"));
    Chart::lines("soak", "Memory during the soak test", axes, series)
}

fn rows(harness: &Harness, sampler: &Sampler, rest: &Rest, minutes: f64) -> Vec<Row> {
    let what = |part: &str| format!("soak, {minutes} min, 50 panes: {part}");
    let number = |part: &str, value: f64, unit, target, ours: String| Row {
        ours,
        ..Row::number(what(part), value, unit, target)
    };
    let grown = |part: &str, of: Column, unit: &'static str| {
        let (first, last) = sampler.ends(of);
        let ours = format!("{first:.1} → {last:.1}, max {:.1}", sampler.most(of));
        number(part, last - first, unit, Target::None, ours)
    };
    let slope = |part: &str, of: Column| {
        let (first, last) = sampler.ends(of);
        let ours = format!("{first:.1} → {last:.1} MiB");
        number(part, sampler.slope(of), "MiB/h", Target::None, ours)
    };
    let cpu: Column = |s| s.server_cpu + s.keeper_cpu;
    let seconds: Column = |s| s.seconds;
    let (first, last) = (sampler.samples.first(), sampler.samples.last());
    let spent = |of: Column| last.map_or(0.0, of) - first.map_or(0.0, of);
    let errors = harness.journal.errors();
    let counts = harness.journal.counts();
    let done: u64 = counts.iter().filter(|(what, _)| !what.contains("bytes")).map(|(_, n)| n).sum();
    let said: Vec<String> = counts.iter().map(|(what, count)| format!("{what} {count}")).collect();
    let checked = counts.get("counter bytes checked").copied().unwrap_or(0);
    vec![
        slope("server memory without files, slope", |s| s.server_anonymous),
        slope("server memory (Rss), slope", |s| s.server_rss),
        slope("keeper memory without files, slope", |s| s.keeper_anonymous),
        grown("descriptors of the server, last minus first", |s| s.server_descriptors, ""),
        grown("descriptors of the keeper, last minus first", |s| s.keeper_descriptors, ""),
        grown("threads of the server, last minus first", |s| s.server_threads, ""),
        grown("processes of patterm, last minus first", |s| s.patterm_processes, ""),
        number("zombies, maximum", sampler.most(|s| s.zombies), "", Target::None, String::new()),
        number(
            "wake-ups of all patterm processes",
            sampler.mean(|s| s.wakeups),
            "/s",
            Target::None,
            String::new(),
        ),
        number(
            "the same, idle at the end",
            rest.wakeups,
            "/s",
            Target::AtMost(1.0),
            format!(
                "{} processes; server {:.1} MiB, {:.1} without files",
                rest.processes, rest.rss, rest.anonymous
            ),
        ),
        number(
            "CPU time of server and keeper",
            spent(cpu) / spent(seconds) * 100.0,
            "%",
            Target::None,
            format!("{:.0} s", spent(cpu)),
        ),
        number("operations", done as f64, "", Target::None, said.join(", ")),
        number(
            "errors",
            errors.len() as f64,
            "",
            Target::AtMost(0.0),
            errors.iter().take(10).cloned().collect::<Vec<_>>().join("; "),
        ),
        number("counter bytes, none missing", checked as f64, "", Target::None, String::new()),
    ]
}
