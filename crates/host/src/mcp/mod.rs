//! MCP over any stream: rmcp provides the types, the revisions and the form of results; ids,
//! cancellation, limits and panics are handled here.

mod request;
mod service;

pub(crate) use request::{RequestParams, ask};
pub(crate) use service::{McpService, Notices, check_size};

/// The server's instructions for agents.
const INSTRUCTIONS: &str = "\
You run inside patterm, a terminal in which several agents, dev servers, tests and shells work on \
one project. Use these tools to work with it. Do not start patterm again, use its socket, or start \
another agent's CLI from a shell: an agent that was not started with patterm's spawn_agent has no \
identity and no owner.\n\
Begin with `whoami` (who you are, and which tools there are), then `help` for the topic at hand.\n\
Close what you spawn when you are done with it.\n\
The answer to a message arrives in your own pane, as a new turn. To wait for it, or for another \
agent to finish, set an idle timer and end your turn; wait_for_pattern on the other agent would wait \
until its timeout.";

/// The instructions for callers without a pane: a desktop client, an HTTP client, an agent's
/// CLI that patterm did not start.
const OUTSIDE_INSTRUCTIONS: &str = "\
patterm is a terminal in which several agents, dev servers, tests and shells work on one project. \
These tools let you observe and direct them from outside: you have no pane of your own, so nothing \
can wake you and no answer can be typed to you.\n\
Begin with whoami (the project, and which tools there are), then help for the topic at hand.\n\
Start agents with patterm's spawn_agent; they have no agent above them. Close what you start when \
you are done with it.\n\
After send_message, wait with wait_for_agents until the agent is idle (call it again if it timed \
out), then read the output with get_process_output. A timer needs owner_process_id, the process \
that gets its text.";
