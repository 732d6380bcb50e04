//! The server is killed while it has 200 panes with long logs: how soon the next one answers, and has all screens.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::row::{Row, Target, middle};
use crate::session::Workspace;
use crate::{Measured, long, proc, text};

const PANES: usize = 200;

/// Output of each pane, in the short and the long form. Neither drops any.
const OUTPUT_BYTES: [usize; 2] = [5 << 20, 50 << 20];

const ROUNDS: usize = 3;

/// The variable with the path of 0.1.0, to be compared with; it should be built like this one.
const PEER: &str = "PATTERM_BENCH_EARLIER";

/// The results of a round, in seconds.
struct Round {
    answer: f64,
    screens: f64,
    histories: f64,
}

/// What a restart costs, and what is beside the logs for it.
struct Restarts {
    rounds: Vec<Round>,
    /// In percent of the logs.
    index: f64,
}

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let bytes = OUTPUT_BYTES[usize::from(long())];
    let what = |part: &str| format!("{PANES} panes with {} MiB each: {part}", bytes >> 20);
    let ours = restarts(None, bytes)?;
    let peer = std::env::var_os(PEER).map(PathBuf::from);
    let theirs = peer.map(|peer| restarts(Some(&peer), bytes)).transpose()?;
    type Part = (&'static str, fn(&Round) -> f64, Target);
    let parts: [Part; 3] = [
        ("from kill -9 to the first answer", |round| round.answer, Target::AtMost(1.0)),
        ("to all screens", |round| round.screens, Target::Less),
        ("to all lines above them", |round| round.histories, Target::Less),
    ];
    let mut rows = Vec::new();
    for (part, of, target) in parts {
        let all = |restarts: &Restarts| middle(restarts.rounds.iter().map(of).collect());
        rows.push(Row::number(what(part), all(&ours), "s", target));
        if let Some(theirs) = &theirs {
            let [ours, theirs] = [&ours, theirs].map(|it| Duration::from_secs_f64(all(it)));
            rows.push(Row::times(what(part), ours, ("patterm 0.1.0", theirs), Target::Less));
        }
    }
    rows.push(Row::number(what("beside the logs"), ours.index, "%", Target::AtMost(1.0)));
    Ok(rows.into())
}

fn restarts(patterm: Option<&Path>, bytes: usize) -> anyhow::Result<Restarts> {
    let mut workspace = Workspace::with_log_bytes_of(patterm, 64 << 20)?;
    let file = workspace.folder().join("text");
    text::write(&file, bytes)?;
    let mut tools = workspace.connect()?;
    let line = format!("cat {}; exec cat", file.display());
    let ids: Vec<String> =
        (0..PANES).map(|_| tools.spawn(&["sh", "-c", &line])).collect::<Result<_, _>>()?;
    for id in &ids {
        while tools.output_offset(id)? < bytes as u64 {
            proc::pause(Duration::from_millis(50));
        }
    }
    let mut rounds = Vec::new();
    for _ in 0..crate::peers::rounds(ROUNDS) {
        // The last output is parsed, and its key frames are stored.
        proc::pause(Duration::from_secs(2));
        let server = i32::try_from(workspace.server)?;
        let server = rustix::process::Pid::from_raw(server).unwrap_or(rustix::process::Pid::INIT);
        anyhow::ensure!(!server.is_init(), "there is no server");
        let start = Instant::now();
        rustix::process::kill_process(server, rustix::process::Signal::KILL)?;
        workspace.find_server(&[])?;
        let mut tools = workspace.connect()?;
        tools.call("get_process_status", &json!({"process_id": ids[0]}))?;
        let answer = start.elapsed().as_secs_f64();
        for id in &ids {
            tools.call("get_process_output", &json!({"process_id": id}))?;
        }
        let screens = start.elapsed().as_secs_f64();
        for id in &ids {
            let lines = json!({"process_id": id, "mode": "scrollback", "lines": 1_000_000});
            tools.call("get_process_output", &lines)?;
        }
        rounds.push(Round { answer, screens, histories: start.elapsed().as_secs_f64() });
    }
    let (logs, indexes) =
        (bytes_of(workspace.folder(), "log"), bytes_of(workspace.folder(), "index"));
    Ok(Restarts { rounds, index: indexes as f64 / logs as f64 * 100.0 })
}

/// The bytes of all files with an ending below a folder.
fn bytes_of(folder: &Path, ending: &str) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .map(|path| match path.is_dir() {
            true => bytes_of(&path, ending),
            false if path.extension().is_some_and(|found| found == ending) => {
                path.metadata().map_or(0, |file| file.len())
            }
            false => 0,
        })
        .sum()
}
