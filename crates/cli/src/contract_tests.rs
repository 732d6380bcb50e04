//! The CLI's and the TUI's view of the tools agrees with the server's schemas: every member that they read
//! exists there, with a type that they can read.

use patterm_host::tools::Registry;
use patterm_wire::Method;
use patterm_wire::tools::{
    AppendPad, CloseProcess, GetProcessPorts, GetProcessStatus, GetProjectStatus, GetRawOutput,
    GetScreen, GetText, ListAgents, ListPads, ListProcesses, ListTimers, ReadPad, RenameProcess,
    RestartProcess, SearchOutput, SendInput, SendMessage, SpawnAgent, SpawnProcess, StartProcess,
    StopProcess, WaitForOutput, WaitForPattern, WritePad,
};
use serde_json::{Map, Value, json};

/// As many samples as the longest enumeration has values.
const SAMPLES: usize = 6;

/// A value that fits a schema, with all members present and none of them a default.
fn sample(schema: &Value, number: usize) -> Value {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return choices[number % choices.len()].clone();
    }
    if let Some(choices) = schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array) {
        return sample(&choices[number % choices.len()], number);
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let members = schema.get("properties").and_then(Value::as_object);
            let member = |(name, schema): (&String, &Value)| (name.clone(), sample(schema, number));
            Value::Object(members.into_iter().flatten().map(member).collect::<Map<_, _>>())
        }
        Some("array") => json!([schema.get("items").map_or(json!(7), |item| sample(item, number))]),
        Some("string") => documented_value(schema, number),
        Some("integer") => json!(7),
        Some("number") => json!(7.5),
        Some("boolean") => json!(true),
        other => panic!("a type without a sample: {other:?} in {schema}"),
    }
}

/// One of the values in backticks that a description lists, or any text.
fn documented_value(schema: &Value, number: usize) -> Value {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let values: Vec<_> = description.split('`').skip(1).step_by(2).collect();
    json!(values.get(number % values.len().max(1)).unwrap_or(&"text"))
}

/// Everything in `part` is in `whole`.
fn check_part(part: &Value, whole: &Value, at: &str) {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            for (name, value) in part {
                let other = whole.get(name).unwrap_or_else(|| panic!("{at} has no `{name}`"));
                check_part(value, other, &format!("{at}.{name}"));
            }
        }
        (Value::Array(part), Value::Array(whole)) => {
            assert_eq!(part.len(), whole.len(), "{at}");
            part.iter().zip(whole).for_each(|(part, whole)| check_part(part, whole, at));
        }
        _ => assert_eq!(part, whole, "{at}"),
    }
}

/// Checks a tool; `only` are the members that this view reads where another view reads the others.
fn check<M: Method<Result: std::fmt::Debug>>(only: &[&str]) {
    let registry = Registry::standard();
    let schema = registry.answer_schema(M::NAME).unwrap_or_else(|| panic!("no tool {}", M::NAME));
    for number in 0..SAMPLES {
        let whole = sample(&Value::Object(schema.clone()), number);
        let read: M::Result = serde_json::from_value(whole.clone())
            .unwrap_or_else(|error| panic!("{}: {error} in {whole}", M::NAME));
        // The values of an enum are all known; `Other` is for servers that are newer than their client.
        assert!(!format!("{read:?}").contains("Other("), "{}: {read:?}", M::NAME);
        let mut part = serde_json::to_value(read).unwrap();
        if let (false, Some(members)) = (only.is_empty(), part.as_object_mut()) {
            members.retain(|name, _| only.contains(&name.as_str()));
            assert_eq!(members.len(), only.len(), "{}", M::NAME);
        }
        check_part(&part, &whole, M::NAME);
    }
}

