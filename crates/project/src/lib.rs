//! What a project declares: `patterm.toml` as data, whether its content is trusted, and the one task
//! that starts, watches and restarts the processes it declares. Parsing knows nothing of processes;
//! the task knows the panes, and nothing of agents, tools or MCP.

pub mod declared;
pub mod project_file;
