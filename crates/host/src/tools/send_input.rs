//! `send_input`: types into a process's terminal.

use std::sync::Arc;
use std::time::Duration;

use patterm_events::{About, current_actor};
use patterm_screen::{Key, paste, type_text};
use patterm_wire::events::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::error::{ErrorKind, ToolError};
use super::get_process_output::{Answer as Output, STREAM_BYTES};
use super::paging::Wanted;
use super::process::own;
use super::tool::{Call, Effect, Loading, Tool};
use crate::caller::Caller;
use patterm_agents::delivery::{Receipt, ReceiptState};
use patterm_panes::data_plane::{INPUT_BYTES, ProcessRun};
use patterm_panes::process::Process;

pub(super) struct SendInput;

/// The longest wait for output.
const MOST_WAIT_MS: u64 = 60_000;

/// With a tail and without a wait: how long the program may take to begin, and how long it must
/// then be quiet to count as done.
const TAIL_PATIENCE: Duration = Duration::from_secs(1);
const TAIL_QUIET: Duration = Duration::from_millis(100);

/// How long a program may take to read its input before the receipt says that it is not reading, and
/// how often that is checked.
const WRITE_PATIENCE: Duration = Duration::from_secs(1);
const WRITE_PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum InputKind {
    Text,
    Paste,
    Key,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tail {
    #[default]
    None,
    Stream,
    Grid,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Id or name.
    process_id: String,
    /// `key` presses one key.
    kind: InputKind,
    /// For text and paste.
    text: Option<String>,
    /// enter, escape, tab, up, f1, ctrl+c, …
    key: Option<String>,
    /// Press Enter after it.
    #[serde(default)]
    submit: bool,
    /// Wait before reading the tail.
    wait_ms: Option<u64>,
    /// Return new output (`stream`) or the screen (`grid`).
    #[serde(default)]
    tail_mode: Tail,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// It was queued for the program.
    ok: bool,
    /// With `submit`: whether the program accepted it, and the evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
    #[serde(flatten)]
    output: Option<Output>,
}

impl Tool for SendInput {
    const NAME: &'static str = "send_input";
    const TITLE: &'static str = "Type into a process";
    const DESCRIPTION: &'static str = "Types text, pastes a block or presses a key in a \
        process's terminal, also to answer dialogs. To talk to an agent use send_message.";
    const HELP: &'static str = "Input is encoded for the modes that the program has set. `submit` \
        presses Enter afterwards. Use paste for more than a line: programs that support it get \
        the block as one paste. Keys: enter, escape, tab, space, backspace, delete, insert, up, \
        down, left, right, home, end, page-up, page-down, f1 to f12, any character, and ctrl+, \
        alt+, shift+ before them; `C-c`, `ctrl-c`, `^C` and `ArrowUp` also work. A tail_mode \
        without wait_ms waits until the program has printed something and is quiet again, at most \
        a second.";
    const EFFECT: Effect = Effect::Adds;
    const LOADING: Loading =
        Loading::OnSearch("type keys or text into a terminal, answer a dialog");
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        let run = call.host.panes.running(&process)?;
        call.host.panes.data_plane.rebuilt(&run).await;
        let wait = args.wait_ms.unwrap_or(0);
        if wait > MOST_WAIT_MS {
            let why = format_args!("takes 0 to {MOST_WAIT_MS} milliseconds, not {wait}");
            return Err(ToolError::invalid("wait_ms", why));
        }
        let bytes = encode(&args, &run)?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let enter_bytes = if args.submit { enter(&run).len() } else { 0 };
        check_size(bytes.len() + enter_bytes)?;
        run.note_typist(&Arc::new(current_actor()));
        if call.caller == Caller::Person {
            call.host.panes.attended(&process.id);
        }
        let before = run.log.end();
        let target = call.host.agents.deliverer.target(&process.id).filter(|_| args.submit);
        let agent = target.and_then(|target| Some((target.preset.clone()?, target)));
        let receipt = match agent {
            Some((preset, target)) => {
                // Typed text must be submitted even if the caller disconnects.
                let submit = async move { Ok(target.submit_by_hand(&preset, bytes).await) };
                let receipt = call.detached(|_| submit).await?;
                run.note_draft(&enter(&run));
                Some(receipt)
            }
            None => {
                type_in(&call, &process, &run, &args, bytes)?;
                if args.submit { Some(written(&run).await) } else { None }
            }
        };
        let about = About::process(&run.id).run(run.number.get()).at(before);
        call.host.events.record(about, Fact::InputSent { length });
        match args.wait_ms {
            None if args.tail_mode != Tail::None => until_quiet(&run, before).await,
            None | Some(0) => {}
            Some(wait) => tokio::time::sleep(Duration::from_millis(wait)).await,
        }
        let output = match args.tail_mode {
            Tail::None => None,
            Tail::Stream => Some(Output::stream(&run, Wanted::from(before, STREAM_BYTES))),
            Tail::Grid => Some(Output::grid(&run, None)),
        };
        Ok(Answer { ok: true, receipt, output })
    }
}

