//! The server behind every measured relay: one tool that echoes its argument at minimal cost, and reports progress if it is asked to. All
//! messages of one read are answered with one write.

use std::io::{Read, Write};

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow)]
    progress_token: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

const HELLO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"plain","version":"1.0.0"}}"#;

const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"Says it back","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}"#;

fn main() -> std::io::Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut bytes = vec![0; 1 << 16];
    let (mut held, mut answers) = (Vec::new(), Vec::new());
    loop {
        let read = input.read(&mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        held.extend_from_slice(&bytes[..read]);
        let whole = held.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in held[..whole].split(|byte| *byte == b'\n') {
            if let Ok(request) = serde_json::from_slice(line) {
                answer(&request, &mut answers);
            }
        }
        held.drain(..whole);
        output.write_all(&answers)?;
        output.flush()?;
        answers.clear();
    }
}

fn answer(request: &Request<'_>, answers: &mut Vec<u8>) {
    let Some(id) = request.id else { return };
    let id = id.get();
    let text = request.params.as_ref().and_then(|params| params.arguments.as_ref()?.text);
    let text = text.map_or("\"\"", RawValue::get);
    let token = request.params.as_ref().and_then(|params| params.meta.as_ref()?.progress_token);
    if let Some(token) = token {
        let _ = writeln!(
            answers,
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":\
             {{\"progressToken\":{token},\"progress\":1}}}}"
        );
    }
    // Writing to a vector cannot fail.
    let _ = match request.method {
        "initialize" => write!(answers, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{HELLO}}}"),
        "tools/list" => write!(answers, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{TOOLS}}}"),
        "ping" => write!(answers, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"),
        "tools/call" => write!(
            answers,
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\
             \"text\":{text}}}]}}}}"
        ),
        _ => write!(
            answers,
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32601,\"message\":\
             \"Method not found\"}}}}"
        ),
    };
    answers.push(b'\n');
}
