//! What an overview of several projects shows of one: the TUI and the CLI show the same.

use crate::follow::{ActivityState, ProcessInfo, ProcessKind, ProcessStatus};

/// The processes that an overview shows, in tree order, each with its depth: agents, what needs a person, and what
/// has ended. Shells and commands that run are only counted.
#[must_use]
pub fn listed(processes: &[ProcessInfo]) -> Vec<(usize, &ProcessInfo)> {
    let shown = |process: &&ProcessInfo| {
        process.kind == ProcessKind::Agent
            || process.attention.is_some()
            || !process.status.is_alive()
    };
    let shown: Vec<&ProcessInfo> = processes.iter().filter(shown).collect();
    let is_shown = |id: &str| shown.iter().any(|process| process.id == id);
    let is_top = |process: &&&ProcessInfo| !process.parent.as_deref().is_some_and(is_shown);
    let mut tree = Vec::new();
    for process in shown.iter().filter(is_top) {
        add_below(process, 0, &shown, &mut tree);
    }
    tree
}

fn add_below<'a>(
    process: &'a ProcessInfo,
    depth: usize,
    shown: &[&'a ProcessInfo],
    tree: &mut Vec<(usize, &'a ProcessInfo)>,
) {
    // There are no cycles, but one must not hang a client.
    if tree.len() > shown.len() {
        return;
    }
    tree.push((depth, process));
    for child in shown.iter().filter(|child| child.parent.as_deref() == Some(&process.id)) {
        add_below(child, depth + 1, shown, tree);
    }
}

impl ProcessInfo {
    /// What it is doing, in one word: its activity while it runs, and how it ended otherwise.
    #[must_use]
    pub fn state_word(&self) -> String {
        if self.status == ProcessStatus::Exited {
            return match (self.code, self.signal) {
                (Some(0), _) | (None, None) => self.status.name().to_owned(),
                (Some(code), _) => format!("exit {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
            };
        }
        if self.status != ProcessStatus::Running {
            return self.status.name().to_owned();
        }
        match &self.activity {
            _ if self.limited.is_some() => "limited".to_owned(),
            ActivityState::Working => "working".to_owned(),
            ActivityState::Idle => "idle".to_owned(),
            ActivityState::Blocked => "blocked".to_owned(),
            ActivityState::Unknown => self.status.name().to_owned(),
            ActivityState::Other(word) => word.clone(),
        }
    }

    /// Why it is in that state: what it asks of a person, if it does.
    #[must_use]
    pub fn why(&self) -> &str {
        match (&self.attention, &self.why_not_running) {
            (Some(attention), _) => attention,
            (None, Some(why)) if !self.status.is_alive() => why,
            // It ended, which the state says already.
            _ if !self.status.is_alive() => "",
            _ => &self.reason,
        }
    }

    /// Whether it waits for a person.
    #[must_use]
    pub fn needs_person(&self) -> bool {
        let waits = self.activity == ActivityState::Blocked || self.limited.is_some();
        self.attention.is_some() || (waits && self.status.is_alive())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: &str, kind: ProcessKind, parent: Option<&str>) -> ProcessInfo {
        let parent = parent.map(str::to_owned);
        ProcessInfo { id: id.to_owned(), kind, parent, ..ProcessInfo::default() }
    }

    #[test]
    fn agents_and_what_ended_or_needs_a_person_are_listed_and_the_rest_is_not() {
        let lead = process("p1", ProcessKind::Agent, None);
        let shell = process("p2", ProcessKind::Terminal, Some("p1"));
        let below_shell = process("p3", ProcessKind::Agent, Some("p2"));
        let helper = process("p4", ProcessKind::Agent, Some("p1"));
        let failed = ProcessInfo {
            status: ProcessStatus::Exited,
            code: Some(1),
            ..process("p5", ProcessKind::Command, None)
        };
        let asks = ProcessInfo {
            attention: Some("look".to_owned()),
            ..process("p6", ProcessKind::Terminal, None)
        };
        let runs = process("p7", ProcessKind::Command, None);
        let all = [lead, shell, below_shell, helper, failed, asks, runs];
        let shown: Vec<_> = listed(&all).iter().map(|(depth, p)| (*depth, p.id.as_str())).collect();
        assert_eq!(shown, [(0, "p1"), (1, "p4"), (0, "p3"), (0, "p5"), (0, "p6")]);
        assert_eq!([4, 6].map(|at| all[at].state_word()), ["exit 1", "running"]);
        assert_eq!((all[4].why(), all[5].why()), ("", "look"));
        let mut circle = [
            process("p1", ProcessKind::Agent, Some("p2")),
            process("p2", ProcessKind::Agent, Some("p1")),
        ];
        assert!(listed(&circle).is_empty());
        circle[0].parent = None;
        assert_eq!(listed(&circle).len(), 2);
    }
}
