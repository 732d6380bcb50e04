//! A hook that is in effect.

use patterm_project::project_file::{HookAction, HookArgument, HookDefinition};
use patterm_store::hex;
use patterm_wire::hooks::HookFile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Which hook it is: the settings and the project file may each have one of a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct HookId {
    pub(crate) file: HookFile,
    pub(crate) name: String,
}

/// A hook, and the file that declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActiveHook {
    pub(crate) file: HookFile,
    pub(crate) definition: HookDefinition,
}

impl ActiveHook {
    pub(crate) fn id(&self) -> HookId {
        HookId { file: self.file.clone(), name: self.definition.name.clone() }
    }

    /// A hash of what it does and when: a hook with another one is a new hook.
    pub(crate) fn fingerprint(&self) -> String {
        // `Debug` names every field, so that none can be forgotten here.
        let text = format!("{:?}", self.definition);
        hex::encode(&Sha256::digest(text.as_bytes()))
    }

    /// Its command as it is written.
    pub(crate) fn argv(&self) -> Option<Vec<String>> {
        match &self.definition.action {
            HookAction::Run(arguments) => {
                Some(arguments.iter().map(HookArgument::to_string).collect())
            }
            HookAction::Post(_) => None,
        }
    }

    /// The host that it sends requests to.
    pub(crate) fn host(&self) -> Option<&str> {
        match &self.definition.action {
            HookAction::Run(_) => None,
            HookAction::Post(request) => Some(request.url.host()),
        }
    }
}
