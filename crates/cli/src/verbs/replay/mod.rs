//! `patterm replay`: what a process has shown, again, on this terminal.

mod keys;
mod playback;
mod player;

use clap::Args;

use super::at::At;
use crate::client::Client;
use crate::tui;
use player::Player;

/// Show again what a process has shown, on this terminal
///
/// space pauses and continues, left and right go back and forth by 10 seconds, up and down change the speed, . shows the
/// next change, 0 begins again, q ends.
#[derive(Debug, Args)]
pub(crate) struct ReplayVerb {
    /// An id, a unique name, or a unique prefix of either
    #[arg(value_name = "ID")]
    process: String,
    /// Begin then: a time (09:12, 10m ago as 10m, 2026-11-16T09:12:03Z) or an offset in its output
    #[arg(long, value_name = "TIME|OFFSET")]
    from: Option<At>,
    /// End then
    #[arg(long, value_name = "TIME|OFFSET")]
    to: Option<At>,
    /// How many times as fast as it was
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
    /// Wait at most this long where nothing was printed
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    max_pause: f64,
}

fn speed(given: &str) -> Result<f64, String> {
    let (slowest, fastest) = (playback::SLOWEST, playback::FASTEST);
    given
        .parse()
        .ok()
        .filter(|speed| (slowest..=fastest).contains(speed))
        .ok_or_else(|| format!("use a number from {slowest} to {fastest}"))
}

fn seconds(given: &str) -> Result<f64, String> {
    let seconds: Option<f64> = given.parse().ok();
    seconds
        .filter(|seconds| seconds.is_finite() && *seconds > 0.0)
        .ok_or_else(|| "use a number of seconds above 0".to_owned())
}

impl ReplayVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        tui::must_have_terminal()?;
        let mut client = Client::connect_to_read()?;
        let process_id = client.resolve(&self.process)?;
        drop(client);
        let from = self.from.map(At::moment).transpose()?;
        let to = self.to.map(At::moment).transpose()?;
        Player::new(process_id, from, to, self.speed, self.max_pause)?.run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_pauses_are_positive_numbers() {
        assert_eq!((speed("8"), speed("0.5")), (Ok(8.0), Ok(0.5)));
        assert!(["0", "-1", "nan", "inf", "1e9", "fast"].iter().all(|bad| speed(bad).is_err()));
        assert_eq!(seconds("0.2"), Ok(0.2));
        assert!(["0", "-1", "nan", "inf", ""].iter().all(|bad| seconds(bad).is_err()));
    }
}
