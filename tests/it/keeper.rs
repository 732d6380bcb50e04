//! The keeper and its inits, with real programs: started, watched, handed over to another server,
//! and ended with everything they started.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use patterm_keeper::log::Log;
use patterm_keeper::{
    Environment, Exit, KeeperConnection, Pane, PaneEvent, Program, ProgramStatus, Size, SpawnFault,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::{Baseline, Place, ProcessStats};

const SIZE: Size = Size { rows: 24, columns: 80 };

/// A timeout longer than anything here takes; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

struct Kept {
    place: Place,
    keeper: Child,
    socket: PathBuf,
}

impl Kept {
    /// A keeper whose server is the given command, which it runs whenever its server is gone.
    fn start(server: &[&str]) -> (Self, KeeperConnection) {
        let place = Place::new();
        let socket = place.path("run").join("keeper.sock");
        let mut command = place.patterm(&["keeper", "--socket", socket.to_str().unwrap(), "--"]);
        let keeper = command.args(server).stdin(Stdio::null()).spawn().unwrap();
        let client = until(|| KeeperConnection::connect(&socket).ok());
        (Self { place, keeper, socket }, client)
    }

    fn program(&self, argv: &[&str]) -> Program {
        let path = std::env::var("PATH").unwrap();
        Program {
            argv: argv.iter().map(ToString::to_string).collect(),
            env: Environment::from([("PATH", path), ("GREETING", "hello".into())]),
            working_dir: self.place.path("project"),
            size: SIZE,
        }
    }

    fn sh(&self, script: &str) -> Program {
        self.program(&["sh", "-c", script])
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        match KeeperConnection::connect(&self.socket) {
            Ok(mut client) => drop(client.end()),
            Err(_) => drop(self.keeper.kill()),
        }
        let _ = self.keeper.wait();
    }
}

/// Polls until there is a value. Only for changes that produce no event.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < PATIENCE, "timed out");
        std::thread::yield_now();
    }
}

/// Waits for a descriptor.
fn ready(descriptor: impl AsFd) {
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
    assert!(poll(&mut watched, Some(&patience)).unwrap() > 0, "nothing came in {PATIENCE:?}");
}

/// Waits until the status matches.
fn status(pane: &Pane, wanted: impl Fn(&ProgramStatus) -> bool) -> ProgramStatus {
    loop {
        if let Some(status) = pane.status().unwrap().filter(&wanted) {
            return status;
        }
        ready(pane.events());
        if pane.next_event() == PaneEvent::Gone {
            let last = pane.status().unwrap();
            return last.filter(&wanted).unwrap_or_else(|| panic!("the init is gone: {last:?}"));
        }
    }
}

fn exited(pane: &Pane) -> Exit {
    status(pane, |status| status.exit.is_some()).exit.unwrap()
}

/// Everything the program prints until its terminal is closed.
fn output(pane: &Pane) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(bytes @ 1..) = rustix::io::read(pane.master(), &mut buffer) {
        text.extend_from_slice(&buffer[..bytes]);
    }
    String::from_utf8(text).unwrap()
}

/// Reads until the output contains `mark`; returns all of it.
fn output_until(pane: &Pane, mark: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(mark) {
        ready(pane.master());
        let bytes = rustix::io::read(pane.master(), &mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..bytes]).unwrap());
    }
    text
}

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

#[test]
fn a_program_runs_on_its_own_terminal_with_exactly_what_was_requested() {
    let (kept, mut keeper) = Kept::start(&[]);
    let script = "tty; stty size; echo $GREETING; pwd; env | sort; ls /proc/self/fd; ps -o pid=,sid=,pgid= -p $$ | tr -s ' '; echo pid $$; exit 7";
    let pane = keeper.spawn("p1", &kept.sh(script), None).unwrap();
    let text = output(&pane);
    assert_eq!(exited(&pane), Exit::Code(7), "{text}");
    assert!(text.contains("/dev/pts/") && text.contains("24 80"), "{text}");
    assert!(text.contains("hello"), "{text}");
    assert!(text.contains(kept.place.path("project").to_str().unwrap()), "{text}");
    assert!(!text.contains("XDG_RUNTIME_DIR") && !text.contains("HOME"), "{text}");
    // `ls` itself opens the folder that it lists.
    assert!(text.contains("0  1  2  3\r\n") || text.contains("0\r\n1\r\n2\r\n3\r\n"), "{text}");
    let pid = text.rsplit("pid ").next().unwrap().trim();
    assert!(text.contains(&format!("{pid} {pid} {pid}")), "leads session and group: {text}");
    assert!(status(&pane, |status| status.empty).empty);
}

