//! How freed memory is returned to the system.

/// Blocks of at least this size are mapped separately, so that freeing them returns them to the
/// system. Smaller ones are too frequent for a system call each.
#[cfg(target_env = "gnu")]
const MAPPED_FROM: i32 = 1 << 20;

/// Returns large blocks to the system when they are freed.
///
/// By default glibc stops doing so once it has seen some large blocks come and go: it then takes
/// them from its heap, where one small block behind them keeps them. A few dozen large responses
/// that nobody read left a server with two hundred MiB for the rest of its run.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two integers and touches nothing but the allocator's own settings.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM);
    }
}
