//! Every limit of a server that a setting may change, with its reason.

use std::time::Duration;

/// Ceilings that a setting may change.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message from a client.
    pub message_bytes: usize,
    /// Bytes of one answer. TypeScript clients give up at 10 MiB buffered; two thousand bytes of
    /// framing and a margin below 8 MiB keep clear of that.
    pub answer_bytes: usize,
    /// Connections at once: a hundred agents with ten helpers each.
    pub connections: usize,
    /// Calls of one connection that have not been answered yet: an agent may wait for a thousand
    /// things at once, and each costs a few kilobytes.
    pub calls_in_flight: usize,
    /// Messages in one batch.
    pub batch_messages: usize,
    /// Processes at once, ended ones included: what a person or a team of agents can look after.
    pub processes: usize,
    /// Agents that run at once: each is a CLI of hundreds of megabytes.
    pub agents: usize,
    /// Agents above an agent, at the most: a sub-agent's sub-agent's sub-agent is as far as
    /// anybody can follow.
    pub agent_depth: usize,
    /// Bytes of one process's output kept on disk: a day of a busy dev server.
    pub log_bytes: u64,
    /// Bytes of memory for what scrolled off all screens together: most of a million lines, and with
    /// 200 panes less than half of the 300 MiB that a server may take.
    pub history_bytes: usize,
    /// Calls of `wait_for_pattern` on one process, and calls of `wait_for_agents` in all.
    pub waiters: usize,
    /// Scratchpads: more than anybody looks through.
    pub pads: usize,
    /// Bytes of one scratchpad: whatever they are, they fit into one answer. Control characters take
    /// six bytes in JSON, and seven in the JSON text that stands beside it.
    pub pad_bytes: usize,
    /// Seconds that programs have to end by themselves when the server is ended; `None` leaves it to
    /// the user's settings.
    pub end_grace_seconds: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: patterm_wire::DEFAULT_MESSAGE_LIMIT,
            answer_bytes: (8 << 20) - (64 << 10),
            connections: 1_000,
            calls_in_flight: 2_000,
            batch_messages: 100,
            processes: 1_000,
            agents: 50,
            agent_depth: 3,
            log_bytes: 64 << 20,
            history_bytes: 96 << 20,
            waiters: 2_000,
            pads: 500,
            pad_bytes: 512 << 10,
            end_grace_seconds: None,
        }
    }
}

impl Limits {
    /// The names by which limits are set.
    pub const NAMES: [&str; 14] = [
        "message_bytes",
        "answer_bytes",
        "connections",
        "calls_in_flight",
        "batch_messages",
        "processes",
        "agents",
        "agent_depth",
        "log_bytes",
        "history_bytes",
        "waiters",
        "pads",
        "pad_bytes",
        "end_grace_seconds",
    ];

    /// Changes limits as a text like `processes=50,waiters=10` says. An error names what is wrong
    /// and what there is.
    pub fn set_from(&mut self, text: &str) -> Result<(), String> {
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let number: u64 =
                value.trim().parse().ok().filter(|number| *number > 0).ok_or_else(|| {
                    format!("`{part}` takes a number above 0, as in processes=50")
                })?;
            self.set(name.trim(), number)?;
        }
        Ok(())
    }

    /// Changes one limit.
    pub fn set(&mut self, name: &str, number: u64) -> Result<(), String> {
        let size = usize::try_from(number).unwrap_or(usize::MAX);
        match name {
            "message_bytes" => self.message_bytes = size.max(LEAST_MESSAGE_BYTES),
            "answer_bytes" => self.answer_bytes = size,
            "connections" => self.connections = size,
            "calls_in_flight" => self.calls_in_flight = size,
            "batch_messages" => self.batch_messages = size,
            "processes" => self.processes = size,
            "agents" => self.agents = size,
            "agent_depth" => self.agent_depth = size,
            "log_bytes" => self.log_bytes = number.max(LEAST_LOG_BYTES),
            "history_bytes" => self.history_bytes = size,
            "waiters" => self.waiters = size,
            "pads" => self.pads = size,
            "pad_bytes" => self.pad_bytes = size,
            "end_grace_seconds" => self.end_grace_seconds = Some(number),
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(format!("there is no limit `{name}`; there are {known}"));
            }
        }
        Ok(())
    }
}

/// A shorter message could not say anything.
pub const LEAST_MESSAGE_BYTES: usize = 1 << 10;

/// Less could not hold a log's first two files.
pub const LEAST_LOG_BYTES: u64 = 1 << 20;

/// Bytes waiting for a client that does not read, above which nothing more is done for it until
/// it does. One answer may go over it: with the largest it makes the 8 MiB that such a client may
/// cost. The kernel keeps three times as much for one that reads.
pub const OUTBOX_BYTES: usize = 64 << 10;

/// How long a client may leave its answers unread before it is given up: longer than any pause a
/// debugger or a suspended terminal explains, short enough to free what it holds.
pub const UNREAD_PATIENCE: Duration = Duration::from_secs(120);

/// How long calls may go on after their client ended its side.
pub const ENDING_GRACE: Duration = Duration::from_secs(5);

/// How long calls may go on once the server is to end.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Notices (progress, changed lists) of one connection on their way to its outbox. Progress is
/// dropped beyond it: the next report says more.
pub const NOTICES: usize = 64;

/// Messages of one connection served in a row before the others get their turn.
pub const FAIR_TURN: usize = 64;

/// Bytes read from a client in one go.
pub const READ_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_set_by_name_and_mistakes_are_named() {
        let mut limits = Limits::default();
        limits.set_from("processes=50, waiters = 7,").unwrap();
        assert_eq!((limits.processes, limits.waiters), (50, 7));
        assert!(limits.set_from("panes=1").unwrap_err().contains("there is no limit `panes`"));
        for wrong in ["processes", "processes=", "processes=0", "processes=-1", "processes=many"] {
            assert!(limits.set_from(wrong).unwrap_err().contains("takes a number"), "{wrong}");
        }
        assert_eq!(limits.processes, 50);
        for name in Limits::NAMES {
            limits.set(name, 1).unwrap();
        }
    }
}
