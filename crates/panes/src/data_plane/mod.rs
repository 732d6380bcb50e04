//! The data plane reads and parses the output of all programs on threads of its own, so that no flood keeps the
//! control plane from answering requests. The reader reads PTYs into their logs, the parser parses the logs into
//! screens, and the matcher searches them for patterns that callers wait for.

mod control_side;
mod draft_mark;
mod echoes;
mod ending;
mod history;
mod input;
mod key_frames;
mod lines;
mod matcher;
mod matcher_side;
mod notifications;
mod output_clock;
mod parser;
mod parser_side;
mod progress;
mod reader;
mod reader_side;
mod reading;
mod rebuild;
mod recording;
mod replay;
#[cfg(test)]
mod replay_tests;
mod run;
mod trouble;
mod turns;
mod typing_side;
mod typing_state;
mod view;
mod view_set;
mod views;
mod waiter_groups;
mod waiters;

use std::io;
use std::sync::Arc;

use patterm_keeper::Pane;
use patterm_keeper::log::Log;
use patterm_store::clock::Clock;
use regex::Regex;
use tokio::sync::{mpsc, oneshot, watch};

pub use draft_mark::DraftMark;
pub use input::{INPUT_BYTES, InputFull};
use key_frames::FrameWriter;
use matcher::Matcher;
pub use matcher::{Waiting, visible_lines};
pub use notifications::ProgramNotification;
use parser::OutputParser;
pub use progress::RunProgress;
use reader::Reader;
pub(crate) use reading::MARK_BYTES;
use rebuild::Rebuilds;
pub use recording::Recording;
pub(crate) use replay::Replay;
pub use run::ProcessRun;
pub use trouble::Trouble;
pub use typing_state::{Typed, TypingState, Typist};
use view::View;
pub use view::{NewView, ViewNews};
pub use views::Views;
pub use waiters::MatchOutcome;

use crate::offset::Offset;
use crate::ports::PrintedAddress;
use crate::process::{Exit, ProcessId, RunNumber};

/// The capacity of the channel to the control plane: each run sends one or two events.
const EVENTS: usize = 1024;

/// The niceness of the matcher. The reader and the parser keep the normal priority: the echo of a key passes
/// through both, and would be late on a busy machine.
const NICENESS: i32 = 5;

/// What the data plane reports to the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A program ended, and all its output is parsed.
    Ended {
        /// The process.
        id: ProcessId,
        /// The run that ended.
        run: RunNumber,
        /// How it ended.
        exit: Exit,
    },
    /// The init that watched a program was killed.
    Lost {
        /// The process.
        id: ProcessId,
        /// The run that is lost.
        run: RunNumber,
    },
    /// Output of some process cannot be stored normally, or can be again.
    Trouble,
    /// The output of a process comes near its mark in the process table, which needs a new one.
    Mark {
        /// The process.
        id: ProcessId,
        /// The run that prints.
        run: RunNumber,
        /// The new mark.
        offset: Offset,
    },
}

/// A handle to the threads.
#[derive(Debug, Clone)]
pub struct DataPlane {
    reader: Arc<Reader>,
    parser: Arc<OutputParser>,
    matcher: Arc<Matcher>,
    rebuilds: Arc<Rebuilds>,
}

impl DataPlane {
    /// Starts the threads. The histories of all panes together use at most `history_bytes`; `clock` has the times of
    /// output.
    pub fn start(history_bytes: usize, clock: Clock) -> io::Result<(Self, mpsc::Receiver<Event>)> {
        let (events, receiver) = mpsc::channel(EVENTS);
        let reader = Arc::new(Reader::new(clock)?);
        let matcher = Arc::new(Matcher::default());
        let frames = FrameWriter::start()?;
        let (to_read, to_match) = (reader.clone(), matcher.clone());
        let parser = OutputParser::new(to_read, to_match, frames, events.clone(), history_bytes);
        let parser = Arc::new(parser);
        let (for_reader, to_parse) = (reader.clone(), parser.clone());
        thread("patterm-read", move || for_reader.run(&to_parse, &events))?;
        let to_run = parser.clone();
        thread("patterm-parse", move || to_run.run())?;
        let to_match = matcher.clone();
        thread("patterm-match", move || {
            // If this is not permitted, the thread keeps its priority.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
            to_match.run();
        })?;
        let rebuilds = Arc::default();
        Ok((Self { reader, parser, matcher, rebuilds }, receiver))
    }

