//! Verbs and flags.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use patterm_store::limits::LEAST_LOG_BYTES;

/// What is true of all verbs.
const ALL_VERBS: &str = "Without a command, patterm shows the project of this folder on the terminal.\n\
    An ID may be an id, a unique name, or the start of one.\n\
    Exit codes: 0 done, 1 failed with a reason on standard error, 2 wrong usage.";

/// The terminal in which a team of coding agents works.
#[derive(Debug, Parser)]
#[command(name = "patterm", version, about, disable_help_subcommand = true, after_help = ALL_VERBS)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start this project's server in the background
    Serve(Serve),
    /// End this project's server and everything in it
    Kill(Kill),
    /// Replace this project's running server by this binary, losing nothing
    Upgrade,
    /// List your servers with their projects, panes, and who asks for you
    Ls(Ls),
    /// Start a program in a pane of its own and print its id
    Run(Run),
    /// Start an agent in a pane of its own and print its id
    Agent(Agent),
    /// Which agents' CLIs are found, and why not
    Agents(Agents),
    /// Start a shell in a pane of its own and print its id
    Shell(Shell),
    /// List this project's processes
    Ps(Ps),
    /// Everything known of a process
    Status(Status),
    /// What a process printed
    Logs(Logs),
    /// What a process shows now
    Screen(Screen),
    /// Lines of a process's output that match
    Search(Search),
    /// Wait until a line that matches appears
    Wait(Wait),
    /// Type a line into a process
    Send(Send),
    /// Send an agent a message, as a turn
    Message(Message),
    /// Press keys in a process
    Key(Key),
    /// End a process and keep its output
    Stop(Stop),
    /// End a process and start it again
    Restart(Restart),
    /// Restart everything that ran when the server was ended or the machine was rebooted
    Restore(Restore),
    /// End a process with all it started and remove it
    Close(One),
    /// Show this project on this terminal; ctrl+b d leaves
    #[command(alias = "a")]
    Attach(Attach),
    /// List this project's timers
    Timers(Timers),
    /// List this project's scratchpads
    Pads(Pads),
    /// Print a scratchpad, edit it, or write it from standard input
    Pad(Pad),
    /// List the shared MCP servers, or take them from an .mcp.json
    Servers(Servers),
    /// Call any tool and print its result
    Call(Call),
    /// Write a patterm.toml from what the project has
    Init,
    /// Show what this project's patterm.toml would run, and trust it
    Trust(Trust),
    /// Make, list and revoke tokens for HTTP clients
    #[command(subcommand)]
    Token(Token),
    /// Check the set-up and say what to do
    Doctor(Doctor),
    /// Register patterm with an MCP client, for use outside patterm
    Setup(Setup),
    /// Print the JSON schema of patterm.toml
    Schema,
    /// Print completions for a shell
    Completions(Completions),
    /// Write man pages into a folder
    Man(Man),
    /// Speak MCP on standard input and output, for an agent's CLI
    McpStdio(McpStdio),
    /// Tell the server what a hook of an agent's CLI was told
    #[command(hide = true)]
    Hook(Hook),
    /// Keep the panes of a project: how the server starts its keeper
    #[command(hide = true)]
    Keeper(Keeper),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A label
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it on this terminal once it is started
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) attach: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Servers {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: Option<ServersVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersVerb {
    /// End a server once its calls are answered; the next call starts it anew
    Restart {
        /// Its name
        name: String,
    },
    /// Add the servers of an .mcp.json to patterm.toml
    Import {
        /// The file; the project's .mcp.json by default
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// The preset: claude, codex, opencode, gemini, or one of yours
    pub(crate) preset: String,
    /// What it is to do first
    pub(crate) prompt: Option<String>,
    /// A label
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it on this terminal once it is started
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) attach: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Agents {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Message {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
    /// The message
    pub(crate) text: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Hook {
    /// The event's name
    pub(crate) event: String,
    /// What the CLI says of it, as JSON, where that does not come by standard input
    pub(crate) given: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Shell {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it on this terminal once it is started
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) attach: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ps {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Screen {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
    /// Go on as more comes, until the process ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The bytes as they came, escape sequences included
    #[arg(long)]
    pub(crate) raw: bool,
    /// Print JSON: the text, the offset at which more would begin, and how many older bytes are gone
    #[arg(long, conflicts_with_all = ["follow", "raw"])]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
    /// A regular expression
    #[arg(value_name = "REGEX")]
    pub(crate) pattern: String,
    /// How many lines at the most [default: 20]
    #[arg(long)]
    pub(crate) limit: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
    /// A regular expression
    #[arg(value_name = "REGEX")]
    pub(crate) pattern: String,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
    /// What to type
    pub(crate) text: String,
    /// Do not press Enter after it
    #[arg(long)]
    pub(crate) no_enter: bool,
    /// As one paste
    #[arg(long)]
    pub(crate) paste: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Key {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
    /// Keys: enter, escape, up, ctrl+c, f1, …
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,
}

/// A signal's number or name; the server knows the names.
fn signal(text: &str) -> Result<String, String> {
    let fits = match text.parse::<i64>() {
        Ok(number) => (1..=31).contains(&number),
        Err(_) => text.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !text.is_empty(),
    };
    fits.then(|| text.to_owned()).ok_or_else(|| "takes 1 to 31, or a name such as TERM".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
    /// The signal, by name or number; only TERM, INT, QUIT, KILL and HUP end a process [default: TERM]
    #[arg(long, value_name = "SIGNAL", value_parser = signal)]
    pub(crate) signal: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID", required_unless_present = "bring_back")]
    pub(crate) process: Option<String>,
    /// The spelling of `patterm restore` in 0.1
    #[arg(long, conflicts_with = "process", hide = true)]
    pub(crate) bring_back: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Agents resume their conversations where their CLIs can.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct One {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    pub(crate) process: String,
}

#[derive(Debug, Args)]
pub(crate) struct Timers {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// An id, a unique name, or the start of one; without it, what was last in front
    #[arg(value_name = "ID", required_if_eq("raw", "true"))]
    pub(crate) process: Option<String>,
    /// That process alone, full screen, its bytes as they come
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Pads {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Pad {
    /// Its name
    pub(crate) name: String,
    /// Open its file in $VISUAL or $EDITOR
    #[arg(short, long, group = "deed")]
    pub(crate) edit: bool,
    /// Add standard input at its end
    #[arg(long, group = "deed")]
    pub(crate) append: bool,
    /// Make it from standard input; with --revision, replace it
    #[arg(long, group = "deed")]
    pub(crate) write: bool,
    /// The revision that --write is to replace
    #[arg(long, requires = "write")]
    pub(crate) revision: Option<String>,
    /// Print JSON: name, content, revision
    #[arg(long, conflicts_with = "deed")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Trust it without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token and print it, once
    New(NewToken),
    /// List tokens and what they are good for
    Ls(ListTokens),
    /// End a token at once
    Revoke(RevokeToken),
}

#[derive(Debug, Args)]
pub(crate) struct NewToken {
    /// What it is called, in lists and in the audit log
    pub(crate) name: String,
    /// Only these servers; patterm's own tools are `patterm`
    #[arg(long, value_name = "SERVER", value_delimiter = ',')]
    pub(crate) servers: Option<Vec<String>>,
    /// Only these tools; `*` stands for any letters
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,
    /// Only tools that say of themselves that they change nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Good for so many days [default: until it is revoked]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=3650))]
    pub(crate) expires_days: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ListTokens {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeToken {
    /// Its name
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// The client
    pub(crate) client: SetupClient,
    /// Change its settings without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print what its settings would get, and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) print: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SetupClient {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Cursor,
    Vscode,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Where to; it is made if need be
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool's name
    pub(crate) tool: String,
    /// Its arguments, a JSON object
    #[arg(value_name = "JSON", value_parser = json_object)]
    pub(crate) arguments: Option<serde_json::Value>,
}

#[derive(Debug, Args)]
pub(crate) struct Keeper {
    /// Where to listen for the server
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,
    /// What starts a server again when it dies
    #[arg(last = true)]
    pub(crate) server: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Stay in the foreground and log to standard error
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Print where the server is found as JSON
    #[arg(long, conflicts_with = "foreground")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) http: Http,
    #[command(flatten)]
    pub(crate) limits: MessageLimit,
    #[command(flatten)]
    pub(crate) log: LogLimit,
    /// Leave the terminal and report on standard output: how the background server is started
    #[arg(long, hide = true, conflicts_with_all = ["foreground", "json"])]
    pub(crate) detached: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Http {
    /// Serve HTTP clients at this address, for example 127.0.0.1:7717; with port 0 at any that is free
    #[arg(long, value_name = "ADDRESS")]
    http: Option<std::net::SocketAddr>,
    /// The address may be one that other machines reach
    #[arg(long, requires = "http")]
    allow_remote: bool,
    /// Names of this machine under which HTTP clients may ask for it
    #[arg(long, value_name = "HOST", value_delimiter = ',', requires = "http")]
    http_hosts: Vec<String>,
    /// Sites whose pages may call it
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', requires = "http")]
    http_origins: Vec<String>,
}

impl Http {
    /// What it asks for.
    pub(crate) fn flags(&self) -> Option<patterm_host::web::HttpFlags> {
        Some(patterm_host::web::HttpFlags {
            listen: self.http?,
            allow_remote: self.allow_remote,
            hosts: self.http_hosts.clone(),
            origins: self.http_origins.clone(),
        })
    }

    /// The same for another process.
    pub(crate) fn again(&self) -> Vec<String> {
        let mut flags: Vec<_> = self.http.iter().map(|http| format!("--http={http}")).collect();
        flags.extend(self.allow_remote.then(|| "--allow-remote".to_owned()));
        flags.extend(self.http_hosts.iter().map(|host| format!("--http-hosts={host}")));
        flags.extend(self.http_origins.iter().map(|origin| format!("--http-origins={origin}")));
        flags
    }
}

#[derive(Debug, Args)]
pub(crate) struct Kill {
    /// End the servers of all your projects
    #[arg(long)]
    pub(crate) all: bool,
    /// Kill programs at once, without giving them time to end
    #[arg(long, conflicts_with = "grace")]
    pub(crate) now: bool,
    /// How long programs may take to end before they are killed [default: 5, or
    /// `end_grace_seconds` in `[limits]` of config.toml or patterm.toml]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<f64>,
}

impl Kill {
    /// The grace time in milliseconds, where one is asked for.
    pub(crate) fn grace_ms(&self) -> anyhow::Result<Option<u64>> {
        if self.now {
            return Ok(Some(0));
        }
        let Some(seconds) = self.grace else { return Ok(None) };
        let grace = std::time::Duration::try_from_secs_f64(seconds).ok();
        let longest = patterm_host::shutdown::LONGEST_GRACE;
        let grace = grace.filter(|grace| *grace <= longest).ok_or_else(|| {
            anyhow::anyhow!("--grace takes 0 to {} seconds, not {seconds}", longest.as_secs())
        })?;
        Ok(u64::try_from(grace.as_millis()).ok())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpStdio {
    /// The server's socket [env: PATTERM_SOCKET]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The key of the project meant [env: PATTERM_PROJECT_KEY]
    #[arg(long, value_name = "KEY", value_parser = project_key)]
    pub(crate) project_key: Option<String>,
    /// A file that holds the caller's identity token [env: PATTERM_IDENTITY_FILE]
    #[arg(long, value_name = "PATH")]
    pub(crate) identity_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: MessageLimit,
}

/// Takes a time that a wait may have.
fn seconds(text: &str) -> Result<f64, String> {
    /// As the server takes it.
    const MOST: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MOST).contains(&seconds) => Ok(seconds),
        _ => Err(format!("it takes 0 to {MOST} seconds")),
    }
}

/// Takes a tool's arguments.
fn json_object(text: &str) -> Result<serde_json::Value, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if value.is_object() {
        Ok(value)
    } else {
        Err("it takes a JSON object, as in {\"a\": 1}".into())
    }
}

/// Takes the key of a project, wherever it comes from.
pub(crate) fn project_key(text: &str) -> Result<String, &'static str> {
    match patterm_store::project::is_key(text) {
        true => Ok(text.to_owned()),
        false => Err("a project key has 16 hexadecimal digits"),
    }
}

#[derive(Debug, Args)]
pub(crate) struct MessageLimit {
    /// The longest message taken, in bytes [env: PATTERM_MAX_MESSAGE_BYTES] [default: 67108864]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1024..))]
    max_message_bytes: Option<u64>,
}

impl MessageLimit {
    /// The limit that the flag, else the environment, else the default sets.
    pub(crate) fn bytes(&self) -> anyhow::Result<usize> {
        Ok(self.given()?.unwrap_or(patterm_wire::DEFAULT_MESSAGE_LIMIT))
    }

    /// The limit that the flag, else the environment sets.
    pub(crate) fn given(&self) -> anyhow::Result<Option<usize>> {
        let bytes = limit(self.max_message_bytes, "PATTERM_MAX_MESSAGE_BYTES", 1024)?;
        Ok(bytes.map(usize::try_from).transpose()?)
    }
}

#[derive(Debug, Args)]
pub(crate) struct LogLimit {
    /// Output kept on disk for each process, in bytes [env: PATTERM_MAX_LOG_BYTES] [default: 67108864]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(LEAST_LOG_BYTES..))]
    max_log_bytes: Option<u64>,
}

impl LogLimit {
    /// The limit that the flag, else the environment sets.
    pub(crate) fn bytes(&self) -> anyhow::Result<Option<u64>> {
        limit(self.max_log_bytes, "PATTERM_MAX_LOG_BYTES", LEAST_LOG_BYTES)
    }
}

/// A limit that a flag, else a variable of the environment sets.
fn limit(flag: Option<u64>, variable: &str, least: u64) -> anyhow::Result<Option<u64>> {
    let (None, Ok(text)) = (flag, std::env::var(variable)) else { return Ok(flag) };
    match text.parse::<u64>() {
        Ok(bytes) if bytes >= least => Ok(Some(bytes)),
        _ => anyhow::bail!("{variable} takes a number of bytes from {least} up, not {text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_hold_together() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
