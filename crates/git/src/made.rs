//! Which commits a command made. A commit is a command's if its file was written while the command ran; that is known to
//! a tenth of a second. If the file is gone, because git has packed it meanwhile, only the second is known.

use patterm_wire::events::GitEvidence;

use crate::repository::{ReflogEntry, Repository};
use crate::trace::TracedCommand;

/// How far the time of a file may be behind: the kernel stamps files with the time of its last tick, which a virtual
/// machine under load may get late.
const TICK_US: u64 = 100_000;

/// Commands that check out branches.
const CHECK_OUT: [&str; 2] = ["checkout", "switch"];

/// What HEAD's history says about a checkout.
const MOVING: &str = "checkout: moving from ";

/// What it says at the end of a rebase.
const RETURNING: &str = "rebase (finish): returning to refs/heads/";

/// A commit that a command made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made<'r> {
    /// The commit.
    pub entry: &'r ReflogEntry,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// What shows it.
    pub evidence: GitEvidence,
}

/// A branch that a command checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedOut {
    /// The branch; a hash if it is none.
    pub branch: String,
    /// The one before.
    pub before: Option<String>,
}

/// The commits that a command made, the oldest first. One that the same command replaced is not among them, such as
/// those that a rebase has squashed, nor one that is no `candidate`.
#[must_use]
pub fn commits_by<'r>(
    command: &TracedCommand,
    repository: &'r Repository,
    is_candidate: impl Fn(&ReflogEntry) -> bool,
) -> Vec<Made<'r>> {
    let makes_one = !command.makes_many();
    if makes_none(command) {
        return Vec::new();
    }
    let mut made: Vec<Made<'r>> = Vec::new();
    for (at, entry) in repository.entries.iter().enumerate() {
        let Some(evidence) = evidence(command, entry).filter(|_| !only_moves_head(&entry.action))
        else {
            continue;
        };
        let is_known = made.iter().any(|known| known.entry.commit == entry.commit);
        if is_known || !is_candidate(entry) {
            continue;
        }
        let replaces = |last: &Made<'_>| last.entry.parent == entry.parent;
        made.pop_if(|last| makes_one || replaces(last));
        made.push(Made { entry, branch: branch_at(repository, at), evidence });
    }
    made
}

/// The last unused change of HEAD, by its number, that HEAD's history says a command made which makes at most one, and
/// the commit, if it made one: a fast-forward makes none.
#[must_use]
pub fn own_change<'r>(
    command: &TracedCommand,
    repository: &'r Repository,
    is_unused: impl Fn(usize) -> bool,
) -> Option<(usize, Option<Made<'r>>)> {
    if command.makes_many() || makes_none(command) {
        return None;
    }
    let mut entries = repository.entries.iter().enumerate().rev();
    entries.find_map(|(at, entry)| {
        if !is_unused(at) || !entry.action.starts_with(command.last_name()) {
            return None;
        }
        if only_moves_head(&entry.action) {
            return is_within(command, entry.logged_s).then_some((at, None));
        }
        let evidence = evidence(command, entry)?;
        Some((at, Some(Made { entry, branch: branch_at(repository, at), evidence })))
    })
}

/// The branch that a command checked out.
#[must_use]
pub fn branch_by(command: &TracedCommand, repository: &Repository) -> Option<CheckedOut> {
    let is_checkout = CHECK_OUT.contains(&command.last_name()) && command.exit == Some(0);
    // HEAD's history has whole seconds, in which there may be several checkouts.
    let is_named = |branch: &str| {
        let means = |word: &str| word == branch || ["-", "@{-1}"].contains(&word);
        branch == "HEAD" || command.words.iter().any(|word| means(word))
    };
    let mut entries = repository.entries.iter().rev().filter(|_| is_checkout);
    let entry = entries.find(|entry| {
        let is_it = moved(entry).is_some_and(|(_, branch)| is_named(branch));
        is_it && is_within(command, entry.logged_s)
    });
    let (before, branch) = moved(entry?)?;
    (before != branch)
        .then(|| CheckedOut { branch: branch.to_owned(), before: Some(before.to_owned()) })
}

fn makes_none(command: &TracedCommand) -> bool {
    let has_failed = command.exit.is_some_and(|code| code != 0);
    CHECK_OUT.contains(&command.last_name()) || (!command.makes_many() && has_failed)
}

