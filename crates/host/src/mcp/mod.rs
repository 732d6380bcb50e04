//! MCP over any stream: rmcp knows the types, the revisions and what their answers look like;
//! ids, cancellation, ceilings and panics are ours.

mod request;
mod service;

pub(crate) use request::{RequestParams, ask};
pub(crate) use service::{McpService, Notices, check_size};

/// What an agent is told of this server before anything else.
const INSTRUCTIONS: &str = "\
You already run inside patterm, a terminal in which several agents, dev servers, tests and shells \
work on one project. These tools are your hands in it. Use them instead of starting patterm again, \
talking to its socket, or starting another agent's CLI from a shell: an agent started any other way \
than with patterm's spawn_agent has no identity and belongs to nobody.\n\
Begin with `whoami` (who you are, and which tools there are), then `help` for the topic at hand.\n\
What you spawn is yours to close when you are done with it.\n\
The answer to a message arrives in your own pane, as a new turn. To wait for it, or for another \
agent to finish, set an idle timer and end your turn; wait_for_pattern on the other agent would wait \
until its timeout.";

/// What a caller without a pane is told instead: a desktop client, an HTTP client, an agent's CLI
/// that patterm did not start.
const OUTSIDE_INSTRUCTIONS: &str = "\
patterm is a terminal in which several agents, dev servers, tests and shells work on one project. \
These tools let you look at them and direct them from outside: you have no pane of your own in it, \
so nothing can wake you and no answer can be typed to you.\n\
Begin with whoami (the project, and which tools there are), then help for the topic at hand.\n\
Start agents with patterm's spawn_agent; what you start has no agent above it, and is yours to close \
when you are done with it.\n\
After send_message, wait with wait_for_agents until the agent is idle (call it again when it timed \
out), then read what it said with get_process_output. A timer needs owner_process_id, the process \
that gets its text.";
