//! The record of the containers that patterm starts, written before they are created, so that the
//! next server knows what to remove. Labels prove nothing: images carry them too.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::settings::EngineEndpoint;

/// The version of the file.
const VERSION: u32 = 1;

/// Random bytes in the label's value, and in names.
const OWNER_BYTES: usize = 16;
const NAME_BYTES: usize = 8;

/// A container that patterm started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedContainer {
    #[serde(rename = "place")]
    pub(super) endpoint: EngineEndpoint,
    pub(super) name: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    version: u32,
    owner: String,
    containers: Vec<RecordedContainer>,
}

/// The record of one project.
#[derive(Debug)]
pub(super) struct ContainerRecord {
    file: PathBuf,
    content: Content,
}

impl ContainerRecord {
    /// Reads the record, or creates one. A damaged file is set aside.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let file = folder.join("containers.json");
        match std::fs::read(&file) {
            Ok(bytes) => {
                let read = serde_json::from_slice::<Content>(&bytes).ok();
                if let Some(content) = read.filter(|content| content.version == VERSION) {
                    return Ok(Self { file, content });
                }
                let aside = file.with_extension("damaged");
                tracing::warn!(?aside, "the record of containers is damaged; setting it aside");
                std::fs::rename(&file, aside)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let owner = random_hex::<OWNER_BYTES>()?;
        let record =
            Self { file, content: Content { version: VERSION, owner, containers: Vec::new() } };
        record.write()?;
        Ok(record)
    }

    /// The value of our label.
    pub(super) fn owner(&self) -> &str {
        &self.content.owner
    }

    pub(super) fn all(&self) -> &[RecordedContainer] {
        &self.content.containers
    }

    /// Records a container that is about to be created, under a unique name.
    pub(super) fn add(&mut self, endpoint: &EngineEndpoint) -> io::Result<String> {
        let name = format!("patterm-{}", random_hex::<NAME_BYTES>()?);
        self.content
            .containers
            .push(RecordedContainer { endpoint: endpoint.clone(), name: name.clone() });
        self.write()?;
        Ok(name)
    }

    /// Removes a container that is gone.
    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        self.content.containers.retain(|container| container.name != name);
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let new = self.file.with_extension("new");
        let file = std::fs::File::create(&new)?;
        serde_json::to_writer(&file, &self.content)?;
        file.sync_all()?;
        std::fs::rename(new, &self.file)
    }
}

/// A random hexadecimal text.
pub(super) fn random_hex<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::super::settings::ContainerEngine;
    use super::*;

    #[test]
    fn recorded_containers_are_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = ContainerRecord::open(folder.path()).unwrap();
        let endpoint = EngineEndpoint::default_of(ContainerEngine::Docker);
        let name = record.add(&endpoint).unwrap();
        let gone = record.add(&endpoint).unwrap();
        record.remove(&gone).unwrap();
        let next = ContainerRecord::open(folder.path()).unwrap();
        assert_eq!(next.all(), [RecordedContainer { endpoint, name }]);
        assert_eq!(next.owner(), record.owner());
        assert_eq!(next.owner().len(), 32);
    }

    #[test]
    fn a_damaged_record_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("containers.json"), "{").unwrap();
        assert!(ContainerRecord::open(folder.path()).unwrap().all().is_empty());
        assert!(folder.path().join("containers.damaged").exists());
    }
}
