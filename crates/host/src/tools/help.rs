//! `help`: texts about topics and tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ErrorKind, ToolError};
use super::named::named;
use super::tool::{Call, Effect, Loading, Tool};
use super::topics;

pub(super) struct Help;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// A topic or a tool's name.
    topic: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The topic.
    topic: String,
    /// The text.
    text: String,
}

impl Tool for Help {
    const NAME: &'static str = "help";
    const TITLE: &'static str = "Help";
    const DESCRIPTION: &'static str = "Explains a topic or any tool at length; without one, lists \
        the topics.";
    const HELP: &'static str = "An unknown topic fails with not_found; the error lists the known \
        ones.";
    const EFFECT: Effect = Effect::Reads;
    const LOADING: Loading = Loading::Always;
    type Args = Args;
    type Answer = Answer;

    async fn call(args: Args, call: Call) -> Result<Answer, ToolError> {
        let tools = &call.tools;
        let topic = args.topic.as_deref().map(str::trim).filter(|topic| !topic.is_empty());
        let topic = topic.unwrap_or(topics::INDEX);
        let text = if topic == topics::INDEX {
            Some(topics::index(tools))
        } else {
            tools.help(topic).or_else(|| topics::text(topic, tools))
        };
        match text {
            Some(text) => {
                Ok(Answer { topic: topic.to_owned(), text: with_known_names(&call, text) })
            }
            None => Err(ToolError::new(
                ErrorKind::NotFound,
                format!("there is no topic `{topic}`; the topics are {}", topics::all(tools)),
            )),
        }
    }
}

/// Replaces the names of tools in a text with those that the caller's model knows.
fn with_known_names(call: &Call, text: String) -> String {
    let me = call.caller.process().and_then(|id| call.host.panes.processes.get(id));
    let preset = me.and_then(|me| call.host.agents.presets.of(&me));
    match preset.as_ref().and_then(|preset| preset.tool_name.as_ref()) {
        Some(form) => named(&text, form, &call.tools),
        None => text,
    }
}
