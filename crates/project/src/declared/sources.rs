//! The folders with the files that processes watch, and the processes that a changed file affects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::project_file::ProjectFile;

/// The maximum number of folders watched for a project; the kernel allows each user tens of thousands.
const FOLDERS: usize = 4_096;

/// Folders with generated or third-party files; a pattern must name them to include them.
const NOT_SOURCES: [&str; 2] = [".git", "node_modules"];

/// The file that marks a cache folder.
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// The files that the processes of a project file watch.
#[derive(Debug, Default)]
pub(super) struct Sources {
    patterns: Vec<String>,
    watchers: Vec<(String, GlobSet)>,
}

impl Sources {
    pub(super) fn of(file: &ProjectFile) -> Self {
        let mut sources = Self::default();
        for (name, definition) in &file.processes {
            let mut set = GlobSetBuilder::new();
            for pattern in &definition.watch {
                if let Ok(glob) = glob(pattern) {
                    set.add(glob);
                    sources.patterns.push(pattern.clone());
                }
            }
            match set.build() {
                Ok(set) if !set.is_empty() => sources.watchers.push((name.clone(), set)),
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, name, "cannot watch the files of a declared process")
                }
            }
        }
        sources
    }

    pub(super) fn is_empty(&self) -> bool {
        self.watchers.is_empty()
    }

    /// The processes that a changed file affects; its path is relative to the project.
    pub(super) fn affected(&self, path: &Path) -> Vec<&str> {
        let watchers = self.watchers.iter().filter(|(_, set)| set.is_match(path));
        watchers.map(|(name, _)| name.as_str()).collect()
    }

    /// All processes that watch files.
    pub(super) fn all(&self) -> Vec<&str> {
        self.watchers.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The folders to watch now.
    pub(super) fn folders(&self, root: &Path) -> Vec<PathBuf> {
        let mut folders = BTreeSet::new();
        for pattern in &self.patterns {
            let (begin, depth) = extent(pattern);
            let mut top = root.join(&begin);
            let mut depth = depth;
            // A folder that does not exist yet is noticed when it is created.
            while !top.is_dir() && top != root {
                depth = 0;
                top.pop();
            }
            descend(&top, depth, &mut folders);
        }
        if folders.len() >= FOLDERS {
            tracing::warn!(
                FOLDERS,
                "`watch` matches more folders than can be watched; the others are ignored"
            );
        }
        folders.into_iter().collect()
    }
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern.trim_start_matches("./")).literal_separator(true).build()
}

/// The folder that contains everything that a pattern matches, and the depth below it.
fn extent(pattern: &str) -> (PathBuf, usize) {
    let parts: Vec<&str> =
        pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let plain = |part: &&&str| !part.contains(['*', '?', '[', '{', '\\']);
    let begin: PathBuf =
        parts.iter().take(parts.len().saturating_sub(1)).take_while(plain).collect();
    let rest = &parts[begin.components().count()..];
    // Braces may contain a `/`.
    let endless = rest.iter().any(|part| part.contains("**")) || pattern.contains('{');
    (begin, if endless { usize::MAX } else { rest.len().saturating_sub(1) })
}

fn descend(folder: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    if found.len() >= FOLDERS {
        return;
    }
    found.insert(folder.to_owned());
    if depth == 0 {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // Links are not followed: they may form cycles.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        let other = NOT_SOURCES.iter().any(|skipped| name == *skipped)
            || entry.path().join(CACHE_MARK).exists();
        if is_folder && !other {
            descend(&entry.path(), depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_determines_which_folders_are_watched() {
        for (pattern, begin, depth) in [
            ("src/**/*.rs", "src", usize::MAX),
            ("src/main.rs", "src", 0),
            ("*.toml", "", 0),
            ("./a/b/*/c/*.ts", "a/b", 2),
            ("{a,b}/c", "", usize::MAX),
            ("Makefile", "", 0),
        ] {
            assert_eq!(extent(pattern), (PathBuf::from(begin), depth), "{pattern}");
        }
    }

    #[test]
    fn existing_folders_are_watched_and_affected_processes_are_found() {
        let text = "[processes.a]\ncommand='x'\nwatch=['src/**/*.rs', 'not/yet/*.c']\n\
            [processes.b]\ncommand='x'\nwatch=['*.json']\n[processes.c]\ncommand='x'\n";
        let sources = Sources::of(&ProjectFile::parse(text).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in ["src/deep/er", "src/node_modules/x", "src/made", "other"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("src/made").join(CACHE_MARK), "").unwrap();
        let folders = sources.folders(root);
        let expected = ["", "src", "src/deep", "src/deep/er"].map(|f| root.join(f));
        assert_eq!(folders.len(), expected.len(), "{folders:?}");
        assert!(folders.iter().zip(&expected).all(|(a, b)| a.components().eq(b.components())));
        assert_eq!(sources.affected(Path::new("src/main.rs")), ["a"]);
        assert_eq!(sources.affected(Path::new("src/deep/x.rs")), ["a"]);
        assert_eq!(sources.affected(Path::new("package.json")), ["b"]);
        assert!(sources.affected(Path::new("web/package.json")).is_empty());
    }
}
