//! Tools to test the server with: they wait, report progress, return much, and panic.

use std::sync::atomic::{AtomicUsize, Ordering};

use patterm_host::tools::{Call, Effect, ErrorKind, Loading, Registry, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The server's own tools and those of this file.
pub(crate) fn registry() -> Registry {
    Registry::standard()
        .with::<Wait>()
        .with::<Large>()
        .with::<Panic>()
        .with::<Fail>()
        .with::<Stuck>()
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {
    ok: bool,
}

/// Waits until its client ends, and reports how long it has waited.
struct Wait;

static WAITING: AtomicUsize = AtomicUsize::new(0);

/// How many calls of `test_wait` are in flight in this process.
pub(crate) fn waiting() -> usize {
    WAITING.load(Ordering::SeqCst)
}

/// Counts one such call until it ends.
struct Waiter;

impl Waiter {
    fn begin() -> Self {
        WAITING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Deserialize, JsonSchema)]
struct WaitArgs {
    /// How many progress reports to send first.
    reports: Option<u64>,
    /// Return after the reports instead of waiting for the client's end.
    once: Option<bool>,
}

impl Tool for Wait {
    const NAME: &'static str = "test_wait";
    const TITLE: &'static str = "Wait";
    const DESCRIPTION: &'static str = "Waits until the client ends its side of the connection.";
    const HELP: &'static str = "";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::Always;
    type Args = WaitArgs;
    type Answer = Done;

    async fn call(args: WaitArgs, call: Call) -> Result<Done, ToolError> {
        let _waiter = Waiter::begin();
        for n in 0..args.reports.unwrap_or(0) {
            tokio::task::yield_now().await;
            call.progress.report(n as f64, None, "waiting");
        }
        if args.once != Some(true) {
            call.ending.cancelled().await;
        }
        Ok(Done { ok: true })
    }
}

/// Returns as many bytes as requested.
struct Large;

#[derive(Deserialize, JsonSchema)]
struct LargeArgs {
    /// How many bytes.
    bytes: usize,
}

#[derive(Serialize, JsonSchema)]
struct LargeAnswer {
    text: String,
}

impl Tool for Large {
    const NAME: &'static str = "test_large";
    const TITLE: &'static str = "Large";
    const DESCRIPTION: &'static str = "Answers with as many bytes as it is asked for.";
    const HELP: &'static str = "";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::Always;
    type Args = LargeArgs;
    type Answer = LargeAnswer;

    async fn call(args: LargeArgs, _call: Call) -> Result<LargeAnswer, ToolError> {
        Ok(LargeAnswer { text: "x".repeat(args.bytes) })
    }
}

/// Panics.
struct Panic;

impl Tool for Panic {
    const NAME: &'static str = "test_panic";
    const TITLE: &'static str = "Panic";
    const DESCRIPTION: &'static str = "Panics, at once or after it has waited for a moment.";
    const HELP: &'static str = "";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::Always;
    type Args = WaitArgs;
    type Answer = Done;

    async fn call(args: WaitArgs, _call: Call) -> Result<Done, ToolError> {
        for _ in 0..args.reports.unwrap_or(0) {
            tokio::task::yield_now().await;
        }
        panic!("as requested");
    }
}

/// Fails with the requested kind.
struct Fail;

#[derive(Deserialize, JsonSchema)]
struct FailArgs {
    /// The kind's name.
    kind: String,
}

impl Tool for Fail {
    const NAME: &'static str = "test_fail";
    const TITLE: &'static str = "Fail";
    const DESCRIPTION: &'static str = "Fails with the kind of failure that it is asked for.";
    const HELP: &'static str = "";
    const EFFECT: Effect = Effect::Destroys;
    const LOADING: Loading = Loading::Always;
    type Args = FailArgs;
    type Answer = Done;

    async fn call(args: FailArgs, _call: Call) -> Result<Done, ToolError> {
        match ErrorKind::ALL.into_iter().find(|kind| kind.name() == args.kind) {
            Some(kind) => Err(ToolError::new(kind, "as requested")),
            None => Ok(Done { ok: true }),
        }
    }
}

/// Never ends, whatever happens to its client.
struct Stuck;

#[derive(Deserialize, JsonSchema)]
struct StuckArgs {}

impl Tool for Stuck {
    const NAME: &'static str = "test_stuck";
    const TITLE: &'static str = "Stuck";
    const DESCRIPTION: &'static str = "Never ends by itself, even when its client has ended.";
    const HELP: &'static str = "";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::Always;
    type Args = StuckArgs;
    type Answer = Done;

    async fn call(_args: StuckArgs, _call: Call) -> Result<Done, ToolError> {
        std::future::pending().await
    }
}
