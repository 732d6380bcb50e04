//! Texts on their way into processes: messages, timers' bodies, first prompts. They are kept until
//! they are seen to be taken. A text is written a second time only where nothing of the first time
//! came to its process or is left there.

mod aftercare;
mod deliverer;
mod error;
mod evidence;
mod first_prompt;
mod gate;
pub mod long_texts;
mod receipt;
mod record;
mod store;
mod submit;

pub use deliverer::{Deliverer, Target};
pub use error::{DeliveryError, TextError};
pub use long_texts::check as check_text;
pub use receipt::{Receipt, ReceiptState};
pub use record::{Delivery, DeliveryStage, NewDelivery, Pending, Source};
pub use store::Deliveries;
