//! The part of a run that concerns its keyboard: queued input, and the state of a person's typing.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use patterm_store::sync::lock;
use patterm_wire::events::Actor;
use tokio::time::Instant;

use super::draft_mark::DraftMark;
use super::input::{Input, InputFull};
use super::typing_state::{Typed, TypingState};
use crate::process::RunNumber;

/// The state of typing, and whether the file has a draft.
#[derive(Debug, Default)]
struct State {
    typing: TypingState,
    recorded: bool,
}

/// The keyboard of a run.
///
/// Any thread may queue input and write it to the terminal, under one mutex, so bytes never mix. The control plane
/// writes the typing state. The mutexes are never held together.
#[derive(Debug, Default)]
pub(super) struct TypingSide {
    input: Mutex<Input>,
    state: Mutex<State>,
    /// Who typed last, and when; apart from answers that patterm types for a person.
    typist: Mutex<Option<(Instant, Arc<Actor>)>>,
    /// Where a draft is recorded for the next server.
    draft_mark: OnceLock<DraftMark>,
    /// A person typed and waits for the echo. The control plane sets it before it queues the input; the reader then
    /// looks for the echo, and the next turn of the parser for this run goes first and clears it. Acquire and
    /// release; a lost update would only cost the priority of one echo.
    echo_expected: AtomicBool,
}

impl TypingSide {
    /// Queues input, all pieces or none.
    pub(super) fn push(&self, pieces: Vec<Vec<u8>>) -> Result<(), InputFull> {
        lock(&self.input).push(pieces)
    }

    /// Queues input for the writer that has reserved the keyboard, and replies of the terminal itself.
    pub(super) fn push_now(&self, pieces: Vec<Vec<u8>>) -> Result<(), InputFull> {
        lock(&self.input).push_now(pieces)
    }

    /// Queues what a person types.
    pub(super) fn push_typed(&self, bytes: Vec<u8>) -> Result<(), InputFull> {
        self.echo_expected.store(true, Ordering::Release);
        self.push(vec![bytes])
    }

    pub(super) fn is_echo_expected(&self) -> bool {
        self.echo_expected.load(Ordering::Acquire)
    }

    /// `true`, once, if a person typed since the last call.
    pub(super) fn take_echo_expected(&self) -> bool {
        self.echo_expected.swap(false, Ordering::AcqRel)
    }

    /// Writes queued input until the terminal accepts no more; `false` if some is left.
    pub(super) fn flush(&self, terminal: BorrowedFd<'_>) -> bool {
        let mut input = lock(&self.input);
        let drained = input.drain(|bytes| rustix::io::write(terminal, bytes));
        drained.is_ok() || input.is_empty()
    }

    /// Drops all queued input: the terminal is closed.
    pub(super) fn discard(&self) {
        lock(&self.input).clear();
    }

    pub(super) fn is_written(&self) -> bool {
        lock(&self.input).is_empty()
    }

    pub(super) fn reserve(&self) -> bool {
        lock(&self.input).reserve()
    }

    pub(super) fn release(&self) {
        lock(&self.input).release();
    }

    pub(super) fn state(&self) -> TypingState {
        lock(&self.state).typing
    }

    /// Updates the typing state. [`Self::record_draft`] must follow.
    pub(super) fn note(&self, typed: Typed, now: Instant) {
        lock(&self.state).typing.note(typed, now);
    }

    pub(super) fn note_typist(&self, typist: Option<&Arc<Actor>>, now: Instant) {
        *lock(&self.typist) = typist.map(|actor| (now, actor.clone()));
    }

    /// Who typed last, if that was not earlier.
    pub(super) fn typist_since(&self, since: Instant) -> Option<Arc<Actor>> {
        lock(&self.typist).as_ref().filter(|(at, _)| *at >= since).map(|(_, actor)| actor.clone())
    }

    /// Updates the file that tells the next server about a draft, if there is a change.
    pub(super) fn record_draft(&self, run: RunNumber) {
        let mut state = lock(&self.state);
        let draft = state.typing.draft;
        if std::mem::replace(&mut state.recorded, draft) != draft
            && let Some(mark) = self.draft_mark.get()
        {
            mark.set(run, draft);
        }
    }

    /// Restores the draft that an earlier server recorded, and records drafts there from now on.
    pub(super) fn restore_draft(&self, mark: DraftMark, run: RunNumber) {
        let mut state = lock(&self.state);
        let draft = mark.is_set(run);
        (state.typing.draft, state.recorded) = (draft, draft);
        if !draft {
            mark.set(run, false);
        }
        let _ = self.draft_mark.set(mark);
    }
}
