//! The unanswered calls of one connection: indexed by id, so that each can be cancelled, and
//! polled by the connection's own task, so that they wait when it waits.

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt};
use patterm_wire::Id;
use tokio_util::sync::CancellationToken;

/// Work that produces the body of a response; `None` for no response.
pub(crate) type Work = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>;

/// One request, or the requests of a batch, which are answered together.
struct Running {
    number: u64,
    ids: Vec<Id>,
    work: Work,
}

impl Future for Running {
    type Output = (u64, Vec<Id>, Option<Vec<u8>>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let body = self.work.as_mut().poll(context);
        body.map(|body| (self.number, std::mem::take(&mut self.ids), body))
    }
}

/// The call that uses an id. The number distinguishes it from a cancelled call with the same id.
struct Holder {
    number: u64,
    cancel: CancellationToken,
}

/// The calls in flight.
#[derive(Default)]
pub(super) struct Calls {
    running: FuturesUnordered<Running>,
    holders: HashMap<Id, Holder>,
    started: u64,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.holders.len()
    }

    /// Whether a request with this id is still unanswered.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.holders.contains_key(id)
    }

    /// Starts some work. Most work completes at the first poll, and then is never in flight.
    pub(super) fn start(
        &mut self,
        ids: Vec<(Id, CancellationToken)>,
        mut work: Work,
    ) -> Option<Vec<u8>> {
        // The first poll needs no waker, because `next` polls again.
        let mut context = Context::from_waker(std::task::Waker::noop());
        if let Poll::Ready(body) = work.as_mut().poll(&mut context) {
            return body;
        }
        self.started += 1;
        let number = self.started;
        let running = Running { number, ids: ids.iter().map(|(id, _)| id.clone()).collect(), work };
        self.holders.extend(ids.into_iter().map(|(id, cancel)| (id, Holder { number, cancel })));
        self.running.push(running);
        None
    }

    /// The body of the next response; `None` once nothing is in flight.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let (number, ids, body) = self.running.next().await?;
            for id in &ids {
                if self.holders.get(id).is_some_and(|holder| holder.number == number) {
                    self.holders.remove(id);
                }
            }
            if body.is_some() {
                return body;
            }
        }
    }

    /// Cancels one call; it gets no response, and its id is free again at once.
    pub(super) fn cancel(&mut self, id: &Id) {
        if let Some(holder) = self.holders.remove(id) {
            holder.cancel.cancel();
        }
    }

    /// Drops all calls; returns their ids.
    pub(super) fn give_up(&mut self) -> Vec<Id> {
        self.running.clear();
        self.holders.drain().map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn until_cancelled(cancel: &CancellationToken) -> Work {
        let cancel = cancel.clone();
        Box::pin(async move {
            cancel.cancelled().await;
            None
        })
    }

    #[tokio::test]
    async fn the_end_of_a_cancelled_call_does_not_affect_the_next_call_with_its_id() {
        let mut calls = Calls::default();
        let id = Id::from_number(1);
        let [first, second] = std::array::from_fn(|_| CancellationToken::new());
        calls.start(vec![(id.clone(), first.clone())], until_cancelled(&first));
        calls.cancel(&id);
        assert!(!calls.has(&id));
        calls.start(vec![(id.clone(), second.clone())], until_cancelled(&second));
        // The first ends without a response; the second continues.
        assert!(calls.next().now_or_never().is_none());
        assert!(calls.has(&id));
        calls.cancel(&id);
        assert!(second.is_cancelled());
        assert_eq!(calls.next().await, None);
        assert!(calls.is_empty());
    }
}
