//! Schemas of arguments and answers, and validation of arguments, with errors that name the
//! argument and what it takes.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use super::error::ToolError;

type Object = Map<String, Value>;

/// The schema of a tool's arguments. Unknown arguments are allowed and ignored.
pub(super) fn of_arguments<T: JsonSchema>() -> Object {
    let mut schema = of::<T>(Contract::Deserialize);
    schema.insert("additionalProperties".to_owned(), Value::Bool(true));
    schema
}

/// The schema of a tool's answer, with a description of each field for `help`.
pub(super) fn of_answer<T: JsonSchema>() -> Object {
    // A field that is omitted when it is empty is not required.
    let mut schema = of::<T>(Contract::Serialize);
    schema.remove("additionalProperties");
    schema
}

/// The schema of an answer as clients get it: the members that every answer has and their
/// types, or all members if none is certain. Every client reads all of these schemas when it
/// starts, so they contain no more; `help` explains each member. Failures also match it, because
/// TypeScript clients validate the structured content of failures, and discard a failure that
/// does not match.
pub(super) fn listed_answer(answer: &Object) -> Object {
    let members = answer.get("properties").and_then(Value::as_object);
    let certain = |name: &String| is_required(answer, name);
    let all = !members.into_iter().flatten().any(|(name, _)| certain(name));
    let listed = members.into_iter().flatten().filter(|(name, _)| all || certain(name));
    let listed: Object = listed.map(|(name, member)| (name.clone(), outline(member))).collect();
    let schema = [("type", "object".into()), ("properties", Value::Object(listed))];
    schema.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect()
}

/// The type of a member.
fn outline(member: &Value) -> Value {
    member.get("type").map_or(Value::Bool(true), |kind| json!({ "type": kind }))
}

/// The arguments as they are listed: that a number is not negative is left to the check of a call.
pub(super) fn listed_arguments(arguments: &Object) -> Object {
    let mut listed = arguments.clone();
    let members = listed.get_mut("properties").and_then(Value::as_object_mut);
    for member in members.into_iter().flat_map(|members| members.values_mut()) {
        if let Value::Object(member) = member
            && member.get("minimum") == Some(&json!(0))
        {
            member.remove("minimum");
        }
    }
    listed
}

/// Whether an object always has this member.
pub(super) fn is_required(schema: &Object, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|one| one == name))
}

fn of<T: JsonSchema>(contract: Contract) -> Object {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.contract = contract;
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut schema);
    let mut schema = match schema {
        Value::Object(schema) => schema,
        _ => Object::new(),
    };
    for unwanted in ["title", "description"] {
        schema.remove(unwanted);
    }
    schema.insert("type".into(), "object".into());
    schema.entry("properties").or_insert_with(|| Object::new().into());
    schema
}

/// Removes what confuses clients: non-standard number formats, and `null` in the type of an
/// optional field.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // This comes first, so that the remaining choice is simplified too.
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type").is_none_or(|t| t != "null"));
                if let [Value::Object(only)] = choices.as_mut_slice() {
                    let only = std::mem::take(only);
                    object.remove("anyOf");
                    object.extend(only);
                }
            }
            object.remove("format");
            object.remove("default");
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            if let Some(choices) = object.get("oneOf").and_then(constants) {
                object.remove("oneOf");
                object.insert("type".into(), "string".into());
                object.insert("enum".into(), choices);
            }
            if let Some(Value::Array(choices)) = object.get_mut("enum") {
                choices.retain(|choice| !choice.is_null());
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// The values of a choice between constants, each of which has its own description.
fn constants(choices: &Value) -> Option<Value> {
    let choices = choices.as_array()?;
    choices.iter().map(|choice| choice.get("const").cloned()).collect()
}

/// Validates and normalizes arguments: a `null` for an optional one means that it is absent,
/// and `3.0` is an integer.
pub(super) fn check(schema: &Object, mut arguments: Object) -> Result<Object, ToolError> {
    let required = |name: &str| is_required(schema, name);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(arguments);
    };
    arguments.retain(|name, value| {
        properties.contains_key(name) && (required(name) || !value.is_null())
    });
    for (name, property) in properties {
        match arguments.get_mut(name) {
            Some(value) => check_value(name, property, value)?,
            None if required(name) => {
                return Err(ToolError::invalid(
                    name,
                    format_args!("is missing; it takes {}", wanted(property)),
                ));
            }
            None => {}
        }
    }
    Ok(arguments)
}

