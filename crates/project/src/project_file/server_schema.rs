//! What a project file may say of shared MCP servers and of the HTTP endpoint.

use super::schema::{Schema, SchemaKey, key};

/// Engines that run containers.
pub(super) const ENGINES: &[&str] = &["docker", "podman", "containerd"];

const WORDS: Schema = Schema::List { of: &Schema::Text, least: 0 };
const COMMAND: Schema = Schema::List { of: &Schema::Text, least: 1 };
const COUNT: Schema = Schema::Whole { least: 0, most: 1 << 40 };

/// A shared server.
pub(super) static SERVER: Schema = Schema::Table(&[
    key("command", COMMAND, "The program and its arguments; they are never given to a shell."),
    key("env", Schema::Strings, "Environment variables; `${NAME}` stands for one of your own."),
    key("directory", Schema::Text, "Where it starts, relative to the project."),
    key("engine", Schema::Choice(ENGINES), "What runs the container; `docker` by default."),
    key("container", Schema::Text, "A container that runs already, in which it is started."),
    key("image", Schema::Text, "An image, of which it gets a container of its own."),
    key("network", Schema::Flag, "Whether a container of its own has a network; false by default."),
    key("memory_mb", COUNT, "Memory of a container of its own, in MiB; 1024 by default."),
    key("processes", COUNT, "Processes in a container of its own; 256 by default."),
    key(
        "mounts",
        WORDS,
        "Folders that a container of its own sees, as in `./data:/data`; `:rw` to write there.",
    ),
    key(
        "socket",
        Schema::Text,
        "The engine's socket, where it is not the usual one (or `DOCKER_HOST`).",
    ),
    key("namespace", Schema::Text, "The namespace of containerd, where it is not `default`."),
    key(
        "via",
        COMMAND,
        "A program that reaches it, with its arguments, as in `ssh {target}`; the command follows.",
    ),
    key("target", Schema::Text, "What stands for `{target}` in `via`."),
    key("url", Schema::Text, "A server elsewhere that speaks Streamable HTTP."),
    key(
        "headers",
        Schema::Strings,
        "What is sent to it; `${NAME}` stands for a variable of yours.",
    ),
    key(
        "share",
        Schema::Choice(&["all", "caller", "session"]),
        "Who shares a running one: all (the default), each caller, or each session has its own.",
    ),
    key("tools", WORDS, "The only tools of it that are shown, `*` standing for any letters."),
    key("without", WORDS, "Tools of it that are not shown."),
    key(
        "agents",
        Schema::Named(&WORDS),
        "By preset or name of an agent, the only tools shown to it; `others` for all other agents.",
    ),
    key("call_seconds", Schema::Seconds, "How long a call may take; 600 by default."),
    key(
        "idle_seconds",
        Schema::Seconds,
        "After so long without a call it sleeps; never by default.",
    ),
    key("in_flight", COUNT, "Calls that are not answered, at the most; 1024 by default."),
    key("in_flight_of_one", COUNT, "The same of one caller; 128 by default."),
    key(
        "sessions",
        COUNT,
        "Running ones where it is not shared by all, at the most; 64 by default.",
    ),
    key("message_bytes", COUNT, "Bytes of one message, at the most; 64 MiB by default."),
]);

/// The endpoint for the containers of bots.
pub(super) const BOTS: Schema = Schema::Table(&[
    key("engine", Schema::Choice(ENGINES), "What runs the containers; `docker` by default."),
    key("socket", Schema::Text, "The engine's socket, where it is not the usual one."),
    key("namespace", Schema::Text, "The namespace of containerd, where it is not `default`."),
    SchemaKey {
        name: "command",
        schema: COMMAND,
        required: true,
        words: "The server inside the containers: the program and its arguments.",
    },
    key(
        "owner_label",
        Schema::Text,
        "The label that names a container's bot; `patterm.bot` by default.",
    ),
    key(
        "allow_unlabelled",
        Schema::Flag,
        "Whether every bot may use containers without that label; false by default.",
    ),
    key("fifo_dir", Schema::Text, "Where containerd's pipes lie; a private folder by default."),
]);

/// The HTTP endpoint.
pub(super) const HTTP: Schema = Schema::Table(&[
    key("listen", Schema::Text, "The address and port, as in `127.0.0.1:7711`."),
    key("allow_remote", Schema::Flag, "Whether it may be another machine's; false by default."),
    key("hosts", WORDS, "Names under which it is reached, beside those of the loopback."),
    key("origins", WORDS, "Web sites that may call it, as in `https://app.example`."),
    key(
        "audit_arguments",
        Schema::Flag,
        "Whether the audit log holds arguments; false by default.",
    ),
    key("sessions", COUNT, "Sessions of all clients; 1024 by default."),
    key("sessions_per_token", COUNT, "Sessions of one token; an eighth of all by default."),
    key("connections", COUNT, "Connections at once; 1024 by default."),
    key("body_bytes", COUNT, "Bytes of one request; 64 MiB by default."),
]);
