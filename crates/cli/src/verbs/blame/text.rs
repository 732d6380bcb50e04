//! A report about a commit, for people.

use patterm_wire::events::{Actor, parse_time};

use super::Report;
use super::evidence::{Approval, Presence, Prompt, Seen, Story, Turn, TypedInput};
use crate::print::one_line;
use crate::since::local_time;

/// The first characters of a hash that are printed, as git does for large repositories.
const HASH_CHARS: usize = 12;

pub(super) fn of(report: &Report) -> String {
    let hash: String = report.commit.chars().take(HASH_CHARS).collect();
    let mut lines = vec![format!("{hash}  {}", report.subject)];
    match &report.story {
        Some(story) => lines.extend(told(story)),
        None => lines.extend(not_told(report)),
    }
    lines.iter().map(|line| one_line(line)).collect::<Vec<_>>().join("\n")
}

fn told(story: &Story) -> Vec<String> {
    let Story { recorded, actor, process, run, agent, command, branch, ended_at, .. } = story;
    let place = run.map(|run| format!(", run {run}")).unwrap_or_default();
    let branch = branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    let mut lines = vec![
        line("made by", &maker(story)),
        line("at", &format!("{}, with `git {}`{branch}", time(ended_at), command_of(command))),
    ];
    if agent.is_some() || !matches!(actor, Actor::Agent { .. }) {
        lines.push(line("in", &format!("{}{place}", named(process))));
    }
    lines.push(line("turn", &turn(story.turn.as_ref())));
    lines.extend(story.prompt.as_ref().map(|prompt| line("prompt", &prompt_text(prompt))));
    lines.extend(story.input.as_ref().map(|typed| line("typed", &typed_text(typed))));
    if story.prompt.is_none() && story.input.is_none() {
        lines.push(line("prompt", "no evidence of one"));
    }
    lines.extend(story.approvals.iter().map(|approval| line("answered", &approval_text(approval))));
    lines.push(line("evidence", &format!("{} (event {})", evidence(story), recorded.event)));
    lines
}

/// Nested commands as a person would type the last one.
fn command_of(command: &str) -> &str {
    command.rsplit('/').next().unwrap_or(command)
}

fn maker(story: &Story) -> String {
    match &story.actor {
        Actor::Agent { .. } => named(story.agent.as_ref().unwrap_or(&story.process)),
        actor => actor.to_string(),
    }
}

fn named(process: &Presence) -> String {
    let Presence { process_id, name, kind, preset } = process;
    let what = preset.as_ref().or(kind.as_ref());
    let about: Vec<&str> =
        [name.as_deref(), what.map(String::as_str)].into_iter().flatten().collect();
    match about.is_empty() {
        true => process_id.clone(),
        false => format!("{process_id} ({})", about.join(", ")),
    }
}

fn turn(turn: Option<&Turn>) -> String {
    match turn {
        None => "no evidence of one".to_owned(),
        Some(Turn { began, ended: None }) => format!("began {}", seen_text(began)),
        Some(Turn { began, ended: Some(ended) }) => {
            format!("began {}, ended {}", seen_text(began), seen_text(ended))
        }
    }
}

fn prompt_text(prompt: &Prompt) -> String {
    let Prompt { message_id, kind, from, accepted, text } = prompt;
    let kind = kind.replace('_', " ");
    let text = match text {
        Some(text) => format!(": {text}"),
        None => format!("; `patterm messages {message_id}` prints its text while it is kept"),
    };
    format!("{kind} {message_id} from {from}, {}{text}", seen_text(accepted))
}

fn typed_text(typed: &TypedInput) -> String {
    let TypedInput { by, length, seen } = typed;
    format!("{length} bytes by {by}, {}", seen_text(seen))
}

fn approval_text(approval: &Approval) -> String {
    let Approval { question, option, key, by, seen } = approval;
    let answer = option.as_ref().or(key.as_ref()).map_or("(typed in the pane)", String::as_str);
    format!("{question} → {answer}, by {by}, {}", seen_text(seen))
}

fn evidence(story: &Story) -> String {
    match story.evidence().as_str() {
        "process_tree" => {
            "a git command of this pane was running when the commit was written".to_owned()
        }
        "time" => {
            "weak: a git command of this pane was running in this repository in the same second"
                .to_owned()
        }
        other => other.to_owned(),
    }
}

fn not_told(report: &Report) -> Vec<String> {
    let mut lines = vec![line("made by", "no evidence")];
    if report.log_begins_later {
        let begins = report.log_begins_at.as_deref().map_or("is empty".to_owned(), |begins| {
            format!("begins at {}, after this commit", time(begins))
        });
        lines.push(line("", &format!("the log of events {begins}")));
    } else {
        lines.push(line("", "no git command in a pane of this project is known to have made it"));
    }
    if !report.in_a_turn_then.is_empty() {
        let agents: Vec<_> = report.in_a_turn_then.iter().map(named).collect();
        lines.push(line("then", &format!("in a turn, by the time only: {}", agents.join(", "))));
    }
    lines
}

fn line(what: &str, text: &str) -> String {
    format!("{what:>10}  {text}")
}

fn seen_text(seen: &Seen) -> String {
    format!("{} (event {})", time(&seen.at), seen.event)
}

fn time(text: &str) -> String {
    parse_time(text).map_or_else(
        || text.to_owned(),
        |ms| local_time(ms).format("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use patterm_wire::events::GitEvidence;

    use super::super::sample::{commit, event, story};
    use super::*;

    fn report(story: Option<Story>) -> Report {
        Report {
            commit: "26117f47112964a9e1ac490f1f38e4c938f6e39c".into(),
            subject: "evil\u{1b}[2J".into(),
            evidence: "process_tree".into(),
            story,
            log_begins_at: None,
            log_begins_later: false,
            in_a_turn_then: Vec::new(),
        }
    }

    #[test]
    fn everything_that_is_known_is_told_on_lines_of_their_own() {
        let text = of(&report(Some(story())));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "26117f471129  evil\\u{1b}[2J");
        assert_eq!(lines[1], "   made by  p3 (lead, claude)");
        for part in [
            "with `git commit` on main",
            "(event 9), ended ",
            "message 8 from p1, ",
            "`patterm messages 8` prints its text",
            "push? → Yes, by person, ",
            "a git command of this pane was running when the commit was written (event 16)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn weak_evidence_and_none_are_said_to_be_so() {
        let fact = commit(1_000, GitEvidence::Time);
        let made = event(2, "p7", Actor::view(), &fact);
        let text = of(&report(Some(Story::of(&made))));
        for part in ["made by  person", "in  p7", "turn  no evidence of one", "weak: "] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let mut unknown = report(None);
        assert!(of(&unknown).contains("no git command in a pane"), "{}", of(&unknown));
        unknown.log_begins_later = true;
        assert!(of(&unknown).contains("the log of events is empty"));
        unknown.log_begins_at = Some("2026-11-16T09:12:03.118Z".into());
        unknown.in_a_turn_then = vec![Presence { process_id: "p1".into(), ..Presence::default() }];
        let text = of(&unknown);
        assert!(text.contains("after this commit") && text.contains("by the time only: p1"));
    }
}