#[test]
fn bad_programs_are_refused_with_the_reason_and_leave_nothing() {
    let (kept, mut keeper) = Kept::start(&[]);
    let script = kept.place.path("project").join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::write(script.with_extension("txt"), "text").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let mut elsewhere = kept.program(&["true"]);
    elsewhere.working_dir = "/no/such/folder".into();
    let mut zero = kept.program(&["true"]);
    zero.argv.push("a\0b".into());
    for (program, reason) in [
        (kept.program(&["no-such-program"]), "no program `no-such-program` in PATH"),
        (kept.program(&["./missing"]), "there is no program"),
        (kept.program(&["./script.txt"]), "cannot be executed"),
        (kept.program(&["./script"]), "its interpreter does not exist"),
        (kept.program(&[]), "names no program"),
        (elsewhere, "/no/such/folder is not a folder"),
        (zero, "NUL byte"),
    ] {
        let error = keeper.spawn("p1", &program, None).unwrap_err();
        assert_eq!(error.fault, SpawnFault::Request, "{error}");
        assert!(error.message.contains(reason), "{error}");
    }
    assert!(keeper.list().unwrap().is_empty());
    std::fs::write(&script, "echo a script without its first line\n").unwrap();
    let pane = keeper.spawn("p1", &kept.program(&["./script"]), None).unwrap();
    assert!(output(&pane).contains("without its first line"));
}

#[test]
fn signals_reach_the_group_and_kinds_of_exit_are_distinguished() {
    let (kept, mut keeper) = Kept::start(&[]);
    let pane = keeper.spawn("p1", &kept.sh("echo up; exec sleep 1000"), None).unwrap();
    output_until(&pane, "up");
    pane.signal(libc_signal::USR1).unwrap();
    assert_eq!(exited(&pane), Exit::Signal(libc_signal::USR1));
    let polite = "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done";
    let pane = keeper.spawn("p2", &kept.sh(polite), None).unwrap();
    output_until(&pane, "up");
    pane.stop(libc_signal::TERM, PATIENCE).unwrap();
    assert_eq!(exited(&pane), Exit::Code(3));
}

#[test]
fn a_stubborn_tree_is_gone_after_the_grace_time() {
    let (kept, mut keeper) = Kept::start(&[]);
    // Ignores everything, and so do its children: in the group, in sessions of their own, and
    // twice forked away from it.
    let script = "trap '' HUP INT TERM
        (while :; do sleep 1000; done) & echo child $! .
        setsid sh -c 'trap \"\" HUP INT TERM; echo session $$ .; while :; do sleep 1000; done' &
        (setsid sh -c '(trap \"\" HUP INT TERM; echo daemon $(exec sh -c \"echo \\$PPID\") .; while :; do sleep 1000; done) &' &)
        echo main $$ .
        while :; do sleep 1000; done";
    let pane = keeper.spawn("p1", &kept.sh(script), None).unwrap();
    let mut text = String::new();
    let mut pids = BTreeMap::new();
    while pids.len() < 4 {
        text += &output_until(&pane, ".");
        for line in text.lines().filter(|line| line.ends_with('.')) {
            let words: Vec<_> = line.split_whitespace().collect();
            pids.insert(words[0].to_owned(), words[1].to_owned());
        }
    }
    assert!(pids.values().all(|pid| alive(pid)), "{pids:?}");
    let grace = Duration::from_millis(200);
    let start = Instant::now();
    pane.stop(libc_signal::TERM, grace).unwrap();
    let end = status(&pane, |status| status.empty);
    assert_eq!(end.exit, Some(Exit::Signal(libc_signal::KILL)));
    assert!(start.elapsed() >= grace, "it had its grace period");
    assert!(start.elapsed() < grace + Duration::from_secs(5));
    assert!(!pids.values().any(|pid| alive(pid)), "{pids:?}");
}

