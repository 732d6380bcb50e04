//! The data plane: everything that programs print is read and parsed here, on threads of its own,
//! so that no flood keeps the control plane from answering. One thread reads PTYs into their logs;
//! one parses the logs into screens; one looks for what callers wait for.

mod draft_mark;
mod echoes;
mod history;
mod input;
mod matcher;
mod parser;
mod reader;
mod reading;
mod run;
mod trouble;
mod turns;
mod typing_state;
mod views;

use std::io;
use std::sync::Arc;

use patterm_keeper::Pane;
use patterm_keeper::log::Log;
use regex::Regex;
use tokio::sync::mpsc;

pub use draft_mark::DraftMark;
pub use input::{INPUT_BYTES, InputFull};
use matcher::Matcher;
pub use matcher::{MatchOutcome, Waiting, visible_lines};
use parser::OutputParser;
use reader::Reader;
pub(crate) use run::MARK_BYTES;
pub use run::{ProcessRun, RunProgress};
pub use trouble::Trouble;
pub use typing_state::{Typed, Typist};

use crate::ports::PrintedAddress;
use crate::process::{Exit, ProcessId};

/// Events on their way to the control plane: one or two for each run of a process.
const EVENTS: usize = 1024;

/// How much less than the others the matcher insists on its turn. Reader and parser do not stand
/// back: the echo of a key passes through both, and on a busy machine it would come late.
const NICENESS: i32 = 5;

/// What the control plane must know of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The program ended, and all it printed is parsed.
    Ended {
        /// Its id.
        id: ProcessId,
        /// The run that ended.
        run: u64,
        /// How.
        exit: Exit,
    },
    /// What watched over the program was killed.
    Lost {
        /// Its id.
        id: ProcessId,
        /// The run that is lost.
        run: u64,
    },
    /// Somebody's output cannot be kept as it should be, or can again.
    Trouble,
    /// What a process prints comes near the offset that is noted for it; this is the next to note.
    Mark {
        /// Its id.
        id: ProcessId,
        /// The run that prints.
        run: u64,
        /// The offset to note.
        offset: u64,
    },
}

/// The threads, and the way to them.
#[derive(Debug, Clone)]
pub struct DataPlane {
    reader: Arc<Reader>,
    parser: Arc<OutputParser>,
    matcher: Arc<Matcher>,
}

impl DataPlane {
    /// Starts the threads. All panes' histories together take no more than `history_bytes`.
    pub fn start(history_bytes: usize) -> io::Result<(Self, mpsc::Receiver<Event>)> {
        let (events, receiver) = mpsc::channel(EVENTS);
        let reader = Arc::new(Reader::new()?);
        let matcher = Arc::new(Matcher::default());
        let parser =
            OutputParser::new(reader.clone(), matcher.clone(), events.clone(), history_bytes);
        let parser = Arc::new(parser);
        let (for_reader, to_parse) = (reader.clone(), parser.clone());
        thread("patterm-read", move || for_reader.run(&to_parse, &events))?;
        let to_run = parser.clone();
        thread("patterm-parse", move || to_run.run())?;
        let to_match = matcher.clone();
        thread("patterm-match", move || {
            // As a process without the right to it would be told no, and runs as it is.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
            to_match.run();
        })?;
        Ok((Self { reader, parser, matcher }, receiver))
    }

    /// Takes a pane in: from here on its output is read.
    pub fn add(&self, run: Arc<ProcessRun>, pane: Arc<Pane>, log: Log) {
        self.reader.add(run, pane, log);
    }

    /// Counts the history of a run that is over and that no thread looks at otherwise.
    pub fn count(&self, run: &Arc<ProcessRun>) {
        self.parser.push(run);
    }

    /// Lets go of a pane.
    pub fn remove(&self, run: &Arc<ProcessRun>) {
        self.reader.remove(run);
    }

    /// Waits for a pattern in what a process prints from `from` on, and on its screen.
    pub fn wait(&self, run: &Arc<ProcessRun>, pattern: Regex, from: u64) -> Waiting {
        self.matcher.wait(run, pattern, from)
    }

    /// The addresses found so far in what a process printed; those in output that was not looked at yet
    /// are in a later answer.
    pub fn ports(&self, run: &Arc<ProcessRun>) -> Vec<PrintedAddress> {
        self.matcher.ports(run)
    }

    /// Gives a process's keyboard to one writer, until what is returned is dropped; `None` if
    /// another has it.
    pub fn reserve(&self, run: &Arc<ProcessRun>) -> Option<Keyboard> {
        run.reserve().then(|| Keyboard { plane: self.clone(), run: run.clone() })
    }

    /// Sends what waits in a pane's input queue: at once, and by the reader what does not fit.
    pub fn write(&self, run: &Arc<ProcessRun>) {
        run.flush();
        self.reader.write(run);
    }
}

/// The keyboard of a process, for one writer: what others type comes after it.
#[derive(Debug)]
pub struct Keyboard {
    plane: DataPlane,
    run: Arc<ProcessRun>,
}

impl Keyboard {
    /// Types something.
    pub fn write(&self, bytes: Vec<u8>) -> Result<(), InputFull> {
        self.run.push_now(vec![bytes])?;
        self.plane.write(&self.run);
        Ok(())
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.run.release();
        self.plane.write(&self.run);
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}
