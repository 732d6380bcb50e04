//! What strangers get: the package, installed in a small Debian of its own, and everything that the
//! README tells them to type.

mod harness;
mod installed;
mod readme;
mod unit;
