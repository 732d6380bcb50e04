//! The current presets: patterm's own, the user's settings, the project file.

use std::path::PathBuf;
use std::sync::Arc;

use patterm_panes::process::Process;
use patterm_project::declared::Declared;

use super::catalogue::Catalogue;
use super::preset::Preset;

/// The preset for agents without one of their own.
const GENERIC: &str = "generic";

/// The presets of a project.
#[derive(Debug)]
pub struct Presets {
    settings: Option<PathBuf>,
    declared: Arc<Declared>,
}

impl Presets {
    /// Presets from the user's settings and the project file.
    pub fn new(settings: Option<PathBuf>, declared: Arc<Declared>) -> Self {
        Self { settings, declared }
    }

    /// The current presets.
    pub fn catalogue(&self) -> Catalogue {
        let file = self.declared.effect().unwrap_or_default();
        Catalogue::with_project(self.settings.as_deref(), &self.declared.path(), &file.agents)
    }

    /// The preset of an agent; `None` for a process that is not an agent.
    pub fn of(&self, process: &Process) -> Option<Arc<Preset>> {
        let agent = process.agent.as_ref()?;
        let mut presets = self.catalogue().presets;
        let named = presets.remove(&agent.preset).and_then(|known| known.preset.ok());
        let generic = || presets.remove(GENERIC).and_then(|known| known.preset.ok());
        named.or_else(generic).map(Arc::new)
    }
}
