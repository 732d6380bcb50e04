//! One run of a process, as all threads share it. Each thread's state is in a part of its own; what each part
//! guarantees is documented there.

use std::sync::{Arc, Mutex, MutexGuard};

use patterm_keeper::Pane;
use patterm_keeper::log::{self, KeyFrame, SizeMark};
use patterm_screen::{Screen, Size, TerminalName};
use patterm_wire::events::Actor;
use tokio::sync::watch;
use tokio::time::Instant;

use super::control_side::ControlSide;
use super::draft_mark::DraftMark;
use super::ending::RunEnd;
use super::input::InputFull;
use super::key_frames::FrameSide;
use super::matcher_side::MatcherSide;
use super::notifications::ProgramNotification;
use super::parser_side::ParserSide;
use super::progress::{Progress, RunProgress};
use super::reader_side::ReaderSide;
use super::rebuild::Rebuilding;
use super::replay::{self, Replay};
use super::trouble::Trouble;
use super::typing_side::TypingSide;
use super::typing_state::{Typed, TypingState, Typist};
use super::views::Views;
use crate::offset::Offset;
use crate::ports::Ports;
use crate::process::{Exit, ProcessId, RunNumber};
use crate::size;
use crate::tree::Usage;
use patterm_store::sync::lock;

/// One run of a process.
///
/// Locks are taken one at a time, with one exception: while a thread holds the screen it may resize the pane. The
/// matcher copies from the screen before it locks the waiters.
#[derive(Debug)]
pub struct ProcessRun {
    /// The process.
    pub id: ProcessId,
    /// The number of this run.
    pub number: RunNumber,
    /// Its pane; `None` for a run that was over before this server started and whose keeper is gone.
    pub pane: Option<Arc<Pane>>,
    /// The output that is kept, of this and earlier runs.
    pub log: log::Reader,
    /// Addresses that the program printed.
    pub ports: Ports,
    /// The parser feeds it; everything else reads it.
    screen: Mutex<Screen>,
    /// Locked by whoever waits for the screen. The parser would otherwise lock the screen again before a thread that
    /// waits for it wakes up, and keep it waiting for as long as there is output.
    screen_queue: Mutex<()>,
    /// The clients that show this run.
    views: Mutex<Views>,
    progress: Progress,
    pub(super) reader: ReaderSide,
    pub(super) parser: ParserSide,
    pub(super) matcher: MatcherSide,
    pub(super) typing: TypingSide,
    pub(super) frames: FrameSide,
    control: ControlSide,
    rebuilding: Rebuilding,
}

impl ProcessRun {
    /// A run whose screen shows the output before `parsed`.
    pub fn new(
        id: ProcessId,
        number: RunNumber,
        pane: Option<Arc<Pane>>,
        log: log::Reader,
        screen: Screen,
        parsed: Offset,
    ) -> Self {
        Self {
            id,
            number,
            pane,
            log,
            ports: Ports::default(),
            screen: Mutex::new(screen),
            screen_queue: Mutex::default(),
            views: Mutex::new(Views::new(parsed)),
            progress: Progress::new(parsed),
            reader: ReaderSide::default(),
            parser: ParserSide::new(parsed),
            matcher: MatcherSide::default(),
            typing: TypingSide::default(),
            frames: FrameSide::new(parsed),
            control: ControlSide::default(),
            rebuilding: Rebuilding::of(None),
        }
    }

    /// A run of an earlier server. Its screen is not there yet; [`super::DataPlane::rebuild`] creates it.
    pub(crate) fn to_rebuild(
        id: ProcessId,
        number: RunNumber,
        pane: Option<Arc<Pane>>,
        log: log::Reader,
        replay: Replay,
    ) -> Self {
        let (blank, from) = (replay.blank_screen(), replay.from);
        Self {
            views: Mutex::new(Views::new(replay.until)),
            progress: Progress::to_rebuild(from),
            rebuilding: Rebuilding::of(Some(replay)),
            ..Self::new(id, number, pane, log, blank, from)
        }
    }

