//! All keys of a project file.

use super::agent_schema::{APPROVED, COMPOSER, HOOKS, INJECT, INPUT, PROMPT, RESUME, RULES};
use super::command::COMMAND_OR_LINE;
use super::limits::MOST_RESTARTS;
use super::ready::{HEALTHY, READY};
use super::schema::{STRINGS, Schema, key, required};
use super::stop::STOP;
use super::{bots, env_file, hooks, http, servers};
use patterm_store::limits::Limits;

/// The names of the restart policies.
const POLICIES: &[&str] = &["never", "on-unhealthy", "on-failure", "always"];

/// The whole file.
pub(super) static FILE: Schema = Schema::Table(&[
    key("processes", Schema::Named(&PROCESS), "The project's processes, by name."),
    key(
        "groups",
        Schema::Named(&Schema::List { of: &Schema::Text, least: 1 }),
        "Groups of processes, by name, for `patterm up` and `patterm down`. A group cannot have the name of a \
         process.",
    ),
    key(
        "agents",
        Schema::Named(&AGENT),
        "Agent presets, by name: new presets, or changes to built-in ones.",
    ),
    key(
        "servers",
        Schema::Named(&servers::SCHEMA),
        "Shared MCP servers, by name. Each runs once and serves all agents.",
    ),
    key("bots", bots::SCHEMA, "MCP servers inside the containers of bots, reached over HTTP."),
    key("http", http::SCHEMA, "The HTTP endpoint. It is closed unless `listen` is set."),
    key(
        "hooks",
        hooks::SCHEMA,
        "Commands that are run and requests that are sent when something happens.",
    ),
    key(
        "limits",
        Schema::Counts(&Limits::NAMES),
        "Limits of patterm's server. Changes apply at its next start.",
    ),
    key(
        "remember_environment",
        Schema::Flag,
        "Whether to keep the environment of each process for its restarts, in files of mode 0600; true by \
         default. If false, restarted processes get the server's environment.",
    ),
    key(
        "update_environment",
        STRINGS,
        "Variables that are taken from a terminal when it attaches, for programs that are started later \
         without an environment of their own.",
    ),
]);

static PROCESS: Schema = Schema::Table(&[
    required(
        "command",
        COMMAND_OR_LINE,
        "What to run: a command line for `sh -c`, or an array of a program and its arguments.",
    ),
    key(
        "directory",
        Schema::Text,
        "The working directory, relative to the project folder, which is the default.",
    ),
    key("environment", Schema::Strings, "Additional environment variables."),
    key("env_file", Schema::Text, env_file::DESCRIPTION),
    key(
        "autostart",
        Schema::Flag,
        "Whether to start it together with patterm's server; false by default.",
    ),
    key(
        "restart",
        Schema::Either(&Schema::Choice(POLICIES), &RESTART),
        "Whether to restart it when it exits by itself or is unhealthy; `never` by default.",
    ),
    key(
        "watch",
        STRINGS,
        "Glob patterns of files relative to the project, such as `src/**/*.rs`. It restarts when \
         a matching file changes.",
    ),
    key("depends_on", STRINGS, "Processes that must be started and ready before this one."),
    key("ready", READY, "When it counts as ready; by default as soon as it runs."),
    key(
        "healthy",
        HEALTHY,
        "How to check it once it is ready. It is shown as healthy or unhealthy; `restart` says whether it is \
         restarted when it is unhealthy.",
    ),
    key("stop", STOP, "How to stop it; by default with SIGTERM and five seconds to end."),
]);

static RESTART: Schema = Schema::Table(&[
    required(
        "policy",
        Schema::Choice(POLICIES),
        "`never`, `on-unhealthy` (see `healthy`), `on-failure` (an exit code other than 0, a signal, or \
         unhealthy) or `always`.",
    ),
    key(
        "limit",
        Schema::Whole { least: 1, most: MOST_RESTARTS as i64 },
        "The maximum number of consecutive restarts; 5 by default. A run of ten seconds or more, \
         or ten healthy seconds before it became unhealthy, resets the count.",
    ),
    key(
        "delay_seconds",
        Schema::Seconds,
        "The delay before the first restart; 1 by default. It doubles with each further restart.",
    ),
    key("longest_delay_seconds", Schema::Seconds, "The longest delay; 60 by default."),
]);

static AGENT: Schema = Schema::Table(&[
    key("like", Schema::Text, "The preset that this one is based on."),
    key("title", Schema::Text, "The name that people see."),
    key("program", Schema::Text, "The program: a path, or a name that is looked up in PATH."),
    key("args", STRINGS, "Arguments, for example a model or a mode."),
    key("env", Schema::Strings, "Environment variables."),
    key("env_file", Schema::Text, env_file::DESCRIPTION),
    key(
        "terminal_name",
        Schema::Text,
        "What its terminal calls itself (XTVERSION); patterm and its version by default.",
    ),
    key("inject", INJECT, "How the CLI gets patterm's tools and the agent's identity."),
    key("approved", APPROVED, "How to tell the CLI which of patterm's tools need no approval."),
    key(
        "tool_name",
        Schema::Text,
        "The name under which the model sees a tool of patterm; `{{tool}}` is patterm's name.",
    ),
    key("prompt", PROMPT, "How to pass the first prompt as an argument."),
    key("resume", RESUME, "How to resume a conversation."),
    key("input", INPUT, "How to submit a turn."),
    key("composer", COMPOSER, "How to read the text in the prompt box."),
    key("rules", RULES, "How to derive the state from the screen and the title."),
    key("hooks", HOOKS, "How to derive the state from the CLI's hooks."),
]);
