//! Where a call waits for what its server says about it: messages, if it takes them, and the response.
//! They come out in the order in which they went in.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Messages queued for one call.
const QUEUE_LENGTH: usize = 64;

/// The response, or the request itself if no server saw it.
pub(crate) type Response = Result<Vec<u8>, String>;

/// What a server says about a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A message before the response.
    Event(String),
    /// The response; `None` if the server ended without one.
    Response(Option<Response>),
}

/// A slot for one call. `takes_events` if messages about it are put into it.
pub(crate) fn call_slot(takes_events: bool) -> (CallSender, CallReceiver) {
    let state = SlotState { takes_events, ..SlotState::default() };
    let shared = Arc::new(Mutex::new(state));
    (CallSender(shared.clone()), CallReceiver(shared))
}

#[derive(Debug, Default)]
struct SlotState {
    takes_events: bool,
    events: VecDeque<String>,
    response: Option<Response>,
    /// The sender is gone.
    closed: bool,
    waker: Option<Waker>,
}

/// Puts messages and the response into a slot.
#[derive(Debug)]
pub(crate) struct CallSender(Arc<Mutex<SlotState>>);

impl CallSender {
    /// Adds a message; returns it if it must go elsewhere.
    pub(crate) fn notify(&self, text: String) -> Result<(), String> {
        let mut state = lock(&self.0);
        if !state.takes_events || state.events.len() >= QUEUE_LENGTH {
            return Err(text);
        }
        state.events.push_back(text);
        wake(state);
        Ok(())
    }

    /// Sets the response.
    pub(crate) fn respond(self, response: Response) {
        lock(&self.0).response = Some(response);
    }
}

impl Drop for CallSender {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.closed = true;
        wake(state);
    }
}

/// Waits for what is put into a slot.
#[derive(Debug)]
pub(crate) struct CallReceiver(Arc<Mutex<SlotState>>);

impl CallReceiver {
    /// The next message, or the response.
    pub(crate) fn poll_said(&mut self, context: &Context<'_>) -> Poll<Said> {
        let mut state = lock(&self.0);
        if let Some(event) = state.events.pop_front() {
            return Poll::Ready(Said::Event(event));
        }
        if state.closed {
            return Poll::Ready(Said::Response(state.response.take()));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            waker => *waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

/// The response, for a call that takes no messages.
impl Future for CallReceiver {
    type Output = Option<Response>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match self.poll_said(context) {
                Poll::Ready(Said::Response(response)) => return Poll::Ready(response),
                Poll::Ready(Said::Event(_)) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

fn lock(state: &Mutex<SlotState>) -> MutexGuard<'_, SlotState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(mut state: MutexGuard<'_, SlotState>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_before_the_response_and_are_bounded() {
        let context = Context::from_waker(Waker::noop());
        let (sender, mut receiver) = call_slot(true);
        assert_eq!(receiver.poll_said(&context), Poll::Pending);
        let kept = (0..=QUEUE_LENGTH).filter(|n| sender.notify(n.to_string()).is_ok()).count();
        assert_eq!(kept, QUEUE_LENGTH);
        sender.respond(Ok(b"done".to_vec()));
        for n in 0..QUEUE_LENGTH {
            assert_eq!(receiver.poll_said(&context), Poll::Ready(Said::Event(n.to_string())));
        }
        let done = Said::Response(Some(Ok(b"done".to_vec())));
        assert_eq!(receiver.poll_said(&context), Poll::Ready(done));
    }

    #[test]
    fn a_call_without_messages_gets_none_and_notices_the_end() {
        let mut context = Context::from_waker(Waker::noop());
        let (sender, mut receiver) = call_slot(false);
        assert_eq!(sender.notify("x".into()), Err("x".into()));
        assert_eq!(Pin::new(&mut receiver).poll(&mut context), Poll::Pending);
        drop(sender);
        assert_eq!(Pin::new(&mut receiver).poll(&mut context), Poll::Ready(None));
    }
}
