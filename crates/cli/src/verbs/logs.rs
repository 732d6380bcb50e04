//! `patterm logs`: what a process has printed.

use clap::Args;
use patterm_wire::tools::{
    GetProcessStatus, GetRawOutput, GetText, OutputPart, ProcessRef, RawOutputArgs, TextArgs,
    TextMode, WaitArgs, WaitForOutput,
};
use serde::Serialize;

use crate::client::Client;
use crate::print::{print_bytes, print_content, print_json, warn};

/// How much output to read at once.
const LOG_BYTES: u64 = 256 << 10;

/// How long one wait for more output lasts; then it is repeated.
const FOLLOW_SECONDS: f64 = 3_600.0;

/// Print the output of a process
#[derive(Debug, Args)]
pub(crate) struct LogsVerb {
    /// An id, a unique name, or the start of one
    #[arg(value_name = "ID")]
    process: String,
    /// Print new output as it appears, until the process ends
    #[arg(short, long)]
    follow: bool,
    /// Print the bytes unchanged, escape sequences included
    #[arg(long)]
    raw: bool,
    /// Print JSON: the text, the offset of the next output, and how many older bytes are lost
    #[arg(long, conflicts_with_all = ["follow", "raw"])]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Log {
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
    next_offset: u64,
    process_id: String,
    text: String,
}

impl LogsVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect()?;
        let id = client.resolve(&self.process)?;
        let mut since = None;
        let mut ended = false;
        // The end of the output at the last wait.
        let mut waited = 0;
        let mut whole = self.json.then(Vec::new);
        let mut dropped = 0;
        loop {
            let part = self.read(&mut client, &id, since)?;
            let (begin, next) = (part.offset, part.next_offset);
            since = Some(next);
            let lost = part.dropped.unwrap_or(0);
            dropped += lost;
            if lost > 0 && whole.is_none() {
                warn(&format!(
                    "{lost} bytes of output before this are lost: the log was full, or could not be stored"
                ));
            }
            let printed = part.into_bytes();
            match &mut whole {
                Some(whole) => whole.extend(printed),
                None if !self.print(&printed) => return Ok(()),
                None => {}
            }
            if next > begin {
                continue;
            }
            if let Some(whole) = whole {
                return print_json(&Log {
                    dropped: (dropped > 0).then_some(dropped),
                    next_offset: next,
                    process_id: id,
                    text: String::from_utf8_lossy(&whole).into_owned(),
                });
            }
            if !self.follow || ended {
                return Ok(());
            }
            // Checked before the last read, so that nothing printed at the end is missed.
            let process =
                client.query::<GetProcessStatus>(&ProcessRef { process_id: id.clone() })?;
            ended = !process.result.is_alive();
            if ended {
                continue;
            }
            let args = WaitArgs {
                process_id: id.clone(),
                since_offset: waited.max(next),
                timeout_seconds: FOLLOW_SECONDS,
            };
            waited = client.query::<WaitForOutput>(&args)?.result.next_offset;
        }
    }

    fn read(
        &self,
        client: &mut Client,
        id: &str,
        since_offset: Option<u64>,
    ) -> anyhow::Result<OutputPart> {
        let (process_id, max_bytes) = (id.to_owned(), LOG_BYTES);
        let reply = match self.raw {
            true => {
                client.query::<GetRawOutput>(&RawOutputArgs { process_id, since_offset, max_bytes })
            }
            false => {
                let mode = TextMode::Stream;
                client.query::<GetText>(&TextArgs { process_id, mode, since_offset, max_bytes })
            }
        };
        Ok(reply?.result)
    }

    /// Prints output. Returns false once the reader is gone.
    fn print(&self, printed: &[u8]) -> bool {
        match self.raw {
            true => print_bytes(printed),
            false => print_content(&String::from_utf8_lossy(printed)),
        }
    }
}
