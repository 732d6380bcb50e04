//! The identities of agents: tokens that the server issues, stores as hashes, and passes on in a
//! file that only its owner can read.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use patterm_panes::process::ProcessId;
use patterm_store::state::{self, StateDir, StateError};
use patterm_store::{hex, private};

const FILE: &str = "identities.json";
const VERSION: u32 = 1;

/// 256 random bits, which cannot be guessed.
const TOKEN_BYTES: usize = 32;

/// A secret that proves which process a caller is. It never appears in a log: `Debug` hides it.
#[derive(Clone)]
pub struct Token([u8; TOKEN_BYTES]);

impl Token {
    /// A new token.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes))
    }

    /// Parses the text form.
    pub fn parse(text: &str) -> Option<Self> {
        hex::decode(text.trim()).map(Self)
    }

    /// The text form, for the greeting and the identity file only.
    pub fn reveal(&self) -> String {
        hex::encode(&self.0)
    }

    /// Its hash, which is all that the server stores.
    pub fn hash(&self) -> Hash {
        Hash(Sha256::digest(self.0).into())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// The hash of a token, as the server stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        hex::decode(&text).map(Self).ok_or_else(|| serde::de::Error::custom("not a hash"))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Identity {
    hash: Hash,
    process_id: ProcessId,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    identities: Vec<Identity>,
}

/// All identities of a project. Changes are on disk before they take effect.
#[derive(Debug)]
pub struct Identities {
    file: PathBuf,
    known: Mutex<Known>,
}

impl Identities {
    /// Loads the identities, including those that earlier servers of this project issued.
    pub fn load(state: &StateDir) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let known = state::read(&file, VERSION)?.unwrap_or_default();
        Ok(Self { file, known: Mutex::new(known) })
    }

    /// Issues a new token for a process.
    pub fn issue(&self, process: &ProcessId) -> Result<Token, StateError> {
        let token = Token::random().map_err(state::failed("create a token for", &self.file))?;
        let identity = Identity { hash: token.hash(), process_id: process.clone() };
        self.change(state::write, |known| known.identities.push(identity))?;
        Ok(token)
    }

    /// Revokes all tokens of a process.
    pub fn revoke(&self, process: &ProcessId) -> Result<(), StateError> {
        if !self.has(process) {
            return Ok(());
        }
        let others = |known: &mut Known| known.identities.retain(|i| i.process_id != *process);
        self.change(state::write_reserved, others)
    }

    /// The process that a token belongs to. Takes the same time for every token: each stored hash
    /// is compared in full, even after a match.
    pub fn process_of(&self, token: &Token) -> Option<ProcessId> {
        let hash = token.hash();
        let known = self.known();
        let mut found = u64::MAX;
        for (at, identity) in known.identities.iter().enumerate() {
            let same: Choice = identity.hash.0.ct_eq(&hash.0);
            found.conditional_assign(&(at as u64), same);
        }
        let at = usize::try_from(found).ok()?;
        known.identities.get(at).map(|identity| identity.process_id.clone())
    }

    /// Whether a process still has a token.
    pub fn has(&self, process: &ProcessId) -> bool {
        self.known().identities.iter().any(|i| i.process_id == *process)
    }

    fn change(
        &self,
        write: fn(&Path, u32, &Known) -> Result<(), StateError>,
        change: impl FnOnce(&mut Known),
    ) -> Result<(), StateError> {
        let mut known = self.known();
        let mut next = Known { identities: known.identities.clone() };
        change(&mut next);
        write(&self.file, VERSION, &next)?;
        *known = next;
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The longest identity file: a token and some white space.
const IDENTITY_FILE_BYTES: u64 = 4 << 10;

/// Reads the token from an identity file. A file that others can read, or that another user owns,
/// is refused.
pub fn read_file(path: &Path) -> Result<Token, String> {
    let shown = path.display();
    let cannot = |why: &dyn fmt::Display| format!("cannot read the identity file {shown}: {why}");
    let (text, mode) =
        private::read_secret(path, IDENTITY_FILE_BYTES).map_err(|refusal| cannot(&refusal))?;
    if mode & 0o077 != 0 {
        return Err(format!(
            "the identity file {shown} has mode {mode:04o}, so others can read the token in it; run \
             `chmod 600` on it, or, if somebody may have read it, close its process and start a new one"
        ));
    }
    let text = std::str::from_utf8(&text).map_err(|e| cannot(&e))?;
    Token::parse(text)
        .ok_or_else(|| format!("the identity file {shown} contains no identity token"))
}

/// Writes a token to a new file that only its owner can read, for `PATTERM_IDENTITY_FILE`.
pub fn write_file(token: &Token, path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", token.reveal())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identities(dir: &Path) -> Identities {
        let state = StateDir::within(dir, "k");
        state.ensure().unwrap();
        Identities::load(&state).unwrap()
    }

    #[test]
    fn a_token_is_known_until_revoked_and_across_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let before = identities(dir.path());
        let (one, two) = (ProcessId::new(1), ProcessId::new(2));
        let token = before.issue(&one).unwrap();
        let other = before.issue(&two).unwrap();
        let after = identities(dir.path());
        assert_eq!(after.process_of(&token), Some(one.clone()));
        assert_eq!(after.process_of(&other), Some(two.clone()));
        after.revoke(&one).unwrap();
        assert_eq!(after.process_of(&token), None);
        assert!(!after.has(&one));
        let again = identities(dir.path());
        assert_eq!((again.process_of(&token), again.process_of(&other)), (None, Some(two)));
    }

    #[test]
    fn ten_thousand_forged_tokens_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let identities = identities(dir.path());
        let token = identities.issue(&ProcessId::new(1)).unwrap();
        for n in 0..10_000u32 {
            let mut forged = token.clone();
            if n < 256 {
                forged.0[n as usize / 8] ^= 1 << (n % 8);
            } else {
                forged = Token::random().unwrap();
            }
            assert_eq!(identities.process_of(&forged), None);
        }
    }

    #[test]
    fn the_token_is_neither_on_disk_nor_in_debug_output() {
        let dir = tempfile::tempdir().unwrap();
        let identities = identities(dir.path());
        let token = identities.issue(&ProcessId::new(1)).unwrap();
        let stored = std::fs::read_to_string(&identities.file).unwrap();
        assert!(!stored.contains(&token.reveal()));
        assert!(!format!("{token:?} {identities:?}").contains(&token.reveal()));
        assert_eq!(Token::parse(&format!("{}\n", token.reveal())).unwrap().0, token.0);
        assert!(Token::parse("abc").is_none());
    }

    #[test]
    fn the_identity_file_is_private_and_never_overwritten() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let token = Token::random().unwrap();
        let path = dir.path().join("p1");
        write_file(&token, &path).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(write_file(&token, &path).is_err());
        assert_eq!(read_file(&path).unwrap().0, token.0);
        for mode in [0o644, 0o640, 0o602] {
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode))
                .unwrap();
            let error = read_file(&path).unwrap_err();
            assert!(error.contains(&format!("has mode {mode:04o}")) && error.contains("chmod 600"));
        }
        assert!(read_file(Path::new("/dev/null")).unwrap_err().contains("not a regular file"));
    }
}
