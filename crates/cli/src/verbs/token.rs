//! `patterm token`: tokens for HTTP clients.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use patterm_host::web::{TokenError, check_token_name};
use patterm_wire::requests::{Grant, Token, TokenInfo, TokenRequest, TokenResult};
use patterm_wire::servers::{Servers, ServersRequest};
use serde_json::Value;

use super::trust;
use crate::client::{Client, ServerReply};
use crate::print::{one_line, print, print_json};

const DAY: u64 = 24 * 3600;

/// The names of patterm's own tools and of the servers in bots' containers.
const OWN: &str = "patterm";
const BOTS: &str = "bots";

/// Create, list and revoke tokens for HTTP clients
#[derive(Debug, Args)]
pub(crate) struct TokenVerb {
    #[command(subcommand)]
    verb: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Create a token and print it, once
    New(NewToken),
    /// List tokens and what they may be used for
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token at once
    Revoke {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Args)]
struct NewToken {
    /// Its name, in lists and in the audit log
    #[arg(value_parser = name)]
    name: String,
    /// Only these servers; patterm's own tools are `patterm`
    #[arg(long, value_name = "SERVER", value_delimiter = ',')]
    servers: Option<Vec<String>>,
    /// Only these tools; `*` is a wildcard
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// Only tools that are annotated as read-only
    #[arg(long)]
    read_only: bool,
    /// Expire after this many days [default: never]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=3650))]
    expires_days: Option<u64>,
}

/// A name that a token can have.
fn name(text: &str) -> Result<String, TokenError> {
    check_token_name(text).map(|()| text.to_owned())
}

impl TokenVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        trust::for_a_person("create or revoke a token")?;
        match self.verb {
            TokenCommand::New(options) => new(options),
            TokenCommand::Ls { json } => list(json),
            TokenCommand::Revoke { name } => {
                request(&TokenRequest::Revoke(name.clone()))?;
                print(&format!("{name} is revoked; clients that use it are no longer served"));
                Ok(())
            }
        }
    }
}

/// Reads the tokens, or changes them.
fn request(request: &TokenRequest) -> anyhow::Result<ServerReply<TokenResult>> {
    let client = match request {
        TokenRequest::List => Client::connect_to_read(),
        _ => Client::connect(),
    };
    client?.call::<Token>(request)
}

fn new(options: NewToken) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let unknown = unknown_servers(options.servers.as_deref().unwrap_or_default())?;
    let grant = Grant {
        name: options.name,
        servers: options.servers,
        tools: options.tools,
        read_only: options.read_only,
        expires_at: options.expires_days.map(|days| now + days * DAY),
    };
    let created = request(&TokenRequest::New(grant))?.result;
    print(&created.token.unwrap_or_default());
    // On standard error: a script reads only the token from standard output.
    let advice = "It is shown only this once. Clients send it as `Authorization: Bearer TOKEN`.";
    let _ = writeln!(std::io::stderr(), "{advice}");
    if let Some(warning) = unknown {
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    Ok(())
}

/// A warning about servers that do not exist: a token may be created before its server, but it may also be a
/// typo.
fn unknown_servers(named: &[String]) -> anyhow::Result<Option<String>> {
    let is_own = |name: &String| {
        [OWN, BOTS].contains(&name.as_str()) || name.starts_with(&format!("{BOTS}/"))
    };
    if named.iter().all(is_own) {
        return Ok(None);
    }
    let reply = Client::connect_to_read()?.query::<Servers>(&ServersRequest::default())?;
    let mut known: Vec<_> = reply.result.servers.into_iter().map(|server| server.name).collect();
    known.dedup();
    let unknown: Vec<_> =
        named.iter().filter(|name| !is_own(name) && !known.contains(name)).collect();
    if unknown.is_empty() {
        return Ok(None);
    }
    let listed = |names: &[&String]| {
        names.iter().map(|name| format!("`{}`", one_line(name))).collect::<Vec<_>>().join(", ")
    };
    known.insert(0, OWN.to_owned());
    Ok(Some(format!(
        "patterm: there is no server {} at the moment; the servers are {}. The token can be used for it once it \
         exists; `patterm token revoke` revokes the token.",
        listed(&unknown),
        listed(&known.iter().collect::<Vec<_>>())
    )))
}

fn list(json: bool) -> anyhow::Result<()> {
    let reply = request(&TokenRequest::List)?;
    if json {
        return print_json(&reply.read_as::<TokenResult<Value>>()?.tokens);
    }
    let tokens = reply.result.tokens.unwrap_or_default();
    if tokens.is_empty() {
        print("no tokens; `patterm token new NAME` creates one");
        return Ok(());
    }
    let width = tokens.iter().map(|token| token.grant.name.len()).max().unwrap_or_default();
    for token in tokens {
        let (name, scope) = (one_line(&token.grant.name), one_line(&scope(&token)?));
        print(&format!("{name:width$}  {scope}"));
    }
    Ok(())
}

/// What a token may be used for.
fn scope(token: &TokenInfo) -> anyhow::Result<String> {
    let Grant { servers, tools, read_only, expires_at, .. } = &token.grant;
    let names = |what: &str, names: &Option<Vec<String>>| match names {
        Some(names) => format!("{what}: {}", names.join(", ")),
        None => format!("all {what}"),
    };
    let mut parts = vec![names("servers", servers), names("tools", tools)];
    if *read_only {
        parts.push("read-only".into());
    }
    if let Some(at) = expires_at {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        parts.push(match token.expired {
            true => "expired".into(),
            false => format!("{} days left", (at.saturating_sub(now)).div_ceil(DAY)),
        });
    }
    Ok(parts.join("; "))
}
