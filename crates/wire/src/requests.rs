//! patterm's own requests that need no module of their own: trust, tokens, HTTP, hooks, starting and ending
//! servers.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::method::{Empty, Method};

/// `patterm kill`: ends the server and everything in it.
#[derive(Debug)]
pub enum Shutdown {}

impl Method for Shutdown {
    const NAME: &'static str = "patterm/shutdown";
    const PERSON_ONLY: Option<&'static str> = Some("end the server");
    type Params = ShutdownRequest;
    type Result = ShutdownBegun;
}

/// `patterm upgrade`: ends the server but nothing in it; the next server takes over.
#[derive(Debug)]
pub enum Handover {}

impl Method for Handover {
    const NAME: &'static str = "patterm/handover";
    const PERSON_ONLY: Option<&'static str> = Some("end the server");
    type Params = Empty;
    type Result = ShutdownBegun;
}

/// How to end the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownRequest {
    /// The grace period in milliseconds; 0 kills at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// The server has begun to end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownBegun {
    /// The file with the progress report. A server of 0.1.0 writes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<PathBuf>,
    /// The grace period in milliseconds.
    #[serde(default)]
    pub grace_ms: u64,
}

/// Dismisses a process's request for attention.
#[derive(Debug)]
pub enum Dismiss {}

impl Method for Dismiss {
    const NAME: &'static str = "patterm/dismiss";
    const PERSON_ONLY: Option<&'static str> = Some("dismiss a request for attention");
    type Params = DismissRequest;
    type Result = Empty;
}

/// Whose request to dismiss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DismissRequest {
    /// The id of the process.
    pub process_id: String,
}

/// Chooses an option of the dialog that an agent's CLI shows. Its keys are typed as if the person had typed them
/// into the pane, but only if the dialog is still the one with this version.
#[derive(Debug)]
pub enum AnswerDialog {}

impl Method for AnswerDialog {
    const NAME: &'static str = "patterm/answer";
    const PERSON_ONLY: Option<&'static str> = Some("answer a dialog");
    type Params = DialogAnswer;
    type Result = DialogAnswered;
}

/// Which option to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogAnswer {
    /// The id of the process.
    pub process_id: String,
    /// The version of the dialog that the person saw.
    pub dialog: String,
    /// The option.
    pub option: OptionRef,
}

/// An option of a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`option` must be the number of an option, counted from 1, or its label"
)]
pub enum OptionRef {
    /// Its place; the first is 1.
    Number(usize),
    /// Its label.
    Label(String),
}

/// The outcome of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogAnswered {
    /// Whether the dialog took it.
    pub state: AnswerState,
    /// The evidence, or why it was refused.
    pub reason: String,
}

/// Whether a dialog took an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerState {
    /// It was typed, and the dialog is gone.
    Accepted,
    /// It was typed, but the dialog is still open.
    Unconfirmed,
    /// No option was chosen: the dialog is another one, for example.
    Refused,
    /// A value that a newer server uses, as it was sent.
    #[serde(untagged)]
    Other(String),
}

/// `patterm messages`: the messages with their whole texts.
#[derive(Debug)]
pub enum Messages {}

impl Method for Messages {
    const NAME: &'static str = "patterm/messages";
    type Params = MessagesRequest;
    type Result = MessageTexts;
}

/// Which messages to return.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesRequest {
    /// Only those from and to this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// Only the one with this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<u64>,
}

/// The messages that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageTexts<M = MessageText> {
    /// Oldest first.
    pub messages: Vec<M>,
}

/// A message with its whole text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageText {
    /// Its number.
    pub message_id: u64,
    /// `message`, `first_prompt` or `timer`.
    pub kind: String,
    /// The sender: a process id, a tag like `human`, or a timer's id.
    pub from: String,
    /// The process that gets it.
    pub to: String,
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
    /// Its text, or its beginning if the rest is no longer kept.
    pub text: String,
    /// Whether that is all of it.
    pub whole: bool,
    /// `delivered`, `queued` or `stalled`.
    pub state: String,
    /// What the state is based on.
    pub evidence: String,
}

