//! Problems of the user's own settings, for the verbs that depend on them.

use patterm_host::server::{USERS_SETTINGS, settings_file};
use patterm_project::project_file::SettingsProblems;

use crate::print::one_line;

/// What is wrong with them.
pub(super) fn problems() -> SettingsProblems {
    SettingsProblems::of(settings_file(USERS_SETTINGS).as_deref())
}

/// A line for people, if anything is wrong with them.
pub(super) fn hint() -> Option<String> {
    problems().summary().map(|summary| one_line(&summary))
}
