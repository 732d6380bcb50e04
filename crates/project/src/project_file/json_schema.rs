//! The JSON schema of `patterm.toml`, for editors.

use serde_json::{Map, Value, json};

use super::file_schema::FILE;
use super::limits::{MOST_SECONDS, NAME_CHARS};
use super::schema::{Schema, SchemaKey};

/// The JSON schema of `patterm.toml`.
pub fn schema() -> Value {
    let mut schema = of(&FILE);
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        members.insert("title".into(), "patterm.toml".into());
        let description = "A project's processes, agents and shared servers for patterm. Nothing takes \
            effect before `patterm trust`.";
        members.insert("description".into(), description.into());
    }
    schema
}

fn of(schema: &Schema) -> Value {
    match schema {
        Schema::Text => json!({"type": "string"}),
        Schema::Flag => json!({"type": "boolean"}),
        Schema::Whole { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Schema::Seconds => json!({"type": "number", "minimum": 0, "maximum": MOST_SECONDS}),
        Schema::Choice(choices) => json!({"enum": choices}),
        Schema::List { of: item, least } => {
            json!({"type": "array", "items": of(item), "minItems": least})
        }
        Schema::Named(member) => json!({
            "type": "object",
            "propertyNames": {"pattern": format!("^[A-Za-z0-9._][A-Za-z0-9._-]{{0,{}}}$", NAME_CHARS - 1)},
            "additionalProperties": of(member),
        }),
        Schema::Strings => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Schema::Table(_) | Schema::Groups(_) => table(&schema.keys()),
        Schema::Counts(names) => {
            let count = json!({"type": "integer", "minimum": 1});
            let properties: Map<_, _> =
                names.iter().map(|name| ((*name).to_owned(), count.clone())).collect();
            json!({"type": "object", "properties": properties, "additionalProperties": false})
        }
        Schema::Either(one, other) => json!({"anyOf": [of(one), of(other)]}),
        Schema::Pattern => json!({"type": "string", "format": "regex"}),
        Schema::Off => json!({"const": false}),
    }
}

fn table(keys: &[&SchemaKey]) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let mut property = of(&key.schema);
        property["description"] = key.description.into();
        properties.insert(key.name.into(), property);
    }
    let required: Vec<_> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let mut table =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}
