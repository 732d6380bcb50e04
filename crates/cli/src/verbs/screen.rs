//! `patterm screen`: the screen of a process.

use std::str::FromStr;

use clap::Args;
use patterm_store::clock::Clock;
use patterm_wire::events::format_time;
use patterm_wire::tools::{GetScreen, ScreenArgs, ScreenMoment};

use super::logs::Since;
use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// Print the screen of a process
#[derive(Debug, Args)]
pub(crate) struct ScreenVerb {
    /// An id, a unique name, or a unique prefix of either
    #[arg(value_name = "ID")]
    process: String,
    /// The screen as it was then: a time (09:12, 10m ago as 10m, 2026-11-16T09:12:03Z) or an offset in its output
    #[arg(long, value_name = "TIME|OFFSET")]
    at: Option<At>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ScreenVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let process_id = client.resolve(&self.process)?;
        let at = self.at.map(At::moment).transpose()?;
        let reply = client.query::<GetScreen>(&ScreenArgs { process_id, at })?;
        if self.json {
            return print_json(&reply.json);
        }
        let rows: Vec<_> = reply.result.rows.iter().map(|row| one_line(row)).collect();
        print(rows.join("\n").trim_end());
        Ok(())
    }
}

/// A moment as people write it.
#[derive(Debug, Clone, Copy)]
enum At {
    Offset(u64),
    Time(Since),
}

impl FromStr for At {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        match given.parse() {
            Ok(offset) => Ok(Self::Offset(offset)),
            Err(_) => given.parse().map(Self::Time),
        }
    }
}

impl At {
    fn moment(self) -> anyhow::Result<ScreenMoment> {
        let time = match self {
            Self::Offset(offset) => return Ok(ScreenMoment::Offset(offset)),
            Self::Time(time) => time,
        };
        let moments = time.moments(&Since::now(Clock::system().wall_ms()));
        let [first, second] = moments.map(format_time);
        anyhow::ensure!(
            first == second,
            "the clocks were set back, so that time was twice: {first} and {second}; use one of them"
        );
        Ok(ScreenMoment::Time(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_an_offset_or_a_time() {
        assert!(matches!("81220".parse(), Ok(At::Offset(81_220))));
        for time in ["09:12", "10m", "2026-11-16T09:12:03Z"] {
            assert!(matches!(time.parse(), Ok(At::Time(_))), "{time}");
        }
        assert!("-1".parse::<At>().is_err() && "soon".parse::<At>().is_err());
    }
}
