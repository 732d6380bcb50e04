//! `send_input`: the deliberate hand on the keyboard.

use std::time::Duration;

use patterm_screen::{Key, paste, type_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ToolError};
use super::get_process_output::{Answer as Output, STREAM_BYTES};
use super::process::own;
use super::tool::{Call, Effect, Tool};
use crate::plane::{INPUT_BYTES, Live};

pub(super) struct SendInput;

/// The longest time to wait for what comes out.
const MOST_WAIT_MS: u64 = 60_000;

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
    /// The process.
    process_id: String,
    /// `text` types, `paste` pastes a block, `key` presses one key.
    kind: InputKind,
    /// What to type or paste.
    text: Option<String>,
    /// The key: enter, escape, tab, shift+tab, up, f1, ctrl+c, alt+enter, …
    key: Option<String>,
    /// Press Enter afterwards.
    #[serde(default)]
    submit: bool,
    /// How long to wait, in milliseconds, before the tail is taken; 0 by default.
    wait_ms: Option<u64>,
    /// What to return: `none` (default), `stream` for what was printed since, `grid` for the screen.
    #[serde(default)]
    tail_mode: Tail,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// It was put in line for the program.
    ok: bool,
    #[serde(flatten)]
    output: Option<Output>,
}

impl Tool for SendInput {
    const NAME: &'static str = "send_input";
    const TITLE: &'static str = "Type into a process";
    const DESCRIPTION: &'static str = "Types text, pastes a block, or presses a key in a process's \
        terminal, encoded for what its program has switched on. `submit` presses Enter after it. \
        With wait_ms and tail_mode it also returns what came out. This is the hand on the keyboard: \
        it answers dialogs too. To talk to another agent use send_message.";
    const HELP: &'static str = "Use paste for more than a line: programs that support it get the \
        block as one paste. Keys: enter, escape, tab, space, backspace, delete, insert, up, down, \
        left, right, home, end, page-up, page-down, f1 to f12, any character, and ctrl+, alt+, \
        shift+ before them.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let process = own(&call, &args.process_id)?;
        let live = call.host.running(&process)?;
        let wait = args.wait_ms.unwrap_or(0);
        if wait > MOST_WAIT_MS {
            let why = format_args!("takes 0 to {MOST_WAIT_MS} milliseconds, not {wait}");
            return Err(ToolError::invalid("wait_ms", why));
        }
        let bytes = encode(&args, &live)?;
        let before = live.log.end();
        // Enter is a write of its own: some programs take it for a line end of the text otherwise.
        let mut pieces = vec![bytes];
        if args.submit {
            pieces.push(enter(&live));
        }
        live.push(pieces).map_err(|_full| {
            let message = format!(
                "{} does not read its input: up to {INPUT_BYTES} bytes may wait for it",
                process.id
            );
            ToolError::new(ErrorKind::Limit, message)
        })?;
        call.host.plane.write(&live);
        if wait > 0 {
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        let output = match args.tail_mode {
            Tail::None => None,
            Tail::Stream => Some(Output::stream(&live, before, STREAM_BYTES)),
            Tail::Grid => Some(Output::grid(&live, None)),
        };
        Ok(Answer { ok: true, output })
    }
}

fn encode(args: &Args, live: &Live) -> Result<Vec<u8>, ToolError> {
    let modes = live.screen().modes();
    let text = || args.text.as_deref().ok_or_else(|| ToolError::invalid("text", "is missing"));
    match args.kind {
        InputKind::Text => Ok(type_text(text()?, &modes)),
        InputKind::Paste => Ok(paste(text()?, &modes)),
        InputKind::Key => {
            let name =
                args.key.as_deref().ok_or_else(|| ToolError::invalid("key", "is missing"))?;
            let key: Key =
                name.parse().map_err(|e| ToolError::invalid("key", format_args!("{e}")))?;
            Ok(key.encode(&modes))
        }
    }
}

fn enter(live: &Live) -> Vec<u8> {
    let modes = live.screen().modes();
    "enter".parse::<Key>().map_or_else(|_| b"\r".to_vec(), |key| key.encode(&modes))
}