fn check_value(name: &str, property: &Value, value: &mut Value) -> Result<(), ToolError> {
    let takes = |value: &Value| {
        let got = match value {
            Value::String(s) if s.len() <= 40 => format!("{value}"),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::String(_) => "a long string".into(),
            Value::Null => "null".into(),
            Value::Array(_) => "an array".into(),
            Value::Object(_) => "an object".into(),
        };
        ToolError::invalid(name, format_args!("takes {}, not {got}", wanted(property)))
    };
    if let Some(whole) = value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15)
        && value.is_f64()
        && kinds(property).contains(&"integer")
    {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        let integer = whole as i64;
        *value = integer.into();
    }
    let is_of = |kind: &str| match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    let kinds = kinds(property);
    let fits = kinds.is_empty() || kinds.into_iter().any(is_of);
    let listed = |choices: &Value| choices.as_array().is_none_or(|c| c.contains(value));
    let low = property.get("minimum").and_then(Value::as_f64);
    let below = low.is_some_and(|low| value.as_f64().is_some_and(|n| n < low));
    if !fits || below || !property.get("enum").is_none_or(listed) {
        return Err(takes(value));
    }
    match value {
        Value::Array(items) => {
            let item = property.get("items").unwrap_or(&Value::Null);
            items
                .iter_mut()
                .enumerate()
                .try_for_each(|(at, value)| check_value(&format!("{name}[{at}]"), item, value))
        }
        Value::Object(members) => {
            let member = property.get("additionalProperties").unwrap_or(&Value::Null);
            members
                .iter_mut()
                .try_for_each(|(key, value)| check_value(&format!("{name}.{key}"), member, value))
        }
        _ => Ok(()),
    }
}

