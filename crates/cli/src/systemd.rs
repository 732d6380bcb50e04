//! Whether systemd started this process. Such a server stays, even if nothing uses it: the unit would seem to be active
//! without it.

use std::path::Path;

/// systemd sets it to the id of the process that it starts; children inherit it, but have other ids.
const STARTED_VARIABLE: &str = "SYSTEMD_EXEC_PID";

/// The flag of a server that stays.
pub(crate) const STAY: &str = "--stay";

/// Whether a server stays, by its folder in `/proc`.
pub(crate) fn stays(process: &Path) -> bool {
    let arguments = std::fs::read(process.join("cmdline")).unwrap_or_default();
    let groups = std::fs::read_to_string(process.join("cgroup")).unwrap_or_default();
    arguments.split(|byte| *byte == 0).any(|word| word == STAY.as_bytes()) || is_in_unit(&groups)
}

/// Whether systemd started this process directly, or a process of patterm's own unit did: a keeper that restarts a
/// server is in the unit, too.
pub(crate) fn is_service() -> bool {
    let started = std::env::var(STARTED_VARIABLE).ok().and_then(|pid| pid.parse().ok());
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    started == Some(std::process::id()) || is_in_unit(&groups)
}

/// Whether one of the control groups of a process is an instance of `patterm@.service`.
fn is_in_unit(groups: &str) -> bool {
    let is_unit = |name: &str| name.starts_with("patterm@") && name.ends_with(".service");
    groups.lines().any(|line| line.split('/').any(is_unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_the_unit_is_recognised_by_its_control_group() {
        let unit = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/\
            app-patterm.slice/patterm@home-me-project.service\n";
        assert!(is_in_unit(unit));
        for other in [
            "0::/user.slice/user-1000.slice/session-3.scope\n",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/emacs.service\n",
            "0::/system.slice/not-patterm@x.service\n",
            "",
        ] {
            assert!(!is_in_unit(other), "{other}");
        }
    }
}
