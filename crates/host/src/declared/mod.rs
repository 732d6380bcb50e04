//! Processes that the project file declares: they have an entry once the file is trusted, start in
//! the order in which they need each other, and are started again as the file says.

mod driver;
mod folders;
mod policy;
mod ready;
mod sources;
mod standing;
mod start;
mod wards;
mod watching;

pub(crate) use driver::Driver;
pub(crate) use standing::{Declared, Standing};
