//! Whether a process that ended is started again, and when.

use std::time::Duration;

use crate::project_file::{Policy, Restart};
use patterm_panes::process::{Exit, Status};

/// A run this long ends a row of failures: whatever fails now has another cause.
const STEADY: Duration = Duration::from_secs(10);

/// How a run ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) status: Status,
    pub(super) exit: Option<Exit>,
    pub(super) lasted: Duration,
    /// Restarts in a row before it.
    pub(super) restarts: u32,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    Rest,
    /// It is started again after this time, for the so manieth time in a row.
    Again { after: Duration, restarts: u32 },
    /// It would be, but it was too often.
    GiveUp,
}

/// What follows on the end of a run.
pub(super) fn next(restart: &Restart, end: End) -> Next {
    let clean = end.exit.is_some_and(|exit| exit.code == Some(0));
    // Stopped: somebody wanted it to end. Lost: nobody knows whether it has.
    let wanted = match (restart.policy, end.status) {
        (Policy::Never, _) => false,
        (Policy::OnFailure, Status::Exited) => !clean,
        (_, Status::Exited | Status::Failed) => true,
        _ => false,
    };
    if !wanted {
        return Next::Rest;
    }
    let before = if end.lasted >= STEADY { 0 } else { end.restarts };
    if before >= restart.limit {
        return Next::GiveUp;
    }
    let doubled = restart.delay.saturating_mul(1_u32.checked_shl(before).unwrap_or(u32::MAX));
    Next::Again { after: doubled.min(restart.longest), restarts: before + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE_1: Option<Exit> = Some(Exit { code: Some(1), signal: None });
    const CODE_0: Option<Exit> = Some(Exit { code: Some(0), signal: None });
    const KILLED: Option<Exit> = Some(Exit { code: None, signal: Some(9) });

    fn restart(policy: Policy) -> Restart {
        let (delay, longest) = (Duration::from_millis(100), Duration::from_millis(500));
        Restart { policy, limit: 4, delay, longest }
    }

    fn end(status: Status, exit: Option<Exit>, restarts: u32) -> End {
        End { status, exit, lasted: Duration::from_secs(1), restarts }
    }

    #[test]
    fn who_is_started_again() {
        use Policy::{Always, Never, OnFailure};
        use Status::{Exited, Failed, Lost, Stopped};
        for (policy, status, exit, again) in [
            (Never, Exited, CODE_1, false),
            (OnFailure, Exited, CODE_0, false),
            (OnFailure, Exited, CODE_1, true),
            (OnFailure, Exited, KILLED, true),
            (OnFailure, Failed, None, true),
            (OnFailure, Stopped, KILLED, false),
            (Always, Exited, CODE_0, true),
            (Always, Stopped, CODE_0, false),
            (Always, Lost, None, false),
        ] {
            let next = next(&restart(policy), end(status, exit, 0));
            assert_eq!(next != Next::Rest, again, "{policy:?} {status:?} {exit:?}");
        }
    }

    #[test]
    fn each_time_waits_twice_as_long_until_it_is_too_often() {
        let restart = restart(Policy::Always);
        let after = |restarts| next(&restart, end(Status::Exited, CODE_1, restarts));
        let again = |ms, restarts| Next::Again { after: Duration::from_millis(ms), restarts };
        let expected = [again(100, 1), again(200, 2), again(400, 3), again(500, 4), Next::GiveUp];
        assert_eq!([0, 1, 2, 3, 4].map(after), expected);
    }

    #[test]
    fn a_long_life_ends_the_row() {
        let long = End { lasted: STEADY, ..end(Status::Exited, CODE_1, 4) };
        let expected = Next::Again { after: Duration::from_millis(100), restarts: 1 };
        assert_eq!(next(&restart(Policy::OnFailure), long), expected);
    }

    #[test]
    fn no_number_of_restarts_overflows() {
        let restart = Restart { limit: u32::MAX, ..restart(Policy::Always) };
        for restarts in [31, 32, 33, u32::MAX - 1] {
            let next = next(&restart, end(Status::Exited, CODE_1, restarts));
            let after = Duration::from_millis(500);
            assert_eq!(next, Next::Again { after, restarts: restarts + 1 });
        }
    }
}
