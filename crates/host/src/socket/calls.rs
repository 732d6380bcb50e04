//! The calls of one connection that are not answered yet: by id, so that one can be cancelled,
//! and all polled together by the connection's own task, so that they wait when it waits.

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt};
use patterm_wire::Id;
use tokio_util::sync::CancellationToken;

/// Work that ends with the body of an answer; `None` where nothing is to be said.
pub(super) type Work = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>;

/// One or, in a batch, several requests that are answered together.
struct Running {
    ids: Vec<Id>,
    work: Work,
}

impl Future for Running {
    type Output = (Vec<Id>, Option<Vec<u8>>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.work.as_mut().poll(context).map(|body| (std::mem::take(&mut self.ids), body))
    }
}

/// The calls in flight.
#[derive(Default)]
pub(super) struct Calls {
    running: FuturesUnordered<Running>,
    cancels: HashMap<Id, CancellationToken>,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.cancels.len()
    }

    /// Whether a request with this id is still unanswered.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.cancels.contains_key(id)
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
        let running = Running { ids: ids.iter().map(|(id, _)| id.clone()).collect(), work };
        self.cancels.extend(ids);
        self.running.push(running);
        None
    }

    /// The body of the next answer; `None` once nothing is in flight.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let (ids, body) = self.running.next().await?;
            for id in &ids {
                self.cancels.remove(id);
            }
            if body.is_some() {
                return body;
            }
        }
    }

    /// Cancels one call; it is not answered, and its id is free again at once.
    pub(super) fn cancel(&mut self, id: &Id) {
        if let Some(cancel) = self.cancels.remove(id) {
            cancel.cancel();
        }
    }

    /// Drops all calls and says whose answers will not come.
    pub(super) fn give_up(&mut self) -> Vec<Id> {
        self.running.clear();
        self.cancels.drain().map(|(id, _)| id).collect()
    }
}
