//! The agents' CLIs under test: their homes, so that none asks anything at its first start, and what
//! the tests must know of each.

use std::path::Path;

use serde_json::{Value, json};

use super::mock::Mock;
use crate::clients::installed;
use crate::support::Place;

/// A CLI by the name of its preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cli {
    pub(super) name: &'static str,
    package: &'static str,
    /// The interface of the model that it uses.
    pub(super) api: &'static str,
    /// Settings that make it ask before its shell runs anything, and what its model then does to
    /// make a file `made`.
    pub(super) asking: &'static str,
    pub(super) ask: &'static str,
    /// The keys with which a person says yes to that, and with which one empties the prompt.
    pub(super) yes: &'static str,
    pub(super) clear: &'static str,
    /// How often Escape ends a turn.
    pub(super) escapes: usize,
}

pub(super) const CLAUDE: Cli = Cli {
    name: "claude",
    package: "@anthropic-ai/claude-code",
    api: "anthropic-messages",
    asking: "[agents.claude]\nargs = [\"--permission-mode\", \"manual\"]\n",
    ask: "mock: shell touch made",
    yes: "enter",
    clear: "ctrl+c",
    escapes: 1,
};

pub(super) const CODEX: Cli = Cli {
    name: "codex",
    package: "@openai/codex",
    api: "openai-responses",
    asking: "",
    ask: "mock: call exec_command {\"cmd\": \"touch made\", \"sandbox_permissions\": \
        \"require_escalated\", \"justification\": \"It must.\"}",
    yes: "enter",
    clear: "ctrl+c",
    escapes: 1,
};

pub(super) const OPENCODE: Cli = Cli {
    name: "opencode",
    package: "opencode-ai",
    api: "openai-chat",
    asking: "[agents.opencode.env]\nOPENCODE_PERMISSION = '{\"bash\": \"ask\"}'\n",
    ask: "mock: shell touch made",
    yes: "enter",
    clear: "ctrl+c",
    escapes: 2,
};

pub(super) const GEMINI: Cli = Cli {
    name: "gemini",
    package: "@google/gemini-cli",
    api: "gemini",
    asking: "",
    ask: "mock: shell touch made",
    yes: "enter",
    clear: "ctrl+c",
    escapes: 1,
};

/// A key of nothing; claude wants it to be known.
const KEY: &str = "sk-mock-0123456789-abcdefghij";

impl Cli {
    /// Its version, as it was installed.
    pub(super) fn version(self) -> String {
        let package = Path::new(&installed()).join("node_modules").join(self.package);
        let text = std::fs::read_to_string(package.join("package.json")).unwrap();
        let package: Value = serde_json::from_str(&text).unwrap();
        package["version"].as_str().unwrap().to_owned()
    }
}

/// Lets every CLI find itself at home in a place, with the mock as its model and its only way out.
pub(super) fn settle(place: &mut Place, mock: &Mock, settings: &str) {
    let url = mock.url.as_str();
    let programs = Path::new(&installed()).join("node_modules/.bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [programs].into_iter().chain(std::env::split_paths(&path));
    place.set("PATH", std::env::join_paths(folders).unwrap());
    let tmp = place.folder("tmp");
    place.set("TMPDIR", tmp);
    for (name, value) in [
        ("HTTP_PROXY", url),
        ("HTTPS_PROXY", url),
        ("NO_PROXY", "127.0.0.1,localhost"),
        ("LANG", "C.UTF-8"),
        ("ANTHROPIC_BASE_URL", url),
        ("ANTHROPIC_API_KEY", KEY),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("MOCK_KEY", "none"),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("npm_config_offline", "true"),
        ("GOOGLE_GEMINI_BASE_URL", url),
        ("GEMINI_API_KEY", "none"),
        ("GEMINI_MODEL", "gemini-2.5-flash"),
    ] {
        place.set(name, value);
    }
    let project = place.project().root().to_str().unwrap().to_owned();
    // A folder with something in it, as people have.
    write(place, "project/README.md", "# A project\n");
    write(place, "home/.config/patterm/config.toml", settings);
    write(place, "home/.claude.json", &claude(&project).to_string());
    write(place, "home/.codex/config.toml", &codex(&project, url));
    write(place, "home/.config/opencode/opencode.json", &opencode(url).to_string());
    write(place, "home/.gemini/settings.json", &gemini().to_string());
    let trusted = json!({ &project: "TRUST_FOLDER" });
    write(place, "home/.gemini/trustedFolders.json", &trusted.to_string());
}

fn write(place: &Place, name: &str, text: &str) {
    let path = place.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn claude(project: &str) -> Value {
    json!({
        "hasCompletedOnboarding": true,
        "numStartups": 5,
        "lastReleaseNotesSeen": CLAUDE.version(),
        "hasSeenAutoDefaultNotice": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": {project: {"hasTrustDialogAccepted": true}},
        "officialMarketplaceAutoInstallAttempted": true,
        "officialMarketplaceAutoInstalled": true,
    })
}

fn codex(project: &str, url: &str) -> String {
    format!(
        r#"
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[features]
apps = false
plugins = false
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
[projects."{project}"]
trust_level = "trusted"
"#
    )
}

fn opencode(url: &str) -> Value {
    json!({
        "autoupdate": false,
        "share": "disabled",
        "model": "mock/mock-model",
        "small_model": "mock/mock-model",
        "provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "mock",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": "none"},
            "models": {"mock-model": {"name": "mock-model", "tool_call": true}},
        }},
    })
}

fn gemini() -> Value {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
    })
}
