//! Deliveries: messages, timers' texts and first prompts on their way into processes. They are kept
//! until it is verified that they were accepted. A text is written a second time only if nothing of
//! the first attempt reached its process or is left there.

mod aftercare;
mod deliverer;
mod error;
mod evidence;
mod first_prompt;
mod gate;
pub mod long_texts;
mod receipt;
mod record;
mod recorder;
mod store;
mod submit;
mod texts;

pub use deliverer::{Deliverer, Target};
pub use error::{DeliveryError, TextError};
pub use long_texts::check as check_text;
pub use receipt::{Receipt, ReceiptState};
pub use record::{Delivery, DeliveryStage, NewDelivery, Pending, Source};
pub use store::Deliveries;
