//! How often a hook fired for each process.

use std::collections::{HashMap, VecDeque};

use patterm_project::project_file::Rate;
use tokio::time::Instant;

/// When a hook fired, by process.
#[derive(Debug)]
pub(crate) struct Limiter {
    rate: Option<Rate>,
    fired: HashMap<Option<String>, VecDeque<Instant>>,
}

impl Limiter {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self { rate, fired: HashMap::new() }
    }

    /// Whether the hook may fire now for a process; if so, it counts as fired.
    pub(crate) fn allows(&mut self, process_id: Option<&str>, now: Instant) -> bool {
        let Some(rate) = self.rate else { return true };
        // So that processes that are gone are forgotten.
        self.fired.retain(|_, times| {
            while times.front().is_some_and(|at| now.saturating_duration_since(*at) >= rate.per) {
                times.pop_front();
            }
            !times.is_empty()
        });
        let times = self.fired.entry(process_id.map(str::to_owned)).or_default();
        let is_allowed = times.len() < usize::try_from(rate.count).unwrap_or(usize::MAX);
        if is_allowed {
            times.push_back(now);
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_process_has_its_own_limit_and_old_times_are_forgotten() {
        let mut limiter = Limiter::new("2/min".parse().ok());
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let allowed = [0, 1, 2, 59, 60, 61, 62].map(|s| limiter.allows(Some("p1"), at(s)));
        assert_eq!(allowed, [true, true, false, false, true, true, false]);
        assert!(limiter.allows(Some("p2"), at(62)) && limiter.allows(None, at(62)));
        assert_eq!(limiter.fired.len(), 3);
        assert!(limiter.allows(None, at(1_000)));
        assert_eq!(limiter.fired.len(), 1);
        let mut unlimited = Limiter::new(None);
        assert!((0..5_000).all(|_| unlimited.allows(None, begin)));
    }
}
