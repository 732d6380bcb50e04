//! Where people are typing.

use std::time::Duration;

use patterm_agents::activity::{Activities, ScreenSnapshot};
use patterm_panes::Panes;
use patterm_panes::data_plane::ProcessRun;

/// A person who typed within this time is still typing.
pub(crate) const TYPING_PAUSE: Duration = Duration::from_secs(5);

/// Whether a person typed in any pane within the last seconds.
pub(crate) fn is_anybody_typing(panes: &Panes) -> bool {
    let mut typed = panes.runs().into_iter().filter_map(|(_, run)| run.typing().typed);
    typed.any(|typed| typed.elapsed() < TYPING_PAUSE)
}

/// The processes that a view shows and whose prompt contains unfinished text.
pub(crate) fn drafts(panes: &Panes, activities: &Activities) -> Vec<String> {
    let runs = panes.runs().into_iter().map(|(_, run)| run);
    let looked_at = runs.filter(|run| run.is_rebuilt() && run.views().unseen_from().is_none());
    let has_draft = |run: &ProcessRun| {
        // Its observer's preset: loading it again would parse settings files.
        let preset = activities.signals(&run.id).preset();
        let snapshot = ScreenSnapshot::of(&run.screen(), preset.as_deref());
        snapshot.composer.map_or(run.typing().draft, |composer| !composer.is_empty())
    };
    looked_at.filter(|run| has_draft(run)).map(|run| run.id.to_string()).collect()
}
