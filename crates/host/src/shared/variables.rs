//! Environment variables in the settings of shared servers.

use std::collections::BTreeMap;

use patterm_keeper::Environment;

/// Replaces `${NAME}` with a variable, and `${NAME:-default}` with a default if the variable is unset or empty.
pub(super) fn expand(text: &str, variables: &Environment) -> Result<String, String> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((reference, later)) = after.split_once('}') else {
            // HTTP clients see this text, too, so it does not repeat the value.
            return Err("a value contains `${` without `}`".to_owned());
        };
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        match (variables.text(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => expanded.push_str(value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => {
                return Err(format!(
                    "the variable `{name}` is not set in the environment of patterm's server"
                ));
            }
        }
        rest = later;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Expands every value of a map.
pub(super) fn expand_values(
    values: &BTreeMap<String, String>,
    variables: &Environment,
) -> Result<BTreeMap<String, String>, String> {
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
        assert!(expand("${B}").unwrap_err().contains("`B`"));
        assert!(expand("${A").is_err());
    }
}
