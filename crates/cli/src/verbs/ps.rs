//! `patterm ps`: lists processes.

use clap::Args;
use patterm_wire::method::Empty;
use patterm_wire::reason;
use patterm_wire::tools::{ListProcesses, ProcessList, ProcessSummary};
use serde_json::Value;

use super::{restore, trust, user_settings};
use crate::client::Client;
use crate::print::{one_line, print, print_json, print_red};

/// List this project's processes
#[derive(Debug, Args)]
pub(crate) struct PsVerb {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl PsVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let reply = client.query::<ListProcesses>(&Empty {})?;
        if self.json {
            return print_json(&reply.read_as::<ProcessList<Value>>()?.processes);
        }
        let processes = reply.result.processes;
        if processes.is_empty() {
            print("no processes; `patterm run -- COMMAND` starts one");
            trust::hint().inspect(|hint| print(hint));
            user_settings::hint().inspect(|hint| print(hint));
            return Ok(());
        }
        print(&table(&processes));
        for process in &processes {
            if let Some(problem) = &process.output_problem {
                print_red(&format!("{}: {problem}", process.process_id));
            }
        }
        if let Some(hint) = restore::hint(&processes) {
            print(&hint);
        }
        trust::hint().inspect(|hint| print(hint));
        user_settings::hint().inspect(|hint| print(hint));
        if client.is_on_disk() {
            print("no server is running for this project; `patterm` or `patterm serve` starts it");
        }
        Ok(())
    }
}

/// The processes below one, each followed by its own children, with their depth.
fn tree<'a>(
    processes: &'a [ProcessSummary],
    parent: Option<&str>,
    depth: usize,
) -> Vec<(usize, &'a ProcessSummary)> {
    let known = |id: &str| processes.iter().any(|process| process.process_id == id);
    let is_below = |process: &&ProcessSummary| match parent {
        Some(id) => process.parent_id.as_deref() == Some(id),
        None => !process.parent_id.as_deref().is_some_and(known),
    };
    let children = processes.iter().filter(is_below);
    let with_children = |process: &'a ProcessSummary| {
        let below = tree(processes, Some(&process.process_id), depth + 1);
        std::iter::once((depth, process)).chain(below)
    };
    children.flat_map(with_children).collect()
}

fn table(processes: &[ProcessSummary]) -> String {
    let mut rows = vec!["ID     STATUS    ACTIVITY  EXIT  KIND      NAME".to_owned()];
    for (depth, process) in tree(processes, None, 0) {
        // How the previous run ended says nothing about one that is starting.
        let exit = process.exit.filter(|_| !process.is_alive()).unwrap_or_default();
        let exit = match (exit.code, exit.signal) {
            (Some(code), _) => code.to_string(),
            (None, Some(signal)) => format!("sig{signal}"),
            (None, None) => String::new(),
        };
        // Health says more than activity where it is checked. An ended process is always idle, so its activity is not
        // shown.
        let activity = match &process.health {
            _ if !process.is_alive() => String::new(),
            Some(health) => one_line(health),
            None => one_line(&process.activity.state),
        };
        let row = format!(
            "{:<6} {:<9} {activity:<9} {exit:<5} {:<9} {}{}{}",
            one_line(&process.process_id),
            one_line(process.status.name()),
            one_line(process.kind.name()),
            "  ".repeat(depth),
            one_line(&process.name) + &note(process),
            process.needs().map(|why| format!("  ! {}", one_line(&why))).unwrap_or_default()
        );
        rows.push(row.trim_end().to_owned());
    }
    rows.join("\n")
}

