//! What a repository shows: what HEAD has pointed to, when commits were written, and what they change.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::safe_git::Git;

/// How far back HEAD's history is read at most.
const MOST_ENTRIES: usize = 1_000;

/// The output of git about that: an entry has two messages, of which people write one line.
const ENTRIES_BYTES: usize = 4 << 20;

/// The output of git about the files of commits. Of larger commits only the commit itself is known.
const CHANGES_BYTES: usize = 8 << 20;

/// The output of git for a path.
const PATH_BYTES: usize = 16 << 10;

/// The commits whose changes are read in one run: their hashes, and those of their parents, fit into a pipe.
const AT_ONCE: usize = 256;

/// The longest subject that is kept.
const SUBJECT_CHARS: usize = 200;

/// Files of a commit whose names are kept.
const MOST_FILES: usize = 20;

/// The characters of all those names.
const FILES_CHARS: usize = 1_000;

/// Between the fields of an entry.
const SEPARATOR: char = '\u{1f}';

/// Where HEAD pointed, for each time that it changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReflogEntry {
    /// The commit.
    pub commit: String,
    /// Its first parent.
    pub parent: Option<String>,
    /// Its date, in seconds since 1970; whoever commits can choose it.
    pub committed_s: u64,
    /// When HEAD changed, in seconds since 1970, unless the repository keeps no history of HEAD.
    pub logged_s: Option<u64>,
    /// What changed it, such as `commit (amend): a subject`.
    pub action: String,
    /// The first line of the commit's message, shortened.
    pub subject: String,
    /// When the file of the commit was written, in microseconds since 1970, if it has one.
    pub written_us: Option<u64>,
}

/// What a commit changes, compared with its first parent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The first files.
    pub files: Vec<String>,
    /// How many files there are.
    pub file_count: u64,
    /// Lines that it adds.
    pub insertions: u64,
    /// Lines that it removes.
    pub deletions: u64,
}

/// A working tree, as git reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repository {
    /// What HEAD pointed to, the oldest first.
    pub entries: Vec<ReflogEntry>,
    /// The branch that is checked out now.
    pub branch: Option<String>,
}

impl Git {
    /// Reads the history of HEAD in a working tree, as far back as so many changes of HEAD, within limits.
    pub fn repository(&self, worktree: &Path, entries: usize) -> io::Result<Repository> {
        let most = entries.min(MOST_ENTRIES);
        let asked = ["rev-parse", "--git-path", "objects", "--symbolic-full-name", "HEAD"];
        let output = self.run(worktree, &asked, b"", PATH_BYTES)?;
        let output = String::from_utf8_lossy(&output);
        let mut lines = output.lines();
        let objects = worktree.join(lines.next().unwrap_or_default());
        let branch = lines.next().and_then(|name| name.strip_prefix("refs/heads/"));
        let mut entries = self.entries(worktree, most, &["--walk-reflogs"])?;
        if entries.is_empty() {
            // It keeps no history of HEAD.
            entries = self.entries(worktree, 1, &[])?;
        }
        entries.reverse();
        for entry in &mut entries {
            entry.written_us = written_at(&objects, &entry.commit);
        }
        Ok(Repository { entries, branch: branch.map(str::to_owned) })
    }

    /// The commit that a name means in a folder.
    pub fn commit(&self, folder: &Path, name: &str) -> io::Result<ReflogEntry> {
        let commit = format!("{name}^{{commit}}");
        let asked = ["rev-parse", "--verify", "--end-of-options", &commit];
        let hash = self.run(folder, &asked, b"", PATH_BYTES)?;
        let hash = String::from_utf8_lossy(&hash);
        let found = self.log(folder, &["--max-count=1", hash.trim()])?.pop();
        found.ok_or_else(|| io::Error::other(format!("{name} is no commit")))
    }

    /// Entries, the newest first.
    fn entries(&self, worktree: &Path, most: usize, more: &[&str]) -> io::Result<Vec<ReflogEntry>> {
        let most = format!("--max-count={most}");
        let mut arguments = vec![most.as_str()];
        arguments.extend(more);
        arguments.push("HEAD");
        self.log(worktree, &arguments)
    }

    fn log(&self, worktree: &Path, what: &[&str]) -> io::Result<Vec<ReflogEntry>> {
        let mut arguments = vec!["log", "--no-show-signature", "--no-patch", "--no-color"];
        arguments.extend(["--no-notes", "--no-ext-diff", "--no-textconv", "--encoding=UTF-8"]);
        arguments.extend(["--date=unix", "--format=%H%x1f%P%x1f%ct%x1f%gd%x1f%gs%x1f%s"]);
        arguments.extend(what);
        arguments.push("--");
        let output = self.run(worktree, &arguments, b"", ENTRIES_BYTES)?;
        let output = String::from_utf8_lossy(&output);
        Ok(output.lines().filter_map(entry).collect())
    }

