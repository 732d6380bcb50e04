//! Groups of processes: names for `patterm up` and `patterm down`. Processes and groups share one namespace, so
//! that a name is never ambiguous.

use std::collections::BTreeMap;

use super::check::Checked;
use super::fault::nearest;

/// Checks that groups consist of declared processes and that no name is used twice.
pub(super) fn check(
    checked: &mut Checked<'_>,
    groups: &BTreeMap<String, Vec<String>>,
    processes: &[String],
) {
    for (group, members) in groups {
        if processes.contains(group) {
            let message = format!("`{group}` is already the name of a process");
            checked.fault(&format!("groups.{group}"), message, Some("use another name".into()));
        }
        for (n, member) in members.iter().enumerate() {
            if processes.contains(member) {
                continue;
            }
            let message = match groups.contains_key(member) {
                true => format!("`{member}` is a group; a group consists of processes"),
                false => format!("there is no process `{member}`"),
            };
            let meant = nearest(member, processes.iter().map(String::as_str));
            let hint = meant.map(|meant| format!("did you mean `{meant}`?"));
            checked.fault(&format!("groups.{group}[{n}]"), message, hint);
        }
    }
}
