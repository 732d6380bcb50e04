//! Processes as agents and people use them: through the tools and the verbs, with real programs and
//! real faults.

mod at_rest;
mod cli;
mod declared;
mod ending;
mod faults;
mod full_disk;
mod keeper_faults;
mod life;
mod logs;
mod looking;
mod owners;
mod ports;
mod programs;
mod rights;
mod stubborn;
pub(crate) mod survival;
mod timers;
mod truthful;
mod typing;
mod versions;
mod waiting;
