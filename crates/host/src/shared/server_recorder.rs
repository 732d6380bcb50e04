//! Records that shared servers start, end and fail.

use patterm_events::{About, EventLog};
use patterm_gateway::{ServerChange, ServerObserver};
use patterm_wire::events::{Actor, Fact};
use patterm_wire::printable::one_line;

/// Characters of an error that are recorded: it may quote output of the server.
const ERROR_CHARS: usize = 500;

/// Records what happens to shared servers.
#[derive(Debug)]
pub(super) struct ServerRecorder(EventLog);

impl ServerRecorder {
    /// Records first that the servers which an earlier server of patterm left running have ended with it.
    pub(super) fn new(events: EventLog) -> Self {
        for (server, owner) in events.known_state().servers {
            events.record_recovered(About::project(), Fact::ServerStopped { server, owner });
        }
        Self(events)
    }
}

impl ServerObserver for ServerRecorder {
    fn changed(&self, server: &str, owner: Option<&str>, change: ServerChange) {
        let (server, owner) = (server.to_owned(), owner.map(str::to_owned));
        let fact = match change {
            ServerChange::Started => Fact::ServerStarted { server, owner },
            ServerChange::Stopped => Fact::ServerStopped { server, owner },
            ServerChange::Failed(error) => {
                let error = one_line(&error.chars().take(ERROR_CHARS).collect::<String>());
                Fact::ServerFailed { server, owner, error }
            }
        };
        self.0.record_by(Actor::System, About::project(), fact);
    }
}
