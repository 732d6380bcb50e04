//! What the user's settings and the project file say about environments.

use std::sync::{Arc, Weak};

use patterm_panes::EnvironmentPolicy;
use patterm_panes::environment::UPDATED;

use super::file_status::{Declared, FileStatus};
use crate::project_file::ProjectFile;

/// The policy in the settings: read at each use, so that a change takes effect at once.
#[derive(Debug)]
pub struct DeclaredPolicy(Weak<Declared>);

impl DeclaredPolicy {
    /// The policy of a project.
    pub fn of(declared: &Arc<Declared>) -> Self {
        Self(Arc::downgrade(declared))
    }

    /// The user's settings; `None` if they have errors.
    fn users(declared: &Declared) -> Option<ProjectFile> {
        let path = declared.settings.as_deref();
        path.map_or_else(
            || Some(ProjectFile::default()),
            |path| ProjectFile::of_the_user(path).ok(),
        )
    }
}

impl EnvironmentPolicy for DeclaredPolicy {
    fn remembers(&self) -> bool {
        let Some(declared) = self.0.upgrade() else { return true };
        // If either file says that values must not be stored on disk, they are not; nor while it might say so.
        let by_project = match declared.effect() {
            Some(file) => file.remember_environment != Some(false),
            None => !matches!(declared.file_status(), FileStatus::Faulty { .. }),
        };
        let users = || Self::users(&declared);
        by_project && users().is_some_and(|file| file.remember_environment != Some(false))
    }

    fn updated(&self) -> Vec<String> {
        let listed = self.0.upgrade().and_then(|declared| {
            let projects = declared.effect().and_then(|file| file.update_environment.clone());
            projects.or_else(|| Self::users(&declared)?.update_environment)
        });
        listed.unwrap_or_else(|| UPDATED.map(str::to_owned).to_vec())
    }
}
