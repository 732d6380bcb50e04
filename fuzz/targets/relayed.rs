//! Any message of a caller on its way to a shared server.
#![no_main]
#![allow(dead_code, unused_imports, reason = "a part of a crate, without the rest of it")]

#[path = "../../crates/gateway/src/ambiguous.rs"]
mod ambiguous;
#[path = "../checks/gateway.rs"]
mod checks;
#[path = "../../crates/gateway/src/events.rs"]
mod events;
#[path = "../../crates/gateway/src/lines.rs"]
mod lines;
#[path = "../../crates/gateway/src/json_scan.rs"]
mod json_scan;
#[path = "../../crates/gateway/src/raw.rs"]
mod raw;
#[path = "../../crates/gateway/src/error.rs"]
mod error;
#[path = "../../crates/gateway/src/relay/mod.rs"]
mod relay;

#[path = "../../crates/gateway/src/http/head.rs"]
mod head;
#[path = "../../crates/gateway/src/http/tool_call.rs"]
mod tool_call;

mod http {
    pub(crate) use super::{head, tool_call};
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::relayed(data));