/// A note on a process that the project file declares, or on an agent that was interrupted.
fn note(process: &ProcessSummary) -> String {
    if !process.waiting_for.is_empty() {
        let names: Vec<_> = process.waiting_for.iter().map(|name| one_line(name)).collect();
        return format!("  (waiting for {})", names.join(", "));
    }
    if let Some(seconds) = process.next_restart_in {
        return match process.restarts.unwrap_or_default() {
            0 | 1 => format!("  (restarts in {seconds:.0} s)"),
            restarts => format!(
                "  (restarts in {seconds:.0} s, for the {} time in a row)",
                ordinal(restarts)
            ),
        };
    }
    if let Some(interrupted) = &process.interrupted {
        return format!("  ({})", one_line(interrupted));
    }
    // The columns already say how it ended.
    let exit = process.exit.unwrap_or_default();
    let ended = [exit.code.map(reason::exit_code), exit.signal.map(reason::exit_signal)];
    let is_new = |why: &&str| !ended.iter().flatten().any(|ended| ended == why);
    let why = process.why_not_running.as_deref().filter(is_new);
    if let Some(why) = why.filter(|_| !process.is_alive()) {
        return format!("  ({})", one_line(why));
    }
    let outdated = process.outdated.then_some("patterm.toml has changed since it started");
    let problem = process.problem.as_deref().or(outdated);
    problem.map(|problem| format!("  ({})", one_line(problem))).unwrap_or_default()
}

/// A number as an ordinal, such as 2nd.
fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_of_processes() {
        let list: ProcessList = serde_json::from_value(json!({"processes": [
            {"process_id": "p1", "name": "lead", "kind": "agent", "status": "running",
                "activity": {"state": "blocked"}, "attention": {"reason": "may I?"}},
            {"process_id": "p2", "name": "dev", "kind": "command", "status": "exited",
                "parent_id": "p1", "exit": {"code": 1}},
            {"process_id": "p3", "name": "sh", "kind": "terminal", "status": "stopped",
                "exit": {"signal": 15}},
            {"process_id": "p4", "name": "web", "kind": "command", "status": "starting",
                "exit": {"signal": 15}, "waiting_for": ["db"]},
            {"process_id": "p5", "name": "db", "kind": "command", "status": "exited",
                "exit": {"code": 1}, "restarts": 2, "next_restart_in": 1.9},
            {"process_id": "p6", "name": "late", "kind": "agent", "status": "running",
                "parent_id": "p1", "activity": {"state": "idle"}},
            {"process_id": "p7", "name": "new", "kind": "vm", "status": "frozen",
                "activity": {"state": "dreaming"}},
            {"process_id": "p8", "name": "api", "kind": "command", "status": "running",
                "activity": {"state": "idle"}, "health": "healthy"},
            {"process_id": "p9", "name": "mail", "kind": "command", "status": "running",
                "activity": {"state": "idle"}, "health": "unhealthy", "problem": "it is unhealthy: no"},
            {"process_id": "p10", "name": "back", "kind": "agent", "status": "running",
                "activity": {"state": "idle"}, "interrupted": "interrupted by a reboot"},
            {"process_id": "p11", "name": "job", "kind": "command", "status": "exited",
                "exit": {"code": 0}, "why_not_running": "it ended with exit code 0"},
            {"process_id": "p12", "name": "job2", "kind": "command", "status": "exited",
                "exit": {"code": 0}, "why_not_running": "patterm.toml is not trusted"},
        ]}))
        .unwrap();
        assert_eq!(
            table(&list.processes),
            "ID     STATUS    ACTIVITY  EXIT  KIND      NAME\n\
             p1     running   blocked         agent     lead  ! may I?\n\
             p2     exited              1     command     dev\n\
             p6     running   idle            agent       late\n\
             p3     stopped             sig15 terminal  sh\n\
             p4     starting                  command   web  (waiting for db)\n\
             p5     exited              1     command   db  (restarts in 2 s, for the 2nd time in a row)\n\
             p7     frozen    dreaming        vm        new\n\
             p8     running   healthy         command   api\n\
             p9     running   unhealthy       command   mail  (it is unhealthy: no)\n\
             p10    running   idle            agent     back  (interrupted by a reboot)\n\
             p11    exited              0     command   job\n\
             p12    exited              0     command   job2  (patterm.toml is not trusted)"
        );
    }
}
