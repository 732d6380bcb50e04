//! New settings, and problems of the other settings file, which the server reads.

use super::{Effect, notify, panes};
use crate::model::{Model, Notice, NoticeSubject};
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

/// Shows what is wrong with the user's `config.toml`, if that has changed. The status bar has a mark in any case.
pub(super) fn note_problem(model: &mut Model, before: Option<&str>) {
    let now = model.snapshot.settings_problem.clone();
    if now.as_deref() == before {
        return;
    }
    let is_about_it = |notice: &Notice| notice.subject == NoticeSubject::UsersSettings;
    if model.notice.as_ref().is_some_and(is_about_it) {
        model.notice = None;
    }
    if let Some(text) = now {
        let subject = NoticeSubject::UsersSettings;
        model.notice = Some(Notice { text, is_error: true, subject });
    }
}

#[cfg(test)]
mod tests {
    use crate::sample::{Sample, project};
    use crate::update::Event;
    use crate::view::view;
    use patterm_wire::follow::ProjectSnapshot;

    #[test]
    fn a_problem_of_the_users_settings_is_a_notice_a_mark_and_in_the_help() {
        let mut sample = Sample::new(100, 40);
        let with = |problem: Option<&str>| {
            let settings_problem = problem.map(str::to_owned);
            Event::Snapshot(ProjectSnapshot { settings_problem, ..project() })
        };
        let notice = |sample: &Sample| sample.model.notice.clone().map(|notice| notice.text);
        sample.handle(with(Some("/c/config.toml:1:1: no")));
        assert_eq!(notice(&sample).as_deref(), Some("/c/config.toml:1:1: no"));
        sample.type_in("x");
        sample.handle(with(Some("/c/config.toml:1:1: no")));
        assert_eq!(notice(&sample), None, "it is shown once");
        assert!(view(&sample.model).text().contains("✗ config.toml"));
        sample.type_in("\x02?");
        assert!(view(&sample.model).text().contains("✗ /c/config.toml:1:1: no"));
        sample.type_in("\x1b");
        sample.handle(with(Some("/c/config.toml:2:1: no")));
        assert_eq!(notice(&sample).as_deref(), Some("/c/config.toml:2:1: no"));
        sample.handle(with(None));
        assert_eq!(notice(&sample), None);
        assert!(!view(&sample.model).text().contains("config.toml"));
    }
}
