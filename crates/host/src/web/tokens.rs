//! The tokens of HTTP clients: a person creates them, each is shown once, and only its hash and
//! its scope are stored.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use patterm_gateway::http::{Authenticator, Principal, Scope};
use patterm_wire::requests::{Grant, TokenInfo};
use serde::{Deserialize, Serialize};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use thiserror::Error;
use tokio::sync::broadcast;

use patterm_agents::identity::{Hash, Token};
use patterm_store::clock::Clock;
use patterm_store::state::{self, StateDir, StateError};

const FILE: &str = "tokens.json";
const VERSION: u32 = 1;

/// The beginning of a token's text, so that its purpose is recognizable.
const PREFIX: &str = "patterm_";

/// Tokens of one project: every request is compared with each of them.
const MOST: usize = 256;

/// Bytes of a name: it appears in lists and in every line of the audit log.
const NAME_BYTES: usize = 64;

/// Names of one scope.
const SCOPE_NAMES: usize = 256;

/// Checks the names in a grant.
fn check(grant: &Grant) -> Result<(), TokenError> {
    check_token_name(&grant.name)?;
    for (what, names) in [("servers", &grant.servers), ("tools", &grant.tools)] {
        let Some(names) = names else { continue };
        let bad = names.iter().find(|name| name.is_empty() || name.len() > 4 * NAME_BYTES);
        if names.is_empty() || names.len() > SCOPE_NAMES || bad.is_some() {
            return Err(TokenError::Scope { what, most: SCOPE_NAMES });
        }
    }
    Ok(())
}

fn is_expired(grant: &Grant, now: u64) -> bool {
    grant.expires_at.is_some_and(|at| now >= at)
}

/// Checks the name of a new token on a command line before it is sent to a server.
pub fn check_token_name(name: &str) -> Result<(), TokenError> {
    if is_name(name) { Ok(()) } else { Err(TokenError::Name(name.to_owned())) }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= NAME_BYTES
        && name.chars().all(plain)
}

/// Why a token was not created or revoked.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The name is invalid.
    #[error(
        "`{0}` is not a valid name for a token: use up to {NAME_BYTES} letters, digits, `-`, `_` and \
         `.`, beginning with a letter or digit"
    )]
    Name(String),
    /// The name is in use.
    #[error("there is already a token `{0}`; revoke it with `patterm token revoke {0}`")]
    Taken(String),
    /// No token has this name.
    #[error("there is no token `{name}`{}", listed(.known))]
    Unknown {
        /// The name.
        name: String,
        /// The existing tokens.
        known: Vec<String>,
    },
    /// The scope is empty or too large.
    #[error("the {what} of a token must be 1 to {most} names")]
    Scope {
        /// The part of the scope.
        what: &'static str,
        /// How many names it may have.
        most: usize,
    },
    /// There are too many tokens.
    #[error("there are already {MOST} tokens, the maximum; revoke one first")]
    TooMany,
    /// The kernel provided no random bytes.
    #[error("cannot create a token: {0}")]
    Random(io::Error),
    /// It could not be saved.
    #[error(transparent)]
    State(#[from] StateError),
}

