//! An event as a hook passes it on: a JSON text, variables and arguments. Its texts may be written by agents, so they
//! are escaped and have a limited length.

use patterm_project::project_file::{HookArgument, HookDefinition, Placeholder};
use patterm_wire::events::EventRecord;
use patterm_wire::printable;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::summary::summary;

/// The longest text in characters, in an argument, a variable or the JSON text: what a notification can show, and far
/// less than the kernel accepts for an argument.
const TEXT_CHARS: usize = 2_000;

/// The longest array in the JSON text.
const MOST_ITEMS: usize = 100;

/// Members of the data that contain texts of messages and keys that were typed.
const TYPED: [&str; 2] = ["text", "key"];

/// Why a command cannot get an event.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ArgumentError {
    /// A program would take a text for an option.
    #[error(
        "{{{name}}} begins with `-` for this event, and a program could take it for an option; put \"--\" before it \
         if the program accepts that"
    )]
    LikeAnOption {
        /// The placeholder.
        name: &'static str,
    },
}

/// An event for a hook.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookMessage {
    event: EventRecord,
    name: String,
    summary: String,
    project: String,
    hook: String,
    is_test: bool,
}

impl HookMessage {
    /// The message about an event. `name` is that of its process or of the project.
    pub(crate) fn new(
        hook: &HookDefinition,
        mut event: EventRecord,
        name: String,
        project: String,
    ) -> Self {
        if !hook.texts {
            event.data.retain(|key, _| !TYPED.contains(&key.as_str()));
        }
        shorten_members(&mut event.data);
        let summary = shortened(&summary(&event, &name));
        let name = shortened(&name);
        Self { event, name, summary, project, hook: hook.name.clone(), is_test: false }
    }

    /// Marks it as a sample.
    pub(crate) fn into_sample(self) -> Self {
        Self { is_test: true, ..self }
    }

    /// The JSON text. It has no control characters.
    pub(crate) fn body(&self) -> String {
        let mut body = serde_json::to_value(&self.event).unwrap_or_default();
        if let Value::Object(members) = &mut body {
            // The chain of hashes is for those who have the whole log.
            members.remove("prev");
            members.insert("name".into(), json!(self.name));
            members.insert("summary".into(), json!(self.summary));
            members.insert("project".into(), json!(self.project));
            members.insert("hook".into(), json!(self.hook));
            if self.is_test {
                members.insert("test".into(), json!(true));
            }
        }
        printable::json(&body.to_string())
    }

    /// The variables of a command.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut variables: Vec<_> = Placeholder::ALL
            .iter()
            .map(|placeholder| {
                let name = format!("PATTERM_EVENT_{}", placeholder.name().to_uppercase());
                (name, self.text(*placeholder))
            })
            .collect();
        if self.is_test {
            variables.push(("PATTERM_EVENT_TEST".into(), "1".into()));
        }
        variables
    }

    /// The program and its arguments.
    pub(crate) fn argv(&self, arguments: &[HookArgument]) -> Result<Vec<String>, ArgumentError> {
        let mut argv: Vec<String> = Vec::new();
        let mut options_may_follow = true;
        for argument in arguments {
            match argument {
                HookArgument::Literal(text) => {
                    options_may_follow &= text != "--";
                    argv.push(text.clone());
                }
                HookArgument::Placeholder(placeholder) => {
                    let text = self.text(*placeholder);
                    if options_may_follow && text.starts_with('-') {
                        return Err(ArgumentError::LikeAnOption { name: placeholder.name() });
                    }
                    argv.push(text);
                }
            }
        }
        Ok(argv)
    }

    /// The text for a placeholder, on one line and without control characters.
    fn text(&self, placeholder: Placeholder) -> String {
        let event = &self.event;
        let text = match placeholder {
            Placeholder::Name => self.name.clone(),
            Placeholder::Summary => self.summary.clone(),
            Placeholder::Type => event.kind.clone(),
            Placeholder::ProcessId => event.process_id.clone().unwrap_or_default(),
            Placeholder::Run => event.run.map(|run| run.to_string()).unwrap_or_default(),
            Placeholder::Time => event.time.clone(),
            Placeholder::Seq => event.seq.to_string(),
            Placeholder::Project => self.project.clone(),
        };
        printable::one_line(&text)
    }
}

