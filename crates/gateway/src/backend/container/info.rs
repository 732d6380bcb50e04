//! What an engine reports about a container, and the errors of engines.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{GatewayError, GatewayErrorKind};

/// The longest name an engine accepts.
const NAME_LETTERS: usize = 255;

/// A container that was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerInfo {
    /// Its id, which is unique.
    pub id: String,
    /// Whether it runs.
    pub is_running: bool,
    /// The labels that its creator set, without those of its image.
    pub labels: BTreeMap<String, String>,
    /// The names of all labels of the container or its image.
    pub label_names: BTreeSet<String>,
}

/// Why an engine did not do what was requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// There is no such container.
    #[error("there is no container `{0}`")]
    NotFound(String),
    /// The container is not running.
    #[error("the container `{0}` is not running")]
    NotRunning(String),
    /// Any other error.
    #[error("{0}")]
    Failed(String),
}

impl From<EngineError> for GatewayError {
    fn from(error: EngineError) -> Self {
        Self::new(GatewayErrorKind::Unavailable, error.to_string())
    }
}

/// Whether a container can have this name at all. Names come from requests: none may look like a
/// flag, a path or an address.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    name.len() <= NAME_LETTERS
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(plain)
}

/// The labels of a container that do not come from its image. Engines copy an image's labels to
/// each container, so a label with the image's value may be the image's own.
pub(super) fn set_by_creator(
    container: BTreeMap<String, String>,
    image: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    container.into_iter().filter(|(key, value)| image.get(key) != Some(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_container_names_are_accepted() {
        for name in ["a", "workspace-7", "0f3e", "a_b.c"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", "--help", "../x", "a/b", "a b", ".a", "ä", "a?x=1", "a\n"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(!is_name(&"x".repeat(256)));
    }

    #[test]
    fn a_label_of_the_image_is_not_set_by_the_creator() {
        let labels = |of: &[(&str, &str)]| -> BTreeMap<String, String> {
            of.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
        };
        let image = labels(&[("bot", "a"), ("maker", "m")]);
        let set = set_by_creator(labels(&[("bot", "a"), ("maker", "m"), ("own", "a")]), &image);
        assert_eq!(set, labels(&[("own", "a")]));
        let set = set_by_creator(labels(&[("bot", "b"), ("maker", "m")]), &image);
        assert_eq!(set, labels(&[("bot", "b")]), "another value was set over the image's");
    }
}
