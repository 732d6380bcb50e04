//! What a new user gets: the package, installed in a small Debian, and everything that the README
//! says to type.

mod harness;
mod installed;
mod readme;
mod unit;
