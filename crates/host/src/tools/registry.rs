//! The tools by name: their descriptors for clients, their help, and how they are called.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{Tool as Descriptor, ToolAnnotations};
use serde_json::{Map, Value};

use super::error::{ErrorKind, ToolError};
use super::schema;
use super::tool::{Call, Effect, Tool};

type Answer = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send>>;

struct Entry {
    descriptor: Descriptor,
    help: &'static str,
    call: fn(Map<String, Value>, Call) -> Answer,
}

/// All tools of a server.
#[derive(Default)]
pub struct Registry {
    entries: Vec<Entry>,
    by_name: HashMap<&'static str, usize>,
}

impl Registry {
    /// The same tools and one more.
    #[must_use]
    pub fn with<T: Tool>(mut self) -> Self {
        let mut descriptor = Descriptor::default();
        descriptor.name = T::NAME.into();
        descriptor.title = Some(T::TITLE.to_owned());
        descriptor.description = Some(T::DESCRIPTION.into());
        descriptor.input_schema = Arc::new(schema::of_arguments::<T::Args>());
        descriptor.output_schema = Some(Arc::new(schema::of_answer::<T::Answer>()));
        descriptor.annotations = Some(annotations(T::EFFECT));
        self.by_name.insert(T::NAME, self.entries.len());
        self.entries.push(Entry { descriptor, help: T::HELP, call: call::<T> });
        self
    }

    /// What clients are told of every tool, in the order they are listed.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        self.entries.iter().map(|entry| entry.descriptor.clone()).collect()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.descriptor.name)
    }

    /// Whether there is a tool of this name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// What a tool says of itself, at length.
    pub fn help(&self, name: &str) -> Option<String> {
        let entry = self.entry(name)?;
        let description = entry.descriptor.description.as_deref().unwrap_or_default();
        let arguments = describe_arguments(&entry.descriptor.input_schema);
        Some(format!("{name}\n\n{description}\n\n{}\n\n{arguments}", entry.help))
    }

    /// Calls a tool with arguments as they came; `None` if there is no such tool.
    pub fn call(&self, name: &str, arguments: Map<String, Value>, call: Call) -> Option<Answer> {
        let entry = self.entry(name)?;
        Some(match schema::check(&entry.descriptor.input_schema, arguments) {
            Ok(arguments) => (entry.call)(arguments, call),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        })
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name).map(|&at| &self.entries[at])
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

fn call<T: Tool>(arguments: Map<String, Value>, call: Call) -> Answer {
    Box::pin(async move {
        let args = serde_json::from_value(Value::Object(arguments))
            .map_err(|e| ToolError::new(ErrorKind::InvalidArgument, e.to_string()))?;
        let answer = T::call(args, call).await?;
        serde_json::to_value(answer)
            .map_err(|e| ToolError::new(ErrorKind::Internal, format!("the answer is no JSON: {e}")))
    })
}

fn annotations(effect: Effect) -> ToolAnnotations {
    ToolAnnotations::from_raw(
        None,
        Some(effect == Effect::Reads),
        Some(effect == Effect::Destroys),
        Some(matches!(effect, Effect::Reads | Effect::Sets)),
        Some(false),
    )
}

fn describe_arguments(schema: &Map<String, Value>) -> String {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    if properties.is_empty() {
        return "It takes no arguments.".to_owned();
    }
    let required = |name: &String| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|r| r.iter().any(|r| r == name))
    };
    let lines: Vec<_> = properties
        .iter()
        .map(|(name, property)| {
            let need = if required(name) { ", required" } else { "" };
            let kind = property.get("type").and_then(Value::as_str).unwrap_or("any");
            let words = property.get("description").and_then(Value::as_str).unwrap_or_default();
            format!("- {name} ({kind}{need}): {words}")
        })
        .collect();
    format!("Arguments:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_keeps_the_form_clients_rely_on() {
        let tools = Registry::standard();
        for tool in tools.descriptors() {
            let input = &tool.input_schema;
            assert_eq!(input["type"], "object", "{}", tool.name);
            assert!(input["properties"].is_object(), "{}", tool.name);
            assert_eq!(input["additionalProperties"], true, "{}", tool.name);
            for (field, property) in input["properties"].as_object().unwrap() {
                assert!(property.get("description").is_some(), "{}.{field}", tool.name);
            }
            assert_eq!(tool.output_schema.as_ref().unwrap()["type"], "object", "{}", tool.name);
            assert!(tool.annotations.as_ref().unwrap().read_only_hint.is_some(), "{}", tool.name);
            assert!(tool.description.as_ref().is_some_and(|d| d.len() > 40), "{}", tool.name);
            assert!(tools.help(&tool.name).is_some());
        }
        assert_eq!(tools.by_name.len(), tools.entries.len(), "no name stands twice");
    }
}
