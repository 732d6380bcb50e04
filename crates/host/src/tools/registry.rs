//! The tools by name: their descriptors for clients, their help, and their calls.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use patterm_events::About;
use patterm_wire::events::Fact;
use rmcp::model::{MetaObject, Tool as Descriptor, ToolAnnotations};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::error::{ErrorKind, ToolError};
use super::schema;
use super::tool::{Call, Effect, Loading, Tool};

type Answer = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send>>;

struct Entry {
    descriptor: Descriptor,
    title: &'static str,
    help: &'static str,
    /// The schema of its arguments.
    arguments: Map<String, Value>,
    /// The schema of its answer, with the descriptions that the descriptor omits.
    answer: Map<String, Value>,
    call: fn(Map<String, Value>, Call) -> Answer,
}

/// All tools of a server.
#[derive(Default)]
pub struct Registry {
    entries: Vec<Entry>,
    by_name: HashMap<&'static str, usize>,
}

impl Registry {
    /// Adds a tool.
    #[must_use]
    pub fn with<T: Tool>(self) -> Self {
        self.with_name::<T>(T::NAME)
    }

    /// Adds a tool under another name, in place of the tool that has this name.
    #[must_use]
    pub fn with_name<T: Tool>(mut self, name: &'static str) -> Self {
        let mut descriptor = Descriptor::default();
        descriptor.name = name.into();
        descriptor.description = Some(T::DESCRIPTION.into());
        let arguments = schema::of_arguments::<T::Args>();
        descriptor.input_schema = Arc::new(schema::listed_arguments(&arguments));
        let answer = schema::of_answer::<T::Answer>();
        descriptor.output_schema = Some(Arc::new(schema::listed_answer(&answer)));
        descriptor.annotations = Some(annotations(T::EFFECT));
        descriptor.meta = Some(meta(T::LOADING));
        self.by_name.insert(name, self.entries.len());
        self.entries.push(Entry {
            descriptor,
            title: T::TITLE,
            help: T::HELP,
            arguments,
            answer,
            call: call::<T>,
        });
        self
    }

    /// The descriptors of all tools, in their order.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        self.entries.iter().map(|entry| entry.descriptor.clone()).collect()
    }

    /// The names and titles of all tools, for people.
    pub fn titles(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.entries.iter().map(|entry| (&*entry.descriptor.name, entry.title))
    }

    /// The names of all tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.descriptor.name)
    }

    /// Whether there is a tool of this name that only reads.
    pub fn only_reads(&self, name: &str) -> bool {
        let annotations = |entry: &Entry| entry.descriptor.annotations.as_ref()?.read_only_hint;
        self.entry(name).and_then(annotations) == Some(true)
    }

    /// Whether there is a tool with this name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The full help of a tool.
    pub fn help(&self, name: &str) -> Option<String> {
        let entry = self.entry(name)?;
        let description = entry.descriptor.description.as_deref().unwrap_or_default();
        let arguments = describe_arguments(&entry.arguments);
        let answer = describe(&entry.answer);
        let help = entry.help;
        Some(format!("{name}\n\n{description}\n\n{help}\n\n{arguments}\n\nAnswer:\n{answer}"))
    }

    /// The schema of a tool's answer, with all its members.
    pub fn answer_schema(&self, name: &str) -> Option<&Map<String, Value>> {
        self.entry(name).map(|entry| &entry.answer)
    }

    /// Calls a tool with unchecked arguments; `None` if there is no such tool.
    pub fn call(&self, name: &str, arguments: Map<String, Value>, call: Call) -> Option<Answer> {
        let entry = self.entry(name)?;
        Some(match schema::check(&entry.arguments, arguments) {
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
        if T::EFFECT == Effect::Reads {
            return answer::<T>(arguments, call).await;
        }
        let (events, began) = (call.host.events.clone(), Instant::now());
        let answer = answer::<T>(arguments, call).await;
        let outcome = answer.as_ref().err().map_or("ok", |error| error.kind.name()).to_owned();
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let fact = Fact::ToolCalled { tool: T::NAME.to_owned(), outcome, ms };
        events.record(About::project(), fact);
        answer
    })
}

async fn answer<T: Tool>(arguments: Map<String, Value>, call: Call) -> Result<Value, ToolError> {
    let args = serde_json::from_value(Value::Object(arguments))
        .map_err(|e| ToolError::new(ErrorKind::InvalidArgument, e.to_string()))?;
    let answer = T::call(args, call).await?;
    serde_json::to_value(answer).map_err(|e| {
        ToolError::new(ErrorKind::Internal, format!("failed to serialize the answer: {e}"))
    })
}

fn annotations(effect: Effect) -> ToolAnnotations {
    let reads = effect == Effect::Reads;
    // The other annotations mean nothing for a tool that only reads, and no tool is
    // idempotent by default.
    let destroys = (!reads).then_some(effect == Effect::Destroys);
    let idempotent = (effect == Effect::Sets).then_some(true);
    ToolAnnotations::from_raw(None, Some(reads), destroys, idempotent, None)
}