#[test]
fn results_have_the_members_that_are_read() {
    check::<AppendPad>(&[]);
    check::<CloseProcess>(&[]);
    check::<GetProcessPorts>(&[]);
    check::<GetProcessStatus>(&[]);
    check::<GetProjectStatus>(&[]);
    check::<GetRawOutput>(&[]);
    check::<GetScreen>(&[]);
    // Text never comes as base64.
    check::<GetText>(&["text", "offset", "next_offset", "dropped"]);
    check::<ListAgents>(&[]);
    check::<ListPads>(&[]);
    check::<ListProcesses>(&[]);
    check::<ListTimers>(&[]);
    check::<ReadPad>(&[]);
    check::<RenameProcess>(&[]);
    check::<RestartProcess>(&[]);
    check::<SearchOutput>(&[]);
    check::<SendInput>(&[]);
    check::<SendMessage>(&[]);
    check::<SpawnAgent>(&[]);
    check::<SpawnProcess>(&[]);
    check::<StartProcess>(&[]);
    check::<StopProcess>(&[]);
    check::<WaitForOutput>(&[]);
    check::<WaitForPattern>(&[]);
    check::<WritePad>(&[]);
}

fn to_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn arguments_that_are_sent_exist() {
    let registry = Registry::standard();
    let check = |tool: &str, arguments: Value| {
        let tool = registry.descriptors().into_iter().find(|known| known.name == tool).unwrap();
        let known = tool.input_schema["properties"].as_object().unwrap();
        for name in arguments.as_object().unwrap().keys() {
            assert!(known.contains_key(name), "{} has no argument `{name}`", tool.name);
        }
    };
    use patterm_wire::follow::ProcessKind;
    use patterm_wire::tools::*;
    let text = || "x".to_owned();
    check(
        SpawnProcess::NAME,
        to_json(&SpawnProcessArgs {
            kind: Some(ProcessKind::Terminal),
            argv: Some(vec![text()]),
            name: Some(text()),
            working_dir: Some("/".into()),
            preset: Some(text()),
        }),
    );
    check(
        SpawnAgent::NAME,
        to_json(&SpawnAgentArgs {
            agent: text(),
            agent_instructions: Some(text()),
            name: Some(text()),
            folder_of: Some(text()),
        }),
    );
    check(StopProcess::NAME, to_json(&StopArgs { process_id: text(), signal: Some(text()) }));
    check(RenameProcess::NAME, to_json(&RenameArgs { process_id: text(), name: text() }));
    for tool in [
        GetProcessStatus::NAME,
        RestartProcess::NAME,
        StartProcess::NAME,
        CloseProcess::NAME,
        GetProcessPorts::NAME,
    ] {
        check(tool, to_json(&ProcessRef { process_id: text() }));
    }
    let at = Some(ScreenMoment::Offset(1));
    check(GetScreen::NAME, to_json(&ScreenArgs { process_id: text(), at }));
    let mode = TextMode::Stream;
    check(
        GetText::NAME,
        to_json(&TextArgs { process_id: text(), mode, since_offset: Some(1), max_bytes: 1 }),
    );
    check(
        GetRawOutput::NAME,
        to_json(&RawOutputArgs { process_id: text(), since_offset: Some(1), max_bytes: 1 }),
    );
    check(
        SearchOutput::NAME,
        to_json(&SearchArgs { process_id: text(), pattern: text(), limit: Some(1) }),
    );
    let scope = PatternScope::Scrollback;
    check(
        WaitForPattern::NAME,
        to_json(&PatternArgs { process_id: text(), pattern: text(), timeout_seconds: 1.0, scope }),
    );
    check(
        WaitForOutput::NAME,
        to_json(&WaitArgs { process_id: text(), since_offset: 1, timeout_seconds: 1.0 }),
    );
    for input in [
        TypedInput::Text { text: text(), submit: true },
        TypedInput::Paste { text: text(), submit: true },
        TypedInput::Key { key: text() },
    ] {
        check(SendInput::NAME, to_json(&InputArgs { process_id: text(), input }));
    }
    check(SendMessage::NAME, to_json(&MessageArgs { target_process_id: text(), message: text() }));
    check(ReadPad::NAME, to_json(&PadRef { name: text() }));
    let expected_revision = Some(text());
    check(
        WritePad::NAME,
        to_json(&WritePadArgs { name: text(), content: text(), expected_revision }),
    );
    check(AppendPad::NAME, to_json(&AppendPadArgs { name: text(), content: text() }));
}
