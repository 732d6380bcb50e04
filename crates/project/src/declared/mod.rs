//! Processes that the project file declares: they have an entry once the file is trusted, start in
//! the order in which they need each other, and are started again as the file says.

mod driver;
mod error;
mod file_status;
mod folders;
mod managed;
mod observer;
mod policy;
mod ready;
mod sources;
mod start;
mod watching;

pub use driver::Driver;
pub use error::DeclaredError;
pub use file_status::{Declared, FileStatus};
pub use managed::DeclaredStatus;
pub use observer::Observer;
