//! `patterm timers`: what will wake whom, and when.

use serde_json::{Value, json};

use crate::args::Timers;
use crate::client::Client;
use crate::said::{say, say_json, shown};

pub(crate) fn run(options: &Timers) -> anyhow::Result<()> {
    let answer = Client::connect()?.look("timer_list", &json!({}))?;
    if options.json {
        return say_json(&answer["timers"]);
    }
    let timers = answer["timers"].as_array().cloned().unwrap_or_default();
    match timers.is_empty() {
        true => say("no timers; agents set them with timer_set and timer_fire_when_idle_all"),
        false => say(&table(&timers)),
    }
    Ok(())
}

fn table(timers: &[Value]) -> String {
    let mut rows = vec!["ID     STATUS   OWNER  LEFT      WAITS FOR             TEXT".to_owned()];
    for timer in timers {
        let field = |name: &str| shown(&timer[name]);
        let left = timer["remaining_seconds"].as_f64().map_or_else(String::new, left);
        let words = if timer["label"].is_string() { field("label") } else { field("excerpt") };
        let row = format!(
            "{:<6} {:<8} {:<6} {left:<9} {:<21} {words}",
            field("timer_id"),
            field("status"),
            field("owner_process_id"),
            waits_for(timer),
        );
        rows.push(row.trim_end().to_owned());
    }
    rows.join("\n")
}

fn waits_for(timer: &Value) -> String {
    let which = match timer["kind"].as_str() {
        Some("idle_any") => "any of",
        Some("idle_all") => "all of",
        _ => return String::new(),
    };
    let ids: Vec<_> = timer["watched"].as_array().into_iter().flatten().map(shown).collect();
    format!("{which} {}", ids.join(" "))
}

/// A time to go, as short as it can be read.
fn left(seconds: f64) -> String {
    let whole = std::time::Duration::try_from_secs_f64(seconds.ceil()).unwrap_or_default();
    duration(whole.as_secs())
}

/// A time in whole seconds, as short as it can be read.
pub(crate) fn duration(whole: u64) -> String {
    match whole {
        0..60 => format!("{whole}s"),
        60..3_600 => format!("{}m{:02}s", whole / 60, whole % 60),
        3_600..86_400 => format!("{}h{:02}m", whole / 3_600, whole / 60 % 60),
        _ => format!("{}d{:02}h", whole / 86_400, whole / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_timers() {
        let timers = json!([
            {"timer_id": "t1", "kind": "delay", "status": "pending", "owner_process_id": "p1",
                "remaining_seconds": 61.2, "excerpt": "look at the build"},
            {"timer_id": "t2", "kind": "idle_any", "status": "paused", "owner_process_id": "p1",
                "watched": ["p2", "p3"], "waiting_on": ["p3"], "label": "team",
                "excerpt": "collect"},
            {"timer_id": "t3", "kind": "idle_all", "status": "pending", "owner_process_id": "p2",
                "watched": ["p4"], "remaining_seconds": 0.2},
        ]);
        assert_eq!(
            table(timers.as_array().unwrap()),
            "ID     STATUS   OWNER  LEFT      WAITS FOR             TEXT\n\
             t1     pending  p1     1m02s                           look at the build\n\
             t2     paused   p1               any of p2 p3          team\n\
             t3     pending  p2     1s        all of p4"
        );
        assert_eq!([59.1, 3_661.0, 90_000.0].map(left), ["1m00s", "1h01m", "1d01h"]);
    }
}
