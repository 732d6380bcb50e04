//! The clients: where their settings are, and what an MCP server looks like in them.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value, json};

use super::SetupClient;

/// A client's settings.
#[derive(Debug)]
pub(super) struct ClientSettings {
    pub(super) title: &'static str,
    pub(super) path: PathBuf,
    pub(super) form: Form,
}

/// The format of the settings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// JSON, with servers under this key.
    Json { key: &'static str, entry: fn(&str) -> Value },
    /// TOML, with servers under `mcp_servers`.
    Toml,
}

impl ClientSettings {
    /// The entry for patterm.
    pub(super) fn entry(&self, program: &str) -> Value {
        match self.form {
            Form::Json { entry, .. } => entry(program),
            Form::Toml => Value::Null,
        }
    }
}

/// Where a client's settings are for this user.
pub(super) fn of(client: SetupClient) -> anyhow::Result<ClientSettings> {
    let home =
        folder("HOME").context("HOME is not set, so the client's settings cannot be found")?;
    let config = folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    let typed = |program: &str| json!({"type": "stdio", "command": program, "args": ["mcp-stdio"]});
    let plain = |program: &str| json!({"command": program, "args": ["mcp-stdio"]});
    let local = |program: &str| json!({"type": "local", "command": [program, "mcp-stdio"], "enabled": true});
    let json = |key, entry| Form::Json { key, entry };
    let (title, path, form) = match client {
        SetupClient::Claude => {
            let at = folder("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.clone());
            ("Claude Code", at.join(".claude.json"), json("mcpServers", typed))
        }
        SetupClient::Codex => {
            let at = folder("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
            ("Codex", at.join("config.toml"), Form::Toml)
        }
        SetupClient::Opencode => {
            ("opencode", config.join("opencode/opencode.json"), json("mcp", local))
        }
        SetupClient::Gemini => {
            ("Gemini CLI", home.join(".gemini/settings.json"), json("mcpServers", plain))
        }
        SetupClient::Cursor => ("Cursor", home.join(".cursor/mcp.json"), json("mcpServers", plain)),
        SetupClient::Vscode => {
            ("VS Code", config.join("Code/User/mcp.json"), json("servers", typed))
        }
    };
    Ok(ClientSettings { title, path, form })
}

fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