/// Waits until the program's response seems complete, but not for long.
async fn until_quiet(run: &ProcessRun, before: u64) {
    let mut watch = run.watch();
    let deadline = Instant::now() + TAIL_PATIENCE;
    let begun = watch.wait_for(|progress| progress.parsed.get() > before || progress.is_over());
    if tokio::time::timeout_at(deadline, begun).await.is_err() {
        return;
    }
    loop {
        let quiet = deadline.min(Instant::now() + TAIL_QUIET);
        match tokio::time::timeout_at(quiet, watch.changed()).await {
            Ok(Ok(())) if Instant::now() < deadline => {}
            _ => return,
        }
    }
}

/// Whether a program that is not an agent has read everything that was typed.
async fn written(run: &ProcessRun) -> Receipt {
    let began = Instant::now();
    while !run.is_written() {
        if began.elapsed() >= WRITE_PATIENCE {
            let evidence = "the program is not reading its input; the text arrives once it does";
            return Receipt::new(ReceiptState::Queued, evidence);
        }
        tokio::time::sleep(WRITE_PAUSE).await;
    }
    Receipt::new(ReceiptState::Delivered, "typed into its terminal")
}

fn type_in(
    call: &Call,
    process: &Process,
    run: &Arc<ProcessRun>,
    args: &Args,
    bytes: Vec<u8>,
) -> Result<(), ToolError> {
    // Enter is a separate write: some programs would treat it as a line break in the text.
    let mut sent = bytes.clone();
    let mut pieces = vec![bytes];
    if args.submit {
        let enter = enter(run);
        sent.extend_from_slice(&enter);
        pieces.push(enter);
    }
    let bytes: usize = pieces.iter().map(Vec::len).sum();
    run.push(pieces).map_err(|_full| {
        let message = format!(
            "{} is not reading its input: up to {INPUT_BYTES} bytes may wait for it, and {bytes} \
             more do not fit; try again once it reads",
            process.id
        );
        ToolError::new(ErrorKind::Limit, message)
    })?;
    call.host.panes.data_plane.write(run);
    run.note_draft(&sent);
    Ok(())
}

/// Checks the size limit of one call.
fn check_size(bytes: usize) -> Result<(), ToolError> {
    if bytes <= INPUT_BYTES {
        return Ok(());
    }
    let message = format!(
        "{bytes} bytes are more than the {INPUT_BYTES} that one call may type; send them in parts, or \
         let the program read a file"
    );
    Err(ToolError::new(ErrorKind::Limit, message).with("limit_bytes", INPUT_BYTES))
}

fn encode(args: &Args, run: &ProcessRun) -> Result<Vec<u8>, ToolError> {
    let modes = run.screen().modes();
    let text = || args.text.as_deref().ok_or_else(|| ToolError::invalid("text", "is missing"));
    match args.kind {
        InputKind::Text => Ok(type_text(text()?, &modes)),
        InputKind::Paste => Ok(paste(text()?, &modes)),
        InputKind::Key => {
            let name =
                args.key.as_deref().ok_or_else(|| ToolError::invalid("key", "is missing"))?;
            let key: Key = name
                .parse()
                .map_err(|e| ToolError::invalid("key", format_args!("is unknown: {e}")))?;
            Ok(key.encode(&modes))
        }
    }
}

/// Checks the name of a key on a command line before it is sent to a server.
pub fn check_key(name: &str) -> Result<(), String> {
    name.parse::<Key>().map(drop).map_err(|error| error.to_string())
}

fn enter(run: &ProcessRun) -> Vec<u8> {
    let modes = run.screen().modes();
    "enter".parse::<Key>().map_or_else(|_| b"\r".to_vec(), |key| key.encode(&modes))
}
