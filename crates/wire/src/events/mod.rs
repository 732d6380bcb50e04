//! The events of a project, as types: what happened, who caused it, and how events are asked for. The log that stores
//! them is in `patterm-events`.

mod actor;
mod fact;
mod record;
mod requests;
mod time;

pub use actor::{Actor, PersonVia};
pub use fact::{AnswerEvidence, EventClass, Fact, GitEvidence};
pub use record::EventRecord;
pub use requests::{
    EventLines, EventPage, EventQuery, ExportEvents, LogBreak, LogVerdict, VerifyEvents,
    check_type, matches_type,
};
pub use time::{format_time, parse_time};
