//! `patterm ls`: the servers of this user.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use patterm_host::registry::{self, Entry};
use patterm_host::runtime::RuntimeDir;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Ls;
use crate::client::{Client, text};
use crate::said::{one_line, say, say_json, shown_path};
use crate::start;

/// How long a server may take to answer: one that hangs must not keep the others from being listed.
const PATIENCE: Duration = Duration::from_secs(2);

/// A server, and what is in it.
#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    entry: Entry,
    /// Its panes; `None` where it does not answer.
    panes: Option<usize>,
    /// Those of them that run.
    running: Option<usize>,
    /// Who asks for a person, or waits for one.
    attention: Vec<Asking>,
}

#[derive(Debug, Serialize)]
struct Asking {
    process_id: String,
    name: String,
    reason: String,
}

pub(crate) fn run(options: &Ls) -> anyhow::Result<()> {
    let entries = registry::list(&RuntimeDir::candidates(None));
    let servers: Vec<_> = entries.into_iter().map(look).collect();
    if options.json {
        say_json(&servers)?;
    } else if servers.is_empty() {
        say("no servers run; `patterm` starts one");
    } else {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        say(&table(&servers, now));
    }
    Ok(())
}

fn look(entry: Entry) -> Listed {
    let processes = ask(&entry);
    let all = processes.iter().flatten();
    let runs =
        |process: &&Value| matches!(process["status"].as_str(), Some("running" | "starting"));
    Listed {
        panes: processes.as_ref().map(Vec::len),
        running: processes.as_ref().map(|all| all.iter().filter(runs).count()),
        attention: all.filter_map(asking).collect(),
        entry,
    }
}

/// The processes of a server that is there.
fn ask(entry: &Entry) -> Option<Vec<Value>> {
    let stream = start::connect(&entry.socket).ok()??;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut answer = Client::over(stream).call("list_processes", &json!({})).ok()?;
    match answer["processes"].take() {
        Value::Array(processes) => Some(processes),
        _ => None,
    }
}

fn asking(process: &Value) -> Option<Asking> {
    let activity = &process["activity"];
    let reason = match (process["attention"]["reason"].as_str(), activity["state"].as_str()) {
        (Some(reason), _) => reason.to_owned(),
        (None, Some("blocked")) => text(&activity["reason"]),
        (None, Some("limited")) => format!("limited: {}", text(&activity["reason"])),
        (None, _) => return None,
    };
    let [process_id, name] = ["process_id", "name"].map(|field| text(&process[field]));
    Some(Asking { process_id, name, reason })
}

fn table(servers: &[Listed], now: u64) -> String {
    let mut text = format!(
        "{:>8}  {:>8}  {:<9}  {:>5}  {:>7}  PROJECT\n",
        "PID", "UP", "VERSION", "PANES", "RUNNING"
    );
    for Listed { entry, panes, running, attention } in servers {
        let up = duration(now.saturating_sub(entry.started_at));
        let [panes, running] =
            [panes, running].map(|count| count.map_or_else(|| "?".to_owned(), |n| n.to_string()));
        let (pid, version) = (entry.pid, one_line(&entry.patterm));
        let project = shown_path(&entry.project);
        text += &format!("{pid:>8}  {up:>8}  {version:<9}  {panes:>5}  {running:>7}  {project}\n");
        for Asking { process_id, name, reason } in attention {
            let [name, reason] = [name, reason].map(|text| one_line(text));
            text += &format!("{:>49}{process_id} {name}: {reason}\n", "! ");
        }
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
            http: None,
            pid,
            started_at,
            project: project.into(),
            socket: "/run/x.sock".into(),
            key: "k".into(),
            patterm: "0.0.1".into(),
        };
        let asking =
            Asking { process_id: "p1".into(), name: "lead".into(), reason: "may I push?".into() };
        let servers = [
            Listed {
                entry: entry(7, 1_000_000, "/a"),
                panes: Some(3),
                running: Some(2),
                attention: vec![asking],
            },
            Listed {
                entry: entry(123_456, 900_000, "/b c"),
                panes: None,
                running: None,
                attention: Vec::new(),
            },
        ];
        assert_eq!(
            table(&servers, 1_000_042),
            "     PID        UP  VERSION    PANES  RUNNING  PROJECT\n\
             \x20      7       42s  0.0.1          3        2  /a\n\
             \x20                                              ! p1 lead: may I push?\n\
             \x20 123456     1d03h  0.0.1          ?        ?  /b c\n"
        );
        assert_eq!([59, 60, 3_661].map(duration), ["59s", "1m", "1h01m"]);
    }

    #[test]
    fn who_asks() {
        let asks = |process: Value| asking(&process).map(|asking| asking.reason);
        assert_eq!(asks(json!({"attention": {"reason": "look"}})).as_deref(), Some("look"));
        let blocked = json!({"activity": {"state": "blocked", "reason": "a dialog"}});
        assert_eq!(asks(blocked).as_deref(), Some("a dialog"));
        let limited = json!({"activity": {"state": "limited", "reason": "used up"}});
        assert_eq!(asks(limited).as_deref(), Some("limited: used up"));
        assert_eq!(asks(json!({"activity": {"state": "idle"}})), None);
    }
}
