//! The help texts that are about more than one tool.

use super::registry::Registry;

/// The topic that lists the others.
pub(super) const INDEX: &str = "topics";

/// Topic, one line for the index, text.
const TOPICS: [(&str, &str, &str); 7] = [
    ("spawning", "starting agents and processes", SPAWNING),
    ("lifecycle", "the life of a process entry", LIFECYCLE),
    ("messaging", "talking to other agents and to the person", MESSAGING),
    ("timers", "being woken later, or when others fall idle", TIMERS),
    ("scratchpads", "notes shared by agents and people", SCRATCHPADS),
    ("waiting", "which way of waiting fits", WAITING),
    ("errors", "how calls fail, and what to do", ERRORS),
];

const SPAWNING: &str = "\
`spawn_agent` is the only right way to start another agent: it gives the sub-agent an identity, \
patterm's tools and you as its parent, and hands it its instructions once it can take them. An \
agent's CLI started from a shell, or by way of the socket, lands as a stray process at the top, \
without any of that. `spawn_process` starts everything else: dev servers, tests, shells. What \
the project itself needs (its dev server, its database) may be declared in patterm.toml: \
`get_project_status` lists those, and `spawn_process` with preset starts one for everybody. Whoever \
spawns closes: when you no longer need a process, call `close_process`.";

const LIFECYCLE: &str = "\
A process is an entry with a stable id (p1, p2, …) that outlives the operating-system process: \
after exit its output stays readable until `close_process`. `signal_process` sends a signal and \
nothing more, `stop_process` ends the program and keeps the entry, `start_process` starts it again in the same entry, `restart_process` does both, \
`close_process` kills all that it ever started and removes the entry. Its status is starting, \
running, exited, failed, stopped or lost. You may act on yourself, on your descendants, and on \
processes the project file declares; on others you get not_owner.";

const MESSAGING: &str = "\
`send_message` puts a message into another agent's pane as a turn and returns at once with a \
receipt: delivered, queued or stalled, and why. `message_status` reads the receipt again, and \
`message_cancel` withdraws or replaces a message that is still queued. The answer arrives in YOUR OWN pane as a new turn. \
So after sending, set an idle timer and end your turn; never wait for the answer with \
`wait_for_pattern` on the other agent: it would wait until its timeout. Programs that are no \
agents get `send_input`. `request_human_attention` calls the person.";

const TIMERS: &str = "\
A timer gives you a text as a fresh turn, later. So: hand out the work, set the timer, END YOUR \
TURN; what comes next begins with your text. `timer_set` does so after some seconds. \
`timer_fire_when_idle_all` does so when all the processes you name are idle; those idle already \
count, so it may fire at once. `timer_fire_when_idle_any` does so when one of them becomes idle; \
those idle already do not count. `timer_fire_on_exit` does so when all of them have ended, which is the \
one for builds and tests: a program that prints nothing is not idle unless it is seen to wait for input. Their text comes after a [system] line that says who is idle, \
exited or closed. An agent that waits for a person is blocked and one at a usage limit is limited, not idle: give max_wait_seconds \
where that may happen. You cannot watch yourself. `timer_wait` is the older form of `timer_set`. \
`timer_list`, `timer_cancel`, `timer_pause` and `timer_resume` are for timers that you own or set. \
A timer fires once and is gone; set the same idle timer twice and it is still one. Timers survive a \
restart of the server, and go when their owner is closed.";

const SCRATCHPADS: &str = "\
Scratchpads are Markdown files of the project that agents and people share: plans, findings, who does \
what. People edit the files with any editor. `scratchpad_list` says what there is. To add a line, use \
`scratchpad_append`: it never conflicts and loses nothing. To change what is there, `scratchpad_read` \
it, then `scratchpad_write` all of it with the revision you read as expected_revision. If that is a \
conflict, somebody was faster: read again, bring your change into what it says now, and write that. \
`scratchpad_delete` removes one at the revision you read. Names are plain: plan, never a path. Keep your own notes elsewhere; what stands here is read by \
everybody.";

const WAITING: &str = "\
For a line a program will print (a server's \"ready\", a test's summary): `wait_for_pattern`. For \
another agent to finish or answer: `timer_fire_when_idle_all` (or `timer_fire_when_idle_any` for \
the first of several), and end your turn: you are woken with your text. Never `wait_for_pattern` on \
an agent: what it shows is not its answer, and you could not be told anything meanwhile. For time \
to pass: `timer_set`, and end your turn. Never poll in a loop. A caller without a pane of its own \
cannot be woken: it waits with `wait_for_agents`, and calls it again after a timeout.";

const ERRORS: &str = "\
A call that fails has isError and structuredContent.error = {kind, message}. Kinds: \
invalid_argument (mend the argument the message names), not_found (list what there is), not_owner \
(that process is not yours; ask its owner by message), not_running, already_running, conflict \
(someone changed it: read again, then write), limit (ask for less, or close something), timeout, \
unavailable (not now: the message says what is missing), internal (a fault in patterm; other calls \
go on).";

/// The names of all topics, tools included.
pub(super) fn all(tools: &Registry) -> String {
    let names: Vec<_> = TOPICS.iter().map(|(name, ..)| *name).chain(tools.names()).collect();
    names.join(", ")
}

/// The list of topics with a line each.
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

/// The text of a topic. It says which of the tools it names this server does not have.
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
