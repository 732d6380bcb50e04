//! The record of the containers that patterm starts, written before they are created, so that the
//! next server knows what to remove. Labels prove nothing: images carry them too.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::settings::Place;

/// The version of the file.
const VERSION: u32 = 1;

/// Random bytes in the label's value, and in names.
const OWNER_BYTES: usize = 16;
const NAME_BYTES: usize = 8;

/// A container that patterm started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recorded {
    pub(super) place: Place,
    pub(super) name: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    version: u32,
    owner: String,
    containers: Vec<Recorded>,
}

/// The record of one project.
#[derive(Debug)]
pub(super) struct Record {
    file: PathBuf,
    content: Content,
}

impl Record {
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
        let owner = chance::<OWNER_BYTES>()?;
        let record =
            Self { file, content: Content { version: VERSION, owner, containers: Vec::new() } };
        record.write()?;
        Ok(record)
    }

    /// The value of our label.
    pub(super) fn owner(&self) -> &str {
        &self.content.owner
    }

    pub(super) fn all(&self) -> &[Recorded] {
        &self.content.containers
    }

    /// Records a container that is about to be created, under a unique name.
    pub(super) fn add(&mut self, place: &Place) -> io::Result<String> {
        let name = format!("patterm-{}", chance::<NAME_BYTES>()?);
        self.content.containers.push(Recorded { place: place.clone(), name: name.clone() });
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
pub(super) fn chance<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::super::settings::Engine;
    use super::*;

    #[test]
    fn recorded_containers_are_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::open(folder.path()).unwrap();
        let place = Place::usual(Engine::Docker);
        let name = record.add(&place).unwrap();
        let gone = record.add(&place).unwrap();
        record.remove(&gone).unwrap();
        let next = Record::open(folder.path()).unwrap();
        assert_eq!(next.all(), [Recorded { place, name }]);
        assert_eq!(next.owner(), record.owner());
        assert_eq!(next.owner().len(), 32);
    }

    #[test]
    fn a_damaged_record_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("containers.json"), "{").unwrap();
        assert!(Record::open(folder.path()).unwrap().all().is_empty());
        assert!(folder.path().join("containers.damaged").exists());
    }
}
