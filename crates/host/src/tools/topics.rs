//! Help texts about more than one tool.

use super::registry::Registry;

/// The topic that lists the others.
pub(super) const INDEX: &str = "topics";

/// Topic, line in the index, text.
const TOPICS: [(&str, &str, &str); 7] = [
    ("spawning", "starting agents and processes", SPAWNING),
    ("lifecycle", "the states of a process entry", LIFECYCLE),
    ("messaging", "messages to other agents and to people", MESSAGING),
    ("timers", "waking up later, or when others become idle", TIMERS),
    ("scratchpads", "notes shared by agents and people", SCRATCHPADS),
    ("waiting", "how to wait, and for what", WAITING),
    ("errors", "how calls fail, and what to do", ERRORS),
];

const SPAWNING: &str = "\
Always start other agents with `spawn_agent`: it gives the sub-agent an identity, \
patterm's tools and you as its parent, and delivers its instructions once it can accept them. An \
agent's CLI that is started from a shell or through the socket is a stray process without any of \
that. `spawn_process` starts everything else: dev servers, tests, shells. Processes that the project \
itself needs (its dev server, its database) may be declared in patterm.toml: `get_project_status` \
lists them, and `spawn_process` with preset starts one for everybody. Close what you spawn: when you \
no longer need a process, call `close_process`.";

const LIFECYCLE: &str = "\
A process is an entry with a stable id (p1, p2, …) that outlives the operating-system process: its \
output stays readable after the exit until `close_process`. `signal_process` only sends a signal, \
`stop_process` ends the program and keeps the entry, `start_process` starts it again in the same \
entry, `restart_process` does both, `close_process` kills everything it started and removes the \
entry. Its status is starting, running, exited, failed, stopped or lost. You may act on yourself, \
on your descendants, and on processes that the project file declares; for others, calls fail with not_owner.";

const MESSAGING: &str = "\
`send_message` puts a message into another agent's pane as a turn and returns at once with a \
receipt: delivered, queued or stalled, and why. `message_status` reads the receipt again, and \
`message_cancel` withdraws or replaces a message that is still queued. The answer arrives in YOUR \
OWN pane as a new turn. So after sending, set an idle timer and end your turn; never wait for the \
answer with `wait_for_pattern` on the other agent: it would only time out. For programs \
that are not agents, use `send_input`. `request_human_attention` calls a person.";

const TIMERS: &str = "\
A timer delivers a text to you later, as a new turn. So: hand out the work, set the timer, END YOUR \
TURN; the next turn begins with your text. `timer_set` fires after some seconds. \
`timer_fire_when_idle_all` fires when all the processes you name are idle; those that are already \
idle count, so it may fire at once. `timer_fire_when_idle_any` fires when one of them becomes idle; \
those that are already idle do not count. `timer_fire_on_exit` fires when all of them have ended; use \
it for builds and tests: a program that prints nothing is not idle unless it visibly waits for input. \
Their text follows a [system] line that says which processes are idle, exited or closed. An agent \
that waits for a person is blocked, and one at a usage limit is limited; neither is idle, so give \
max_wait_seconds if that may happen. You cannot watch yourself. `timer_wait` is the older form of \
`timer_set`. `timer_list`, `timer_cancel`, `timer_pause` and `timer_resume` are for timers that you \
own or set. A timer fires once; setting the same idle timer twice creates only one. Timers survive a \
restart of the server, and end when their owner is closed.";

const SCRATCHPADS: &str = "\
Scratchpads are Markdown files of the project that agents and people share: plans, findings, who does \
what. People edit the files with any editor. `scratchpad_list` lists them. To add a line, use \
`scratchpad_append`: it never conflicts and loses nothing. To change the content, `scratchpad_read` \
it, then `scratchpad_write` all of it with the revision you read as expected_revision. If that is a \
conflict, somebody else changed it first: read it again, merge your change into the current content, \
and write the result. `scratchpad_delete` removes one at the revision you read. A name is a plain \
name such as plan, never a path. Keep private notes elsewhere: everyone can read these.";

const WAITING: &str = "\
For a line that a program will print (a server's \"ready\", a test's summary): `wait_for_pattern`. \
For another agent to finish or answer: `timer_fire_when_idle_all` (or `timer_fire_when_idle_any` for \
the first of several), and end your turn: your text wakes you. Never use `wait_for_pattern` on an \
agent: its screen is not its answer, and no message could reach you in the meantime. To let time \
pass: `timer_set`, and end your turn. Never poll in a loop. A caller without its own pane cannot be \
woken: it waits with `wait_for_agents`, and calls it again after a timeout.";

const ERRORS: &str = "\
A call that fails has isError and structuredContent.error = {kind, message}. Kinds: \
invalid_argument (fix the argument that the message names), not_found (list what exists), not_owner \
(that process is not yours; ask its owner by message), not_running, already_running, conflict \
(somebody changed it: read it again, then write), limit (ask for less, or close something), timeout, \
unavailable (not possible now: the message says why), internal (an error in patterm; other calls \
are not affected).";

/// The names of all topics, tools included.
pub(super) fn all(tools: &Registry) -> String {
    let names: Vec<_> = TOPICS.iter().map(|(name, ..)| *name).chain(tools.names()).collect();
    names.join(", ")
}

/// The list of topics, one line each.
pub(super) fn index(tools: &Registry) -> String {
    let mut text = String::from("Topics:\n");
    for (name, line, _) in TOPICS {
        text.push_str(&format!("- {name}: {line}\n"));
    }
    text.push_str("and every tool by its name:\n");
    for (name, title) in tools.titles() {
        text.push_str(&format!("- {name}: {title}\n"));
    }
    text
}

/// The text of a topic, with a note about tools in it that this server does not have.
pub(super) fn text(topic: &str, tools: &Registry) -> Option<String> {
    let (.., text) = TOPICS.iter().find(|(name, ..)| *name == topic)?;
    let mut missing: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    missing.sort_unstable();
    missing.dedup();
    missing.retain(|name| !tools.has(name));
    if missing.is_empty() {
        return Some((*text).to_owned());
    }
    Some(format!("{text}\n\nNot in this version of patterm: {}.", missing.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_is_in_the_index_and_has_a_text() {
        let tools = Registry::standard();
        let index = index(&tools);
        for (name, ..) in TOPICS {
            assert!(index.contains(&format!("- {name}: ")));
            assert!(text(name, &tools).is_some());
        }
        for name in tools.names() {
            assert!(index.contains(&format!("- {name}: ")));
        }
        assert_eq!(text("nonsense", &tools), None);
    }

    #[test]
    fn a_text_names_the_tools_that_are_missing() {
        let text = text("waiting", &Registry::default()).unwrap();
        let missing = "timer_fire_when_idle_all, timer_fire_when_idle_any, timer_set, \
            wait_for_agents, wait_for_pattern";
        assert!(text.ends_with(&format!("Not in this version of patterm: {missing}.")));
    }
}
