//! Timers: a text that is delivered to its owner after a delay, or when watched processes
//! become idle or exit. Timers survive the server and fire once. They know the records of
//! processes; the activity of processes and the delivery of texts are behind two traits,
//! [`Observe`] and [`Deliver`].

mod book;
#[cfg(test)]
mod book_tests;
mod countdown;
mod driver;
mod error;
mod firing_text;
mod interfaces;
mod limits;
mod observation;
mod record;
mod recorder;
mod store;

pub use book::{Condition, NewTimer};
pub use driver::Driver;
pub use error::TimerError;
pub use firing_text::{limited, name_busy};
pub use interfaces::{Deliver, Observe, StateChange};
pub use limits::{BODY_BYTES, MOST_SECONDS, WATCHED};
pub use observation::{BusyAgent, Observation, ObservedActivity, WatchState};
pub use record::{Mode, Timer, TimerId, Wake};
pub use store::Timers;
