//! Timers: a text that reaches its owner after a time, or when processes it watches fall idle. They
//! survive the server and fire once. Timers know the records of processes; what processes do and how texts
//! reach them is behind two traits, [`Observe`] and [`Deliver`].

mod book;
#[cfg(test)]
mod book_tests;
mod clock;
mod countdown;
mod driver;
mod error;
mod limits;
mod record;
mod sight;
mod store;
mod words;
mod world;

pub use book::{Condition, NewTimer};
pub use clock::{Clock, Moment};
pub use driver::Driver;
pub use error::TimerError;
pub use limits::{BODY_BYTES, MOST_SECONDS, WATCHED};
pub use record::{Mode, Timer, TimerId, Wake};
pub use sight::{BusyAgent, Look, ObservedActivity, Sight};
pub use store::Timers;
pub use words::{limited, name_busy};
pub use world::{Deliver, Following, Observe};
