//! Faults in the mappings of log files. If a file is truncated, or the disk cannot read it,
//! accessing its mapping raises SIGBUS, which would end the server with all its panes. The handler
//! here replaces the failed mapping with empty memory and marks it as damaged, so that the fault
//! costs one segment. A SIGBUS anywhere else is handled as before.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// One mapping as the handler sees it. Slots are reused and never freed: the handler may read any
/// of them at any time, and cannot take a lock.
#[derive(Debug)]
struct Slot {
    /// Odd while the slot is being changed.
    sequence: AtomicUsize,
    /// The address of the mapping; 0 in a free slot.
    base: AtomicUsize,
    size: AtomicUsize,
    damaged: AtomicBool,
    next: AtomicPtr<Slot>,
}

/// All slots that were ever created.
static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());

/// Unused slots.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

static INSTALL: Once = Once::new();

/// The previous action of SIGBUS.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A mapping that may fail. The mapping must outlive this value.
#[derive(Debug)]
pub(super) struct FaultGuard(&'static Slot);

impl FaultGuard {
    /// Guards a mapping of a whole file.
    pub(super) fn new(base: *mut c_void, size: usize) -> Self {
        INSTALL.call_once(install);
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let slot = free.unwrap_or_else(add_slot);
        slot.set(base as usize, size);
        Self(slot)
    }

    /// Whether the mapping failed: it no longer contains anything of its file.
    pub(super) fn is_damaged(&self) -> bool {
        self.0.damaged.load(Ordering::Acquire)
    }

    /// Marks it as damaged: when the kernel itself accesses the mapping, it reports the fault
    /// without a signal.
    pub(super) fn set_damaged(&self) {
        self.0.damaged.store(true, Ordering::Release);
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.0.set(0, 0);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

impl Slot {
    fn set(&self, base: usize, size: usize) {
        self.sequence.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        self.base.store(base, Ordering::Relaxed);
        self.size.store(size, Ordering::Relaxed);
        self.damaged.store(false, Ordering::Relaxed);
        self.sequence.fetch_add(1, Ordering::Release);
    }

    /// The mapping's address and size, if it covers an address.
    fn covers(&self, address: usize) -> Option<(usize, usize)> {
        let sequence = self.sequence.load(Ordering::Acquire);
        let (base, size) = (self.base.load(Ordering::Relaxed), self.size.load(Ordering::Relaxed));
        fence(Ordering::SeqCst);
        let whole = sequence.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == sequence;
        let covered = base != 0 && (base..base + size).contains(&address);
        (whole && covered).then_some((base, size))
    }

    /// Replaces the mapping with empty memory.
    fn replace(&self, base: usize, size: usize) -> bool {
        // First, so that whoever sees the empty memory also sees this.
        self.set_damaged();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the range is one whole mapping of ours, in use by the interrupted thread: nobody
        // unmaps it before that thread continues.
        unsafe { mmap_anonymous(base as *mut c_void, size, access, flags) }.is_ok()
    }

    fn set_damaged(&self) {
        self.damaged.store(true, Ordering::Release);
    }
}

fn add_slot() -> &'static Slot {
    let slot = Box::leak(Box::new(Slot {
        sequence: AtomicUsize::new(0),
        base: AtomicUsize::new(0),
        size: AtomicUsize::new(0),
        damaged: AtomicBool::new(false),
        next: AtomicPtr::new(std::ptr::null_mut()),
    }));
    let mut first = SLOTS.load(Ordering::Acquire);
    loop {
        slot.next.store(first, Ordering::Relaxed);
        match SLOTS.compare_exchange(first, slot, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return slot,
            Err(other) => first = other,
        }
    }
}

fn install() {
    // SAFETY: `sigaction` is plain data, for which zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both point to local values. The handler only uses atomics and system calls, as a
    // handler may.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous) } == 0 {
        let _ = PREVIOUS.set(previous);
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel passes a valid structure to a handler installed with SA_SIGINFO.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Above 0 the kernel reports a fault; otherwise a process sent the signal.
    let is_fault = code > 0;
    if is_fault && replace_mapping_at(address) {
        return;
    }
    // SAFETY: zeros are the default action; the pointers are to values that outlive the calls.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        match is_fault {
            // The access fails again after this returns, and the previous handler gets it.
            true => {
                let previous = std::ptr::from_ref(PREVIOUS.get().unwrap_or(&default));
                libc::sigaction(signal, previous, std::ptr::null_mut());
            }
            // The sender wants the process to end.
            false => {
                libc::sigaction(signal, &raw const default, std::ptr::null_mut());
                libc::raise(signal);
            }
        }
    }
}

/// Replaces the mapping that covers an address; `false` if none of ours does.
fn replace_mapping_at(address: usize) -> bool {
    let mut next = SLOTS.load(Ordering::Acquire);
    // SAFETY: slots are leaked, so a pointer to one is always valid.
    while let Some(slot) = unsafe { next.as_ref() } {
        if let Some((base, size)) = slot.covers(address) {
            return slot.replace(base, size);
        }
        next = slot.next.load(Ordering::Acquire);
    }
    false
}
