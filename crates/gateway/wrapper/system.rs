//! The few system calls of the wrapper, behind safe functions. It has no crates, so they are
//! declared here; every C library on Linux has them.

use std::io;
use std::time::Duration;

const SIGINT: i32 = 2;
pub const SIGKILL: i32 = 9;
pub const SIGTERM: i32 = 15;
const SIGHUP: i32 = 1;
const SIGCHLD: i32 = 17;

pub const IN: i16 = 1;
pub const OUT: i16 = 4;

const PR_SET_CHILD_SUBREAPER: i32 = 36;
const F_SETFL: i32 = 4;
const O_NONBLOCK: i32 = 0o4000;
const SFD_NONBLOCK: i32 = 0o4000;
const SFD_CLOEXEC: i32 = 0o2_000_000;
const SIG_BLOCK: i32 = 0;
const WNOHANG: i32 = 1;

/// As large as in any C library.
#[repr(C, align(8))]
struct SignalSet([u8; 128]);

/// A descriptor and the events it is polled for: `struct pollfd`.
#[repr(C)]
pub struct PollFd {
    descriptor: i32,
    events: i16,
    seen: i16,
}

impl PollFd {
    /// A negative descriptor is never ready.
    pub fn new(descriptor: i32, events: i16) -> Self {
        Self { descriptor, events, seen: 0 }
    }

    pub fn is_ready(&self) -> bool {
        self.seen != 0
    }
}

unsafe extern "C" {
    fn prctl(option: i32, ...) -> i32;
    fn fcntl(descriptor: i32, command: i32, ...) -> i32;
    fn sigemptyset(set: *mut SignalSet) -> i32;
    fn sigaddset(set: *mut SignalSet, signal: i32) -> i32;
    fn sigprocmask(how: i32, set: *const SignalSet, old: *mut SignalSet) -> i32;
    fn signalfd(descriptor: i32, set: *const SignalSet, flags: i32) -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    #[link_name = "kill"]
    fn send_signal(pid: i32, signal: i32) -> i32;
    #[link_name = "poll"]
    fn poll_all(polled: *mut PollFd, count: usize, milliseconds: i32) -> i32;
    #[link_name = "read"]
    fn read_from(descriptor: i32, bytes: *mut u8, count: usize) -> isize;
    #[link_name = "write"]
    fn write_to(descriptor: i32, bytes: *const u8, count: usize) -> isize;
    #[link_name = "close"]
    fn close_one(descriptor: i32) -> i32;
}

/// Makes this process the parent of orphaned descendants.
pub fn adopt_orphans() {
    // SAFETY: an option with one number.
    unsafe { prctl(PR_SET_CHILD_SUBREAPER, 1_usize) };
}

pub fn set_nonblocking(descriptor: i32) {
    // SAFETY: sets flags of a descriptor that we own.
    unsafe { fcntl(descriptor, F_SETFL, O_NONBLOCK) };
}

pub fn close(descriptor: i32) {
    // SAFETY: the caller gives up a descriptor that it owns.
    unsafe { close_one(descriptor) };
}

/// Waits until one is ready, or for at most `limit`; without one, for ever.
pub fn poll(polled: &mut [PollFd], limit: Option<Duration>) {
    let milliseconds = limit.map_or(-1, |limit| {
        // Rounded up, or the last millisecond would be spent in a busy loop.
        i32::try_from(limit.as_millis() + 1).unwrap_or(i32::MAX)
    });
    // SAFETY: `PollFd` is laid out as `struct pollfd`, and the length is the slice's.
    unsafe { poll_all(polled.as_mut_ptr(), polled.len(), milliseconds) };
}

/// Reads; 0 at the end and on errors, which are treated as the end.
pub fn read(descriptor: i32, bytes: &mut [u8]) -> usize {
    loop {
        // SAFETY: the kernel writes at most as many bytes as the slice has.
        let count = unsafe { read_from(descriptor, bytes.as_mut_ptr(), bytes.len()) };
        if count < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            continue;
        }
        return usize::try_from(count).unwrap_or(0);
    }
}

/// Writes as much as possible without blocking.
pub fn write(descriptor: i32, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads at most as many bytes as the slice has.
    let count = unsafe { write_to(descriptor, bytes.as_ptr(), bytes.len()) };
    if count >= 0 {
        return Ok(usize::try_from(count).unwrap_or(0));
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: takes two numbers; an error for a process that is gone is ignored.
    unsafe { send_signal(pid, signal) };
}

/// How a process ended.
#[derive(Clone, Copy)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// The result of `wait`.
pub enum Waited {
    Exited(i32, Exit),
    /// There are children, and none has ended.
    Running,
    NoChild,
}

/// Reaps a child that ended, if there is one.
pub fn wait() -> Waited {
    let mut status = 0;
    // SAFETY: the status is written to a local variable.
    let pid = unsafe { waitpid(-1, &mut status, WNOHANG) };
    match (pid, status & 0x7f) {
        (0, _) => Waited::Running,
        (..0, _) => Waited::NoChild,
        (_, 0) => Waited::Exited(pid, Exit::Code((status >> 8) & 0xff)),
        (_, signal) => Waited::Exited(pid, Exit::Signal(signal)),
    }
}

/// Signals that can be polled.
pub struct Signals(i32);

impl Signals {
    /// Blocks the signals, so that they can be read. Programs that are started do not inherit this.
    pub fn new() -> Self {
        let mut set = SignalSet([0; 128]);
        // SAFETY: the set is a local variable, at least as large as the C library's.
        let descriptor = unsafe {
            sigemptyset(&mut set);
            for signal in [SIGHUP, SIGINT, SIGTERM, SIGCHLD] {
                sigaddset(&mut set, signal);
            }
            sigprocmask(SIG_BLOCK, &set, std::ptr::null_mut());
            signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)
        };
        Self(descriptor)
    }

    pub fn polled(&self) -> PollFd {
        PollFd::new(self.0, IN)
    }

    /// Reads all pending signals; returns whether one of them requests the end.
    pub fn take(&self) -> bool {
        // `struct signalfd_siginfo`, which begins with the signal's number.
        let mut bytes = [0; 128];
        let mut must_end = false;
        while read(self.0, &mut bytes) == bytes.len() {
            let signal = i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            must_end |= signal != SIGCHLD;
        }
        must_end
    }
}
