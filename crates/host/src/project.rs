//! Which project a folder belongs to, and the short key that stands for it.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::hex;

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = "patterm.toml";

/// Bytes of the path's hash in a key: 64 bits tell all projects of one user apart.
const KEY_BYTES: usize = 8;

/// A project: a folder, by its canonical path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    key: String,
}

impl Project {
    /// The project that `folder` lies in: the nearest ancestor with a `patterm.toml`, else with
    /// `.git`, else the folder itself.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let nearest = |mark: &str| folder.ancestors().find(|f| f.join(mark).exists());
        let root = nearest(PROJECT_FILE).or_else(|| nearest(".git")).unwrap_or(&folder);
        Ok(Self { root: root.to_owned(), key: key_of(root) })
    }

    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The key: the same for the same path, for ever.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Whether `text` has the form of a key, and so may be part of a file name.
pub fn is_key(text: &str) -> bool {
    hex::decode::<KEY_BYTES>(text).is_some()
}

/// The key of the project with this canonical path.
pub fn key_of(root: &Path) -> String {
    let hash = Sha256::digest(root.as_os_str().as_bytes());
    hex::encode(&hash[..KEY_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mark_decides_and_the_project_file_wins() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let inner = top.join("a/b/c");
        std::fs::create_dir_all(&inner).unwrap();
        let root = || Project::of(&inner).unwrap().root;
        assert_eq!(root(), inner);
        std::fs::create_dir(top.join("a/.git")).unwrap();
        assert_eq!(root(), top.join("a"));
        std::fs::write(top.join(PROJECT_FILE), "").unwrap();
        assert_eq!(root(), top);
        std::fs::write(top.join("a/b").join(PROJECT_FILE), "").unwrap();
        assert_eq!(root(), top.join("a/b"));
    }

    #[test]
    fn the_key_is_stable_and_the_same_through_a_link() {
        assert_eq!(key_of(Path::new("/home/ada/engine")), "af3dd4fd7f2b9df6");
        let top = tempfile::tempdir().unwrap();
        let (real, link) = (top.path().join("real"), top.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(Project::of(&real).unwrap(), Project::of(&link).unwrap());
        assert!(is_key(Project::of(&real).unwrap().key()));
        assert!(!is_key("../../etc/passwd"));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(Project::of(Path::new("/nonexistent/folder")).is_err());
    }
}