fn shorten_members(members: &mut Map<String, Value>) {
    members.values_mut().for_each(shorten);
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => *text = shortened(text),
        Value::Array(items) => {
            items.truncate(MOST_ITEMS);
            items.iter_mut().for_each(shorten);
        }
        Value::Object(members) => shorten_members(members),
        _ => {}
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use patterm_project::project_file::{HookAction, ProjectFile};
    use patterm_wire::events::Actor;
    use patterm_wire::printable::is_active;

    use super::*;

    fn hook(run: &str, more: &str) -> HookDefinition {
        let text = format!("[[hooks]]\non = ['agent.blocked']\nrun = {run}\n{more}");
        ProjectFile::parse(&text).unwrap().hooks.remove(0)
    }

    fn message(hook: &HookDefinition, data: Value, name: &str) -> HookMessage {
        let Value::Object(data) = data else { panic!("{data}") };
        let event = EventRecord {
            seq: 7,
            time: "2026-11-16T09:12:03.118Z".into(),
            kind: "agent.blocked".into(),
            process_id: Some("p3".into()),
            run: Some(2),
            actor: Actor::System,
            data,
            prev: "abc".into(),
            ..EventRecord::default()
        };
        HookMessage::new(hook, event, name.into(), "shop".into())
    }

    fn argv(hook: &HookDefinition, message: &HookMessage) -> Result<Vec<String>, ArgumentError> {
        let HookAction::Run(arguments) = &hook.action else { panic!("{hook:?}") };
        message.argv(arguments)
    }

    #[test]
    fn hostile_texts_stay_one_argument_without_control_characters() {
        let hook = hook("['x', '--', '{name}', '{summary}', '$(rm)']", "");
        let question = "a\u{1b}]0;x\u{7}\nb\u{202e}\0 $(reboot) `id` '\"";
        let message = message(&hook, json!({"question": question}), "-rf");
        let argv = argv(&hook, &message).unwrap();
        let summary = "-rf asks: a\\u{1b}]0;x\\u{7}\\nb\\u{202e}\\u{0} $(reboot) `id` '\"";
        assert_eq!(argv, ["x", "--", "-rf", summary, "$(rm)"]);
        let variables = message.variables();
        let all = variables.iter().map(|(_, value)| value.as_str()).collect::<String>();
        assert!(!(all + &message.body()).chars().any(is_active));
        let body: Value = serde_json::from_str(&message.body()).unwrap();
        assert_eq!(body["data"]["question"], question);
    }

    #[test]
    fn a_text_that_looks_like_an_option_is_refused_before_the_dashes() {
        let named = |name: &str, run: &str| {
            let hook = hook(run, "");
            argv(&hook, &message(&hook, json!({"question": "?"}), name)).map(|argv| argv.join(" "))
        };
        let refused = Err(ArgumentError::LikeAnOption { name: "name" });
        assert_eq!(named("--exec=sh", "['x', '{name}']"), refused);
        assert_eq!(named("-", "['x', '{name}', '--']"), refused);
        assert_eq!(named("--exec=sh", "['x', '--', '{name}']").as_deref(), Ok("x -- --exec=sh"));
        assert_eq!(named("a--b", "['x', '{name}', '{run}']").as_deref(), Ok("x a--b 2"));
        // A hostile name cannot serve as the dashes.
        assert_eq!(named("--", "['x', '{name}', '{name}']"), refused);
    }

    #[test]
    fn the_json_text_is_short_and_has_what_was_typed_only_if_asked() {
        let long = "y".repeat(100_000);
        let data = json!({"text": "secret", "key": "1", "question": long, "options": vec![long.clone(); 500]});
        let quiet = hook("['x']", "");
        let body: Value =
            serde_json::from_str(&message(&quiet, data.clone(), "api").body()).unwrap();
        assert_eq!((&body["data"]["text"], &body["data"]["key"]), (&Value::Null, &Value::Null));
        assert_eq!(body["data"]["options"].as_array().unwrap().len(), MOST_ITEMS);
        assert_eq!(body["data"]["question"].as_str().unwrap().chars().count(), TEXT_CHARS + 1);
        let members =
            ["seq", "type", "process_id", "run", "actor", "name", "summary", "project", "hook"];
        assert!(members.iter().all(|member| !body[member].is_null()), "{body}");
        assert!(body["prev"].is_null() && body["test"].is_null());
        let asked = hook("['x']", "texts = true");
        let message = message(&asked, data, "api").into_sample();
        let body: Value = serde_json::from_str(&message.body()).unwrap();
        assert_eq!((&body["data"]["text"], &body["test"]), (&json!("secret"), &json!(true)));
        let variables = message.variables();
        assert!(variables.contains(&("PATTERM_EVENT_TEST".into(), "1".into())));
        assert!(variables.contains(&("PATTERM_EVENT_PROCESS_ID".into(), "p3".into())));
    }
}
