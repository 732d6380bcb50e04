//! `patterm ls`: the servers of this user.

use std::time::{SystemTime, UNIX_EPOCH};

use patterm_host::registry::{self, Entry};
use patterm_host::runtime::RuntimeDir;

use crate::args::Ls;
use crate::say;

pub(crate) fn run(options: &Ls) -> anyhow::Result<()> {
    let entries = registry::list(&RuntimeDir::candidates(None));
    if options.json {
        say(&serde_json::to_string_pretty(&entries)?);
    } else if entries.is_empty() {
        say("no servers run; `patterm` starts one");
    } else {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        say(&table(&entries, now));
    }
    Ok(())
}

fn table(entries: &[Entry], now: u64) -> String {
    let mut text = format!("{:>8}  {:>8}  {:<9}  PROJECT\n", "PID", "UP", "VERSION");
    for entry in entries {
        let up = duration(now.saturating_sub(entry.started_at));
        let project = entry.project.display();
        text += &format!("{:>8}  {up:>8}  {:<9}  {project}\n", entry.pid, entry.patterm);
    }
    text
}

/// A time in a form that fits into a column.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let entry = |pid, started_at, project: &str| Entry {
            pid,
            started_at,
            project: project.into(),
            socket: "/run/x.sock".into(),
            key: "k".into(),
            patterm: "0.0.1".into(),
        };
        let entries = [entry(7, 1_000_000, "/a"), entry(123_456, 900_000, "/b c")];
        assert_eq!(
            table(&entries, 1_000_042),
            "     PID        UP  VERSION    PROJECT\n\
             \x20      7       42s  0.0.1      /a\n\
             \x20 123456     1d03h  0.0.1      /b c\n"
        );
        assert_eq!([59, 60, 3_661].map(duration), ["59s", "1m", "1h01m"]);
    }
}
