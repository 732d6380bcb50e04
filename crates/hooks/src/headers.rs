//! The headers of a hook's requests, with the values of variables. No error contains a value.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use patterm_panes::Panes;
use patterm_panes::environment::Environment;
use patterm_panes::variables::{ExpandError, expand};

use crate::failure::HookFailure;

/// The headers with the server's variables and those of a file.
pub(crate) async fn read(
    panes: &Arc<Panes>,
    headers: &BTreeMap<String, String>,
    env_file: Option<&Path>,
) -> Result<HeaderMap, HookFailure> {
    let mut variables = panes.environments.server().clone();
    if let Some(file) = env_file {
        let (panes, path) = (panes.clone(), file.to_owned());
        let read = tokio::task::spawn_blocking(move || panes.variables_in(&path)).await;
        let read = read.map_err(|error| HookFailure::lasting(error.to_string()))?;
        variables.extend(read.map_err(|error| HookFailure::lasting(error.to_string()))?);
    }
    expanded(headers, &variables, env_file)
}

fn expanded(
    headers: &BTreeMap<String, String>,
    variables: &Environment,
    env_file: Option<&Path>,
) -> Result<HeaderMap, HookFailure> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let refused = |why: String| HookFailure::lasting(format!("its header `{name}`: {why}"));
        let value = expand(value, variables).map_err(|error| match (error, env_file) {
            (error @ ExpandError::Unset(_), Some(file)) => {
                refused(format!("{error}, nor in {}", file.display()))
            }
            (error, _) => refused(error.to_string()),
        })?;
        let Ok(key) = name.parse::<HeaderName>() else {
            return Err(refused("this is not a valid header name".into()));
        };
        let Ok(mut value) = HeaderValue::from_str(&value) else {
            return Err(refused("its value has characters that no header may have".into()));
        };
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str, env_file: Option<&str>) -> Result<HeaderMap, HookFailure> {
        let headers = BTreeMap::from([("Authorization".to_owned(), value.to_owned())]);
        let variables = Environment::from([("TOKEN", "s3cret"), ("BROKEN", "s3cret\r\nHost: x")]);
        expanded(&headers, &variables, env_file.map(Path::new))
    }

    #[test]
    fn variables_are_inserted_and_never_shown() {
        let headers = of("Bearer ${TOKEN}", None).unwrap();
        assert_eq!(headers["authorization"], "Bearer s3cret");
        assert!(!format!("{headers:?}").contains("s3cret"));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_without_its_value() {
        let reason = |value, file| of(value, file).unwrap_err().reason;
        let broken = reason("${BROKEN}", None);
        assert!(broken.contains("`Authorization`") && !broken.contains("s3cret"), "{broken}");
        let unset = reason("s3cret ${NONE}", Some(".env"));
        let expected = "its header `Authorization`: the variable `NONE` is not set in the environment of patterm's \
            server, nor in .env";
        assert_eq!(unset, expected);
    }
}
