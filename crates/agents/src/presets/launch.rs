//! Turns a preset into a command: arguments, variables and files with their values filled in.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use patterm_panes::environment::Environment;
use thiserror::Error;

use super::catalogue::BUILT_IN_FILES;
use super::overlay::{ResolvedOverlay, merged};
use super::preset::Preset;
use super::template::{UnknownValue, Values, render};
use super::write_back::HOME;

/// How a conversation begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Opening<'a> {
    /// A new conversation.
    Fresh {
        /// The first prompt.
        prompt: Option<&'a str>,
    },
    /// The previous conversation.
    Again,
}

/// The values that a preset may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchContext<'a> {
    pub patterm: &'a Path,
    pub socket: &'a Path,
    pub project_key: &'a str,
    pub folder: &'a Path,
    /// Tools of patterm that the CLI may use without asking.
    pub approved: &'a [&'a str],
    /// The id of the conversation.
    pub conversation: &'a str,
    /// The CLI's environment, without what is added here.
    pub environment: &'a Environment,
}

/// Why a preset cannot be turned into a command.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// It uses an unknown value.
    #[error(transparent)]
    Unknown(#[from] UnknownValue),
    /// Its addition to a settings file is not valid JSON.
    #[error("`inject.overlay.json` in the preset is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A command to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub argv: Vec<String>,
    /// The arguments that carry the first prompt; they follow the others.
    pub prompt_args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Files of the agent's own folder, with their content.
    pub files: Vec<(PathBuf, String)>,
    /// A home that shows the user's files.
    pub overlay: Option<ResolvedOverlay>,
}

/// The name of the identity file in an agent's folder.
pub(crate) const IDENTITY_FILE: &str = "identity";

impl Launch {
    /// Fills the values into a preset.
    pub(crate) fn new(
        preset: &Preset,
        program: &Path,
        context: LaunchContext<'_>,
        opening: Opening<'_>,
    ) -> Result<Self, LaunchError> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let one = |tool: &&str| preset.approved.form.replace("{{tool}}", tool);
        let approved: Vec<_> = context.approved.iter().map(one).collect();
        let mut values = Values::from([
            ("patterm", path(context.patterm)),
            ("hook", format!("{} hook", shell_word(&path(context.patterm)))),
            ("socket", path(context.socket)),
            ("project_key", context.project_key.to_owned()),
            ("identity_file", path(&context.folder.join(IDENTITY_FILE))),
            ("folder", path(context.folder)),
            ("approved", approved.join(&preset.approved.separator)),
            ("conversation", context.conversation.to_owned()),
        ]);
        let all = |texts: &[String], values: &Values| {
            texts.iter().map(|text| render(text, values)).collect::<Result<Vec<_>, _>>()
        };
        let resume = preset.resume.as_ref();
        let (naming, first) = match (resume, opening) {
            (None, _) => (Vec::new(), false),
            (Some(resume), Opening::Fresh { .. }) => (all(&resume.begin, &values)?, false),
            (Some(resume), Opening::Again) => (all(&resume.again, &values)?, resume.first),
        };
        let mut argv = vec![path(program)];
        argv.extend(naming.iter().filter(|_| first).cloned());
        argv.extend(preset.args.iter().cloned());
        argv.extend(all(&preset.inject.args, &values)?);
        argv.extend(naming.into_iter().filter(|_| !first));
        let mut env = preset.env.clone();
        for (name, text) in &preset.inject.env {
            let text = render(text, &values)?;
            let own = context.environment.text(name);
            env.insert(name.clone(), own.and_then(|own| merged(own, &text)).unwrap_or(text));
        }
        let mut files = Vec::new();
        for (name, text) in &preset.inject.files {
            let built_in = BUILT_IN_FILES.iter().find(|(name, _)| name == text);
            let text = built_in.map_or(text.as_str(), |(_, text)| text);
            files.push((context.folder.join(name), render(text, &values)?));
        }
        let overlay = match &preset.inject.overlay {
            Some(overlay) => {
                let json = render(&overlay.json, &values)?;
                let homes = [&overlay.variable, "HOME"];
                let home = homes.iter().find_map(|name| context.environment.get(name));
                let home = home.map_or(Path::new("/"), Path::new);
                let resolved = ResolvedOverlay::new(overlay, &json, home, context.folder)?;
                env.insert(overlay.variable.clone(), path(&context.folder.join(HOME)));
                Some(resolved)
            }
            None => None,
        };
        // Whatever the preset sets, an agent cannot have another identity.
        env.remove("PATTERM_IDENTITY");
        env.insert("PATTERM_SOCKET".into(), values["socket"].clone());
        env.insert("PATTERM_PROJECT_KEY".into(), values["project_key"].clone());
        env.insert("PATTERM_IDENTITY_FILE".into(), values["identity_file"].clone());
        let prompt_args = match (&preset.prompt, opening) {
            (Some(form), Opening::Fresh { prompt: Some(prompt) }) => {
                values.insert("prompt", prompt.to_owned());
                all(&form.args, &values)?
            }
            _ => Vec::new(),
        };
        Ok(Self { argv, prompt_args, env, files, overlay })
    }
}

