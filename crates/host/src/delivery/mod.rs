//! Texts on their way into processes: messages, timers' bodies, first prompts. They are kept until
//! they are seen to be taken, and never written twice.

mod receipt;
mod record;
mod store;

pub(crate) use receipt::{Receipt, ReceiptState};
pub(crate) use record::{Delivery, NewDelivery, Source, Stage};
pub(crate) use store::Deliveries;
