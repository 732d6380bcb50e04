//! Locks that ignore poisoning: no panic leaves the guarded data inconsistent.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if another holder panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
