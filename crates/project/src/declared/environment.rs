//! What the user's settings and the project file say about environments.

use std::sync::{Arc, Weak};

use patterm_panes::EnvironmentPolicy;
use patterm_panes::environment::UPDATED;

use super::file_status::Declared;
use crate::project_file::ProjectFile;

/// The policy in the settings: read at each use, so that a change takes effect at once.
#[derive(Debug)]
pub struct DeclaredPolicy(Weak<Declared>);

impl DeclaredPolicy {
    /// The policy of a project.
    pub fn of(declared: &Arc<Declared>) -> Self {
        Self(Arc::downgrade(declared))
    }

    /// The project file in effect, and the user's settings.
    fn files(&self) -> Option<(Arc<ProjectFile>, ProjectFile)> {
        let declared = self.0.upgrade()?;
        let settings = declared.settings.as_deref();
        let user = settings.and_then(|path| ProjectFile::of_the_user(path).ok());
        Some((declared.effect().unwrap_or_default(), user.unwrap_or_default()))
    }
}

impl EnvironmentPolicy for DeclaredPolicy {
    fn remembers(&self) -> bool {
        let Some((project, user)) = self.files() else { return true };
        // If either of them says that values must not be stored on disk, they are not.
        project.remember_environment != Some(false) && user.remember_environment != Some(false)
    }

    fn updated(&self) -> Vec<String> {
        let listed = self.files().and_then(|(project, user)| {
            project.update_environment.clone().or(user.update_environment)
        });
        listed.unwrap_or_else(|| UPDATED.map(str::to_owned).to_vec())
    }
}
