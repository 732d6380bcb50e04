//! The environment of the recording: a small project in its own home, configured agents' CLIs, and their
//! model.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use serde_json::{Value, json};

/// A fake API key; claude accepts only a known one.
const KEY: &str = "sk-mock-0123456789-abcdefghij";

/// The project's files.
const FILES: [(&str, &str); 6] = [
    (
        "package.json",
        "{\n  \"name\": \"shop\",\n  \"type\": \"module\",\n  \"scripts\": {\n    \"dev\": \"node \
         server.mjs\",\n    \"test\": \"node --test --watch\"\n  }\n}\n",
    ),
    (
        "src/vat.mjs",
        "export const cents = (price) => Math.round(price * 100);\n\n\
         // Rounded once, on the total.\n\
         export const gross = (lines, rate) =>\n  \
         Math.round(lines.reduce((sum, net) => sum + cents(net), 0) * (1 + rate));\n",
    ),
    (
        "test/vat.test.mjs",
        "import assert from \"node:assert\";\nimport test from \"node:test\";\n\
         import { cents, gross } from \"../src/vat.mjs\";\n\n\
         test(\"prices become cents\", () => assert.equal(cents(9.99), 999));\n\
         test(\"an empty invoice costs nothing\", () => assert.equal(gross([], 0.19), 0));\n\
         test(\"one line\", () => assert.equal(gross([1], 0.19), 119));\n\
         test(\"a thousand lines do not drift\", () =>\n  \
         assert.equal(gross(Array(1000).fill(0.99), 0.19), 117810));\n",
    ),
    (
        "server.mjs",
        "import { createServer } from \"node:http\";\n\
         const server = createServer((request, response) => response.end(\"shop\"));\n\
         server.listen(0, \"127.0.0.1\", () =>\n  \
         console.log(`\\n  shop is ready: http://localhost:${server.address().port}/\\n`));\n",
    ),
    ("README.md", "# shop\n"),
    (".gitignore", "node_modules\n"),
];

/// The folders and the model; both end when this is dropped.
pub(crate) struct Harness {
    top: tempfile::TempDir,
    /// The name of the project's folder.
    name: &'static str,
    path: std::ffi::OsString,
    model: Option<Model>,
}

/// The process that answers the agents, and its address.
struct Model {
    process: Child,
    url: String,
}

impl Harness {
    /// A project without agents.
    pub(crate) fn plain(name: &'static str) -> anyhow::Result<Self> {
        let harness = Self::begin(name, None)?;
        harness.write(&format!("{name}/README.md"), &format!("# {name}\n"))?;
        harness.settle()?;
        Ok(harness)
    }

    /// A project with agents; `clients` is where their CLIs are installed.
    pub(crate) fn with_agents(name: &'static str, clients: &Path) -> anyhow::Result<Self> {
        let mut harness = Self::begin(name, Some(clients))?;
        let model = start_model()?;
        harness.settle_agents(clients, &model.url)?;
        harness.model = Some(model);
        harness.settle()?;
        Ok(harness)
    }

    fn begin(name: &'static str, clients: Option<&Path>) -> anyhow::Result<Self> {
        let top = tempfile::tempdir()?;
        let programs = std::env::current_exe()?.parent().context("no folder")?.to_owned();
        let system = std::env::var_os("PATH").unwrap_or_default();
        let clients = clients.map(|clients| clients.join("node_modules/.bin"));
        let first = clients.into_iter().chain([programs]);
        let folders = first.chain(std::env::split_paths(&system));
        Ok(Self { top, name, path: std::env::join_paths(folders)?, model: None })
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.top.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.home().join(self.name)
    }

    /// A program in the project, with an environment independent of this machine.
    #[expect(clippy::disallowed_methods, reason = "starts the recorded programs")]
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.project()).env("PATH", &self.path);
        command.env("HOME", self.home()).env("XDG_RUNTIME_DIR", self.top.path().join("run"));
        command.envs([("SHELL", "/bin/bash"), ("LANG", "C.UTF-8"), ("COLORTERM", "truecolor")]);
        let Some(model) = &self.model else { return command };
        let url = model.url.as_str();
        command.envs([
            ("HTTP_PROXY", url),
            ("HTTPS_PROXY", url),
            ("NO_PROXY", "127.0.0.1,localhost"),
            ("ANTHROPIC_BASE_URL", url),
            ("ANTHROPIC_API_KEY", KEY),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("MOCK_KEY", "none"),
        ]);
        command
    }

    /// The person's shell, the runtime folder, and a Git history.
    fn settle(&self) -> anyhow::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        self.write(".bashrc", "PS1='\\w $ '\n")?;
        let run = self.top.path().join("run");
        std::fs::create_dir(&run)?;
        std::fs::set_permissions(&run, PermissionsExt::from_mode(0o700))?;
        self.git()
    }

    /// The project's files and the settings of the CLIs.
    fn settle_agents(&self, clients: &Path, url: &str) -> anyhow::Result<()> {
        let project = self.project().to_str().context("the folder is not UTF-8")?.to_owned();
        for (name, text) in FILES {
            self.write(&format!("{}/{name}", self.name), text)?;
        }
        let package = clients.join("node_modules/@anthropic-ai/claude-code/package.json");
        let package: Value = serde_json::from_slice(&std::fs::read(package)?)?;
        let claude = json!({
            "hasCompletedOnboarding": true,
            "numStartups": 5,
            "lastReleaseNotesSeen": package["version"],
            "hasSeenAutoDefaultNotice": true,
            "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
            "projects": {&project: {"hasTrustDialogAccepted": true}},
            "officialMarketplaceAutoInstallAttempted": true,
            "officialMarketplaceAutoInstalled": true,
        });
        self.write(".claude.json", &claude.to_string())?;
        let codex = format!(
            "model = \"mock-model\"\nmodel_provider = \"mock\"\n\
             check_for_update_on_startup = false\n[analytics]\nenabled = false\n[feedback]\n\
             enabled = false\n[features]\napps = false\nplugins = false\n\
             [model_providers.mock]\nname = \"mock\"\nbase_url = \"{}/v1\"\n\
             env_key = \"MOCK_KEY\"\nwire_api = \"responses\"\n[projects.\"{project}\"]\n\
             trust_level = \"trusted\"\n",
            url
        );
        self.write(".codex/config.toml", &codex)
    }

    /// A Git history, and a remote to push to.
    fn git(&self) -> anyhow::Result<()> {
        for words in [
            "init --quiet --bare ../remote.git",
            "init --quiet --initial-branch vat-once .",
            "config user.name you",
            "config user.email you@shop.example",
            "remote add origin ../remote.git",
            "add .",
            "commit --quiet --message vat:once",
        ] {
            let done = self.command("git").args(words.split(' ')).status()?;
            anyhow::ensure!(done.success(), "git {words}: {done}");
        }
        Ok(())
    }

    /// Writes a file in the home folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.home().join(name);
        std::fs::create_dir_all(path.parent().context("no folder")?)?;
        Ok(std::fs::write(path, text)?)
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = self.command("patterm").arg("kill").stdout(Stdio::null()).status();
        if let Some(Model { process, .. }) = &mut self.model {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "starts the recorded programs")]
fn start_model() -> anyhow::Result<Model> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/picture/model.mjs");
    let mut command = Command::new("node");
    let mut model = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(model.stdout.take().context("no output")?).read_line(&mut line)?;
    let told: Value = serde_json::from_str(&line)?;
    Ok(Model { process: model, url: told["url"].as_str().context("no address")?.to_owned() })
}
