//! The calls of one connection that are not answered yet: by id, so that one can be cancelled,
//! and all polled together by the connection's own task, so that they wait when it waits.

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt};
use patterm_wire::Id;
use tokio_util::sync::CancellationToken;

/// Work that ends with the body of an answer; `None` where nothing is to be said.
pub(crate) type Work = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>;

/// One or, in a batch, several requests that are answered together.
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

/// Who has an id now. The number tells a call from a cancelled one that had the id before it.
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

    /// Begins some work. Most of it is done at the first look, and then never is in flight.
    pub(super) fn start(
        &mut self,
        ids: Vec<(Id, CancellationToken)>,
        mut work: Work,
    ) -> Option<Vec<u8>> {
        // The first poll needs a context only to be told of progress, and `next` polls again.
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

    /// The body of the next answer; `None` once nothing is in flight.
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

    /// Cancels one call; it is not answered, and its id is free again at once.
    pub(super) fn cancel(&mut self, id: &Id) {
        if let Some(holder) = self.holders.remove(id) {
            holder.cancel.cancel();
        }
    }

    /// Drops all calls and says whose answers will not come.
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
    async fn the_end_of_a_cancelled_call_leaves_the_next_holder_of_its_id_alone() {
        let mut calls = Calls::default();
        let id = Id::from_number(1);
        let [first, second] = std::array::from_fn(|_| CancellationToken::new());
        calls.start(vec![(id.clone(), first.clone())], until_cancelled(&first));
        calls.cancel(&id);
        assert!(!calls.has(&id));
        calls.start(vec![(id.clone(), second.clone())], until_cancelled(&second));
        // The first ends without an answer; the second goes on.
        assert!(calls.next().now_or_never().is_none());
        assert!(calls.has(&id));
        calls.cancel(&id);
        assert!(second.is_cancelled());
        assert_eq!(calls.next().await, None);
        assert!(calls.is_empty());
    }
}
