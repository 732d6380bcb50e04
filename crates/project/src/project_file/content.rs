//! The content of the project file, and the hash by which it is trusted.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::limits::FILE_BYTES;
use super::visible::visible;
use patterm_store::hex;
use patterm_store::project::PROJECT_FILE;

/// The content of a project file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Its SHA-256, in hexadecimal.
    pub hash: String,
}

/// A project file that exists but cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path}: {why}", path = .path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

impl Content {
    /// Reads the project file of a folder; `None` if it does not exist.
    pub fn read(root: &Path) -> Result<Option<Self>, ReadError> {
        let path = root.join(PROJECT_FILE);
        let error = |why: String| ReadError { path: path.clone(), why };
        // In a cloned project it may be anything: a FIFO without a writer, a link to a device.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // A dangling link is an error: someone intended a file to be there.
                return match std::fs::read_link(&path) {
                    Ok(target) => {
                        let target = visible(&target.to_string_lossy());
                        Err(error(format!("it is a link to {target}, which does not exist")))
                    }
                    Err(_) => Ok(None),
                };
            }
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return Err(error("permission denied; run `chmod u+r` on it".into()));
            }
            Err(e) => return Err(error(e.to_string())),
        };
        let meta = file.metadata().map_err(|e| error(e.to_string()))?;
        if meta.is_dir() {
            return Err(error("it is a folder, not a file".into()));
        }
        if !meta.is_file() {
            return Err(error("it is not a regular file".into()));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| error(e.to_string()))?;
        if bytes.len() as u64 > FILE_BYTES {
            return Err(error(format!("it is larger than {FILE_BYTES} bytes")));
        }
        let hash = hex::encode(&Sha256::digest(&bytes));
        let text = String::from_utf8(bytes).map_err(|e| {
            error(format!("it is not valid UTF-8 (byte {})", e.utf8_error().valid_up_to()))
        })?;
        Ok(Some(Self { path, text, hash }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_special_file_in_place_of_the_project_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(PROJECT_FILE);
        let read = || Content::read(dir.path());
        assert_eq!(read(), Ok(None));
        std::fs::write(&path, "").unwrap();
        let empty = read().unwrap().unwrap();
        assert!(empty.hash.starts_with("e3b0c44298fc"), "{}", empty.hash);
        std::fs::write(&path, b"a = \"\xff\"").unwrap();
        assert!(read().unwrap_err().to_string().ends_with("it is not valid UTF-8 (byte 5)"));
        std::fs::write(&path, vec![b'#'; 1 << 20]).unwrap();
        assert!(read().unwrap_err().to_string().contains("larger than"));
        let replace = |target: &str| {
            std::fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(target, &path).unwrap();
            read().unwrap_err().to_string()
        };
        for device in ["/dev/zero", "/dev/tty", "/dev/ptmx", "/"] {
            let why = replace(device);
            assert!(why.contains("patterm.toml: "), "{device}: {why}");
        }
        std::fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        assert!(read().unwrap_err().to_string().ends_with("it is not a regular file"));
    }
}
