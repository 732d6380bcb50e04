//! Texts on their way into processes: messages, timers' bodies, first prompts. They are kept until
//! they are seen to be taken. A text is written a second time only where nothing of the first time
//! came to its process or is left there.

mod aftercare;
mod deliverer;
mod evidence;
mod first_prompt;
mod gate;
mod letters;
mod put_in;
mod receipt;
mod record;
mod store;

pub(crate) use letters::check as check_text;
pub(crate) use receipt::{Receipt, ReceiptState};
pub(crate) use record::{Delivery, NewDelivery, Source, Stage};
pub(crate) use store::Deliveries;
