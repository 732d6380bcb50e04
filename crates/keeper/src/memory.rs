//! What becomes of memory that is freed.

/// Blocks from this size on are mapped by themselves, and so given back when they are freed. Small
/// ones come and go too often for a system call each.
#[cfg(target_env = "gnu")]
const MAPPED_FROM: i32 = 1 << 20;

/// Gives large blocks back to the system when they are freed.
///
/// By itself glibc stops doing so once it has seen some large blocks come and go: it then cuts them
/// out of its heap, where one small block behind them keeps them. A few dozen large answers that
/// nobody read left a server with two hundred MiB for the rest of its life.
pub fn give_large_blocks_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two integers and touches nothing but the allocator's own settings.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM);
    }
}
