//! Faults in the mappings of log files. A file that somebody truncates, or that the disk cannot give
//! back, raises SIGBUS in whoever looks at its mapping, and that would end the server with all its
//! panes. The handler here puts empty memory in the place of the one mapping that failed and marks
//! it as damaged, so that the fault costs one segment. A SIGBUS anywhere else does what it did before.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// One mapping as the handler sees it. Slots are reused and never freed: the handler may look at
/// any of them at any time, and can take no lock.
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

/// All slots there ever were.
static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());

/// Those that nobody uses.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

static INSTALL: Once = Once::new();

/// What SIGBUS did before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A mapping that may fail. The mapping must outlive this value.
#[derive(Debug)]
pub(super) struct Guarded(&'static Slot);

impl Guarded {
    /// Guards a mapping of a whole file.
    pub(super) fn new(base: *mut c_void, size: usize) -> Self {
        INSTALL.call_once(install);
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let slot = free.unwrap_or_else(add_slot);
        slot.set(base as usize, size);
        Self(slot)
    }

    /// Whether the mapping failed: it holds nothing of its file any more.
    pub(super) fn is_damaged(&self) -> bool {
        self.0.damaged.load(Ordering::Acquire)
    }

    /// Notes that it failed; the kernel says so without a signal where it does the access itself.
    pub(super) fn set_damaged(&self) {
        self.0.damaged.store(true, Ordering::Release);
    }
}

impl Drop for Guarded {
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

    /// Where its mapping is, if that covers an address.
    fn covers(&self, address: usize) -> Option<(usize, usize)> {
        let sequence = self.sequence.load(Ordering::Acquire);
        let (base, size) = (self.base.load(Ordering::Relaxed), self.size.load(Ordering::Relaxed));
        fence(Ordering::SeqCst);
        let whole = sequence.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == sequence;
        let covered = base != 0 && (base..base + size).contains(&address);
        (whole && covered).then_some((base, size))
    }

    /// Puts empty memory in the mapping's place.
    fn replace(&self, base: usize, size: usize) -> bool {
        // First, so that whoever sees the empty memory sees this, too.
        self.set_damaged();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the range is one whole mapping of ours, in use by the thread that was
        // interrupted: nobody unmaps it before that goes on.
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
    // SAFETY: both point to values that live here. The handler only does what a handler may:
    // atomics and system calls.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous) } == 0 {
        let _ = PREVIOUS.set(previous);
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel hands a valid structure to a handler installed with SA_SIGINFO.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Above 0 it is the kernel that tells of a fault; otherwise somebody sent the signal.
    let is_fault = code > 0;
    if is_fault && replace_mapping_at(address) {
        return;
    }
    // SAFETY: zeros are the default action; the pointers are to values that live.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        match is_fault {
            // The access fails again when this returns, and whoever was there before hears of it.
            true => {
                let previous = std::ptr::from_ref(PREVIOUS.get().unwrap_or(&default));
                libc::sigaction(signal, previous, std::ptr::null_mut());
            }
            // Who sends it wants the process to end.
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
    // SAFETY: slots are leaked: a pointer to one is valid for ever.
    while let Some(slot) = unsafe { next.as_ref() } {
        if let Some((base, size)) = slot.covers(address) {
            return slot.replace(base, size);
        }
        next = slot.next.load(Ordering::Acquire);
    }
    false
}
