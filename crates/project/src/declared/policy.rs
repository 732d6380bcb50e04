//! Whether and when a process is restarted.

use std::time::Duration;

use crate::project_file::{Policy, Restart};
use patterm_panes::process::{Exit, Status};

/// A run this long resets the count of restarts: a later failure has another cause.
const STEADY: Duration = Duration::from_secs(10);

/// How a run ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) status: Status,
    pub(super) exit: Option<Exit>,
    /// It is ended, or was, because it is unhealthy.
    pub(super) is_unhealthy: bool,
    /// How long it ran; of an unhealthy run, how long it was healthy.
    pub(super) lasted: Duration,
    /// The number of consecutive restarts before it.
    pub(super) restarts: u32,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    Rest,
    /// Restart it after this time; `restarts` is the number of consecutive restarts.
    Again { after: Duration, restarts: u32 },
    /// Do not restart it: it has failed too often.
    GiveUp,
}

/// Decides what to do at the end of a run.
pub(super) fn next(restart: &Restart, end: End) -> Next {
    let clean = end.exit.is_some_and(|exit| exit.code == Some(0));
    // Stopped means ended on request. A lost process may still be running.
    let wanted = match (restart.policy, end.status) {
        (Policy::Never, _) | (_, Status::Stopped | Status::Lost) => false,
        _ if end.is_unhealthy => true,
        (Policy::OnUnhealthy, _) => false,
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
        End { status, exit, is_unhealthy: false, lasted: Duration::from_secs(1), restarts }
    }

    #[test]
    fn policy_and_exit_decide_about_a_restart() {
        use Policy::{Always, Never, OnFailure, OnUnhealthy};
        use Status::{Exited, Failed, Lost, Stopped};
        for (policy, status, exit, again) in [
            (Never, Exited, CODE_1, false),
            (OnUnhealthy, Exited, CODE_1, false),
            (OnUnhealthy, Failed, None, false),
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
    fn an_unhealthy_process_is_restarted_unless_nobody_wants_that() {
        use Policy::{Always, Never, OnFailure, OnUnhealthy};
        use Status::{Exited, Lost, Running, Stopped};
        for (policy, status, again) in [
            (Never, Running, false),
            (OnUnhealthy, Running, true),
            (OnUnhealthy, Exited, true),
            (OnFailure, Exited, true),
            (Always, Running, true),
            (OnFailure, Stopped, false),
            (Always, Lost, false),
        ] {
            // It may exit with code 0 when it is asked to end.
            let end = End { is_unhealthy: true, ..end(status, CODE_0, 0) };
            assert_eq!(next(&restart(policy), end) != Next::Rest, again, "{policy:?} {status:?}");
        }
        let often = End { is_unhealthy: true, ..end(Running, None, 4) };
        assert_eq!(next(&restart(Always), often), Next::GiveUp);
    }

    #[test]
    fn each_restart_waits_twice_as_long_until_the_limit_is_reached() {
        let restart = restart(Policy::Always);
        let after = |restarts| next(&restart, end(Status::Exited, CODE_1, restarts));
        let again = |ms, restarts| Next::Again { after: Duration::from_millis(ms), restarts };
        let expected = [again(100, 1), again(200, 2), again(400, 3), again(500, 4), Next::GiveUp];
        assert_eq!([0, 1, 2, 3, 4].map(after), expected);
    }

    #[test]
    fn a_long_run_resets_the_count() {
        let long = End { lasted: STEADY, ..end(Status::Exited, CODE_1, 4) };
        let expected = Next::Again { after: Duration::from_millis(100), restarts: 1 };
        assert_eq!(next(&restart(Policy::OnFailure), long), expected);
    }

    #[test]
    fn a_large_number_of_restarts_does_not_overflow() {
        let restart = Restart { limit: u32::MAX, ..restart(Policy::Always) };
        for restarts in [31, 32, 33, u32::MAX - 1] {
            let next = next(&restart, end(Status::Exited, CODE_1, restarts));
            let after = Duration::from_millis(500);
            assert_eq!(next, Next::Again { after, restarts: restarts + 1 });
        }
    }
}