/// The types that a field accepts.
fn kinds(property: &Value) -> Vec<&str> {
    match property.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// What a field takes, in words.
fn wanted(property: &Value) -> String {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        let choices: Vec<_> = choices.iter().map(Value::to_string).collect();
        return format!("one of {}", choices.join(", "));
    }
    let kind = |property: &Value| kinds(property).first().map(|kind| (*kind).to_owned());
    let one = |name: &str| match name {
        "array" => {
            let item = property.get("items").and_then(kind).unwrap_or_else(|| "value".into());
            format!("an array of {item}s")
        }
        "object" => {
            let member = property.get("additionalProperties").and_then(kind);
            format!("an object of {}s", member.unwrap_or_else(|| "value".into()))
        }
        "integer" => "an integer".into(),
        kind => format!("a {kind}"),
    };
    let all: Vec<_> = kinds(property).into_iter().map(one).collect();
    let wanted = if all.is_empty() { "another value".to_owned() } else { all.join(" or ") };
    match property.get("minimum") {
        Some(low) => format!("{wanted} of at least {low}"),
        None => wanted,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Grid,
        Stream,
    }

    #[derive(JsonSchema, Deserialize)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Args {
        /// Which process.
        process_id: String,
        lines: Option<u64>,
        #[serde(default)]
        submit: bool,
        seconds: Option<f64>,
        argv: Option<Vec<String>>,
        env: Option<BTreeMap<String, String>>,
        mode: Option<Mode>,
    }

    /// A choice whose values have their own descriptions.
    #[derive(JsonSchema, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        /// One.
        Agent,
        /// Another.
        Command,
    }

    #[derive(JsonSchema, Deserialize)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Chosen {
        kind: Option<Kind>,
    }

    #[test]
    fn an_optional_choice_is_validated() {
        let schema = of_arguments::<Chosen>();
        assert_eq!(schema["properties"]["kind"]["enum"], json!(["agent", "command"]));
        let given = |kind: Value| [("kind".to_owned(), kind)].into_iter().collect();
        assert!(check(&schema, given(json!("agent"))).is_ok());
        let refused = check(&schema, given(json!("bad"))).unwrap_err();
        assert_eq!(refused.details["field"], "kind");
        assert_eq!(refused.message, "`kind` takes one of \"agent\", \"command\", not \"bad\"");
    }

    #[derive(JsonSchema)]
    struct Nothing {}

    #[test]
    fn schemas_are_plain() {
        assert_eq!(
            Value::from(of_arguments::<Nothing>()),
            json!({"type": "object", "properties": {}, "additionalProperties": true})
        );
        let schema = Value::from(of_arguments::<Args>());
        assert_eq!(schema["required"], json!(["process_id"]));
        assert_eq!(
            schema["properties"],
            json!({
                "process_id": {"type": "string", "description": "Which process."},
                "lines": {"type": "integer", "minimum": 0},
                "submit": {"type": "boolean"},
                "seconds": {"type": "number"},
                "argv": {"type": "array", "items": {"type": "string"}},
                "env": {"type": "object", "additionalProperties": {"type": "string"}},
                "mode": {"type": "string", "enum": ["grid", "stream"]},
            })
        );
    }

    #[derive(JsonSchema, serde::Serialize)]
    struct Answer {
        name: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        watched: Vec<String>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        again: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        exit: Option<u8>,
    }

    #[test]
    fn optional_members_of_an_answer_are_not_required() {
        let schema = of_answer::<Answer>();
        assert_eq!(schema["required"], json!(["name"]));
        assert_eq!(
            Value::from(listed_answer(&schema)),
            json!({"type": "object", "properties": {"name": {"type": "string"}}})
        );
        let answer = Answer { name: "n".into(), watched: Vec::new(), again: false, exit: None };
        assert_eq!(json!(answer), json!({"name": "n"}));
    }

    #[track_caller]
    fn check_of(arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        check(&of_arguments::<Args>(), arguments).map(Value::from).map_err(|e| e.text())
    }

    #[test]
    fn valid_arguments_are_normalized() {
        assert_eq!(
            check_of(json!({"process_id": "p1", "lines": 3.0, "mode": null, "unknown": [1]})),
            Ok(json!({"process_id": "p1", "lines": 3}))
        );
        let full = json!({"process_id": "p1", "submit": true, "seconds": 1, "argv": ["a"],
            "env": {"A": "b"}, "mode": "grid"});
        assert_eq!(check_of(full.clone()), Ok(full));
    }

    #[test]
    fn errors_name_the_invalid_argument_and_what_it_takes() {
        let refused = |arguments, expected: &str| {
            assert_eq!(check_of(arguments), Err(format!("{expected} (invalid_argument)")));
        };
        refused(json!({}), "`process_id` is missing; it takes a string");
        refused(json!({"process_id": null}), "`process_id` takes a string, not null");
        refused(json!({"process_id": 1}), "`process_id` takes a string, not 1");
        let with = |name: &str, value: Value| json!({"process_id": "p1", name: value});
        refused(with("lines", json!("5")), "`lines` takes an integer of at least 0, not \"5\"");
        refused(with("lines", json!(1.5)), "`lines` takes an integer of at least 0, not 1.5");
        refused(with("lines", json!(-1)), "`lines` takes an integer of at least 0, not -1");
        refused(with("submit", json!("yes")), "`submit` takes a boolean, not \"yes\"");
        refused(with("seconds", json!([])), "`seconds` takes a number, not an array");
        refused(with("argv", json!("ls")), "`argv` takes an array of strings, not \"ls\"");
        refused(with("argv", json!(["ls", 1])), "`argv[1]` takes a string, not 1");
        refused(with("env", json!({"A": 1})), "`env.A` takes a string, not 1");
        refused(with("mode", json!("x")), "`mode` takes one of \"grid\", \"stream\", not \"x\"");
    }
}
