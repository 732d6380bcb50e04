//! From a preset to what is started: arguments, variables and files with their values filled in.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::catalogue::BUILT_IN_FILES;
use super::overlay::{Shown, merged};
use super::preset::Preset;
use super::template::{UnknownValue, Values, render};
use super::write_back::HOME;

/// How a conversation begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Opening<'a> {
    /// Anew.
    Fresh {
        /// What it begins with.
        prompt: Option<&'a str>,
    },
    /// Where it was left.
    Again,
}

/// Where an agent finds patterm, and where its own files lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchContext<'a> {
    pub patterm: &'a Path,
    pub socket: &'a Path,
    pub project_key: &'a str,
    pub folder: &'a Path,
    /// Tools of patterm's that the CLI need not ask about.
    pub approved: &'a [&'a str],
    /// The id of the conversation.
    pub conversation: &'a str,
    /// What programs find in their environment.
    pub environment: &'a BTreeMap<String, String>,
}

/// A preset that cannot be filled in.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// It asks for what is not there.
    #[error(transparent)]
    Unknown(#[from] UnknownValue),
    /// What it adds to a settings file is no JSON.
    #[error("`inject.overlay.json` in the preset is no JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub argv: Vec<String>,
    /// The arguments that carry the first prompt; they follow the others.
    pub prompt_args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Files of the agent's own folder, with their content.
    pub files: Vec<(PathBuf, String)>,
    /// A home that shows the user's files.
    pub overlay: Option<Shown>,
}

/// The name of the file in an agent's folder that proves who it is.
pub(crate) const IDENTITY_FILE: &str = "identity";

impl Launch {
    /// Puts the values into a preset.
    pub(crate) fn new(
        preset: &Preset,
        program: &Path,
        around: LaunchContext<'_>,
        opening: Opening<'_>,
    ) -> Result<Self, LaunchError> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let one = |tool: &&str| preset.approved.form.replace("{{tool}}", tool);
        let approved: Vec<_> = around.approved.iter().map(one).collect();
        let mut values = Values::from([
            ("patterm", path(around.patterm)),
            ("hook", format!("{} hook", shell_word(&path(around.patterm)))),
            ("socket", path(around.socket)),
            ("project_key", around.project_key.to_owned()),
            ("identity_file", path(&around.folder.join(IDENTITY_FILE))),
            ("folder", path(around.folder)),
            ("approved", approved.join(&preset.approved.separator)),
            ("conversation", around.conversation.to_owned()),
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
        let mut env = BTreeMap::from([
            ("PATTERM_SOCKET".to_owned(), values["socket"].clone()),
            ("PATTERM_PROJECT_KEY".to_owned(), values["project_key"].clone()),
            ("PATTERM_IDENTITY_FILE".to_owned(), values["identity_file"].clone()),
        ]);
        env.extend(preset.env.clone());
        for (name, text) in &preset.inject.env {
            let text = render(text, &values)?;
            let own = around.environment.get(name);
            env.insert(name.clone(), own.and_then(|own| merged(own, &text)).unwrap_or(text));
        }
        let mut files = Vec::new();
        for (name, text) in &preset.inject.files {
            let built_in = BUILT_IN_FILES.iter().find(|(name, _)| name == text);
            let text = built_in.map_or(text.as_str(), |(_, text)| text);
            files.push((around.folder.join(name), render(text, &values)?));
        }
        let overlay = match &preset.inject.overlay {
            Some(overlay) => {
                let json = render(&overlay.json, &values)?;
                let homes = [&overlay.variable, "HOME"];
                let home = homes.iter().find_map(|name| around.environment.get(*name));
                let home = Path::new(home.map_or("/", String::as_str));
                let shown = Shown::new(overlay, &json, home, around.folder)?;
                env.insert(overlay.variable.clone(), path(&around.folder.join(HOME)));
                Some(shown)
            }
            None => None,
        };
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

/// A word as a shell reads it back.
fn shell_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Where a program is, or why it is not found.
pub fn find_program(program: &str, path: &str, from: &Path) -> Result<PathBuf, String> {
    if program.contains('/') {
        let at = from.join(program);
        return match is_executable(&at) {
            true => Ok(at),
            false => Err(format!("{} is no program that can be run", at.display())),
        };
    }
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join(program)).find(|at| is_executable(at));
    found.ok_or_else(|| format!("`{program}` is in no folder of PATH"))
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
        let preset = catalogue.presets[name].preset.as_ref().unwrap();
        let around = LaunchContext {
            patterm: Path::new("/bin/pat term"),
            socket: Path::new("/run/1.sock"),
            project_key: "k",
            folder: Path::new("/state/p1"),
            approved: &["whoami", "help"],
            conversation: "0123",
            environment: &BTreeMap::new(),
        };
        Launch::new(preset, Path::new("/bin/cli"), around, opening).unwrap()
    }

    #[test]
    fn every_preset_can_be_filled_and_shows_no_identity_in_its_arguments() {
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
    fn programs_are_found_on_the_path_or_by_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, text) = (dir.path().to_str().unwrap(), dir.path().join("text"));
        std::fs::write(&text, "").unwrap();
        let root = Path::new("/");
        assert!(find_program("sh", "/nowhere:/bin", root).unwrap().ends_with("bin/sh"));
        assert!(find_program("bin/sh", "", root).is_ok());
        assert!(find_program("text", folder, root).unwrap_err().contains("in no folder of PATH"));
        let no_program = find_program(text.to_str().unwrap(), "", root);
        assert!(no_program.unwrap_err().contains("no program"));
    }
}
