//! Timers: a text that reaches its owner after a time, or when processes it watches fall idle. They
//! survive the server and fire once.

mod book;
#[cfg(test)]
mod book_tests;
mod clock;
mod countdown;
mod driver;
#[cfg(test)]
mod driver_tests;
mod limits;
mod record;
mod sight;
mod store;
mod told;
mod words;

pub(crate) use book::{NewTimer, Wish};
pub(crate) use clock::{Clock, Moment};
pub(crate) use driver::Driver;
pub(crate) use limits::{BODY_BYTES, MOST_SECONDS, WATCHED};
pub(crate) use record::{Mode, Timer, TimerId, Wake};
pub(crate) use sight::Sight;
pub(crate) use store::Timers;
pub(crate) use words::limited;
