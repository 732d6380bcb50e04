//! What the tests themselves do with an engine.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;

use crate::support::{Place, Running};

/// A timeout longer than anything here takes; a test that reaches it has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The label that names a container's bot.
pub(super) const LABEL: &str = "patterm.bot";

/// An image without labels, and one that claims to be `alpha`'s.
pub(super) const PLAIN: &str = "local/plain:1";
pub(super) const CLAIMING: &str = "local/claiming:1";

/// An engine of a test's own.
pub(super) trait Engine {
    /// Its name in a project file.
    fn word(&self) -> &'static str;

    /// Its socket.
    fn socket(&self) -> PathBuf;

    /// Starts a container that does nothing.
    fn run(&self, name: &str, image: &str, labels: &[(&str, &str)]);

    /// Stops a container without removing it.
    fn stop(&self, name: &str);

    /// Starts it again.
    fn start(&self, name: &str);

    /// The names of all containers with a label.
    fn labelled(&self, label: &str) -> Vec<String>;

    /// The host's process id of a container's first process.
    fn first_process(&self, name: &str) -> u32;

    /// Kills the engine itself.
    fn kill(&mut self);

    /// Starts it again.
    fn restart(&mut self);
}

/// Runs a command to completion; returns its output.
pub(super) fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Polls until there is a value, for changes that produce no event.
pub(super) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    let pause = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < PATIENCE, "it never came: {what}");
        let _ = poll(&mut [], Some(&pause));
    }
}

/// Terminates an engine, waits for it, and removes what engines leave in a place: helpers that wait
/// for somebody to query an exit status, and mounts.
pub(super) fn end(engine: &mut Child, place: &Place) {
    if let Some(running) = Running::find(engine.id()) {
        running.signal(Signal::TERM);
    }
    let _ = engine.wait();
    let top = place.path("");
    let top = top.to_str().unwrap();
    for pid in running(&[top]) {
        if let Some(left) = Running::find(pid) {
            left.signal(Signal::KILL);
            left.wait();
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let below = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for mount in below.filter(|mount| mount.starts_with(top)) {
        let _ = unmount(mount, UnmountFlags::DETACH);
    }
}

/// Processes with these words in their command line.
pub(super) fn running(words: &[&str]) -> Vec<u32> {
    let wanted = words.join("\0");
    processes()
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&wanted)
        })
        .collect()
}

/// Zombie children of a process.
pub(super) fn zombies_below(parent: u32) -> usize {
    let below = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        let mut words = rest.split_whitespace();
        words.next() == Some("Z") && words.next() == Some(&parent.to_string())
    };
    processes().filter(below).count()
}

fn processes() -> impl Iterator<Item = u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
