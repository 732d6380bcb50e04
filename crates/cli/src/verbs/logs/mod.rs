//! `patterm logs`: what processes have printed.

mod merged;

use clap::Args;
use patterm_wire::tools::{
    GetProcessStatus, GetRawOutput, GetText, OutputPart, ProcessRef, RawOutputArgs, TextArgs,
    TextMode, WaitArgs, WaitForOutput,
};
use serde::Serialize;

use merged::MergedLogs;

use crate::client::Client;
use crate::print::{print_bytes, print_content, print_json, warn};
use crate::since::Since;

/// How much output to read at once.
const LOG_BYTES: u64 = 256 << 10;

/// How long one wait for more output lasts; then it is repeated.
const FOLLOW_SECONDS: f64 = 3_600.0;

/// Print the output of processes
///
/// With one ID, prints the output of its current run unchanged. With several IDs, with none (all processes), or with
/// --tail, --since or --times, prints lines of all stored output, merged by the times at which they were printed.
#[derive(Debug, Args)]
pub(crate) struct LogsVerb {
    /// Ids, unique names, or unique prefixes of either; without any, all processes
    #[arg(value_name = "ID")]
    processes: Vec<String>,
    /// Print new output as it appears, until the processes end; without an ID, also that of new processes
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines of each process
    #[arg(short = 'n', long, value_name = "N")]
    tail: Option<u64>,
    /// Only lines since this time: 10m, 14:30, or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,
    /// Begin each line with its time, or - if that is unknown
    #[arg(short = 't', long, visible_alias = "timestamps")]
    times: bool,
    /// Print the bytes of one process unchanged, escape sequences included
    #[arg(long, requires = "processes", conflicts_with_all = ["tail", "since", "times", "json"])]
    raw: bool,
    /// Print JSON: an object for each line; for the whole output of one process, a single one with its text
    #[arg(long)]
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
        let followed_json = self.json && self.follow;
        let by_line = self.tail.is_some() || self.since.is_some() || self.times || followed_json;
        match self.processes.as_slice() {
            [process] if !by_line => self.print_one(process),
            several if self.raw => not_raw(several.len()),
            given => {
                let mut ids = Vec::new();
                if !given.is_empty() {
                    ids = Client::connect_to_read()?.resolve_all(given)?;
                }
                let Self { tail, since, follow, times, json, .. } = self;
                let names = given.len() != 1;
                MergedLogs { processes: ids, tail, since, follow, times, json, names }.run()
            }
        }
    }

    /// Prints the output of the current run of a process.
    fn print_one(&self, process: &str) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let id = client.resolve(process)?;
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

/// Ends with an error about the usage.
fn not_raw(given: usize) -> ! {
    let message = format!("--raw prints the bytes of one process, but {given} are given\n");
    clap::Error::raw(clap::error::ErrorKind::TooManyValues, message).exit()
}
