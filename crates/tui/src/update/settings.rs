//! What the person has set, as it is now.

use super::{Effect, panes, tell};
use crate::model::Model;
use crate::settings::Settings;

/// Takes the file of settings: whole, or not at all.
pub(super) fn take(model: &mut Model, text: Result<String, String>, effects: &mut Vec<Effect>) {
    let read = text.and_then(|text| {
        Settings::read(&text).map_err(|faults| {
            let more = match faults.len() {
                0 | 1 => String::new(),
                2 => " (and 1 more mistake)".to_owned(),
                count => format!(" (and {} more mistakes)", count - 1),
            };
            let first = faults.first().map(ToString::to_string).unwrap_or_default();
            format!("{first}{more}")
        })
    });
    match read {
        Ok(settings) => {
            if model.settings_fault.take().is_some() {
                tell(model, "tui.toml is in effect", false);
            }
            let resized = settings.sizes != model.settings.sizes;
            model.settings = settings;
            if resized {
                panes::attach_all(model, effects);
            }
        }
        Err(fault) => {
            tell(model, &fault, true);
            model.settings_fault = Some(fault);
        }
    }
}