    /// Begins to read the output of a pane.
    pub fn add(&self, run: Arc<ProcessRun>, pane: Arc<Pane>, log: Log) {
        self.reader.add(run, pane, log);
    }

    /// Rebuilds the screen of a run that an earlier server left, after those that are queued already.
    pub(crate) fn rebuild(&self, run: &Arc<ProcessRun>) {
        self.rebuilds.push(run, &self.parser);
    }

    /// Waits until the screen of a run is complete. If it is still to be rebuilt, it is next.
    pub async fn rebuilt(&self, run: &Arc<ProcessRun>) {
        if !run.is_rebuilt() {
            self.rebuilds.put_first(run);
            run.rebuilt().await;
        }
    }

    /// Waits until the history of a run is complete as well. If it is still to be rebuilt, it is next.
    pub async fn completed(&self, run: &Arc<ProcessRun>) {
        self.rebuilt(run).await;
        run.completed().await;
    }

    /// Counts the history of a run that is over, which no thread would do otherwise.
    pub fn count(&self, run: &Arc<ProcessRun>) {
        self.parser.push(run);
    }

    /// Changes after each bell or notification of a program.
    pub fn notifications(&self) -> watch::Receiver<u64> {
        self.parser.notifications()
    }

    /// Stops reading a pane.
    pub fn remove(&self, run: &Arc<ProcessRun>) {
        self.reader.remove(run);
    }

    /// Waits for a pattern in the output from `from` on, and on the screen.
    pub fn wait(&self, run: &Arc<ProcessRun>, pattern: Regex, from: Offset) -> Waiting {
        self.matcher.wait(run, pattern, from)
    }

    /// The addresses found so far in the output of a process. Output that was not searched yet counts in a later
    /// answer.
    pub fn ports(&self, run: &Arc<ProcessRun>) -> Vec<PrintedAddress> {
        self.matcher.ports(run)
    }

    /// Reserves the keyboard of a process until the result is dropped; `None` if another writer has it.
    pub fn reserve(&self, run: &Arc<ProcessRun>) -> Option<Keyboard> {
        run.typing.reserve().then(|| Keyboard { plane: self.clone(), run: run.clone() })
    }

    /// Sends the queued input of a pane: as much as fits at once, the rest by the reader.
    pub fn write(&self, run: &Arc<ProcessRun>) {
        if !run.flush() {
            self.reader.write(run);
        }
    }

    /// Serves a view until its client is gone or the result is dropped.
    pub fn attach(&self, view: NewView) -> AttachedView {
        let news = Arc::<ViewNews>::default();
        let (ends, over) = oneshot::channel();
        self.reader.attach(View::new(view, news.clone(), ends));
        AttachedView { reader: self.reader.clone(), news, over }
    }
}

/// A view that is served.
#[derive(Debug)]
pub struct AttachedView {
    reader: Arc<Reader>,
    /// What happens in it.
    pub news: Arc<ViewNews>,
    /// Resolves, with an error, once its client is gone.
    pub over: oneshot::Receiver<()>,
}

impl Drop for AttachedView {
    fn drop(&mut self) {
        self.reader.detach(&self.news);
    }
}

/// The reserved keyboard of a process: input of other writers waits until it is dropped.
#[derive(Debug)]
pub struct Keyboard {
    plane: DataPlane,
    run: Arc<ProcessRun>,
}

impl Keyboard {
    /// Sends input.
    pub fn write(&self, bytes: Vec<u8>) -> Result<(), InputFull> {
        self.run.typing.push_now(vec![bytes])?;
        self.plane.write(&self.run);
        Ok(())
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.run.typing.release();
        self.plane.write(&self.run);
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}
