//! Which project a folder belongs to, and the short key that identifies it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::hex;

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = "patterm.toml";

/// Bytes of the path's hash in a key: 64 bits distinguish all projects of one user.
const KEY_BYTES: usize = 8;

/// A project: a folder, by its canonical path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    key: String,
}

impl Project {
    /// The project that contains `folder`: the nearest ancestor with a `patterm.toml`, else
    /// with a Git repository, else the folder itself.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let declared = folder.ancestors().find(|folder| folder.join(PROJECT_FILE).exists());
        let root = declared.or_else(|| folder.ancestors().find(|folder| has_repository(folder)));
        let root = root.unwrap_or(&folder);
        // Registry, state and answers are JSON.
        if root.to_str().is_none() {
            let message = format!(
                "the path {root:?} is not UTF-8; patterm needs folders with UTF-8 names, so rename it"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Self { root: root.to_owned(), key: key_of(root) })
    }

    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The key; it never changes for a given path.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Whether a folder is the top of a Git repository, a worktree or a submodule. A `.git` alone
/// is not enough: codex, for example, creates an empty one in `/tmp` while it runs a command in
/// its sandbox.
fn has_repository(folder: &Path) -> bool {
    let git = folder.join(".git");
    let Ok(metadata) = git.metadata() else { return false };
    if metadata.is_dir() {
        return git.join("HEAD").symlink_metadata().is_ok();
    }
    let mut begin = [0; GIT_LINK.len()];
    let read = |mut file: File| file.read_exact(&mut begin);
    metadata.is_file() && File::open(&git).and_then(read).is_ok() && begin == *GIT_LINK
}

/// The beginning of a `.git` that is a file; the path of the repository follows.
const GIT_LINK: &[u8; 7] = b"gitdir:";

/// Whether `text` has the form of a key, so that it is safe in a file name.
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
    fn a_folder_whose_path_is_not_utf_8_is_refused_with_the_reason() {
        use std::os::unix::ffi::OsStrExt;
        let top = tempfile::tempdir().unwrap();
        let odd = top.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
        std::fs::create_dir(&odd).unwrap();
        let error = Project::of(&odd).unwrap_err().to_string();
        assert!(error.contains("is not UTF-8") && error.contains("rename"), "{error}");
    }

    #[test]
    fn the_nearest_marker_decides_and_the_project_file_wins() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let inner = top.join("a/b/c");
        std::fs::create_dir_all(&inner).unwrap();
        let root = || Project::of(&inner).unwrap().root;
        assert_eq!(root(), inner);
        std::fs::create_dir(top.join("a/.git")).unwrap();
        assert_eq!(root(), inner, "an empty one is not a repository");
        std::fs::write(top.join("a/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(root(), top.join("a"));
        std::fs::write(top.join("a/b/.git"), "").unwrap();
        assert_eq!(root(), top.join("a"), "neither is an empty file");
        std::fs::write(top.join("a/b/.git"), "gitdir: ../.git/worktrees/b\n").unwrap();
        assert_eq!(root(), top.join("a/b"), "a worktree");
        std::fs::remove_file(top.join("a/b/.git")).unwrap();
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
    fn a_missing_folder_is_an_error() {
        assert!(Project::of(Path::new("/nonexistent/folder")).is_err());
    }
}
