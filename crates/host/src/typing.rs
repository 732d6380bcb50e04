//! Where people type at the moment.

use std::time::Duration;

use patterm_agents::activity::{Activities, Glimpse};
use patterm_panes::Panes;
use patterm_panes::data_plane::Live;

/// A person who typed so lately goes on typing.
pub(crate) const TYPING_PAUSE: Duration = Duration::from_secs(5);

/// Whether a person typed anywhere within the last seconds.
pub(crate) fn somebody_types(panes: &Panes) -> bool {
    let mut typed = panes.lives().into_iter().filter_map(|(_, live)| live.hand().typed);
    typed.any(|typed| typed.elapsed() < TYPING_PAUSE)
}

/// The processes that a view shows and in whose prompt an unfinished text stands.
pub(crate) fn drafts(panes: &Panes, activities: &Activities) -> Vec<String> {
    let lives = panes.lives().into_iter().map(|(_, live)| live);
    let looked_at = lives.filter(|live| live.views().unseen_from().is_none());
    let has_draft = |live: &Live| {
        // The preset that its observer has: to read it anew means to parse settings files.
        let preset = activities.facts(&live.id).preset();
        let glimpse = Glimpse::of(&live.screen(), preset.as_deref());
        glimpse.composer.map_or(live.hand().draft, |composer| !composer.is_empty())
    };
    looked_at.filter(|live| has_draft(live)).map(|live| live.id.to_string()).collect()
}
