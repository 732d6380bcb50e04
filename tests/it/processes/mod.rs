//! Processes as agents and people use them: through the tools and the verbs, with real programs and
//! real faults.

mod at_rest;
mod cli;
mod declared;
mod ending;
mod environment;
mod export;
mod faults;
mod full_disk;
mod keeper_faults;
mod key_frames;
mod life;
mod logs;
mod merged_logs;
mod owners;
mod past_screens;
mod ports;
mod programs;
mod reading;
mod rights;
mod stubborn;
pub(crate) mod survival;
mod timers;
mod truthful;
mod typing;
mod versions;
mod waiting;