#[test]
fn processes_that_a_program_leaves_behind_end_when_the_pane_is_released() {
    let (kept, mut keeper) = Kept::start(&[]);
    let script = "setsid sh -c 'echo left $$ .; exec sleep 1000' & wait_for=$!; sleep 0.1; exit 0";
    let pane = keeper.spawn("p1", &kept.sh(script), None).unwrap();
    let text = output_until(&pane, ".");
    let left = text.split_whitespace().nth(1).unwrap().to_owned();
    assert_eq!(exited(&pane), Exit::Code(0));
    assert!(!pane.status().unwrap().unwrap().empty);
    assert!(alive(&left));
    keeper.forget("p1").unwrap();
    status(&pane, |status| status.empty);
    assert!(!alive(&left));
    assert!(keeper.list().unwrap().is_empty());
}

#[test]
fn a_new_server_finds_every_pane_and_its_exit() {
    let (kept, mut keeper) = Kept::start(&[]);
    let lives = keeper.spawn("lives", &kept.program(&["cat"]), None).unwrap();
    let ended = keeper.spawn("ended", &kept.sh("echo printed before; exit 5"), None).unwrap();
    exited(&ended);
    drop((lives, ended, keeper));
    let mut keeper = KeeperConnection::connect(&kept.socket).unwrap();
    let mut panes: BTreeMap<_, _> = keeper.list().unwrap().into_iter().collect();
    assert_eq!(panes.keys().collect::<Vec<_>>(), ["ended", "lives"]);
    let ended = panes.remove("ended").unwrap();
    assert_eq!(exited(&ended), Exit::Code(5));
    assert!(output(&ended).contains("printed before"), "its last words wait in the kernel");
    let lives = panes.remove("lives").unwrap();
    rustix::io::write(lives.master(), b"still there\n").unwrap();
    assert!(output_until(&lives, "still there\r\nstill there").len() > 20);
}

#[test]
fn the_server_is_started_again_when_it_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("started");
    let script = format!("echo again >> {}", note.display());
    let (_kept, keeper) = Kept::start(&["sh", "-c", &script]);
    drop(keeper);
    until(|| std::fs::read_to_string(&note).ok().filter(|text| text.contains("again")));
}

#[test]
fn a_keeper_that_is_displaced_ends_itself_and_starts_no_server() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("started");
    let script = format!("echo again >> {}", note.display());
    let (mut kept, keeper) = Kept::start(&["sh", "-c", &script]);
    std::fs::remove_file(&kept.socket).unwrap();
    let other = std::os::unix::net::UnixListener::bind(&kept.socket).unwrap();
    drop(keeper);
    until(|| kept.keeper.try_wait().unwrap());
    assert!(kept.socket.exists(), "the socket there is not its own");
    assert!(!note.exists());
    drop(other);
}

#[test]
fn a_keeper_recreates_its_removed_socket() {
    let (kept, mut keeper) = Kept::start(&["true"]);
    keeper.spawn("p1", &kept.program(&["cat"]), None).unwrap();
    std::fs::remove_file(&kept.socket).unwrap();
    drop(keeper);
    let mut keeper = until(|| KeeperConnection::connect(&kept.socket).ok());
    assert_eq!(keeper.list().unwrap().len(), 1);
}

#[test]
fn a_second_keeper_does_not_replace_a_living_one() {
    let (kept, mut keeper) = Kept::start(&["true"]);
    let socket = kept.socket.to_str().unwrap();
    let second = kept.place.patterm(&["keeper", "--socket", socket, "--", "true"]).output();
    let second = second.unwrap();
    assert!(!second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("another keeper"), "{second:?}");
    assert!(keeper.list().unwrap().is_empty(), "its check was not mistaken for a server");
}

#[test]
fn panes_survive_a_killed_keeper_and_another_takes_them_over() {
    let (mut kept, mut keeper) = Kept::start(&[]);
    let pane = keeper.spawn("p1", &kept.program(&["cat"]), None).unwrap();
    kept.keeper.kill().unwrap();
    kept.keeper.wait().unwrap();
    ready(&keeper);
    assert!(keeper.list().is_err());
    rustix::io::write(pane.master(), b"alive\n").unwrap();
    output_until(&pane, "alive\r\nalive");

    let (other, mut second) = Kept::start(&[]);
    second.adopt("p1", &pane).unwrap();
    drop(pane);
    let (name, pane) = second.list().unwrap().pop().unwrap();
    assert_eq!(name, "p1");
    rustix::io::write(pane.master(), b"again\n").unwrap();
    output_until(&pane, "again\r\nagain");
    second.forget("p1").unwrap();
    assert!(status(&pane, |status| status.empty).exit.is_some());
    drop(other);
}

