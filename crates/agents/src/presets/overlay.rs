//! A home for a CLI that reads its settings from nowhere else: it shows the user's own files, one
//! of them with additions. Additions never reach the user's file; changes that the CLI itself makes
//! do (`write_back.rs`).

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::preset::Overlay;
use super::settings_text::without_comments;
use super::write_back::{self, HOME, Note};
use patterm_store::state::write_whole;

/// A resolved overlay: the user's files, where they are shown, and the additions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedOverlay {
    /// The user's folder.
    pub source: PathBuf,
    /// The folder that shows it, in the agent's own home.
    pub folder: PathBuf,
    agent: PathBuf,
    /// The file with additions, and the additions.
    pub file: String,
    pub more: Value,
    /// What is shown although it does not exist yet: files that the CLI creates there belong to the
    /// user. A name that ends with `/` is a folder.
    pub also: Vec<String>,
    /// What else of the user's home is shown, if it exists.
    pub beside: Vec<String>,
}

impl ResolvedOverlay {
    /// Resolves an overlay; `home` is the user's home, `folder` the agent's own folder.
    pub(crate) fn new(
        overlay: &Overlay,
        more: &str,
        home: &Path,
        folder: &Path,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            source: home.join(&overlay.of),
            folder: folder.join(HOME).join(&overlay.of),
            agent: folder.to_owned(),
            file: overlay.file.clone(),
            more: serde_json::from_str(more)?,
            also: overlay.also.clone(),
            beside: overlay.beside.clone(),
        })
    }

    /// Recreates the folder. Files that the CLI wrote there before are moved to the user's folder
    /// first.
    pub(crate) fn create(&self) -> io::Result<()> {
        self.write_back()?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.link_beside()?;
        let mut names = Vec::new();
        for name in &self.also {
            let (name, is_folder) = name.strip_suffix('/').map_or((&**name, false), |n| (n, true));
            if is_folder {
                // A folder cannot be created through a dangling link.
                let folder = self.source.join(name);
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            names.push(name.to_owned());
        }
        for entry in std::fs::read_dir(&self.source).into_iter().flatten().flatten() {
            names.extend(entry.file_name().into_string());
        }
        names.sort_unstable();
        names.dedup();
        for name in names.iter().filter(|name| **name != self.file) {
            symlink(self.source.join(name), self.folder.join(name))?;
        }
        let own = std::fs::read_to_string(self.source.join(&self.file)).unwrap_or_default();
        let mut settings = serde_json::from_str(&without_comments(&own))
            .unwrap_or_else(|_| Value::Object(serde_json::Map::new()));
        add(&mut settings, &self.more);
        write_whole(&self.folder.join(&self.file), settings.to_string().as_bytes())?;
        self.note(settings).write(&self.agent)
    }

    /// Moves the files that the CLI wrote in its home to the user's home.
    pub(crate) fn write_back(&self) -> io::Result<()> {
        write_back::write_back(&self.agent, Some(&self.note(Value::Null)))
    }

    fn note(&self, given: Value) -> Note {
        Note {
            source: self.source.clone(),
            folder: self.folder.clone(),
            file: self.file.clone(),
            more: self.more.clone(),
            given,
        }
    }

    /// Links what the CLI reads in the user's home apart from its own folder.
    fn link_beside(&self) -> io::Result<()> {
        let homes = self.source.parent().zip(self.folder.parent());
        let Some((theirs, own)) = homes else { return Ok(()) };
        for name in &self.beside {
            let (theirs, own) = (theirs.join(name), own.join(name));
            if theirs.exists() {
                symlink(theirs, own)?;
            }
        }
        Ok(())
    }
}

/// The user's JSON settings with additions; `None` if one of them is not an object.
pub(super) fn merged(own: &str, more: &str) -> Option<String> {
    let mut own: Value = serde_json::from_str(&without_comments(own)).ok()?;
    let more: Value = serde_json::from_str(more).ok()?;
    (own.is_object() && more.is_object()).then(|| {
        add(&mut own, &more);
        own.to_string()
    })
}

/// Adds values, recursing into objects and appending to lists.
fn add(to: &mut Value, more: &Value) {
    match (to, more) {
        (Value::Object(to), Value::Object(more)) => {
            for (name, value) in more {
                add(to.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(to), Value::Array(more)) => to.extend(more.iter().cloned()),
        (to, more) => *to = more.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_users_files_are_shown_and_one_has_additions() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("user/.cli");
        std::fs::create_dir_all(source.join("history")).unwrap();
        let settings = "{ // mine\n \"theme\": \"a // b\", /* x */ \"servers\": {\"own\": 1}}";
        std::fs::write(source.join("settings.json"), settings).unwrap();
        let overlay = ResolvedOverlay {
            source: source.clone(),
            folder: dir.path().join("agent/home/.cli"),
            agent: dir.path().join("agent"),
            file: "settings.json".into(),
            more: json!({"servers": {"patterm": 2}}),
            also: vec!["login.json".into(), "tmp/".into()],
            beside: vec![".env".into(), ".agents".into()],
        };
        std::fs::write(dir.path().join("user/.env"), "A=1").unwrap();
        overlay.create().unwrap();
        overlay.create().unwrap();
        let text = std::fs::read_to_string(overlay.folder.join("settings.json")).unwrap();
        let merged: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(merged, json!({"theme": "a // b", "servers": {"own": 1, "patterm": 2}}));
        assert_eq!(std::fs::read_to_string(source.join("settings.json")).unwrap(), settings);
        std::fs::write(overlay.folder.join("login.json"), "token").unwrap();
        assert_eq!(std::fs::read_to_string(source.join("login.json")).unwrap(), "token");
        std::fs::write(overlay.folder.join("history/one"), "").unwrap();
        assert!(source.join("history/one").exists());
        std::fs::create_dir_all(overlay.folder.join("tmp/project/chats")).unwrap();
        assert!(source.join("tmp/project/chats").is_dir());
        let home = dir.path().join("agent/home");
        assert_eq!(std::fs::read_to_string(home.join(".env")).unwrap(), "A=1");
        assert!(!home.join(".agents").is_symlink(), "missing files are not linked");
    }

    #[test]
    fn recreating_an_overlay_loses_nothing_that_was_written_into_it() {
        let dir = tempfile::tempdir().unwrap();
        let overlay = ResolvedOverlay {
            source: dir.path().join("user/.cli"),
            folder: dir.path().join("agent/home/.cli"),
            agent: dir.path().join("agent"),
            file: "settings.json".into(),
            more: json!({"servers": {"patterm": 2}}),
            also: Vec::new(),
            beside: Vec::new(),
        };
        // As a version without notes left it.
        std::fs::create_dir_all(overlay.folder.join("tmp/project")).unwrap();
        std::fs::write(overlay.folder.join("tmp/project/chat"), "said").unwrap();
        std::fs::write(overlay.folder.join("settings.json"), "{}").unwrap();
        overlay.create().unwrap();
        let chat = overlay.source.join("tmp/project/chat");
        assert_eq!(std::fs::read_to_string(&chat).unwrap(), "said");
        assert_eq!(
            std::fs::read_to_string(overlay.folder.join("tmp/project/chat")).unwrap(),
            "said"
        );
        // As this version leaves it.
        std::fs::create_dir_all(overlay.folder.join("skills/new")).unwrap();
        std::fs::write(overlay.folder.join("settings.json"), "{\"theme\": 1}").unwrap();
        overlay.create().unwrap();
        assert!(overlay.source.join("skills/new").is_dir());
        let settings = std::fs::read_to_string(overlay.source.join("settings.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&settings).unwrap(), json!({"theme": 1}));
    }
}