/// `patterm trust`: trusts one content of the project file.
#[derive(Debug)]
pub enum Trust {}

impl Method for Trust {
    const NAME: &'static str = "patterm/trust";
    const PERSON_ONLY: Option<&'static str> = Some("trust a project file");
    type Params = TrustRequest;
    type Result = Empty;
}

/// Which content to trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRequest {
    /// The hash of the content that the person has seen.
    pub hash: String,
}

/// `patterm token`: creates, lists and revokes the tokens of HTTP clients.
#[derive(Debug)]
pub enum Token {}

impl Method for Token {
    const NAME: &'static str = "patterm/token";
    const PERSON_ONLY: Option<&'static str> = Some("create or revoke a token");
    type Params = TokenRequest;
    type Result = TokenResult;
}

/// What to do with tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenRequest {
    /// Create one.
    New(Grant),
    /// List them.
    List,
    /// Revoke the token of this name.
    Revoke(String),
}

/// A token's name and what it may be used for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The servers it may use, patterm's own tools as `patterm`; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// The tools it may use, with `*` as a wildcard; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Only tools that are annotated as read-only.
    #[serde(default)]
    pub read_only: bool,
    /// When it expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// The result for tokens; which member is set depends on the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenResult<T = TokenInfo> {
    /// The new token. It is never shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The tokens there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<T>>,
}

/// A token in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// Its name and what it may be used for.
    #[serde(flatten)]
    pub grant: Grant,
    /// When it was created, in seconds since 1970.
    pub made_at: u64,
    /// Whether it has expired.
    pub expired: bool,
}

/// `patterm serve --http` with a server that runs already: opens its HTTP endpoint.
#[derive(Debug)]
pub enum OpenHttp {}

impl Method for OpenHttp {
    const NAME: &'static str = "patterm/http";
    const PERSON_ONLY: Option<&'static str> = Some("open the HTTP endpoint");
    type Params = HttpFlags;
    type Result = HttpOpened;
}

/// The flags of `patterm serve --http`. They override the settings, and survive a crash of the server but
/// not its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpFlags {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The address may be one that other machines can reach.
    #[serde(default)]
    pub allow_remote: bool,
    /// Additional host names that clients may use.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Additional origins whose pages may call it.
    #[serde(default)]
    pub origins: Vec<String>,
}

/// The HTTP endpoint is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpOpened {
    /// Its address.
    pub http: SocketAddr,
}

/// `patterm hook`: passes on an event that an agent's CLI gave to its hook.
#[derive(Debug)]
pub enum Hook {}

impl Method for Hook {
    const NAME: &'static str = "patterm/hook";
    type Params = HookEvent;
    type Result = Empty;
}

/// An event from an agent's CLI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEvent {
    /// Its name.
    pub event: String,
    /// The data that came with it.
    #[serde(default, rename = "given")]
    pub data: Value,
    /// When the CLI reported it, in milliseconds since 1970; 0.1.x does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
}

/// From inside a pane: asks this project's server to start another project's server outside of all panes.
#[derive(Debug)]
pub enum StartServer {}

impl Method for StartServer {
    const NAME: &'static str = "patterm/start";
    type Params = StartRequest;
    type Result = ServerEntry;
}

/// Which server to start. It names no program and no HTTP endpoint: only a person chooses those.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRequest {
    /// The other project's folder.
    pub folder: PathBuf,
    /// The longest message that the server should accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<usize>,
    /// The longest log that it should keep for each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
}

/// A running server and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEntry {
    /// The server's process id.
    pub pid: u32,
    /// The socket that it listens on.
    pub socket: PathBuf,
    /// The project's folder.
    pub project: PathBuf,
    /// The project's key.
    pub key: String,
    /// The server's version.
    pub patterm: String,
    /// When it started, in seconds since 1970.
    pub started_at: u64,
    /// The address of its HTTP endpoint, if that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<SocketAddr>,
}
