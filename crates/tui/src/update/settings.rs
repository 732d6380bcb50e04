//! New settings.

use super::{Effect, notify, panes};
use crate::model::Model;
use crate::settings::Settings;

/// Applies the settings file, unless it has errors.
pub(super) fn take(model: &mut Model, text: Result<String, String>, effects: &mut Vec<Effect>) {
    let read = text.and_then(|text| {
        Settings::read(&text).map_err(|errors| {
            let more = match errors.len() {
                0 | 1 => String::new(),
                2 => " (and 1 more error)".to_owned(),
                count => format!(" (and {} more errors)", count - 1),
            };
            let first = errors.first().map(ToString::to_string).unwrap_or_default();
            format!("{first}{more}")
        })
    });
    match read {
        Ok(settings) => {
            if model.settings_error.take().is_some() {
                notify(model, "tui.toml is in effect", false);
            }
            let resized = settings.sizes != model.settings.sizes;
            model.settings = settings;
            if resized {
                panes::attach_all(model, effects);
            }
        }
        Err(error) => {
            notify(model, &error, true);
            model.settings_error = Some(error);
        }
    }
}
