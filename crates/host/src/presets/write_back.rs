//! Some writes of a CLI end in its overlay and not, through a link, in the user's folder: a folder that
//! it created, a file that it replaced by renaming another over the link, a change of its settings.
//! They are moved to the user's folder before the overlay is made anew or removed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::state::write_whole;

/// The file in an agent's folder that says what its overlay shows.
const NOTE: &str = "overlay.json";

/// What stands between the name of a file that was replaced by a newer one and the time of that.
const KEPT: &str = ".kept-by-patterm-";

/// Folders in folders that are merged. CLIs nest a few levels; what is deeper is moved whole or kept.
const DEEPEST: usize = 16;

/// What an overlay shows, and what its settings file said when it was made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    /// The user's folder.
    pub(super) source: PathBuf,
    /// The folder that shows it.
    pub(super) folder: PathBuf,
    /// The file with more in it, what was added, and what it said then.
    pub(super) file: String,
    pub(super) more: Value,
    pub(super) given: Value,
}

impl Note {
    pub(super) fn write(&self, agent: &Path) -> io::Result<()> {
        write_whole(&agent.join(NOTE), &serde_json::to_vec(self)?)
    }

    fn read(agent: &Path) -> Option<(Self, SystemTime)> {
        let path = agent.join(NOTE);
        let at = fs::metadata(&path).and_then(|meta| meta.modified()).ok()?;
        Some((serde_json::from_slice(&fs::read(path).ok()?).ok()?, at))
    }
}

/// Moves what a CLI wrote into the overlay in this agent's folder to the user's. Where that fails, the
/// overlay keeps it.
pub(crate) fn write_back(agent: &Path) -> io::Result<()> {
    let Some((note, made)) = Note::read(agent) else { return Ok(()) };
    let file = note.folder.join(&note.file);
    if let Ok(text) = fs::read_to_string(&file) {
        take_settings(&note, &text)?;
        fs::remove_file(&file)?;
    }
    merge(&note.folder, &note.source, made, 0)
}

/// The same for an overlay that a version made which wrote no note.
pub(super) fn write_back_without_note(source: &Path, folder: &Path, file: &str) -> io::Result<()> {
    match fs::remove_file(folder.join(file)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    // Nothing says what the user has changed since: what is there is taken for changed.
    merge(folder, source, UNIX_EPOCH, 0)
}

/// Moves what stands in a folder of the overlay into the folder that it shows. Links to the user's
/// files are gone afterwards; what was written stands in one of the two.
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
        let there = fs::symlink_metadata(&theirs).ok();
        let both_folders = kind.is_dir() && fs::metadata(&theirs).is_ok_and(|meta| meta.is_dir());
        match there {
            None => {
                DirBuilder::new().recursive(true).mode(0o700).create(to)?;
                move_whole(&own, &theirs)?;
            }
            Some(_) if both_folders && depth < DEEPEST => {
                merge(&own, &theirs, made, depth + 1)?;
                fs::remove_dir(&own)?;
            }
            Some(_) if kind.is_file() && same(&own, &theirs) => fs::remove_file(&own)?,
            Some(meta) => {
                let changed = meta.modified()?;
                let newer =
                    kind.is_file() && meta.is_file() && entry.metadata()?.modified()? > changed;
                if !newer {
                    move_whole(&own, &kept(&theirs))?;
                    continue;
                }
                if changed > made {
                    // Both were changed since the overlay was made: neither is lost.
                    move_whole(&theirs, &kept(&theirs))?;
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

/// A name beside a file that no other has.
fn kept(path: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let name = path.file_name().unwrap_or(OsStr::new("file")).to_string_lossy();
    path.with_file_name(format!("{name}{KEPT}{now}"))
}

/// Moves a file, a link or a folder, to another file system too.
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

/// What the CLI changed in its settings is changed in the user's. Those with comments, which would be
/// lost, stay as they are, and what the CLI wrote is put beside them.
fn take_settings(note: &Note, text: &str) -> io::Result<()> {
    let now = serde_json::from_str(&super::overlay::without_comments(text));
    if now.as_ref().is_ok_and(|now| *now == note.given) {
        return Ok(());
    }
    let path = note.source.join(&note.file);
    let own = match fs::read_to_string(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => "{}".into(),
        own => own?,
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&note.source)?;
    let (Ok(now), Ok(mut settings)) = (now, serde_json::from_str::<Value>(&own)) else {
        return write_whole(&kept(&path), text.as_bytes());
    };
    change(&mut settings, &note.given, &now, &note.more);
    let text = serde_json::to_string_pretty(&settings)? + "\n";
    write_whole(&path, text.as_bytes())
}

/// Makes the changes between two values in a third one; what was `more` in them is not taken along.
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

/// A value without what was added to it.
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
    fn what_a_cli_wrote_into_its_overlay_goes_to_the_users_folder_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // A folder that the user has by now too, with other files and one of the same name.
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
        write_back(&dir.path().join("agent")).unwrap();
        let read = |name: &str| fs::read_to_string(note.source.join(name)).unwrap();
        assert_eq!(read("tmp/one/chat"), "conversation");
        assert_eq!(read("tmp/two/chat"), "another");
        assert_eq!(read("tmp/one/log"), "outside, later");
        assert_eq!(read("projects.json"), "{\"p\": 1}");
        assert_eq!((read("login").as_str(), read("new").as_str()), ("token", "new"));
        assert_eq!(fs::read_dir(&note.folder).unwrap().count(), 0, "nothing is left behind");
        let aside = fs::read_dir(note.source.join("tmp/one")).unwrap().flatten();
        let aside: Vec<_> =
            aside.filter(|e| e.file_name().to_string_lossy().contains(KEPT)).collect();
        assert_eq!(fs::read_to_string(aside[0].path()).unwrap(), "overlay");
        let names = fs::read_dir(&note.source).unwrap().flatten();
        let kept = names.filter(|e| e.file_name().to_string_lossy().contains(KEPT)).count();
        assert_eq!(kept, 0, "the user's older file was only followed by a newer one");
    }

    #[test]
    fn settings_that_the_cli_changed_are_changed_in_the_users_and_ours_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let own = json!({"theme": "a", "allowed": ["own"], "servers": {"own": 1}, "later": 1});
        fs::write(note.source.join("settings.json"), own.to_string()).unwrap();
        let now = json!({"theme": "b", "allowed": ["own", "p", "q"], "seen": {"x": true},
            "servers": {"own": 1, "patterm": 2}});
        fs::write(note.folder.join("settings.json"), format!("// own\n{now}")).unwrap();
        write_back(&dir.path().join("agent")).unwrap();
        let text = fs::read_to_string(note.source.join("settings.json")).unwrap();
        let wanted = json!({"theme": "b", "allowed": ["own", "q"], "servers": {"own": 1},
            "later": 1, "seen": {"x": true}});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wanted);
    }

    #[test]
    fn settings_that_the_cli_left_alone_or_that_have_comments_stay_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let note = begin(dir.path());
        let own = "{ // mine\n\"theme\": \"a\"}";
        fs::write(note.source.join("settings.json"), own).unwrap();
        let check = |now: &Value, kept: usize| {
            fs::write(note.folder.join("settings.json"), now.to_string()).unwrap();
            write_back(&dir.path().join("agent")).unwrap();
            assert_eq!(fs::read_to_string(note.source.join("settings.json")).unwrap(), own);
            assert_eq!(fs::read_dir(&note.source).unwrap().count(), 1 + kept);
        };
        check(&note.given, 0);
        check(&json!({"theme": "b"}), 1);
    }
}
