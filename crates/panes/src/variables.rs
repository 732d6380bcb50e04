//! Environment variables that settings refer to, as `${NAME}`.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::environment::Environment;

/// Why a value cannot be expanded. It never contains values: callers may see it who must not know them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpandError {
    /// A reference does not end.
    #[error("a value contains `${{` without `}}`")]
    Unclosed,
    /// There is no such variable, and no default.
    #[error("the variable `{0}` is not set in the environment of patterm's server")]
    Unset(String),
}

impl From<ExpandError> for String {
    fn from(error: ExpandError) -> Self {
        error.to_string()
    }
}

/// Replaces `${NAME}` with a variable, and `${NAME:-default}` with a default if the variable is unset or empty.
pub fn expand(text: &str, variables: &Environment) -> Result<String, ExpandError> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let (reference, later) = after.split_once('}').ok_or(ExpandError::Unclosed)?;
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        let value = variables.text(name).filter(|value| !value.is_empty()).or(default);
        expanded.push_str(value.ok_or_else(|| ExpandError::Unset(name.to_owned()))?);
        rest = later;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Expands every value of a map.
pub fn expand_values(
    values: &BTreeMap<String, String>,
    variables: &Environment,
) -> Result<BTreeMap<String, String>, ExpandError> {
    values.iter().map(|(key, value)| Ok((key.clone(), expand(value, variables)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_defaults_are_inserted() {
        let variables = Environment::from([("A", "1"), ("E", "")]);
        let expand = |text| expand(text, &variables);
        assert_eq!(expand("x${A}y$A"), Ok("x1y$A".into()));
        assert_eq!(expand("${B:-two} ${E:-e}"), Ok("two e".into()));
        assert_eq!(expand("${B}"), Err(ExpandError::Unset("B".into())));
        let unclosed = expand("secret ${A").unwrap_err();
        assert_eq!(unclosed.to_string(), "a value contains `${` without `}`");
    }
}
