//! A home for a CLI that takes its settings from nowhere else: it shows the user's own files, and
//! one of them with more in it. What is added is never in the user's file; what the CLI itself changes is
//! (`write_back.rs`).

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::preset::Overlay;
use super::settings_text::without_comments;
use super::write_back::{self, HOME, Note};
use patterm_store::state::write_whole;

/// What is made of an overlay: whose files, where they are shown, and what is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The user's folder.
    pub(crate) source: PathBuf,
    /// The folder that shows it, in a home in the agent's folder.
    pub(crate) folder: PathBuf,
    agent: PathBuf,
    /// The file with more in it, and what.
    pub(crate) file: String,
    pub(crate) more: Value,
    /// What is shown though it is not there yet: what the CLI writes there is the user's. A name that
    /// ends with `/` is a folder's.
    pub(crate) also: Vec<String>,
    /// What is shown of the user's home beside that folder, where it is there.
    pub(crate) beside: Vec<String>,
}

impl Shown {
    /// Fills in an overlay; `home` is the user's, `folder` the agent's own.
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

    /// Makes the folder anew. What the CLI wrote into it before goes to the user's folder first.
    pub(crate) fn make(&self) -> io::Result<()> {
        self.write_back()?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.show_beside()?;
        let mut names = Vec::new();
        for name in &self.also {
            let (name, is_folder) = name.strip_suffix('/').map_or((&**name, false), |n| (n, true));
            if is_folder {
                // A folder cannot be made through a link to nothing.
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

    /// Moves what the CLI wrote into its home to the user's.
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

    /// Shows what the CLI reads in the user's home beside its own folder.
    fn show_beside(&self) -> io::Result<()> {
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

/// JSON settings of the user's with more in them; `None` where either is no object.
pub(crate) fn merged(own: &str, more: &str) -> Option<String> {
    let mut own: Value = serde_json::from_str(&without_comments(own)).ok()?;
    let more: Value = serde_json::from_str(more).ok()?;
    (own.is_object() && more.is_object()).then(|| {
        add(&mut own, &more);
        own.to_string()
    })
}

/// Adds what is not there, into objects and lists.
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
    fn the_users_files_are_shown_and_one_has_more_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("user/.cli");
        std::fs::create_dir_all(source.join("history")).unwrap();
        let settings = "{ // mine\n \"theme\": \"a // b\", /* x */ \"servers\": {\"own\": 1}}";
        std::fs::write(source.join("settings.json"), settings).unwrap();
        let shown = Shown {
            source: source.clone(),
            folder: dir.path().join("agent/home/.cli"),
            agent: dir.path().join("agent"),
            file: "settings.json".into(),
            more: json!({"servers": {"patterm": 2}}),
            also: vec!["login.json".into(), "tmp/".into()],
            beside: vec![".env".into(), ".agents".into()],
        };
        std::fs::write(dir.path().join("user/.env"), "A=1").unwrap();
        shown.make().unwrap();
        shown.make().unwrap();
        let text = std::fs::read_to_string(shown.folder.join("settings.json")).unwrap();
        let merged: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(merged, json!({"theme": "a // b", "servers": {"own": 1, "patterm": 2}}));
        assert_eq!(std::fs::read_to_string(source.join("settings.json")).unwrap(), settings);
        std::fs::write(shown.folder.join("login.json"), "token").unwrap();
        assert_eq!(std::fs::read_to_string(source.join("login.json")).unwrap(), "token");
        std::fs::write(shown.folder.join("history/one"), "").unwrap();
        assert!(source.join("history/one").exists());
        std::fs::create_dir_all(shown.folder.join("tmp/project/chats")).unwrap();
        assert!(source.join("tmp/project/chats").is_dir());
        let home = dir.path().join("agent/home");
        assert_eq!(std::fs::read_to_string(home.join(".env")).unwrap(), "A=1");
        assert!(!home.join(".agents").is_symlink(), "it could not be made there");
    }

    #[test]
    fn an_overlay_that_is_made_anew_loses_nothing_that_was_written_into_it() {
        let dir = tempfile::tempdir().unwrap();
        let shown = Shown {
            source: dir.path().join("user/.cli"),
            folder: dir.path().join("agent/home/.cli"),
            agent: dir.path().join("agent"),
            file: "settings.json".into(),
            more: json!({"servers": {"patterm": 2}}),
            also: Vec::new(),
            beside: Vec::new(),
        };
        // As it was left by a version that wrote no note of it.
        std::fs::create_dir_all(shown.folder.join("tmp/project")).unwrap();
        std::fs::write(shown.folder.join("tmp/project/chat"), "said").unwrap();
        std::fs::write(shown.folder.join("settings.json"), "{}").unwrap();
        shown.make().unwrap();
        let chat = shown.source.join("tmp/project/chat");
        assert_eq!(std::fs::read_to_string(&chat).unwrap(), "said");
        assert_eq!(std::fs::read_to_string(shown.folder.join("tmp/project/chat")).unwrap(), "said");
        // And by this one.
        std::fs::create_dir_all(shown.folder.join("skills/new")).unwrap();
        std::fs::write(shown.folder.join("settings.json"), "{\"theme\": 1}").unwrap();
        shown.make().unwrap();
        assert!(shown.source.join("skills/new").is_dir());
        let settings = std::fs::read_to_string(shown.source.join("settings.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&settings).unwrap(), json!({"theme": 1}));
    }
}
