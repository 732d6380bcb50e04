//! A moment of a process, as people write it: a time, or a place in its output.

use std::str::FromStr;

use patterm_store::clock::Clock;
use patterm_wire::events::format_time;
use patterm_wire::tools::ScreenMoment;

use crate::since::Since;

/// A moment as people write it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At {
    /// A place in the output.
    Offset(u64),
    /// A time.
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
    /// As the server takes it.
    pub(super) fn moment(self) -> anyhow::Result<ScreenMoment> {
        let time = match self {
            Self::Offset(offset) => return Ok(ScreenMoment::Offset(offset)),
            Self::Time(time) => time,
        };
        let now = Since::now(Clock::system().wall_ms());
        let moment = time.moment(&now).map_err(anyhow::Error::msg)?;
        Ok(ScreenMoment::Time(format_time(moment)))
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
