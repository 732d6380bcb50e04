//! One trace file of git: JSON lines, as `GIT_TRACE2_EVENT` produces them in git 2.22 and newer. Each process writes one
//! file; its name is the id of the process, which begins with the time of its start.

use std::borrow::Cow;
use std::path::PathBuf;

use patterm_wire::events::parse_time;
use serde::Deserialize;

/// A command that git ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedCommand {
    /// Its name, after the names of the git commands that started it: `commit`, `pull/rebase`.
    pub command: String,
    /// Its first arguments that are no options.
    pub words: Vec<String>,
    /// The folder of the working tree in which it ran.
    pub worktree: PathBuf,
    /// When it started, in microseconds since 1970.
    pub start_us: u64,
    /// When it ended.
    pub end_us: u64,
    /// Its exit code; `None` if it was killed.
    pub exit: Option<i32>,
}

impl TracedCommand {
    /// Its own name.
    pub(crate) fn last_name(&self) -> &str {
        self.command.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it can make several commits.
    #[must_use]
    pub fn makes_many(&self) -> bool {
        MAKE_MANY.contains(&self.last_name())
    }
}

/// What a trace file contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trace {
    /// A command that can make commits or check out branches, and has ended.
    Command(TracedCommand),
    /// Another command that has ended.
    Other,
    /// A command that has not ended, or was killed.
    Open(OpenTrace),
}

/// The trace of a command that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenTrace {
    start_us: u64,
    command: Option<String>,
    words: Vec<String>,
    worktree: Option<PathBuf>,
}

impl OpenTrace {
    /// Whether it can become the trace of a command that matters.
    pub(crate) fn may_matter(&self) -> bool {
        // Names such as `_run_git_alias_` stand for others.
        self.command.as_ref().is_none_or(|command| command.starts_with('_') || matters(command))
    }

    /// The command as if it had been killed at this time, if it matters.
    pub(crate) fn killed_at(self, end_us: u64) -> Option<TracedCommand> {
        let (command, worktree) = (self.command?, self.worktree?);
        let matters = matters(&command) && self.start_us <= end_us;
        let (words, start_us) = (self.words, self.start_us);
        matters.then_some(TracedCommand { command, words, worktree, start_us, end_us, exit: None })
    }
}

/// A file that git did not write, or not like this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceFault;

/// Commands that make commits, or check out branches.
const MATTER: [&str; 8] =
    ["am", "checkout", "cherry-pick", "commit", "merge", "rebase", "revert", "switch"];

/// Those of them that can make several commits.
const MAKE_MANY: [&str; 4] = ["am", "cherry-pick", "rebase", "revert"];

/// The longest path of a working tree that is used: the kernel accepts no longer one.
const PATH_BYTES: usize = 4_096;

/// The longest name of a command: a few nested ones.
const COMMAND_BYTES: usize = 256;

/// Arguments that are kept: the name of a branch is among the first.
const MOST_WORDS: usize = 16;

/// The longest one that is kept: names of branches are file names.
const WORD_BYTES: usize = 255;

/// What is read of a line; it may have other members.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    sid: Cow<'a, str>,
    #[serde(default)]
    t_abs: Option<f64>,
    #[serde(default)]
    code: Option<i32>,
    #[serde(default)]
    argv: Vec<String>,
    #[serde(default, borrow)]
    hierarchy: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    worktree: Option<Cow<'a, str>>,
}

fn matters(command: &str) -> bool {
    let last = command.rsplit('/').next().unwrap_or(command);
    MATTER.contains(&last)
}

/// Whether a file may be a trace, by its name.
pub(crate) fn is_name(name: &str) -> bool {
    started_at(name).is_some()
}

