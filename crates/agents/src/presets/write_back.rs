//! Some writes of a CLI reach its overlay and not, through a link, the user's folder: a folder that
//! it created, a file that it replaced by renaming another over the link, a change of its settings.
//! They are moved to the user's folder before the overlay is recreated or removed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::settings_text::{changed, without_comments};
use patterm_store::state::write_whole;

/// The folder in an agent's folder that its CLI uses as the user's home.
pub(super) const HOME: &str = "home";

/// The file in an agent's folder that records what its overlay shows.
const NOTE: &str = "overlay.json";

/// What separates the name of a replaced file from the time of its replacement.
const KEPT: &str = ".kept-by-patterm-";

/// How deep folders are merged. CLIs nest a few levels; deeper folders are moved whole or kept.
const MAX_DEPTH: usize = 16;

/// What an overlay shows, and the content of its settings file when it was created.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    /// The user's folder.
    pub(super) source: PathBuf,
    /// The folder that shows it.
    pub(super) folder: PathBuf,
    /// The file with additions, the additions, and its content at that time.
    pub(super) file: String,
    pub(super) more: Value,
    pub(super) given: Value,
}

impl Note {
    pub(super) fn write(&self, agent: &Path) -> io::Result<()> {
        write_whole(&agent.join(NOTE), &serde_json::to_vec(self)?)
    }

    /// The note of an agent's overlay and when it was written; `None` if there is no note.
    fn read(agent: &Path) -> io::Result<Option<(Self, SystemTime)>> {
        let path = agent.join(NOTE);
        let failed = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let text = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(failed)?,
        };
        let damaged = |e| failed(io::Error::new(io::ErrorKind::InvalidData, e));
        let note =
            serde_json::from_slice(&text).map_err(|e| damaged(format!("not a valid note: {e}")))?;
        let at = fs::metadata(&path).and_then(|meta| meta.modified()).map_err(failed)?;
        Ok(Some((note, at)))
    }
}

/// Moves the files that a CLI wrote into the home in this agent's folder to the user's home.
/// `shown` is what the preset shows there, for a home whose note is damaged or missing (0.1.0 wrote
/// none). If that fails, or the owner of the files is unknown, they stay there, and the error says
/// why.
pub(crate) fn write_back(agent: &Path, shown: Option<&Note>) -> io::Result<()> {
    let why = match Note::read(agent) {
        Ok(Some((note, made))) => {
            apply_settings(&note)?;
            return merge_home(agent, &note, made);
        }
        Ok(None) => io::Error::other("there is no record of where these files belong"),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => e,
        Err(e) => return Err(e),
    };
    match shown {
        Some(note) => {
            keep_settings(note)?;
            // Without a note, every file of the user's counts as changed since.
            merge_home(agent, note, UNIX_EPOCH)
        }
        None if contains_files(&agent.join(HOME))? => Err(why),
        None => Ok(()),
    }
}

