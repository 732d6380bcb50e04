//! Processes as agents and people use them: through the tools and the verbs, with real programs and
//! real faults.

mod cli;
mod declared;
pub(crate) mod desk;
mod faults;
mod life;
mod looking;
mod owners;
mod ports;
mod programs;
mod stubborn;
pub(crate) mod survival;
mod timers;
mod truthful;
mod typing;
mod waiting;
