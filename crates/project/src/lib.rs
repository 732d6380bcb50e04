//! The project file `patterm.toml`: its content as data, its trust, and the task that starts, watches and
//! restarts the processes it declares. The parser does not know processes; the task knows panes, but not
//! agents, tools or MCP.

pub mod declared;
pub mod line_diff;
pub mod project_file;
