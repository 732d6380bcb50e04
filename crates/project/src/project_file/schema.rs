//! The same shape for editors: a JSON schema.

use serde_json::{Map, Value, json};

use super::limits::{MOST_SECONDS, NAME_CHARS};
use super::shape::{FILE, Shape};

/// The JSON schema of `patterm.toml`.
pub fn schema() -> Value {
    let mut schema = of(&FILE);
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        members.insert("title".into(), "patterm.toml".into());
        let words = "What a project declares for patterm. Nothing of it takes effect before \
            `patterm trust`.";
        members.insert("description".into(), words.into());
    }
    schema
}

fn of(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Whole { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Shape::Seconds => json!({"type": "number", "minimum": 0, "maximum": MOST_SECONDS}),
        Shape::Choice(choices) => json!({"enum": choices}),
        Shape::List { of: item, least } => {
            json!({"type": "array", "items": of(item), "minItems": least})
        }
        Shape::Named(member) => json!({
            "type": "object",
            "propertyNames": {"pattern": format!("^[A-Za-z0-9._][A-Za-z0-9._-]{{0,{}}}$", NAME_CHARS - 1)},
            "additionalProperties": of(member),
        }),
        Shape::Strings => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Shape::Table(keys) => {
            let mut properties = Map::new();
            for key in *keys {
                let mut property = of(&key.shape);
                property["description"] = key.words.into();
                properties.insert(key.name.into(), property);
            }
            let required: Vec<_> =
                keys.iter().filter(|key| key.required).map(|key| key.name).collect();
            let mut table =
                json!({"type": "object", "properties": properties, "additionalProperties": false});
            if !required.is_empty() {
                table["required"] = json!(required);
            }
            table
        }
        Shape::Counts(names) => {
            let count = json!({"type": "integer", "minimum": 1});
            let properties: Map<_, _> =
                names.iter().map(|name| ((*name).to_owned(), count.clone())).collect();
            json!({"type": "object", "properties": properties, "additionalProperties": false})
        }
        Shape::Either(one, other) => json!({"anyOf": [of(one), of(other)]}),
        Shape::Pattern => json!({"type": "string", "format": "regex"}),
        Shape::Off => json!({"const": false}),
    }
}
