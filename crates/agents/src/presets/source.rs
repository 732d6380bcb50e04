//! The current presets: patterm's own, the user's settings, the project file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use patterm_panes::process::Process;
use patterm_project::declared::Declared;
use toml::Table;

use super::catalogue::{Catalogue, SettingsText};
use super::preset::Preset;

/// The preset for agents without one of their own.
const GENERIC: &str = "generic";

/// The presets of a project.
#[derive(Debug)]
pub struct Presets {
    settings: Option<PathBuf>,
    declared: Arc<Declared>,
    cache: CatalogueCache,
}

/// The last catalogue.
#[derive(Debug, Default)]
struct CatalogueCache(Mutex<Option<Loaded>>);

/// A catalogue, and what it was made from. Making it takes tens of milliseconds, and each connection of an agent
/// needs it.
#[derive(Debug)]
struct Loaded {
    settings: SettingsText,
    agents: BTreeMap<String, Table>,
    catalogue: Arc<Catalogue>,
}

impl Presets {
    /// Presets from the user's settings and the project file.
    pub fn new(settings: Option<PathBuf>, declared: Arc<Declared>) -> Self {
        Self { settings, declared, cache: CatalogueCache::default() }
    }

    /// The current presets. The settings are read each time, and parsed if they changed.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        let file = self.declared.effect().unwrap_or_default();
        let settings = SettingsText::read(self.settings.as_deref());
        self.cache.get(settings, &self.declared.path(), &file.agents)
    }

    /// The preset of an agent; `None` for a process that is not an agent.
    pub fn of(&self, process: &Process) -> Option<Arc<Preset>> {
        let agent = process.agent.as_ref()?;
        let catalogue = self.catalogue();
        let preset = |name: &str| catalogue.presets.get(name)?.preset.as_ref().ok();
        preset(&agent.preset).or_else(|| preset(GENERIC)).cloned().map(Arc::new)
    }
}

impl CatalogueCache {
    fn get(
        &self,
        settings: SettingsText,
        project_file: &Path,
        agents: &BTreeMap<String, Table>,
    ) -> Arc<Catalogue> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = |loaded: &&Loaded| loaded.settings == settings && loaded.agents == *agents;
        if let Some(loaded) = last.as_ref().filter(is_current) {
            return loaded.catalogue.clone();
        }
        let catalogue = Arc::new(Catalogue::of(&settings, project_file, agents));
        let agents = agents.clone();
        *last = Some(Loaded { settings, agents, catalogue: catalogue.clone() });
        catalogue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_made_again_only_after_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let cache = CatalogueCache::default();
        let mut agents = BTreeMap::new();
        let get = |agents: &BTreeMap<String, Table>| {
            cache.get(SettingsText::read(Some(&path)), Path::new("patterm.toml"), agents)
        };
        let first = get(&agents);
        assert!(Arc::ptr_eq(&first, &get(&agents)));
        std::fs::write(&path, "[agents.mine]\nprogram = \"/bin/cat\"\n").unwrap();
        let second = get(&agents);
        assert!(second.presets.contains_key("mine") && !first.presets.contains_key("mine"));
        assert!(Arc::ptr_eq(&second, &get(&agents)));
        agents.insert("other".to_owned(), "program = \"/bin/cat\"".parse().unwrap());
        assert!(get(&agents).presets.contains_key("other"));
    }
}
