//! Errors of the server, for people. The server names tools and their arguments, since most of its callers
//! are models; a person knows verbs and flags. Errors are rendered from their details, not from their text.

use std::fmt;

use patterm_wire::tools::{
    AppendPad, CloseProcess, ListAgents, ListPads, ListProcesses, RestartProcess, SendInput,
    SendMessage, StartProcess, StopProcess, WritePad,
};
use patterm_wire::{ErrorObject, Method};

/// A request that the server refused or failed to serve.
#[derive(Debug)]
pub(crate) struct ServerError(pub(crate) ErrorObject);

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(&self.0))
    }
}

impl std::error::Error for ServerError {}

/// The server has no tool or method of this name: it may be older than this binary.
#[derive(Debug)]
pub(crate) struct UnknownMethod(pub(crate) String);

impl fmt::Display for UnknownMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no tool `{}`; `patterm call whoami` lists the tools", self.0)
    }
}

impl std::error::Error for UnknownMethod {}

fn render(error: &ErrorObject) -> String {
    let details = error.details();
    let text = details.render(verb).unwrap_or_else(|| error.message.clone());
    // The message about an invalid argument begins with the argument's name.
    let field = details.field.as_deref().unwrap_or_default();
    match (argument(field), text.strip_prefix(&format!("`{field}`"))) {
        (Some(argument), Some(rest)) => format!("{argument}{rest}"),
        _ => text,
    }
}

/// The verb that does what a tool does.
fn verb(tool: &str) -> Option<String> {
    let verb = match tool {
        StartProcess::NAME => "start",
        RestartProcess::NAME => "restart",
        StopProcess::NAME => "stop",
        CloseProcess::NAME => "close",
        SendInput::NAME => "send",
        SendMessage::NAME => "message",
        ListProcesses::NAME => "ps",
        ListAgents::NAME => "agents",
        ListPads::NAME => "pads",
        WritePad::NAME => "pad --write --revision",
        AppendPad::NAME => "pad --append",
        _ => return None,
    };
    Some(format!("`patterm {verb}`"))
}

/// What verbs call an argument of a tool.
fn argument(field: &str) -> Option<&'static str> {
    Some(match field {
        "agent" => "PRESET",
        "agent_instructions" => "PROMPT",
        "argv" => "COMMAND",
        "expected_revision" => "--revision",
        "key" => "KEY",
        "limit" => "--limit",
        "message" | "text" => "TEXT",
        "name" => "NAME",
        "pattern" => "REGEX",
        "process_id" | "target_process_id" => "ID",
        "signal" => "--signal",
        "timeout_seconds" => "--timeout",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(message: &str, data: serde_json::Value, expected: &str) {
        let error = ErrorObject::new(-32000, message).with_data(data);
        assert_eq!(ServerError(error).to_string(), expected);
    }

    #[test]
    fn errors_name_verbs_and_flags() {
        check(
            "p2 (web2) is not running; use start_process to start it",
            json!({"kind": "not_running", "reason": "p2 (web2) is not running",
                "suggestions": [{"tool": "start_process", "purpose": "to start it"}]}),
            "p2 (web2) is not running; use `patterm start` to start it",
        );
        check(
            "`target_process_id` is p1, which is not an agent; use send_input",
            json!({"field": "target_process_id",
                "reason": "`target_process_id` is p1, which is not an agent",
                "suggestions": [{"tool": "send_input"}]}),
            "ID is p1, which is not an agent; use `patterm send`",
        );
        check(
            "`agent` is `x`, which is not a preset",
            json!({"field": "agent"}),
            "PRESET is `x`, which is not a preset",
        );
        check("`wait_ms` is too long", json!({"field": "wait_ms"}), "`wait_ms` is too long");
        check("the disk is full", json!("x"), "the disk is full");
    }

    #[test]
    fn a_tool_without_a_verb_is_not_suggested() {
        check(
            "it waits; use timer_set",
            json!({"reason": "it waits", "suggestions": [{"tool": "timer_set"}]}),
            "it waits",
        );
    }
}