/// The start in the id of a process, such as `20261119T201217.147478Z-H0a7c9cdf-P00005193`, in microseconds.
fn started_at(sid: &str) -> Option<u64> {
    let (time, rest) = sid.split_once('-')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let (seconds, micros) = clock.split_once('.')?;
    let sizes = (date.len(), seconds.len(), micros.len());
    let is_time = sizes == (8, 6, 6) && time.is_ascii() && rest.chars().all(is_plain);
    if !is_time || rest.is_empty() {
        return None;
    }
    let text = format!(
        "{}-{}-{}T{}:{}:{}.000Z",
        &date[..4],
        &date[4..6],
        &date[6..],
        &seconds[..2],
        &seconds[2..4],
        &seconds[4..]
    );
    Some(parse_time(&text)? * 1_000 + micros.parse::<u64>().ok()?)
}

/// Reads a trace. `tail` is the end of a file that is longer than `head`; both may begin or end within a line there.
pub(crate) fn read(name: &str, head: &[u8], tail: &[u8]) -> Result<Trace, TraceFault> {
    let start_us = started_at(name).ok_or(TraceFault)?;
    let mut open = OpenTrace { start_us, ..OpenTrace::default() };
    let mut sid: Option<String> = None;
    let mut ended = None;
    for line in whole_lines(head).chain(whole_lines(after_line(tail))) {
        // Arguments may contain any bytes.
        let text = String::from_utf8_lossy(line);
        let line: Line<'_> = serde_json::from_str(&text).map_err(|_| TraceFault)?;
        match &sid {
            None if line.event == "version" && is_of(&line.sid, name) => {
                sid = Some(line.sid.into_owned());
                continue;
            }
            Some(sid) if *sid == line.sid => {}
            _ => return Err(TraceFault),
        }
        match &*line.event {
            "start" => open.words = words(line.argv),
            "cmd_name" => open.command = line.hierarchy.map(Cow::into_owned).or(open.command),
            "def_repo" => {
                open.worktree =
                    open.worktree.or(line.worktree.map(|path| PathBuf::from(path.into_owned())));
            }
            "atexit" => ended = ended.or(Some((line.code, line.t_abs))),
            "signal" => ended = ended.or(Some((None, line.t_abs))),
            _ => {}
        }
    }
    check(&open)?;
    let Some((exit, seconds)) = ended else { return Ok(Trace::Open(open)) };
    let took = seconds.filter(|seconds| (0.0..1e9).contains(seconds)).ok_or(TraceFault)?;
    let end_us = start_us + (took * 1e6) as u64;
    let command = open.killed_at(end_us).map(|command| TracedCommand { exit, ..command });
    Ok(command.map_or(Trace::Other, Trace::Command))
}

fn words(arguments: Vec<String>) -> Vec<String> {
    let is_kept =
        |word: &String| (!word.starts_with('-') || word == "-") && word.len() <= WORD_BYTES;
    arguments.into_iter().skip(1).filter(is_kept).take(MOST_WORDS).collect()
}

fn check(open: &OpenTrace) -> Result<(), TraceFault> {
    let is_usable = |path: &PathBuf| path.is_absolute() && path.as_os_str().len() <= PATH_BYTES;
    let fits = open.command.as_ref().is_none_or(|command| command.len() <= COMMAND_BYTES);
    (fits && open.worktree.as_ref().is_none_or(is_usable)).then_some(()).ok_or(TraceFault)
}

