//! The benchmark table. Each row is a ratio to a peer measured in the same run, the two taking
//! turns, so that a busy machine slows both. Arguments name the rows to run; all by default.

mod cat;
mod client;
mod echo;
mod flood;
mod frames;
mod gateway;
mod growth;
mod idle;
mod peers;
mod proc;
mod proxy_call;
mod proxy_start;
mod row;
mod search;
mod session;
mod soak;
mod text;
mod tmux;
mod viewer;
mod waiters;

use row::Row;

type Measure = fn() -> anyhow::Result<Vec<Row>>;

/// Rows by the name of what makes them.
const FAMILIES: [(&str, Measure); 14] = [
    ("proxy_call", proxy_call::measure),
    ("proxy_start", proxy_start::measure),
    ("cat", cat::measure),
    ("cat_attached", cat::measure_attached),
    ("echo_flood", echo::measure),
    ("flood", flood::measure),
    ("frames", frames::measure),
    ("gateway", gateway::measure),
    ("sharing", gateway::measure_sharing),
    ("idle", idle::measure),
    ("search", search::measure),
    ("waiters", waiters::measure),
    ("growth", growth::measure),
    ("soak", soak::measure),
];

/// Those that take too long to be run with the others.
const ONLY_BY_NAME: [&str; 1] = ["soak"];

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() -> anyhow::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(name) = wanted.iter().find(|name| FAMILIES.iter().all(|(known, _)| known != name)) {
        anyhow::bail!("there is no row `{name}`; there are {:?}", FAMILIES.map(|(name, _)| name));
    }
    println!("{}", Row::HEADER);
    for (name, measure) in FAMILIES {
        let by_default = wanted.is_empty() && !ONLY_BY_NAME.contains(&name);
        if by_default || wanted.iter().any(|wanted| wanted == name) {
            for row in measure()? {
                println!("{row}");
            }
        }
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("\nload average: {}", load.trim());
    Ok(())
}

/// Whether the long forms are asked for.
fn long() -> bool {
    std::env::var_os("PATTERM_LONG").is_some_and(|value| value == "1")
}
