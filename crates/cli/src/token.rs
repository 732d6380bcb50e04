//! `patterm token`: who may come in over HTTP.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use patterm_host::TOKEN_METHOD;
use patterm_host::web::{Grant, TokenInfo, TokenRequest};
use patterm_wire::servers::{METHOD, ServersRequest, ServersResult};
use serde_json::Value;

use crate::args::{NewToken, Token};
use crate::client::Client;
use crate::said::{one_line, say, say_json};
use crate::trust;

const DAY: u64 = 24 * 3600;

/// The names by which tokens have patterm's own tools, and the servers in bots' containers.
const OWN: &str = "patterm";
const BOTS: &str = "bots";

pub(crate) fn run(deed: &Token) -> anyhow::Result<()> {
    trust::for_a_person("makes or revokes a token")?;
    match deed {
        Token::New(options) => new(options),
        Token::Ls(options) => list(options.json),
        Token::Revoke(options) => {
            ask(&TokenRequest::Revoke(options.name.clone()))?;
            say(&format!("{} is revoked; whoever used it is not served any more", options.name));
            Ok(())
        }
    }
}

fn ask(wish: &TokenRequest) -> anyhow::Result<Value> {
    Client::connect()?.call(TOKEN_METHOD, &serde_json::to_value(wish)?)
}

fn new(options: &NewToken) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let grant = Grant {
        name: options.name.clone(),
        servers: options.servers.clone(),
        tools: options.tools.clone(),
        read_only: options.read_only,
        expires_at: options.expires_days.map(|days| now + days * DAY),
    };
    let unknown = unknown_servers(options.servers.as_deref().unwrap_or_default())?;
    let made = ask(&TokenRequest::New(grant))?;
    say(made["token"].as_str().unwrap_or_default());
    // Beside the token, for whoever reads along; a script takes standard output alone.
    let advice = "It is shown this once. Clients send it as `Authorization: Bearer TOKEN`.";
    let _ = writeln!(std::io::stderr(), "{advice}");
    if let Some(warning) = unknown {
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    Ok(())
}

/// A warning about servers that do not exist: a token may be made before its server, and a mistyped name
/// looks the same.
fn unknown_servers(named: &[String]) -> anyhow::Result<Option<String>> {
    let is_of_ours = |name: &String| {
        [OWN, BOTS].contains(&name.as_str()) || name.starts_with(&format!("{BOTS}/"))
    };
    if named.iter().all(is_of_ours) {
        return Ok(None);
    }
    let answer =
        Client::connect()?.look(METHOD, &serde_json::to_value(ServersRequest::default())?)?;
    let servers: ServersResult = serde_json::from_value(answer)?;
    let mut there: Vec<_> = servers.servers.into_iter().map(|server| server.name).collect();
    there.dedup();
    let unknown: Vec<_> =
        named.iter().filter(|name| !is_of_ours(name) && !there.contains(name)).collect();
    if unknown.is_empty() {
        return Ok(None);
    }
    let listed = |names: &[&String]| {
        names.iter().map(|name| format!("`{}`", one_line(name))).collect::<Vec<_>>().join(", ")
    };
    there.insert(0, OWN.to_owned());
    Ok(Some(format!(
        "patterm: there is no server {} now; there are {}. The token is good for it once there is one; \
         `patterm token revoke` ends the token.",
        listed(&unknown),
        listed(&there.iter().collect::<Vec<_>>())
    )))
}

fn list(json: bool) -> anyhow::Result<()> {
    let mut listed = ask(&TokenRequest::List)?;
    let listed = listed["tokens"].take();
    if json {
        return say_json(&listed);
    }
    let tokens: Vec<TokenInfo> = serde_json::from_value(listed)?;
    if tokens.is_empty() {
        say("no tokens; `patterm token new NAME` makes one");
        return Ok(());
    }
    let width = tokens.iter().map(|token| token.grant.name.len()).max().unwrap_or_default();
    for token in tokens {
        let (name, good_for) = (one_line(&token.grant.name), one_line(&good_for(&token)?));
        say(&format!("{name:width$}  {good_for}"));
    }
    Ok(())
}

/// What a token is good for, in words.
fn good_for(token: &TokenInfo) -> anyhow::Result<String> {
    let Grant { servers, tools, read_only, expires_at, .. } = &token.grant;
    let names = |what: &str, names: &Option<Vec<String>>| match names {
        Some(names) => format!("{what}: {}", names.join(", ")),
        None => format!("all {what}"),
    };
    let mut words = vec![names("servers", servers), names("tools", tools)];
    if *read_only {
        words.push("read-only".into());
    }
    if let Some(at) = expires_at {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        words.push(match token.expired {
            true => "expired".into(),
            false => format!("{} days left", (at.saturating_sub(now)).div_ceil(DAY)),
        });
    }
    Ok(words.join("; "))
}
