//! Restores the terminal when a signal ends the process, such as SIGABRT after a stack overflow. A panic and an orderly
//! end do that themselves.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::c_int;
use rustix::process::Signal;
use rustix::termios::{OptionalActions, Termios, tcsetattr};

/// The signals of a crash.
const CRASHES: [Signal; 5] = [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL, Signal::FPE];

/// How a terminal is restored.
#[derive(Debug)]
pub struct TerminalRestore {
    /// The terminal.
    pub file: OwnedFd,
    /// Its settings.
    pub before: Termios,
    /// Bytes that undo its modes.
    pub leave: &'static [u8],
}

static RESTORE: OnceLock<TerminalRestore> = OnceLock::new();
static ARMED: AtomicBool = AtomicBool::new(false);

/// By signal, in the order of [`CRASHES`]: what was done about it before.
static PREVIOUS: [OnceLock<libc::sigaction>; CRASHES.len()] =
    [const { OnceLock::new() }; CRASHES.len()];

/// Restores the terminal in a crash, until this is dropped.
#[derive(Debug)]
pub struct CrashGuard(());

impl Drop for CrashGuard {
    fn drop(&mut self) {
        ARMED.store(false, Ordering::Release);
    }
}

/// Restores a terminal if one of the signals of a crash, or one of `others`, ends the process. A process has one
/// terminal, so only the first call sets how.
pub fn restore_terminal(restore: TerminalRestore, others: &[Signal]) -> CrashGuard {
    if RESTORE.set(restore).is_ok() {
        for (signal, previous) in CRASHES.iter().zip(&PREVIOUS) {
            if let Some(action) = install(*signal) {
                let _ = previous.set(action);
            }
        }
        for signal in others {
            install(*signal);
        }
    }
    ARMED.store(true, Ordering::Release);
    CrashGuard(())
}

/// Installs the handler; returns what was done before.
fn install(signal: Signal) -> Option<libc::sigaction> {
    // SAFETY: `sigaction` is plain data, for which zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let signal = signal.as_raw();
    // SAFETY: both point to local values. The handler only uses atomics and system calls, as a handler may.
    let installed = unsafe { libc::sigaction(signal, &raw const action, &raw mut previous) };
    (installed == 0).then_some(previous)
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    if ARMED.swap(false, Ordering::AcqRel)
        && let Some(TerminalRestore { file, before, leave }) = RESTORE.get()
    {
        let _ = tcsetattr(file, OptionalActions::Now, before);
        let _ = rustix::io::write(file, leave);
    }
    // SAFETY: the kernel passes a valid structure to a handler installed with SA_SIGINFO.
    let is_fault = unsafe { (*info).si_code } > 0;
    let known = CRASHES.iter().position(|crash| crash.as_raw() == signal);
    let previous = known.and_then(|at| PREVIOUS[at].get());
    // SAFETY: zeros are the default action; the pointers are to values that outlive the calls.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        match previous.filter(|_| is_fault) {
            // The fault is repeated after this returns, and the previous handler reports it.
            Some(previous) => {
                libc::sigaction(signal, std::ptr::from_ref(previous), std::ptr::null_mut());
            }
            None => {
                libc::sigaction(signal, &raw const default, std::ptr::null_mut());
                libc::raise(signal);
            }
        }
    }
}
