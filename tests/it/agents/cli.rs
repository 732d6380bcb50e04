//! The agents' CLIs under test. Their data is beside their recordings: `cli.json` has the fields below and
//! environment variables, `home/` the files with which a CLI asks nothing at its first start.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use super::mock::Mock;
use crate::clients::installed;
use crate::support::Place;

/// A CLI, by the name of its preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cli {
    pub(super) name: &'static str,
}

pub(super) const CLAUDE: Cli = Cli::named("claude");
pub(super) const CODEX: Cli = Cli::named("codex");
pub(super) const OPENCODE: Cli = Cli::named("opencode");
pub(super) const GEMINI: Cli = Cli::named("gemini");

/// What the tests know about a CLI.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CliData {
    /// Its npm package.
    package: String,
    /// The model API that it uses.
    pub(super) api: String,
    /// Settings that make it ask before its shell runs anything.
    pub(super) asking: String,
    /// The prompt that makes its model create a file `made`, so that it asks.
    pub(super) ask: String,
    /// The key with which a person approves that.
    pub(super) yes: String,
    /// The key with which a person clears the prompt.
    pub(super) clear: String,
    /// How many times Escape must be pressed to end a turn.
    pub(super) escapes: usize,
    /// Environment variables.
    env: BTreeMap<String, String>,
}

/// The data of each CLI is read once.
static DATA: Mutex<BTreeMap<&str, &CliData>> = Mutex::new(BTreeMap::new());

impl Deref for Cli {
    type Target = CliData;

    fn deref(&self) -> &CliData {
        let mut data = DATA.lock().unwrap_or_else(PoisonError::into_inner);
        data.entry(self.name).or_insert_with(|| {
            let text = std::fs::read_to_string(recordings().join(self.name).join("cli.json"));
            &*Box::leak(Box::new(serde_json::from_str(&text.unwrap()).unwrap()))
        })
    }
}

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/recordings")
}

/// An API key that no service accepts; claude wants its end to be approved.
const KEY: &str = "sk-mock-0123456789-abcdefghij";

impl Cli {
    pub(super) const fn named(name: &'static str) -> Self {
        Self { name }
    }

    /// Its installed version.
    pub(super) fn version(self) -> String {
        let package = Path::new(&installed()).join("node_modules").join(&self.package);
        let text = std::fs::read_to_string(package.join("package.json")).unwrap();
        let package: Value = serde_json::from_str(&text).unwrap();
        package["version"].as_str().unwrap().to_owned()
    }

    /// Writes its settings and sets its variables, with the mock as its model.
    fn settle(self, place: &mut Place, url: &str) {
        let project = place.project().root().to_str().unwrap().to_owned();
        let version = self.version();
        let values = [
            ("{{url}}", url),
            ("{{project}}", project.as_str()),
            ("{{version}}", version.as_str()),
            ("{{key}}", KEY),
            ("{{key_end}}", &KEY[KEY.len() - 20..]),
        ];
        let fill = |text: &str| {
            values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
        };
        for (name, value) in &self.env {
            place.set(name, fill(value));
        }
        let home = recordings().join(self.name).join("home");
        for file in files_below(&home) {
            let name = file.strip_prefix(&home).unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&file).unwrap();
            write(place, &format!("home/{name}"), &fill(&text));
        }
    }
}

/// All CLIs with data.
fn all() -> Vec<Cli> {
    let folders = std::fs::read_dir(recordings()).unwrap().flatten();
    let folders = folders.filter(|folder| folder.path().join("cli.json").is_file());
    let name = |folder: std::fs::DirEntry| folder.file_name().into_string().unwrap();
    folders.map(|folder| Cli { name: name(folder).leak() }).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    entries.flat_map(below).collect()
}

/// Prepares a place in which every CLI starts without questions, with the mock as its model and its
/// only connection.
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
    ] {
        place.set(name, value);
    }
    // A folder that is not empty, as projects are.
    write(place, "project/README.md", "# A project\n");
    write(place, "home/.config/patterm/config.toml", settings);
    for cli in all() {
        cli.settle(place, url);
    }
}

fn write(place: &Place, name: &str, text: &str) {
    let path = place.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