/// Tells a client whether to defer a tool.
fn meta(loading: Loading) -> MetaObject {
    let (key, value) = match loading {
        Loading::Always => ("anthropic/alwaysLoad", true.into()),
        Loading::OnSearch(hint) => ("anthropic/searchHint", hint.into()),
    };
    MetaObject([(key.to_owned(), value)].into_iter().collect())
}

fn describe_arguments(schema: &Map<String, Value>) -> String {
    match describe(schema) {
        none if none.is_empty() => "It takes no arguments.".to_owned(),
        lines => format!("Arguments:\n{lines}"),
    }
}

/// The members of an object, one line each.
fn describe(schema: &Map<String, Value>) -> String {
    let members = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let lines: Vec<_> = members
        .map(|(name, member)| {
            let need = if schema::is_required(schema, name) { "" } else { ", optional" };
            let kind = member.get("type").and_then(Value::as_str).unwrap_or("any");
            let words = member.get("description").and_then(Value::as_str).unwrap_or_default();
            format!("- {name} ({kind}{need}): {words}")
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::contributing_example::CountLines;
    use super::*;

    /// The size limit for the list of our own tools: every client reads it when it starts, and most
    /// give the descriptions and arguments to their model in every turn.
    const LIST_BYTES: usize = 30_000;

    #[test]
    fn the_list_of_tools_is_short() {
        let tools = Registry::standard().descriptors();
        let bytes = |value: &Value| value.to_string().len();
        let list = serde_json::to_value(&tools).unwrap();
        let part = |name: &str| list.as_array().unwrap().iter().map(|t| bytes(&t[name])).sum();
        let parts = ["description", "inputSchema", "outputSchema", "annotations", "_meta"];
        let parts = parts.map(|name| {
            format!("{name} {}", {
                let sum: usize = part(name);
                sum
            })
        });
        let total = bytes(&list);
        println!("tools/list: {} tools, {total} bytes; {}", tools.len(), parts.join(", "));
        let mut sizes: Vec<_> =
            list.as_array().unwrap().iter().map(|tool| (bytes(tool), &tool["name"])).collect();
        sizes.sort_unstable_by_key(|(size, _)| std::cmp::Reverse(*size));
        assert!(
            total <= LIST_BYTES,
            "the list of tools has {total} bytes, more than {LIST_BYTES}. Make room: shorten descriptions, and \
             comments on arguments and answers, of this or other tools; HELP is not in the list. The largest are {:?}",
            &sizes[..5]
        );
    }

    #[test]
    fn every_tool_keeps_the_form_clients_rely_on() {
        let tools = Registry::standard().with_name::<CountLines>("contributing_example");
        for tool in tools.descriptors() {
            let input = &tool.input_schema;
            assert_eq!(input["type"], "object", "{}", tool.name);
            assert!(input["properties"].is_object(), "{}", tool.name);
            assert_eq!(input["additionalProperties"], true, "{}", tool.name);
            for (field, property) in input["properties"].as_object().unwrap() {
                let described = property.get("description").is_some();
                assert!(described, "{}: a comment on `{field}` is missing", tool.name);
            }
            assert_eq!(tool.output_schema.as_ref().unwrap()["type"], "object", "{}", tool.name);
            assert!(tool.annotations.as_ref().unwrap().read_only_hint.is_some(), "{}", tool.name);
            let description = tool.description.as_ref();
            assert!(description.is_some_and(|d| d.len() > 40), "{}: too short", tool.name);
            assert!(tools.help(&tool.name).is_some());
        }
        assert_eq!(tools.by_name.len(), tools.entries.len(), "names are unique");
    }

    #[test]
    fn essential_tools_are_always_loaded_and_the_others_have_a_search_hint() {
        let tools = Registry::standard().descriptors();
        let meta = |tool: &Descriptor, key: &str| tool.meta.as_ref().unwrap().0.get(key).cloned();
        let is_loaded = |tool: &&Descriptor| meta(tool, "anthropic/alwaysLoad").is_some();
        let loaded: Vec<_> = tools.iter().filter(is_loaded).map(|tool| &*tool.name).collect();
        let needed = [
            "whoami",
            "help",
            "list_processes",
            "spawn_agent",
            "close_process",
            "get_process_output",
            "send_message",
            "request_human_attention",
            "timer_fire_when_idle_any",
            "timer_fire_when_idle_all",
        ];
        assert_eq!(loaded, needed);
        for tool in tools.iter().filter(|tool| !is_loaded(tool)) {
            let hint = meta(tool, "anthropic/searchHint").unwrap();
            assert!(hint.as_str().is_some_and(|hint| hint.len() > 8), "{}: {hint}", tool.name);
        }
    }
}