/// Neither keeper is an ancestor of the processes of such an init.
#[test]
fn processes_that_a_killed_adopted_init_leaves_behind_are_ended() {
    let (mut kept, mut first) = Kept::start(&[]);
    let script = "setsid -f sleep 1000; setsid -f sh -c 'echo $$ . > daemon; exec sleep 1001'; cat";
    let pane = first.spawn("p1", &kept.sh(script), None).unwrap();
    let daemon = kept.place.path("project/daemon");
    let text = until(|| std::fs::read_to_string(&daemon).ok().filter(|text| text.contains('.')));
    let pid: u32 = text.split_whitespace().next().unwrap().parse().unwrap();
    let init = rustix::process::Pid::from_raw(status(&pane, |_| true).init).unwrap();
    kept.keeper.kill().unwrap();
    kept.keeper.wait().unwrap();
    let (other, mut second) = Kept::start(&[]);
    second.adopt("p1", &pane).unwrap();
    assert!(is_running(pid));
    rustix::process::kill_process(init, rustix::process::Signal::KILL).unwrap();
    until(|| (!is_running(pid)).then_some(()));
    assert!(!status(&pane, |_| true).empty, "the init itself ended nothing");
    drop(other);
}

/// Whether a process is alive and not a zombie.
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

#[test]
fn a_killed_init_ends_its_own_children_and_nothing_else() {
    let (kept, mut keeper) = Kept::start(&[]);
    let other = keeper.spawn("other", &kept.program(&["cat"]), None).unwrap();
    let pane = keeper.spawn("p1", &kept.sh("echo $$ .; exec sleep 1000"), None).unwrap();
    let pid = output_until(&pane, ".").split_whitespace().next().unwrap().to_owned();
    let init = status(&pane, |_| true).init;
    let init = rustix::process::Pid::from_raw(init).unwrap();
    rustix::process::kill_process(init, rustix::process::Signal::KILL).unwrap();
    loop {
        ready(pane.events());
        if pane.next_event() == PaneEvent::Gone {
            break;
        }
    }
    assert_eq!(pane.status().unwrap().unwrap().exit, None, "nobody saw how it ended");
    until(|| (!alive(&pid)).then_some(()));
    rustix::io::write(other.master(), b"fine\n").unwrap();
    output_until(&other, "fine\r\nfine");
}

#[test]
fn two_hundred_panes_come_and_go_without_a_trace() {
    let (kept, mut keeper) = Kept::start(&[]);
    let mut round = |panes: usize| {
        let panes: Vec<_> = (0..panes)
            .map(|n| {
                let name = format!("p{n}");
                let pane = keeper.spawn(&name, &kept.program(&["cat"]), None).unwrap();
                (name, pane)
            })
            .collect();
        for (name, pane) in &panes {
            keeper.forget(name).unwrap();
            status(pane, |status| status.empty);
        }
    };
    let at_rest = Baseline::after(&ProcessStats::of(kept.keeper.id()), || round(5));
    (0..4).for_each(|_| round(50));
    at_rest.wait_until_reached();
}

#[test]
fn a_log_contains_everything_that_a_program_printed() {
    let (kept, mut keeper) = Kept::start(&[]);
    let pane = keeper.spawn("p1", &kept.program(&["seq", "1", "200000"]), None).unwrap();
    let mut log = Log::open(&kept.place.path("log"), 64 << 20).unwrap();
    loop {
        if !log.has_room() {
            log.make_room().unwrap();
        }
        // The end of a terminal reads as an error.
        let Ok(read) = log.read_from(pane.master(), 16 << 10) else { break };
        assert!(read > 0);
    }
    let expected: String = (1..=200_000).map(|n| format!("{n}\r\n")).collect();
    let bytes = log.reader().copy(0, usize::MAX).bytes;
    assert!(bytes == expected.into_bytes(), "{} bytes", bytes.len());
    assert_eq!(exited(&pane), Exit::Code(0));
}

/// The numbers of these signals on every Linux that patterm supports.
mod libc_signal {
    pub(super) const KILL: i32 = 9;
    pub(super) const USR1: i32 = 10;
    pub(super) const TERM: i32 = 15;
}