fn listed(names: &[String]) -> String {
    match names.is_empty() {
        true => "; there are no tokens".into(),
        false => format!("; the tokens are {}", names.join(", ")),
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    hash: Hash,
    made_at: u64,
    #[serde(flatten)]
    grant: Grant,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Record {
    tokens: Vec<Kept>,
}

/// All tokens of a project. Every change is on disk before its result is returned.
#[derive(Debug)]
pub(crate) struct Tokens {
    file: PathBuf,
    record: Mutex<Record>,
    /// The number of changes.
    generation: AtomicU64,
    revoked: broadcast::Sender<String>,
    clock: Clock,
}

impl Tokens {
    /// Loads the tokens; those of earlier servers are still valid.
    pub(crate) fn load(state: &StateDir, clock: Clock) -> Result<Self, StateError> {
        let file = state.file(FILE);
        let record = state::read(&file, VERSION)?.unwrap_or_default();
        let (record, generation) = (Mutex::new(record), AtomicU64::new(0));
        Ok(Self { file, record, generation, revoked: broadcast::Sender::new(MOST), clock })
    }

    /// Creates a token; returns its text, which is not stored.
    pub(crate) fn add(&self, grant: Grant) -> Result<String, TokenError> {
        check(&grant)?;
        let token = Token::random().map_err(TokenError::Random)?;
        let now = self.now();
        let mut record = self.record();
        let mut next = record.clone();
        // The name of an expired token is free.
        next.tokens.retain(|kept| kept.grant.name != grant.name || !is_expired(&kept.grant, now));
        if next.tokens.iter().any(|kept| kept.grant.name == grant.name) {
            return Err(TokenError::Taken(grant.name));
        }
        if next.tokens.len() >= MOST {
            return Err(TokenError::TooMany);
        }
        next.tokens.push(Kept { hash: token.hash(), made_at: now, grant });
        state::write(&self.file, VERSION, &next)?;
        *record = next;
        self.generation.fetch_add(1, Ordering::Release);
        Ok(format!("{PREFIX}{}", token.reveal()))
    }

    /// Revokes a token, and ends the sessions that use it.
    pub(crate) fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let mut record = self.record();
        let mut next = record.clone();
        next.tokens.retain(|kept| kept.grant.name != name);
        if next.tokens.len() == record.tokens.len() {
            let known = record.tokens.iter().map(|kept| kept.grant.name.clone()).collect();
            return Err(TokenError::Unknown { name: name.to_owned(), known });
        }
        state::write_reserved(&self.file, VERSION, &next)?;
        *record = next;
        self.generation.fetch_add(1, Ordering::Release);
        // There is no receiver while the endpoint is closed.
        let _ = self.revoked.send(name.to_owned());
        Ok(())
    }

    /// All tokens, sorted by name.
    pub(crate) fn list(&self) -> Vec<TokenInfo> {
        let now = self.now();
        let listed = |kept: &Kept| TokenInfo {
            grant: kept.grant.clone(),
            made_at: kept.made_at,
            expired: is_expired(&kept.grant, now),
        };
        let mut all: Vec<_> = self.record().tokens.iter().map(listed).collect();
        all.sort_by(|a, b| a.grant.name.cmp(&b.grant.name));
        all
    }

    /// Seconds since 1970.
    fn now(&self) -> u64 {
        self.clock.wall_ms() / 1000
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authenticator for Tokens {
    /// Takes the same time for every token: all known hashes are compared in full, even
    /// after a match.
    fn authenticate(&self, token: &str) -> Option<Principal> {
        let hash = Token::parse(token.strip_prefix(PREFIX)?)?.hash();
        let record = self.record();
        let mut found = u64::MAX;
        for (at, kept) in record.tokens.iter().enumerate() {
            let same: Choice = kept.hash.0.ct_eq(&hash.0);
            found.conditional_assign(&(at as u64), same);
        }
        let grant = &record.tokens.get(usize::try_from(found).ok()?)?.grant;
        (!is_expired(grant, self.now())).then(|| Principal {
            name: grant.name.clone(),
            scope: Scope {
                servers: grant.servers.clone(),
                tools: grant.tools.clone(),
                read_only: grant.read_only,
            },
            expires_at: grant.expires_at,
        })
    }

    fn generation(&self) -> Option<u64> {
        Some(self.generation.load(Ordering::Acquire))
    }

    fn is_past(&self, expires_at: u64) -> bool {
        self.now() >= expires_at
    }

    fn is_valid(&self, name: &str) -> bool {
        let now = self.now();
        let good = |kept: &Kept| kept.grant.name == name && !is_expired(&kept.grant, now);
        self.record().tokens.iter().any(good)
    }

    fn revocations(&self) -> broadcast::Receiver<String> {
        self.revoked.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(name: &str) -> Grant {
        Grant { name: name.into(), servers: None, tools: None, read_only: false, expires_at: None }
    }

    fn tokens(home: &std::path::Path) -> Tokens {
        let state = StateDir::within(home, "k");
        state.ensure().unwrap();
        Tokens::load(&state, Clock::system()).unwrap()
    }

    #[test]
    fn a_token_is_valid_until_it_is_revoked_and_survives_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let first = tokens(dir.path());
        let narrow = Grant { servers: Some(vec!["search".into()]), ..grant("ci") };
        let text = first.add(narrow).unwrap();
        assert_eq!(text.len(), PREFIX.len() + 64);
        let principal = first.authenticate(&text).unwrap();
        assert!(principal.scope.has_server("search") && !principal.scope.has_server("patterm"));
        assert!(matches!(first.add(grant("ci")), Err(TokenError::Taken(_))));
        let next = tokens(dir.path());
        assert_eq!(next.authenticate(&text), Some(principal));
        let mut revocations = next.revocations();
        next.revoke("ci").unwrap();
        assert_eq!(revocations.try_recv().unwrap(), "ci");
        assert_eq!((next.authenticate(&text), next.is_valid("ci")), (None, false));
        assert_eq!(tokens(dir.path()).authenticate(&text), None);
        let unknown = next.revoke("ci").unwrap_err().to_string();
        assert_eq!(unknown, "there is no token `ci`; there are no tokens");
    }

    #[test]
    fn none_of_10_000_forged_tokens_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(dir.path());
        let text = tokens.add(grant("a")).unwrap();
        for n in 0..10_000u32 {
            let digit = PREFIX.len() + n as usize % 64;
            let forged = match n {
                0..1024 => {
                    let mut forged = text.clone().into_bytes();
                    let other = b"0123456789abcdef"[n as usize / 64];
                    if forged[digit] == other {
                        continue;
                    }
                    forged[digit] = other;
                    String::from_utf8(forged).unwrap()
                }
                1024..2048 => text[..text.len() - 1 - n as usize % 64].to_owned(),
                _ => format!("{PREFIX}{}", Token::random().unwrap().reveal()),
            };
            assert_eq!(tokens.authenticate(&forged), None, "{n}");
        }
        assert_eq!(tokens.authenticate(&text[PREFIX.len()..]), None, "without its prefix");
        assert!(tokens.authenticate(&text).is_some());
    }

    #[test]
    fn only_a_hash_is_stored_readable_by_the_owner_only() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(dir.path());
        let text = tokens.add(grant("a")).unwrap();
        let kept = std::fs::read_to_string(&tokens.file).unwrap();
        assert!(!kept.contains(&text[PREFIX.len()..]), "{kept}");
        assert!(!format!("{tokens:?}").contains(&text[PREFIX.len()..]));
        assert_eq!(tokens.file.metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn names_and_scopes_are_checked_and_tokens_expire() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(dir.path());
        for bad in ["", "a b", "-a", ".", "a/b", "ä", &"x".repeat(65)] {
            assert!(matches!(tokens.add(grant(bad)), Err(TokenError::Name(_))), "{bad}");
        }
        let empty = Grant { tools: Some(Vec::new()), ..grant("a") };
        assert!(matches!(tokens.add(empty), Err(TokenError::Scope { .. })));
        let text = tokens.add(Grant { expires_at: Some(1), ..grant("a") }).unwrap();
        assert_eq!(tokens.authenticate(&text), None);
        assert!(tokens.list()[0].expired);
        // Its name can be used again.
        let text = tokens.add(grant("a")).unwrap();
        assert_eq!(
            (tokens.authenticate(&text).unwrap().name.as_str(), tokens.list().len()),
            ("a", 1)
        );
    }
}
