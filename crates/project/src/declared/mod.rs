//! Processes that the project file declares. They get entries once the file is trusted, start in the
//! order of their dependencies, and restart as the file says.

mod checking;
mod driver;
mod environment;
mod error;
mod file_status;
mod handle;
mod health;
mod http_probe;
mod listeners;
mod managed;
mod observer;
mod pending;
mod policy;
mod probing;
mod ready;
#[cfg(test)]
mod restart_tests;
mod restarting;
mod sources;
mod start;
mod stopping;
mod watching;

pub use driver::Driver;
pub use environment::DeclaredPolicy;
pub use error::DeclaredError;
pub use file_status::{Declared, FileStatus};
pub use health::Health;
pub use managed::{DeclaredStatus, StartProgress};
pub use observer::Observer;
pub use restarting::Restarting;
pub use start::GivenEnvironment;
