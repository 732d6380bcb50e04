//! Limits the processes of a container through its cgroup, for engines whose tool cannot.

use std::path::PathBuf;

/// Where cgroups are mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// Limits the processes in the cgroup of a process.
pub(super) fn processes(pid: u32, limit: u32) -> std::io::Result<()> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let group =
        group(&groups).ok_or_else(|| std::io::Error::other("the process is in no cgroup"))?;
    std::fs::write(group.join("pids.max"), limit.to_string())
}

/// The folder of a process's cgroup, from `/proc/PID/cgroup`: `NUMBER:CONTROLLERS:PATH`. Never the
/// root cgroup.
fn group(groups: &str) -> Option<PathBuf> {
    let of = |controller: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            controllers.split(',').any(|one| one == controller).then_some(path)
        })
    };
    let (folder, path) = match of("pids") {
        Some(path) => (PathBuf::from(GROUPS).join("pids"), path),
        None => (PathBuf::from(GROUPS), of("")?),
    };
    let path = path.trim_matches('/');
    (!path.is_empty()).then(|| folder.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_of_both_versions() {
        let old = "12:pids:/default/box\n3:cpu,cpuacct:/default/box\n1:name=systemd:/\n0::/\n";
        assert_eq!(group(old), Some("/sys/fs/cgroup/pids/default/box".into()));
        assert_eq!(group("0::/default/box\n"), Some("/sys/fs/cgroup/default/box".into()));
        assert_eq!(group("0::/\n"), None);
        assert_eq!(group("12:pids:/\n0::/\n"), None);
    }
}