fn evidence(command: &TracedCommand, entry: &ReflogEntry) -> Option<GitEvidence> {
    let Some(written) = entry.written_us else {
        let is_new =
            is_within(command, entry.logged_s) && is_within(command, Some(entry.committed_s));
        return is_new.then_some(GitEvidence::Time);
    };
    let while_it_ran = command.start_us.saturating_sub(TICK_US)..=command.end_us;
    while_it_ran.contains(&written).then_some(GitEvidence::ProcessTree)
}

fn is_within(command: &TracedCommand, seconds: Option<u64>) -> bool {
    let (first, last) = (command.start_us / 1_000_000, command.end_us / 1_000_000);
    seconds.is_some_and(|seconds| (first..=last).contains(&seconds))
}

/// Whether a change of HEAD leads to a commit that existed before.
fn only_moves_head(action: &str) -> bool {
    let begins = ["checkout:", "clone:", "reset:", "rebase (start)", "rebase (finish)"];
    begins.iter().any(|begin| action.starts_with(begin))
        || action.to_ascii_lowercase().ends_with("fast-forward")
}

/// The branch that was checked out after an entry: the one that HEAD left next, or else the current one.
fn branch_at(repository: &Repository, at: usize) -> Option<String> {
    let left = |entry: &ReflogEntry| {
        let returned = entry.action.strip_prefix(RETURNING);
        returned.or_else(|| moved(entry).map(|(before, _)| before)).map(str::to_owned)
    };
    let later = repository.entries[at + 1..].iter().find_map(left);
    let is_branch = |name: &String| name != "HEAD" && !is_commit(name);
    match later {
        Some(name) => Some(name).filter(is_branch),
        None => repository.branch.clone(),
    }
}

/// Where from and where to HEAD moved.
fn moved(entry: &ReflogEntry) -> Option<(&str, &str)> {
    // Names of branches contain no space.
    entry.action.strip_prefix(MOVING)?.split_once(" to ")
}