/// Quotes a word for a shell.
fn shell_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The path of a program, or why it was not found.
pub fn find_program(program: &str, path: &OsStr, from: &Path) -> Result<PathBuf, String> {
    if program.contains('/') {
        let at = from.join(program);
        return match is_executable(&at) {
            true => Ok(at),
            false => Err(format!("{} is not an executable file", at.display())),
        };
    }
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join(program)).find(|at| is_executable(at));
    found.ok_or_else(|| format!("`{program}` was not found on PATH"))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Catalogue;

    fn launch(name: &str, opening: Opening<'_>) -> Launch {
        let catalogue = Catalogue::read(None);
        launch_of(catalogue.presets[name].preset.as_ref().unwrap(), opening)
    }

    fn launch_of(preset: &Preset, opening: Opening<'_>) -> Launch {
        let context = LaunchContext {
            patterm: Path::new("/bin/pat term"),
            socket: Path::new("/run/1.sock"),
            project_key: "k",
            folder: Path::new("/state/p1"),
            approved: &["whoami", "help"],
            conversation: "0123",
            environment: &Environment::default(),
        };
        Launch::new(preset, Path::new("/bin/cli"), context, opening).unwrap()
    }

    #[test]
    fn every_preset_yields_a_command_without_secrets_in_its_arguments() {
        for name in Catalogue::read(None).presets.keys() {
            for opening in [Opening::Fresh { prompt: Some("-do it") }, Opening::Again] {
                let launch = launch(name, opening);
                assert_eq!(launch.argv[0], "/bin/cli");
                assert_eq!(launch.env["PATTERM_IDENTITY_FILE"], "/state/p1/identity");
                let fresh = matches!(opening, Opening::Fresh { .. });
                let carries = launch.prompt_args.iter().any(|arg| arg.contains("-do it"));
                let takes =
                    Catalogue::read(None).presets[name].preset.as_ref().unwrap().prompt.is_some();
                assert_eq!(carries, fresh && takes, "{name}");
                for (path, text) in &launch.files {
                    assert!(path.starts_with("/state/p1"), "{name}");
                    if path.extension().is_some_and(|kind| kind == "json") {
                        serde_json::from_str::<serde_json::Value>(text).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn the_example_preset_can_be_launched() {
        let text = include_str!("../../../../docs/examples/preset.toml");
        let preset: Preset = toml::from_str(text).unwrap();
        let launch = launch_of(&preset, Opening::Fresh { prompt: Some("go") });
        let config = "/state/p1/mcp.json";
        assert_eq!(launch.argv, ["/bin/cli", "--mcp-config", config, "--session", "0123"]);
        assert_eq!(launch.prompt_args, ["--", "go"]);
        let servers: serde_json::Value = serde_json::from_str(&launch.files[0].1).unwrap();
        assert_eq!(servers["mcpServers"]["patterm"]["command"], "/bin/pat term");
        let again = launch_of(&preset, Opening::Again);
        assert_eq!(again.argv[3..], ["--resume", "0123"]);
    }

    #[test]
    fn programs_are_found_on_path_or_by_their_own_path() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, text) = (dir.path().to_str().unwrap(), dir.path().join("text"));
        std::fs::write(&text, "").unwrap();
        let root = Path::new("/");
        assert!(find_program("sh", "/nowhere:/bin".as_ref(), root).unwrap().ends_with("bin/sh"));
        assert!(find_program("bin/sh", "".as_ref(), root).is_ok());
        assert!(
            find_program("text", folder.as_ref(), root)
                .unwrap_err()
                .contains("was not found on PATH")
        );
        let no_program = find_program(text.to_str().unwrap(), "".as_ref(), root);
        assert!(no_program.unwrap_err().contains("not an executable file"));
    }
}
