//! How often a hook fires.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The largest number: the times of so many events are kept per process.
const MOST: u32 = 1_000;

/// The units, with their seconds.
const UNITS: [(&str, u64); 4] = [("s", 1), ("min", 60), ("h", 3_600), ("day", 86_400)];

/// So many in so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// In how much time.
    pub per: Duration,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || {
            let units: Vec<_> = UNITS.iter().map(|(unit, _)| format!("N/{unit}")).collect();
            format!("`{text}` is not one of {}, with a number from 1 to {MOST}", units.join(", "))
        };
        let (count, unit) = text.split_once('/').ok_or_else(invalid)?;
        let count: u32 = count.trim().parse().map_err(|_| invalid())?;
        let unit = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(invalid)?;
        match (1..=MOST).contains(&count) {
            true => Ok(Self { count, per: Duration::from_secs(unit.1) }),
            false => Err(invalid()),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.per.as_secs();
        match UNITS.iter().find(|(_, of)| *of == seconds) {
            Some((unit, _)) => write!(f, "{}/{unit}", self.count),
            None => write!(f, "{} in {seconds} s", self.count),
        }
    }
}
