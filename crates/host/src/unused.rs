//! The end of a background server that nothing uses. The next client starts it again, so it gives up
//! nothing but memory.

use std::sync::Arc;
use std::time::Duration;

use crate::host::Host;

/// Shuts the server down after a period without clients, if nothing else uses it at its end. It wakes up
/// once per such period, and never while there are clients.
pub(crate) async fn end_when_unused(host: Arc<Host>, period: Duration) {
    let mut clients = host.clients.subscribe();
    while clients.wait_for(|count| *count == 0).await.is_ok() {
        tokio::select! {
            changed = clients.changed() => drop(changed),
            () = tokio::time::sleep(period) => {
                if !is_used(&host) {
                    tracing::info!(seconds = period.as_secs(), "the server was unused and shuts down");
                    host.shutdown.cancel();
                    return;
                }
            }
        }
    }
}

/// Whether the server is needed.
fn is_used(host: &Host) -> bool {
    // A client may have connected at the very end of the period.
    *host.clients.borrow() > 0
        || host.panes.processes.all().iter().any(|process| process.status.is_alive())
        || !host.timers.all().0.is_empty()
        || host.web.address().borrow().is_some()
        || host.shared.is_in_use()
        || host.declared.has_pending_start()
        // The decision about what to restore is a person's; it must not be forgotten.
        || !host.lifecycle.offers().is_empty()
}
