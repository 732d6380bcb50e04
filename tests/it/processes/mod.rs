//! Processes as agents and people use them: through the tools and the verbs, with real programs and
//! real faults.

mod cli;
mod declared;
pub(crate) mod desk;
mod faults;
mod full_disk;
mod life;
mod logs;
mod looking;
mod owners;
mod ports;
mod programs;
mod stubborn;
pub(crate) mod survival;
mod timers;
mod typing;
mod versions;
mod waiting;