/// Whether a folder contains anything except folders and links.
fn contains_files(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if !kind.is_symlink() && (!kind.is_dir() || contains_files(&entry.path())?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Moves everything in an agent's home to the user's: what its CLI wrote into the folder that the
/// overlay shows, and beside it.
fn merge_home(agent: &Path, note: &Note, made: SystemTime) -> io::Result<()> {
    merge(&note.folder, &note.source, made, 0)?;
    let home = agent.join(HOME);
    let Ok(below) = note.folder.strip_prefix(&home) else { return Ok(()) };
    // Empty folders need not be created for the user.
    for folder in note.folder.ancestors().take_while(|folder| *folder != home) {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    match note.source.ancestors().nth(below.components().count()) {
        Some(theirs) if note.source.ends_with(below) => merge(&home, theirs, made, 0),
        _ => Ok(()),
    }
}

/// Moves the content of a folder of the overlay into the folder that it shows. Links to the user's
/// files are removed; everything else ends up in one of the two.
fn merge(from: &Path, to: &Path, made: SystemTime, depth: usize) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let (own, theirs) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() && fs::read_link(&own)? == theirs {
            fs::remove_file(&own)?;
            continue;
        }
        let existing = fs::symlink_metadata(&theirs).ok();
        let both_folders = kind.is_dir() && fs::metadata(&theirs).is_ok_and(|meta| meta.is_dir());
        match existing {
            None => {
                DirBuilder::new().recursive(true).mode(0o700).create(to)?;
                move_whole(&own, &theirs)?;
            }
            Some(_) if both_folders && depth < MAX_DEPTH => {
                merge(&own, &theirs, made, depth + 1)?;
                fs::remove_dir(&own)?;
            }
            Some(_) if kind.is_file() && same(&own, &theirs) => fs::remove_file(&own)?,
            Some(meta) => {
                let changed = meta.modified()?;
                let newer =
                    kind.is_file() && meta.is_file() && entry.metadata()?.modified()? > changed;
                if !newer {
                    move_whole(&own, &kept_name(&theirs))?;
                    continue;
                }
                if changed > made {
                    // Both were changed since the overlay was created: keep both.
                    move_whole(&theirs, &kept_name(&theirs))?;
                }
                move_whole(&own, &theirs)?;
            }
        }
    }
    Ok(())
}

fn same(one: &Path, other: &Path) -> bool {
    let content = |path: &Path| fs::read(path).ok();
    content(one).is_some_and(|one| content(other) == Some(one))
}

/// An unused name next to a file.
fn kept_name(path: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let name = path.file_name().unwrap_or(OsStr::new("file")).to_string_lossy();
    path.with_file_name(format!("{name}{KEPT}{now}"))
}

/// Moves a file, a link or a folder, even to another file system.
fn move_whole(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {}
        moved => return moved,
    }
    copy(from, to)?;
    match fs::symlink_metadata(from)?.is_dir() {
        true => fs::remove_dir_all(from),
        false => fs::remove_file(from),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !kind.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    DirBuilder::new().mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Applies the CLI's changes of its settings to the user's, and nothing else. If the user's
/// settings cannot be read, the CLI's are written next to them.
fn apply_settings(note: &Note) -> io::Result<()> {
    let file = note.folder.join(&note.file);
    let Some(text) = read(&file)? else { return Ok(()) };
    let now = parsed(&text);
    if now.as_ref() != Some(&note.given) {
        let path = note.source.join(&note.file);
        let own = read(&path)?.unwrap_or_else(|| "{}\n".into());
        let wanted = now.zip(parsed(&own)).map(|(now, mut settings)| {
            change(&mut settings, &note.given, &now, &note.more);
            settings
        });
        match wanted.and_then(|wanted| changed(&own, &wanted)) {
            Some(new) if new == own => {}
            Some(new) => rewrite(&path, &new)?,
            None => keep(&path, &text)?,
        }
    }
    fs::remove_file(&file)
}

/// If there is no record of the settings when the overlay was created, the CLI's settings are
/// written next to the user's, unless they contain nothing new.
fn keep_settings(note: &Note) -> io::Result<()> {
    let file = note.folder.join(&note.file);
    let Some(text) = read(&file)? else { return Ok(()) };
    let path = note.source.join(&note.file);
    let own = read(&path)?.as_deref().and_then(parsed);
    if !parsed(&text).is_some_and(|now| is_contained(&now, own.as_ref(), Some(&note.more))) {
        keep(&path, &text)?;
    }
    fs::remove_file(&file)
}

/// Whether all of a value is contained in one of these.
fn is_contained(value: &Value, own: Option<&Value>, more: Option<&Value>) -> bool {
    let sources = [own, more];
    let equals = |source: &Option<&Value>| *source == Some(value);
    sources.iter().any(equals)
        || match value {
            Value::Object(members) => members.iter().all(|(name, one)| {
                let [own, more] = sources.map(|source| source.and_then(|source| source.get(name)));
                is_contained(one, own, more)
            }),
            Value::Array(list) => list.iter().all(|one| {
                sources
                    .into_iter()
                    .flatten()
                    .any(|source| source.as_array().is_some_and(|source| source.contains(one)))
            }),
            _ => false,
        }
}

/// The content of a file that may not exist.
fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(&without_comments(text)).ok()
}

/// Writes a text next to a file.
fn keep(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    write_whole(&kept_name(path), text.as_bytes())
}

/// Writes a user's file, following links, and keeps its permissions.
fn rewrite(path: &Path, text: &str) -> io::Result<()> {
    let target = match fs::canonicalize(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        found => Some(found?),
    };
    let Some(target) = target else {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        return write_whole(path, text.as_bytes());
    };
    let mode = fs::metadata(&target)?.permissions();
    write_whole(&target, text.as_bytes())?;
    fs::set_permissions(&target, mode)
}

/// Applies the changes between two values to a third one, except those that patterm added as
/// `more`.
fn change(settings: &mut Value, before: &Value, now: &Value, more: &Value) {
    if before == now {
        return;
    }
    if let (Value::Object(before), Value::Object(now)) = (before, now) {
        if !settings.is_object() {
            *settings = Value::Object(Map::new());
        }
        let Value::Object(settings) = settings else { return };
        for (name, value) in now {
            let before = before.get(name).unwrap_or(&Value::Null);
            if before != value {
                let own = settings.entry(name.clone()).or_insert(Value::Null);
                change(own, before, value, more.get(name).unwrap_or(&Value::Null));
            }
        }
        settings.retain(|name, _| now.contains_key(name) || !before.contains_key(name));
        return;
    }
    *settings = without(now, more);
}

/// A value without the additions.
fn without(value: &Value, more: &Value) -> Value {
    match (value, more) {
        (Value::Array(list), Value::Array(more)) => {
            list.iter().filter(|one| !more.contains(one)).cloned().collect()
        }
        (Value::Object(members), Value::Object(more)) => {
            let rest = members.iter().filter(|(name, one)| more.get(*name) != Some(one));
            let clean = |(name, one): (&String, &Value)| {
                (name.clone(), without(one, more.get(name).unwrap_or(&Value::Null)))
            };
            Value::Object(rest.map(clean).collect())
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    fn note(dir: &Path) -> Note {
        Note {
            source: dir.join("user/.cli"),
            folder: dir.join("agent/home/.cli"),
            file: "settings.json".into(),
            more: json!({"servers": {"patterm": 2}, "allowed": ["p"]}),
            given: json!({"theme": "a", "allowed": ["own", "p"], "servers": {"own": 1, "patterm": 2}}),
        }
    }

    fn begin(dir: &Path) -> Note {
        let note = note(dir);
        fs::create_dir_all(&note.source).unwrap();
        fs::create_dir_all(&note.folder).unwrap();
        note.write(&dir.join("agent")).unwrap();
        note
    }

    #[test]
    fn files_that_a_cli_wrote_into_its_overlay_move_to_the_users_folder() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // A folder that the user has meanwhile created, too, with other files and one of the same
        // name.
        write(note.folder.join("tmp/one/chat"), "conversation");
        write(note.folder.join("tmp/one/log"), "overlay");
        write(note.source.join("tmp/two/chat"), "another");
        let log = note.source.join("tmp/one/log");
        write(log.clone(), "outside, later");
        let later = SystemTime::now() + std::time::Duration::from_secs(10);
        fs::File::options().write(true).open(&log).unwrap().set_modified(later).unwrap();
        // A file that was replaced by renaming, one that is only shown, and one that is new.
        write(note.source.join("projects.json"), "{}");
        let old = UNIX_EPOCH + std::time::Duration::from_secs(10);
        let projects = fs::File::options().write(true).open(note.source.join("projects.json"));
        projects.unwrap().set_modified(old).unwrap();
        write(note.folder.join("projects.json"), "{\"p\": 1}");
        write(note.source.join("login"), "token");
        symlink(note.source.join("login"), note.folder.join("login")).unwrap();
        write(note.folder.join("new"), "new");
        write_back(&dir.path().join("agent"), None).unwrap();
        let read = |name: &str| fs::read_to_string(note.source.join(name)).unwrap();
        assert_eq!(read("tmp/one/chat"), "conversation");
        assert_eq!(read("tmp/two/chat"), "another");
        assert_eq!(read("tmp/one/log"), "outside, later");
        assert_eq!(read("projects.json"), "{\"p\": 1}");
        assert_eq!((read("login").as_str(), read("new").as_str()), ("token", "new"));
        let home = dir.path().join("agent/home");
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0, "nothing is left behind");
        let aside = fs::read_dir(note.source.join("tmp/one")).unwrap().flatten();
        let aside: Vec<_> =
            aside.filter(|e| e.file_name().to_string_lossy().contains(KEPT)).collect();
        assert_eq!(fs::read_to_string(aside[0].path()).unwrap(), "overlay");
        let names = fs::read_dir(&note.source).unwrap().flatten();
        let kept_name = names.filter(|e| e.file_name().to_string_lossy().contains(KEPT)).count();
        assert_eq!(kept_name, 0, "the user's older file was only replaced by a newer one");
    }

    #[test]
    fn the_clis_changes_reach_the_users_settings_and_patterms_additions_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let own = json!({"theme": "a", "allowed": ["own"], "servers": {"own": 1}, "later": 1});
        fs::write(note.source.join("settings.json"), own.to_string()).unwrap();
        let now = json!({"theme": "b", "allowed": ["own", "p", "q"], "seen": {"x": true},
            "servers": {"own": 1, "patterm": 2}});
        fs::write(note.folder.join("settings.json"), format!("// own\n{now}")).unwrap();
        write_back(&dir.path().join("agent"), None).unwrap();
        let text = fs::read_to_string(note.source.join("settings.json")).unwrap();
        let wanted = json!({"theme": "b", "allowed": ["own", "q"], "servers": {"own": 1},
            "later": 1, "seen": {"x": true}});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wanted);
    }

    #[test]
    fn settings_keep_their_order_their_comments_and_their_link() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let dotfile = dir.path().join("dotfiles/cli.json");
        fs::create_dir_all(dotfile.parent().unwrap()).unwrap();
        let own = "{ // mine\n    \"zoom\": 1.0,\n    \"theme\": \"a\", \"list\": [1,2]\n}\n";
        fs::write(&dotfile, own).unwrap();
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(&dotfile, mode.clone()).unwrap();
        let link = note.source.join("settings.json");
        symlink(&dotfile, &link).unwrap();
        let now_says = |now: &Value| {
            fs::create_dir_all(&note.folder).unwrap();
            fs::write(note.folder.join("settings.json"), now.to_string()).unwrap();
            write_back(&dir.path().join("agent"), None).unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_dir(&note.source).unwrap().count(), 1, "nothing is beside it");
            fs::read_to_string(&dotfile).unwrap()
        };
        assert_eq!(now_says(&note.given), own);
        let mut changed = note.given.clone();
        changed["theme"] = "b".into();
        changed["added"] = true.into();
        let new = own.replace("\"a\"", "\"b\"").replace("2]", "2],\n    \"added\": true");
        assert_eq!(now_says(&changed), new);
        assert_eq!(fs::metadata(&dotfile).unwrap().permissions().mode() & 0o777, mode.mode());
    }

    #[test]
    fn unreadable_settings_stay_as_they_are_and_the_clis_are_written_next_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let own = "{ \"theme\": ";
        fs::write(note.source.join("settings.json"), own).unwrap();
        fs::write(note.folder.join("settings.json"), "{\"theme\": \"b\"}").unwrap();
        write_back(&dir.path().join("agent"), None).unwrap();
        assert_eq!(fs::read_to_string(note.source.join("settings.json")).unwrap(), own);
        assert_eq!(kept_beside(&note.source), ["{\"theme\": \"b\"}"]);
    }

    /// The content of the files that were kept in a folder.
    fn kept_beside(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().flatten();
        let kept_name = names.filter(|entry| entry.file_name().to_string_lossy().contains(KEPT));
        kept_name.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect()
    }

    #[test]
    fn a_home_with_an_unreadable_note_is_removed_only_if_it_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let agent = dir.path().join("agent");
        let note_file = agent.join(NOTE);
        fs::write(note.folder.join("chat"), "said").unwrap();
        for damaged in ["", "{\"source\": 1}"] {
            fs::write(&note_file, damaged).unwrap();
            let error = write_back(&agent, None).unwrap_err().to_string();
            assert!(error.contains(NOTE), "{error}");
        }
        fs::remove_file(&note_file).unwrap();
        fs::create_dir(&note_file).unwrap();
        // It cannot be read at all: its content may be needed.
        write_back(&agent, None).unwrap_err();
        write_back(&agent, Some(&note)).unwrap_err();
        fs::remove_dir(&note_file).unwrap();
        write_back(&agent, None).unwrap_err();
        assert_eq!(fs::read_to_string(note.folder.join("chat")).unwrap(), "said");
        // The preset says where it belongs.
        fs::write(&note_file, "{").unwrap();
        write_back(&agent, Some(&note)).unwrap();
        assert_eq!(fs::read_to_string(note.source.join("chat")).unwrap(), "said");
        fs::remove_file(&note_file).unwrap();
        fs::create_dir_all(&note.folder).unwrap();
        symlink(note.source.join("chat"), note.folder.join("chat")).unwrap();
        write_back(&agent, None).unwrap();
        write_back(&dir.path().join("no overlay"), None).unwrap();
    }

    #[test]
    fn without_a_note_only_settings_with_something_new_are_written_next_to_the_users() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let agent = dir.path().join("agent");
        fs::remove_file(agent.join(NOTE)).unwrap();
        let own = json!({"theme": "a", "allowed": ["own"], "servers": {"own": 1}}).to_string();
        fs::write(note.source.join("settings.json"), &own).unwrap();
        let check = |now: &Value, kept_name: usize| {
            fs::create_dir_all(&note.folder).unwrap();
            fs::write(note.folder.join("settings.json"), now.to_string()).unwrap();
            write_back(&agent, Some(&note)).unwrap();
            assert_eq!(fs::read_to_string(note.source.join("settings.json")).unwrap(), own);
            assert_eq!(kept_beside(&note.source).len(), kept_name, "{now}");
        };
        check(&note.given, 0);
        // An older version added less.
        check(&json!({"theme": "a", "allowed": ["own"], "servers": {"patterm": 2}}), 0);
        let mut changed = note.given.clone();
        changed["theme"] = "b".into();
        check(&changed, 1);
    }

    #[test]
    fn files_that_a_cli_wrote_beside_its_folder_move_to_the_users_home() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let (home, theirs) = (dir.path().join("agent/home"), dir.path().join("user"));
        fs::create_dir_all(home.join(".agents/skills/new")).unwrap();
        fs::write(home.join(".agents/skills/new/text"), "made").unwrap();
        fs::write(theirs.join(".env"), "A=1").unwrap();
        symlink(theirs.join(".env"), home.join(".env")).unwrap();
        fs::write(home.join(".other"), "too").unwrap();
        // The user has removed it meanwhile; it has no content to keep.
        fs::remove_dir(&note.source).unwrap();
        write_back(&dir.path().join("agent"), None).unwrap();
        let read = |name: &str| fs::read_to_string(theirs.join(name)).unwrap();
        assert_eq!(read(".agents/skills/new/text"), "made");
        assert_eq!((read(".env").as_str(), read(".other").as_str()), ("A=1", "too"));
        assert!(!note.source.exists());
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    }
}