    /// What commits change. Those that change too much are not in the answer.
    pub fn changes(
        &self,
        worktree: &Path,
        commits: &[&ReflogEntry],
    ) -> io::Result<HashMap<String, Changes>> {
        let mut input = String::new();
        for commit in commits.iter().rev().take(AT_ONCE) {
            // With a second hash, git compares with that one; without, with all parents.
            let parent = commit.parent.as_deref().unwrap_or_default();
            input.push_str(format!("{} {parent}", commit.commit).trim_end());
            input.push('\n');
        }
        let asked = [
            "diff-tree",
            "--stdin",
            "-r",
            "--root",
            "-z",
            "--numstat",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
        ];
        let output = self.run(worktree, &asked, input.as_bytes(), CHANGES_BYTES)?;
        Ok(changes(&output))
    }
}

fn entry(line: &str) -> Option<ReflogEntry> {
    let mut fields = line.splitn(6, SEPARATOR);
    let commit = fields.next().filter(|hash| is_hash(hash))?;
    let parent = fields.next()?.split(' ').next().filter(|hash| is_hash(hash));
    let committed_s = fields.next()?.parse().ok()?;
    let logged = fields.next()?.strip_prefix("HEAD@{").and_then(|rest| rest.strip_suffix('}'));
    let action = fields.next()?.chars().take(SUBJECT_CHARS).collect();
    let subject = fields.next()?.chars().take(SUBJECT_CHARS).collect();
    Some(ReflogEntry {
        commit: commit.to_owned(),
        parent: parent.map(str::to_owned),
        committed_s,
        logged_s: logged.and_then(|seconds| seconds.parse().ok()),
        action,
        subject,
        written_us: None,
    })
}

/// Whether a text is a full hash, SHA-1 or SHA-256.
fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// When an object that is not packed was written. Rewriting one that exists counts, too.
fn written_at(objects: &Path, hash: &str) -> Option<u64> {
    let path: PathBuf = objects.join(&hash[..2]).join(&hash[2..]);
    let meta = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let (seconds, nanos) =
        (u64::try_from(meta.mtime()).ok()?, u64::try_from(meta.mtime_nsec()).ok()?);
    Some(seconds * 1_000_000 + nanos / 1_000)
}

/// Reads `HASH`, then `ADDED<tab>REMOVED<tab>PATH` for each file, all ended by zeros.
fn changes(output: &[u8]) -> HashMap<String, Changes> {
    let mut all: HashMap<String, Changes> = HashMap::new();
    let mut current: Option<String> = None;
    for field in output.split(|byte| *byte == 0) {
        let field = String::from_utf8_lossy(field);
        let field = field.trim_start_matches('\n');
        if is_hash(field) {
            all.insert(field.to_owned(), Changes::default());
            current = Some(field.to_owned());
            continue;
        }
        let mut parts = field.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let Some(changes) = current.as_ref().and_then(|hash| all.get_mut(hash)) else { continue };
        // For binary files there is a `-`.
        changes.insertions += added.parse::<u64>().unwrap_or(0);
        changes.deletions += removed.parse::<u64>().unwrap_or(0);
        changes.file_count += 1;
        let chars: usize = changes.files.iter().map(|file| file.chars().count()).sum();
        let fits = changes.files.len() < MOST_FILES && chars + path.chars().count() <= FILES_CHARS;
        if fits && changes.files.len() as u64 + 1 == changes.file_count {
            changes.files.push(path.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "26117f47112964a9e1ac490f1f38e4c938f6e39c";
    const B: &str = "f10d9f0620f2604aa432982076b736af934055ee";

    #[test]
    fn an_entry_is_read_as_git_prints_it() {
        let line = format!("{A}\u{1f}{B} {A}\u{1f}7\u{1f}HEAD@{{9}}\u{1f}commit: a\u{1f}a\u{1f}b");
        let expected = ReflogEntry {
            commit: A.into(),
            parent: Some(B.into()),
            committed_s: 7,
            logged_s: Some(9),
            action: "commit: a".into(),
            subject: "a\u{1f}b".into(),
            written_us: None,
        };
        assert_eq!(entry(&line), Some(expected));
        let bare = entry(&format!("{A}\u{1f}\u{1f}7\u{1f}\u{1f}\u{1f}s")).unwrap();
        assert_eq!((bare.parent, bare.logged_s, bare.subject.as_str()), (None, None, "s"));
        assert_eq!(entry("warning: something"), None);
    }

    #[test]
    fn files_are_counted_and_the_first_ones_named() {
        let text = format!("{A}\x001\t2\ta\tb\0-\t-\tpicture\0{B}\0{}", "3\t0\tx\0".repeat(50));
        let all = changes(text.as_bytes());
        let first = Changes {
            files: vec!["a\tb".into(), "picture".into()],
            file_count: 2,
            insertions: 1,
            deletions: 2,
        };
        assert_eq!(all[A], first);
        assert_eq!((all[B].files.len(), all[B].file_count, all[B].insertions), (20, 50, 150));
        let long = format!("{A}\x001\t0\t{}\x001\t0\tb\0", "x".repeat(2_000));
        assert_eq!(changes(long.as_bytes())[A].files, [""; 0]);
    }

    #[test]
    fn any_output_is_read_without_a_panic() {
        arbtest::arbtest(|u| {
            let (line, output): (String, Vec<u8>) = (u.arbitrary()?, u.arbitrary()?);
            let _ = (entry(&line), changes(&output));
            Ok(())
        });
    }
}