fn is_commit(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn command(name: &str, start_us: u64, end_us: u64) -> TracedCommand {
        let (command, exit) = (name.to_owned(), Some(0));
        let words = vec!["-q".to_owned(), "side".to_owned()];
        TracedCommand { command, words, worktree: "/r".into(), start_us, end_us, exit }
    }

    /// Entries: the commit, its parent, when it was written, and what moved HEAD.
    fn repository(entries: &[(&str, &str, Option<u64>, &str)]) -> Repository {
        let entry =
            |(commit, parent, written, action): &(&str, &str, Option<u64>, &str)| ReflogEntry {
                commit: (*commit).to_owned(),
                parent: Some((*parent).to_owned()),
                committed_s: 100,
                logged_s: Some(100),
                action: (*action).to_owned(),
                subject: String::new(),
                written_us: *written,
            };
        Repository { entries: entries.iter().map(entry).collect(), branch: Some("main".into()) }
    }

    fn names(made: &[Made<'_>]) -> Vec<String> {
        made.iter().map(|made| made.entry.commit.clone()).collect()
    }

    #[test]
    fn commits_in_the_same_second_belong_to_the_commands_that_wrote_them() {
        let at = |ms: u64| 100 * SECOND + ms * 1_000;
        let shown = repository(&[
            ("a", "0", Some(at(50)), "commit: a"),
            ("b", "a", Some(at(250)), "commit: b"),
        ]);
        let by = |start, end| {
            names(&commits_by(&command("commit", at(start), at(end)), &shown, |_| true))
        };
        assert_eq!(by(40, 60), ["a"]);
        assert_eq!(by(240, 260), ["b"]);
        assert_eq!(by(140, 200), ["a"], "the kernel's clock ticks");
        assert_eq!(by(0, 900), ["b"], "a commit makes one");
        assert_eq!(by(400, 900), [""; 0]);
        let failed = TracedCommand { exit: Some(1), ..command("commit", at(40), at(60)) };
        assert_eq!(commits_by(&failed, &shown, |_| true), []);
        let killed = TracedCommand { exit: None, ..failed };
        assert_eq!(names(&commits_by(&killed, &shown, |_| true)), ["a"]);
    }

    #[test]
    fn a_command_has_its_own_change_though_file_times_lag() {
        let at = |ms: u64| 100 * SECOND + ms * 1_000;
        // The second commit was written after 20, and its file has an earlier time.
        let shown = repository(&[
            ("a", "0", Some(at(15)), "commit: a"),
            ("b", "a", Some(at(15)), "commit: b"),
            ("m", "b", Some(at(40)), "merge side: Merge made by the 'ort' strategy."),
            ("m", "b", Some(at(40)), "merge side: Fast-forward"),
        ]);
        let commands =
            [("commit", 10, 20), ("commit", 20, 30), ("merge", 35, 45), ("merge", 50, 60)];
        let mut used = Vec::new();
        let mut own = Vec::new();
        for (name, start, end) in commands.into_iter().rev() {
            let command = command(name, at(start), at(end));
            let (change, made) = own_change(&command, &shown, |at| !used.contains(&at)).unwrap();
            used.push(change);
            own.push(made.map(|made| made.entry.commit.as_str()));
        }
        assert_eq!(own, [None, Some("m"), Some("b"), Some("a")]);
        let failed = TracedCommand { exit: Some(1), ..command("commit", at(10), at(20)) };
        assert_eq!(own_change(&failed, &shown, |_| true), None);
    }

    #[test]
    fn a_packed_commit_is_found_by_its_second_and_marked() {
        let shown = repository(&[("a", "0", None, "commit: a")]);
        let made = |from: u64| {
            let command = command("commit", from * SECOND, (from + 1) * SECOND);
            commits_by(&command, &shown, |_| true)
                .iter()
                .map(|made| made.evidence.clone())
                .collect::<Vec<_>>()
        };
        let expected: [Vec<GitEvidence>; 2] = [vec![GitEvidence::Time], Vec::new()];
        assert_eq!([made(99), made(101)], expected);
    }

    #[test]
    fn what_only_moves_head_makes_no_commit() {
        let actions = [
            "merge x: Fast-forward",
            "pull: Fast-forward",
            "rebase: fast-forward",
            "checkout: moving from a to b",
            "rebase (start): checkout x",
            "reset: moving to x",
        ];
        for action in actions {
            let shown = repository(&[("a", "0", None, action)]);
            let command = command("rebase", 100 * SECOND, 101 * SECOND);
            assert_eq!(commits_by(&command, &shown, |_| true), [], "{action}");
        }
    }

    #[test]
    fn a_rebase_makes_what_is_left_of_it_on_the_branch_that_it_returns_to() {
        let at = Some(100 * SECOND);
        let shown = repository(&[
            ("old", "0", Some(7), "commit: old"),
            ("base", "0", Some(8), "rebase (start): checkout base"),
            ("a", "base", at, "rebase (pick): a"),
            ("a2", "base", at, "rebase (fixup): a"),
            ("b", "a2", at, "rebase (pick): b"),
            ("b", "a2", at, "rebase (finish): returning to refs/heads/side"),
            ("base", "0", Some(8), "checkout: moving from side to main"),
        ]);
        let made = commits_by(&command("rebase", 99 * SECOND, 101 * SECOND), &shown, |_| true);
        assert_eq!(names(&made), ["a2", "b"]);
        assert!(made.iter().all(|made| made.branch.as_deref() == Some("side")));
    }

    #[test]
    fn the_branch_is_the_one_that_was_checked_out_then() {
        let hash = "26117f47112964a9e1ac490f1f38e4c938f6e39c";
        let to = |name: &str| format!("checkout: moving from {name} to main");
        for (later, expected) in [(to("side"), Some("side")), (to(hash), None), (to("HEAD"), None)]
        {
            let entries = [("a", "0", Some(100 * SECOND), "commit: a"), ("b", "0", None, &later)];
            let shown = repository(&entries);
            let made = commits_by(&command("commit", 100 * SECOND, 101 * SECOND), &shown, |_| true);
            assert_eq!(made[0].branch.as_deref(), expected);
        }
    }

    #[test]
    fn a_checkout_is_found_by_its_second() {
        let moving = "checkout: moving from main to side";
        let shown = repository(&[("a", "0", None, moving), ("a", "0", None, "commit: x")]);
        let by = |name: &str, second: u64| {
            branch_by(&command(name, second * SECOND, second * SECOND), &shown)
        };
        let expected = CheckedOut { branch: "side".into(), before: Some("main".into()) };
        assert_eq!(by("switch", 100), Some(expected));
        assert_eq!((by("switch", 101), by("commit", 100)), (None, None));
        let mut other = command("switch", 100 * SECOND, 100 * SECOND);
        other.words = vec!["other".into()];
        assert_eq!(branch_by(&other, &shown), None, "another checkout in the same second");
        let same = "checkout: moving from side to side";
        let stays = repository(&[("a", "0", None, same)]);
        assert_eq!(branch_by(&command("checkout", 100 * SECOND, 100 * SECOND), &stays), None);
    }
}