    /// The screen. The parser holds it while it feeds one piece of output, others while they read it once. Blocks
    /// while the screen of an earlier server is being rebuilt.
    pub fn screen(&self) -> MutexGuard<'_, Screen> {
        let mut screen = self.screen_to_feed();
        screen.settle();
        screen
    }

    /// The screen for the parser: of a flood, the last lines may not be on it yet.
    pub(super) fn screen_to_feed(&self) -> MutexGuard<'_, Screen> {
        self.rebuilding.wait();
        let _first = lock(&self.screen_queue);
        lock(&self.screen)
    }

    /// Whether its screen shows everything that was printed before this server started.
    pub fn is_rebuilt(&self) -> bool {
        self.rebuilding.has_screen()
    }

    /// Waits until its screen shows everything that was printed before this server started.
    pub async fn rebuilt(&self) {
        if !self.is_rebuilt() {
            let _ = self.watch_life().wait_for(|progress| progress.rebuilt).await;
        }
    }

    /// Whether everything above its screen is there as well.
    pub(super) fn is_complete(&self) -> bool {
        self.rebuilding.is_done()
    }

    /// Waits until everything above its screen is there as well.
    pub(super) async fn completed(&self) {
        if !self.is_complete() {
            self.rebuilding.want();
            let _ = self.watch_life().wait_for(|progress| progress.complete).await;
        }
    }

    /// The same for a thread that may block.
    pub(super) fn wait_until_complete(&self) {
        self.rebuilding.wait_for_all();
    }

    /// Whether somebody waits for what is above its screen.
    pub(super) fn is_wanted(&self) -> bool {
        self.rebuilding.is_wanted()
    }

    /// Rebuilds its screen or, if that is there, some of what is above it. Called by one thread at a time; the screen is
    /// rebuilt before the parser has a turn of this run. Returns whether the terminal got another size.
    pub(super) fn rebuild(&self) -> bool {
        if let Some((replayed, until)) = self.rebuilding.screen(&self.log) {
            let base = replayed.base.filter(|_| replayed.screen.history().is_incomplete());
            // Without one, where the output begins.
            let last = replayed.base.map_or(self.parser.parsed(), |base| base.offset);
            self.frames.set_last(last);
            *lock(&self.screen) = replayed.screen;
            self.parser.set_parsed(until);
            self.rebuilding.set_base(base);
            self.progress.set_rebuilt(until, base.is_none());
            return false;
        }
        let Some((above, base)) = self.rebuilding.above(&self.log) else { return false };
        let mut screen = self.screen();
        screen.history_mut().restore_older(above);
        // The rows may have been cleared or dropped meanwhile, and then those above them are not needed either.
        let base = base.filter(|_| screen.history().is_incomplete());
        if base.is_none() {
            screen.history_mut().give_up_older();
        }
        let wanted = self.control.wanted_size().filter(|size| screen.has_history_for(*size));
        let resized = wanted.is_some_and(|size| {
            self.apply_size(&mut screen, size);
            true
        });
        drop(screen);
        self.rebuilding.set_base(base);
        if base.is_none() {
            self.progress.set_complete();
        }
        resized
    }

    /// Its screen as it was when exactly the output before `at` was on it; `begin` is where the run began. `None` if
    /// output that it needs is gone. This parses about a megabyte, so it is not for a thread that answers requests.
    pub fn screen_at(&self, begin: Offset, at: Offset) -> Option<Screen> {
        self.screen_of_run(self.number, begin, at)
    }

    /// The same for an earlier run of the process, whose output is before that of this run.
    pub fn screen_of_run(&self, run: RunNumber, begin: Offset, at: Offset) -> Option<Screen> {
        Replay { run, ..self.replay_from(begin) }.at(&self.log, at)
    }

    /// All output from an offset on, with what is known of this run.
    pub(super) fn replay_from(&self, begin: Offset) -> Replay {
        Replay {
            run: self.number,
            size: self.screen().size(),
            from: begin,
            until: Offset::new(self.log.end()),
            version_base: 0,
            terminal_name: TerminalName::default(),
        }
    }

    /// The state of its screen, for a later server.
    pub(super) fn key_frame(&self) -> Option<KeyFrame> {
        replay::key_frame(&self.screen(), self.number, &self.log)
    }

    #[cfg(test)]
    pub(super) fn is_screen_free(&self) -> bool {
        self.screen.try_lock().is_ok()
    }

    /// The clients that show this run.
    pub fn views(&self) -> MutexGuard<'_, Views> {
        lock(&self.views)
    }

    /// The last notification of its program.
    pub fn notification(&self) -> Option<ProgramNotification> {
        self.parser.notifications.last()
    }

    /// Whether its bell rang and no view has shown that.
    pub fn has_unseen_bell(&self) -> bool {
        let unseen = self.views().unseen_from();
        unseen.is_some_and(|from| self.parser.notifications.rang_since(from))
    }

    /// Why its output cannot be stored normally.
    pub fn trouble(&self) -> Option<Trouble> {
        self.reader.trouble()
    }

    /// The resource usage of everything below its init, measured now or a moment ago.
    pub fn usage(&self, init: i32) -> Usage {
        self.control.usage(init)
    }

    /// Gives its terminal another size. If that needs rows above the screen that are still being rebuilt, it gets it as
    /// soon as they are there. Returns whether there is a report of that for the program (mode 2048), to be written by
    /// [`super::DataPlane::write`].
    pub fn resize(&self, size: Option<Size>) -> bool {
        let Some(size) = size else { return false };
        let mut screen = self.screen();
        if !screen.has_history_for(size) {
            self.rebuilding.want();
            self.control.set_wanted_size(Some(size));
            return false;
        }
        self.apply_size(&mut screen, size)
    }

    fn apply_size(&self, screen: &mut Screen, size: Size) -> bool {
        self.control.set_wanted_size(None);
        let before = screen.size();
        if before == size {
            return false;
        }
        // First, so that the next server knows it even if this one dies in between.
        let (before, after) = (size::for_terminal(before), size::for_terminal(size));
        self.log.note_size(SizeMark { offset: screen.offset(), before, after });
        screen.resize(size);
        self.frames.note_resize();
        self.control.note_resize();
        // The screen stays locked until the program is told, so that no thread sees one without the other.
        if let Some(pane) = &self.pane {
            let _ = pane.resize(after);
        }
        let report = screen.take_replies();
        !report.is_empty() && self.typing.push_now(vec![report]).is_ok()
    }

    /// How often its terminal got another size. Comparing sizes would miss one that changed and changed back.
    pub fn resizes(&self) -> u64 {
        self.control.resizes()
    }

    /// The number of callers that wait for a pattern.
    pub fn waiter_count(&self) -> usize {
        self.matcher.waiters().len()
    }

    /// How far the run is now.
    pub(super) fn progress(&self) -> RunProgress {
        self.progress.get()
    }

    /// Follows the progress of the run.
    pub fn watch(&self) -> watch::Receiver<RunProgress> {
        self.progress.watch()
    }

    /// Follows the run without its output: whoever waits for its end is not woken up by every key and its echo. `parsed`
    /// is out of date there.
    pub fn watch_life(&self) -> watch::Receiver<RunProgress> {
        self.progress.watch_life()
    }

    /// Marks the run as over before this server started.
    pub(crate) fn set_over(&self, exit: Option<Exit>) {
        self.progress.set_over(RunEnd::from(exit));
    }

    /// The status of its program, as its init recorded it.
    pub fn status(&self) -> Option<patterm_keeper::ProgramStatus> {
        self.pane.as_ref()?.status().ok().flatten()
    }

    /// The process id of its init, while that is alive. Everything of the run is below it.
    pub fn init(&self) -> Option<i32> {
        // Later the kernel may give the number to another process.
        if self.progress.get().empty {
            return None;
        }
        if let Some(init) = self.control.known_init() {
            return Some(init.pid);
        }
        Some(self.control.remember_init(self.status()?.init).pid)
    }

    /// Whether its init was killed before it had ended everything below it, while the keeper was not its parent
    /// and could not do so either. Processes of the run may then keep running outside of any pane.
    pub(crate) fn is_left_behind(&self, keeper: Option<i32>) -> bool {
        let parent = self.control.known_init().and_then(|init| init.parent);
        let is_keepers = parent.is_some() && parent == keeper;
        // Asks the pane directly: the reader may not have handled the event yet.
        let is_gone = self.pane.as_ref().is_some_and(|pane| pane.is_init_gone());
        is_gone && !is_keepers && self.status().is_some_and(|status| !status.empty)
    }

    /// Waits until the end of the run is in the process table, so that a caller that reacts to the end finds the
    /// final status there.
    pub async fn noted(&self) {
        let _ = self.watch_life().wait_for(|progress| progress.settled).await;
    }

    /// Marks the end of the run as recorded in the process table.
    pub fn settle(&self) {
        self.progress.set_settled();
    }

    /// Records that somebody asked the run to end: its end counts as stopped, not as exited.
    pub fn set_stopping(&self) {
        self.control.set_stopping();
    }

    /// Who asked the run to end; the system if nobody did.
    pub fn stopped_by(&self) -> Actor {
        self.control.stopped_by()
    }

    /// Whether somebody asked the run to end.
    pub fn is_stopping(&self) -> bool {
        self.control.is_stopping()
    }

    /// Queues input, all pieces or none; [`super::DataPlane::write`] sends it.
    pub fn push(&self, pieces: Vec<Vec<u8>>) -> Result<(), InputFull> {
        self.typing.push(pieces)
    }

    /// Queues bytes from a view: what a person types, and replies of the person's terminal.
    pub(super) fn type_in(&self, bytes: Vec<u8>) -> Result<(), InputFull> {
        self.typing.push_typed(bytes)
    }

    /// Records that a person typed.
    pub fn note_typed(&self, typed: Typed) {
        self.note_typing(typed);
        self.record_draft();
    }

    /// The same, without the file for the next server: [`Self::record_draft`] must follow.
    pub(super) fn note_typing(&self, typed: Typed) {
        self.typing.note(typed, Instant::now());
    }

    /// Records who types, before it is written.
    pub fn note_typist(&self, typist: &Arc<Actor>) {
        self.typing.note_typist(Some(typist), Instant::now());
    }

    /// Records that patterm types, for somebody whom it knows: who typed before has no part in what follows.
    pub fn forget_typist(&self) {
        self.typing.note_typist(None, Instant::now());
    }

    /// Who typed last, if that was not earlier.
    pub fn typist_since(&self, since: Instant) -> Option<Arc<Actor>> {
        self.typing.typist_since(since)
    }

    /// Records a draft for the next server, or that there is none any more.
    pub(super) fn record_draft(&self) {
        self.typing.record_draft(self.number);
    }

    /// Records whether input that no person typed leaves a draft.
    pub fn note_draft(&self, bytes: &[u8]) {
        let typed = Typist::default().read_whole(bytes);
        self.typing.note(Typed { any: false, ..typed }, Instant::now());
        self.record_draft();
    }

    /// Restores the draft that an earlier server recorded, and records drafts there from now on.
    pub(crate) fn keep_draft(&self, mark: DraftMark) {
        self.typing.restore_draft(mark, self.number);
    }

    /// The state of a person's typing.
    pub fn typing(&self) -> TypingState {
        self.typing.state()
    }

    /// Writes queued input to the terminal; `false` if the terminal is full.
    pub(super) fn flush(&self) -> bool {
        self.pane.as_ref().is_none_or(|pane| self.typing.flush(pane.master()))
    }

    /// Whether all input has been written to the terminal.
    pub fn is_written(&self) -> bool {
        self.typing.is_written()
    }

    /// Whether the program has read all input.
    pub fn is_read(&self) -> bool {
        let unread = self.pane.as_ref().map(|pane| pane.unread());
        self.is_written() && matches!(unread, Some(Ok(0)))
    }

    /// Sets the offset in the process table that the output has not reached; before the run is added to the data
    /// plane.
    pub(crate) fn set_mark(&self, mark: Offset) {
        self.reader.set_mark(mark);
    }

    /// Called by the reader: no process of the run is left.
    pub(super) fn set_empty(&self) {
        self.progress.set_empty();
    }

    /// Called by the parser: publishes how far it is, and returns the end of the run when that is reached.
    pub(super) fn advance(&self, parsed: Offset) -> Option<RunEnd> {
        let end = self.parser.ending.take_reached(parsed);
        self.progress.advance(parsed, end);
        end
    }

    /// The output from this offset on is still needed: the parser or the matcher has not read it.
    pub(super) fn needed(&self) -> Offset {
        let parsed = self.parser.parsed();
        self.matcher.waiters().searched().map_or(parsed, |searched| searched.min(parsed))
    }

    /// The number of bytes that are in the log but not parsed.
    pub(super) fn lag(&self) -> u64 {
        self.parser.lag(&self.log)
    }

    /// Releases the memory of parsed output.
    pub(super) fn release_parsed(&self) {
        self.parser.release_parsed(&self.log);
    }
}
