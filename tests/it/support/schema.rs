//! Checks results against the declared schema of their tool, as a validating client does.

use std::sync::LazyLock;

use patterm_host::tools::Registry;
use serde_json::{Map, Value};

static TOOLS: LazyLock<Registry> = LazyLock::new(Registry::standard);

/// What does not fit in the result of a tool, by both schemas: the complete one, and the one that
/// clients get. Methods that are not tools always fit.
pub(crate) fn misfit(tool: &str, answer: &Value) -> Option<String> {
    let whole = TOOLS.answer_schema(tool)?;
    check(whole, answer, tool).or_else(|| listed_misfit(tool, answer))
}

/// What does not fit the schema that clients get, which applies to results and failures.
pub(crate) fn listed_misfit(tool: &str, answer: &Value) -> Option<String> {
    let listed = TOOLS.descriptors().into_iter().find(|listed| listed.name == tool)?;
    check(listed.output_schema.as_ref()?, answer, tool)
}

fn check(schema: &Map<String, Value>, value: &Value, at: &str) -> Option<String> {
    let list = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    let object = |name: &str| schema.get(name).and_then(Value::as_object);
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        return Some(format!("{at}: {value} is not one of {choices:?}"));
    }
    let kinds: Vec<_> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        _ => list("type").filter_map(Value::as_str).collect(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(value, kind)) {
        return Some(format!("{at}: {value} is not of type {kinds:?}"));
    }
    if let Value::Array(items) = value {
        let schema = object("items")?;
        let each = items.iter().enumerate();
        return each.into_iter().find_map(|(n, item)| check(schema, item, &format!("{at}[{n}]")));
    }
    let Value::Object(members) = value else { return None };
    let missing = |name: &&Value| !members.contains_key(name.as_str().unwrap());
    if let Some(missing) = list("required").find(missing) {
        return Some(format!("{at}: {missing} is missing in {value}"));
    }
    let none = Map::new();
    let known = object("properties").unwrap_or(&none);
    members.iter().find_map(|(name, member)| {
        let schema = known.get(name).and_then(Value::as_object)?;
        check(schema, member, &format!("{at}.{name}"))
    })
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("unknown type: {other}"),
    }
}
