//! The benchmark table. Each row is a ratio to a peer measured in the same run, the two taking
//! turns, so that a busy machine slows both.

mod proxy_call;
mod proxy_start;
mod row;
mod session;

use row::Row;

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() -> anyhow::Result<()> {
    let place = session::Place::new()?;
    let rows = [proxy_call::measure(&place)?, proxy_start::measure(&place)?];
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average: {}", load.trim());
    println!("{}", Row::HEADER);
    for row in &rows {
        println!("{row}");
    }
    Ok(())
}
