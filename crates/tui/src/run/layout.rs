//! Saves the layout when it has changed, and loads what other terminals that share it have saved.

use std::time::{Duration, Instant};

use super::Tui;
use crate::settings::LayoutPolicy;
use crate::settings::file::WatchedFile;
use crate::update::Event;

/// The delay between a change and saving the layout: long enough to combine several keys, and short enough that
/// another terminal that shares the layout seems to follow at once.
const SAVE_AFTER: Duration = Duration::from_millis(100);

impl Tui {
    /// Notes that the layout has to be saved.
    pub(super) fn note_layout(&mut self) {
        if std::mem::take(&mut self.model.layout_changed) {
            self.save_at.get_or_insert_with(|| Instant::now() + SAVE_AFTER);
        }
    }

    pub(super) fn save_layout_if_due(&mut self) {
        if self.save_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.save_at = None;
        let layout = self.model.layout_to_save();
        if let Some(layout) = layout.filter(|layout| self.saved.as_ref() != Some(layout)) {
            self.server.save_layout_soon(&layout);
            self.saved = Some(layout);
        }
    }

    /// Watches the file with the layout if other terminals share it.
    pub(super) fn watch_shared_layout(&mut self) {
        let is_shared = self.model.settings.layout == LayoutPolicy::Shared;
        match (is_shared, &self.shared) {
            (true, None) => {
                self.shared = self.server.layout_file().map(WatchedFile::new);
                self.load_shared_layout();
            }
            (false, Some(_)) => self.shared = None,
            _ => {}
        }
    }

    /// Applies the layout in the file if another terminal has changed it.
    pub(super) fn load_shared_layout(&mut self) {
        if self.shared.as_mut().and_then(WatchedFile::poll).is_none() {
            return;
        }
        let saved = self.server.saved_layout();
        if let Some(saved) = saved.filter(|saved| self.saved.as_ref() != Some(saved)) {
            self.saved = Some(saved.clone());
            self.handle(Event::Layout(saved));
        }
    }
}
