//! `patterm timers`: lists timers.

use clap::Args;
use patterm_wire::follow::TimerKind;
use patterm_wire::method::Empty;
use patterm_wire::tools::{ListTimers, TimerList, TimerSummary};
use serde_json::Value;

use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// List this project's timers
#[derive(Debug, Args)]
pub(crate) struct TimersVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl TimersVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let reply = Client::connect_to_read()?.query::<ListTimers>(&Empty {})?;
        if self.json {
            return print_json(&reply.read_as::<TimerList<Value>>()?.timers);
        }
        let timers = reply.result.timers;
        match timers.is_empty() {
            true => print("no timers; agents set them with timer_set and timer_fire_when_idle_all"),
            false => print(&table(&timers)),
        }
        Ok(())
    }
}

fn table(timers: &[TimerSummary]) -> String {
    let mut rows = vec!["ID     STATUS   OWNER  LEFT      WAITS FOR             TEXT".to_owned()];
    for timer in timers {
        let left = timer.remaining_seconds.map_or_else(String::new, left);
        let text = timer.label.as_deref().or(timer.excerpt.as_deref()).unwrap_or_default();
        let row = format!(
            "{:<6} {:<8} {:<6} {left:<9} {:<21} {}",
            one_line(&timer.timer_id),
            one_line(&timer.status),
            one_line(&timer.owner_process_id),
            waits_for(timer),
            one_line(text),
        );
        rows.push(row.trim_end().to_owned());
    }
    rows.join("\n")
}

fn waits_for(timer: &TimerSummary) -> String {
    let which = match &timer.kind {
        TimerKind::Delay => return String::new(),
        TimerKind::IdleAny => "any of",
        TimerKind::IdleAll => "all of",
        TimerKind::Exit => "exit of",
        TimerKind::Other(kind) => &one_line(kind),
    };
    let ids: Vec<_> = timer.watched.iter().map(|id| one_line(id)).collect();
    format!("{which} {}", ids.join(" ")).trim_end().to_owned()
}

/// The time left.
fn left(seconds: f64) -> String {
    let whole = std::time::Duration::try_from_secs_f64(seconds.ceil()).unwrap_or_default();
    duration(whole.as_secs())
}

/// A duration in whole seconds, as short as possible.
pub(super) fn duration(whole: u64) -> String {
    match whole {
        0..60 => format!("{whole}s"),
        60..3_600 => format!("{}m{:02}s", whole / 60, whole % 60),
        3_600..86_400 => format!("{}h{:02}m", whole / 3_600, whole / 60 % 60),
        _ => format!("{}d{:02}h", whole / 86_400, whole / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_of_timers() {
        let list: TimerList = serde_json::from_value(json!({"timers": [
            {"timer_id": "t1", "kind": "delay", "status": "pending", "owner_process_id": "p1",
                "remaining_seconds": 61.2, "excerpt": "look at the build"},
            {"timer_id": "t2", "kind": "idle_any", "status": "paused", "owner_process_id": "p1",
                "watched": ["p2", "p3"], "waiting_on": ["p3"], "label": "team",
                "excerpt": "collect"},
            {"timer_id": "t3", "kind": "idle_all", "status": "pending", "owner_process_id": "p2",
                "watched": ["p4"], "remaining_seconds": 0.2},
            {"timer_id": "t4", "kind": "exit", "status": "pending", "owner_process_id": "p1",
                "watched": ["p2", "p3"], "label": "build"},
            {"timer_id": "t5", "kind": "full_moon", "status": "pending", "owner_process_id": "p1"},
        ]}))
        .unwrap();
        assert_eq!(
            table(&list.timers),
            "ID     STATUS   OWNER  LEFT      WAITS FOR             TEXT\n\
             t1     pending  p1     1m02s                           look at the build\n\
             t2     paused   p1               any of p2 p3          team\n\
             t3     pending  p2     1s        all of p4\n\
             t4     pending  p1               exit of p2 p3         build\n\
             t5     pending  p1               full_moon"
        );
        assert_eq!([59.1, 3_661.0, 90_000.0].map(left), ["1m00s", "1h01m", "1d01h"]);
    }
}
