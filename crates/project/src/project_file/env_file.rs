//! The key `env_file`.

use std::path::Path;

use super::check::Checked;

/// What editors show.
pub(super) const DESCRIPTION: &str = "A file of NAME=VALUE lines, relative to the project, that is read at each start. \
    Trusting the project file covers this path, not the content of the file.";

/// Checks the path; `path` is that of the table.
pub(super) fn check(checked: &mut Checked<'_>, path: &str, file: Option<&Path>) {
    let is_bad = |file: &Path| {
        let bytes = file.as_os_str().as_encoded_bytes();
        bytes.is_empty() || bytes.contains(&0)
    };
    if file.is_some_and(is_bad) {
        let message = "`env_file` must be a path without NUL characters".to_owned();
        checked.fault(&format!("{path}.env_file"), message, None);
    }
}