/// Whether the id of a process is that of a file; git appends a number if the name is taken.
fn is_of(sid: &str, name: &str) -> bool {
    let own = sid.rsplit('/').next().unwrap_or(sid);
    let rest = name.strip_prefix(own);
    rest.is_some_and(|rest| {
        let number = rest.strip_prefix('.');
        rest.is_empty() || number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// The lines that are complete.
fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"))
}

/// What follows the first end of a line.
fn after_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    end.map_or(&[], |end| &bytes[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "20261119T201217.158904Z-H0a7c9cdf-P00005194";
    const START_US: u64 = 1_795_119_137_158_904;

    /// What git 2.47 writes for `git commit`, without most of the members.
    fn lines(sid: &str, command: &str) -> Vec<String> {
        let common = format!(r#""sid":"{sid}","thread":"main","line":57"#);
        vec![
            format!(r#"{{"event":"version",{common},"evt":"4","exe":"2.47.3"}}"#),
            format!(r#"{{"event":"start",{common},"t_abs":0.000451,"argv":["git","commit"]}}"#),
            format!(r#"{{"event":"def_repo",{common},"repo":1,"worktree":"/tmp/r"}}"#),
            format!(r#"{{"event":"cmd_name",{common},"name":"x","hierarchy":"{command}"}}"#),
            format!(r#"{{"event":"data",{common},"t_abs":0.1,"key":"path","value":{{"a":[1]}}}}"#),
            format!(r#"{{"event":"atexit",{common},"t_abs":0.013164,"code":0}}"#),
        ]
    }

    fn text(lines: &[String]) -> Vec<u8> {
        lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
    }

    fn commit() -> TracedCommand {
        TracedCommand {
            command: "commit".into(),
            words: vec!["commit".into()],
            worktree: "/tmp/r".into(),
            start_us: START_US,
            end_us: START_US + 13_164,
            exit: Some(0),
        }
    }

    #[test]
    fn a_command_is_read_from_its_trace() {
        let content = text(&lines(NAME, "commit"));
        assert_eq!(read(NAME, &content, b""), Ok(Trace::Command(commit())));
        // The second process of the same id in the same microsecond, and a child.
        assert!(read(&format!("{NAME}.1"), &content, b"").is_ok());
        let child = text(&lines(&format!("x/{NAME}"), "pull/rebase"));
        let Ok(Trace::Command(found)) = read(NAME, &child, b"") else { panic!("no command") };
        assert_eq!(found.command, "pull/rebase");
        assert_eq!(read(NAME, &text(&lines(NAME, "commit/maintenance")), b""), Ok(Trace::Other));
    }

    #[test]
    fn the_end_of_a_long_trace_is_enough() {
        let all = lines(NAME, "rebase");
        let (head, tail) = (text(&all[..4]), text(&all[4..]));
        let Ok(Trace::Command(found)) = read(NAME, &head, &tail[10..]) else { panic!("none") };
        assert_eq!((found.command.as_str(), found.exit), ("rebase", Some(0)));
    }

    #[test]
    fn a_killed_command_is_open_until_somebody_says_when_it_ended() {
        let all = lines(NAME, "commit");
        let Ok(Trace::Open(open)) = read(NAME, &text(&all[..5]), b"") else { panic!("ended") };
        assert!(open.may_matter());
        assert_eq!(open.clone().killed_at(START_US - 1), None);
        let killed = TracedCommand { exit: None, end_us: START_US + 5, ..commit() };
        assert_eq!(open.killed_at(START_US + 5), Some(killed));
        let others = text(&lines(NAME, "status")[..5]);
        let Ok(Trace::Open(other)) = read(NAME, &others, b"") else { panic!("ended") };
        assert!(!other.may_matter());
        let half = &text(&all)[..150];
        assert!(matches!(read(NAME, half, b""), Ok(Trace::Open(_))), "a line is being written");
        assert!(matches!(read(NAME, b"", b""), Ok(Trace::Open(_))), "nothing is written yet");
    }

    #[test]
    fn what_git_did_not_write_is_refused() {
        let good = lines(NAME, "commit");
        let mut others = good.clone();
        others[3] = lines("another", "commit")[3].clone();
        let mut relative = good.clone();
        relative[2] = relative[2].replace("/tmp/r", "tmp");
        let mut endless = good.clone();
        endless[5] = endless[5].replace("0.013164", "1e300");
        for bad in [text(&others), text(&relative), text(&endless), text(&good[1..])] {
            assert_eq!(read(NAME, &bad, b""), Err(TraceFault));
        }
        assert_eq!(read(NAME, b"garbage\n", b""), Err(TraceFault));
        for name in ["", "x", "20261119T201217.158904Z", "20261319T201217.158904Z-H-P", "é"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        arbtest::arbtest(|u| {
            let (name, head, tail): (String, Vec<u8>, Vec<u8>) =
                (u.arbitrary()?, u.arbitrary()?, u.arbitrary()?);
            let _ = read(&name, &head, &tail);
            let _ = read(NAME, &head, &tail);
            Ok(())
        });
    }
}
