//! Shows another project in place of this one, without leaving.

use std::time::{Duration, Instant};

use super::server::Reconnect;
use super::watch::ServerWatch;
use super::{ServerConnector, Tui};
use crate::update::CallPurpose;
use crate::update::{Event, Switched, local_error};

/// How long the server of another project may take to send it; then the TUI goes back.
const SWITCH_PATIENCE: Duration = Duration::from_secs(5);

impl Tui {
    /// Switches to the server of another project.
    pub(super) fn switch(&mut self, key: &str, process: Option<String>) {
        let server = self.server.servers().into_iter().find(|server| server.key == key);
        let connector = match &server {
            Some(server) => self.server.switch_to(server),
            None => Err("that project's server has ended".to_owned()),
        };
        match connector {
            Ok(connector) => {
                let before = self.replace(connector, process, None);
                self.came_from = Some(before);
                let until = Instant::now() + SWITCH_PATIENCE;
                self.reconnect = self.reconnect.take().map(|retry| Reconnect { until, ..retry });
            }
            Err(why) => {
                self.handle(Event::Answer(CallPurpose::Nothing, Err(local_error(&why))));
            }
        }
    }

    /// Goes back to the previous project if the next one cannot be shown; returns whether there is one.
    pub(super) fn switch_back(&mut self, why: &str) -> bool {
        let Some(before) = self.came_from.take() else { return false };
        let why = format!("the other project cannot be shown: {why}");
        before.enter();
        self.replace(before, None, Some(why));
        true
    }

    /// Shows the project of another connector; returns the previous one.
    fn replace(
        &mut self,
        server: Box<dyn ServerConnector>,
        process: Option<String>,
        why: Option<String>,
    ) -> Box<dyn ServerConnector> {
        if let Some(layout) = self.model.layout_to_save() {
            self.server.save_layout(&layout);
        }
        self.close_overview();
        self.drop_calls();
        (self.follow, self.shared, self.saved, self.save_at) = (None, None, None, None);
        (self.watch, self.usage_at) = (ServerWatch::default(), None);
        self.panes.clear();
        self.unsent.clear();
        let before = std::mem::replace(&mut self.server, server);
        let (key, from) = (self.server.key(), before.key());
        let layout = self.server.saved_layout();
        self.reconnect = Some(Reconnect::from(Instant::now()));
        self.handle(Event::Switched(Box::new(Switched { key, from, process, layout, why })));
        self.watch_shared_layout();
        before
    }
}
