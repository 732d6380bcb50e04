//! A client that calls the tools like an MCP client, and survives its server.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use patterm_agents::identity::Token;
use serde_json::{Value, json};

use crate::support::{Place, Serving, schema};

/// A connection to a server, for tool calls one after the other.
pub(super) struct ToolClient(BufReader<UnixStream>);

impl ToolClient {
    pub(super) fn at(socket: &Path) -> Self {
        Self(BufReader::new(UnixStream::connect(socket).unwrap()))
    }

    pub(super) fn of_agent(server: &Serving, token: &Token) -> Self {
        let mut tools = Self::at(server.socket());
        let greeting = json!({"patterm_identity": token.reveal()});
        writeln!(tools.0.get_mut(), "{greeting}").unwrap();
        tools
    }

    /// The result of a tool, or its error; `None` if the server is gone before it responds.
    pub(super) fn try_call(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Option<Result<Value, Value>> {
        let params = json!({"name": tool, "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        writeln!(self.0.get_mut(), "{request}").ok()?;
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|_| line.ends_with('\n'))?;
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        let mut result = answer["result"].take();
        let is_error = result["isError"] == true;
        let mut content = result["structuredContent"].take();
        let misfit = match is_error {
            true => schema::listed_misfit(tool, &content),
            false => schema::misfit(tool, &content),
        };
        assert_eq!(misfit, None, "its own schema");
        Some(if is_error { Err(content["error"].take()) } else { Ok(content) })
    }

    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        self.try_call(tool, arguments).expect("the server lives")
    }

    #[track_caller]
    pub(super) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    /// Calls a tool that must fail with this kind; returns the whole error.
    #[track_caller]
    pub(super) fn refused(&mut self, kind: &str, tool: &str, arguments: Value) -> Value {
        let error = self.call(tool, arguments).expect_err(tool);
        assert_eq!(error["kind"], kind, "{tool}: {error}");
        error
    }

    #[track_caller]
    pub(super) fn read(&mut self, pad: &str) -> Value {
        self.ok("scratchpad_read", json!({"name": pad}))
    }

    #[track_caller]
    pub(super) fn content(&mut self, pad: &str) -> String {
        string(&self.read(pad)["content"])
    }

    /// Appends; returns the new revision.
    #[track_caller]
    pub(super) fn append(&mut self, pad: &str, content: &str) -> String {
        let answer = self.ok("scratchpad_append", json!({"name": pad, "content": content}));
        string(&answer["revision"])
    }

    #[track_caller]
    pub(super) fn pads(&mut self) -> Vec<Value> {
        self.ok("scratchpad_list", json!({}))["scratchpads"].as_array().unwrap().clone()
    }
}

pub(super) fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Arguments of a guarded write; without a revision, of one that creates the pad.
pub(super) fn writing(pad: &str, content: &str, expected: Option<&str>) -> Value {
    json!({"name": pad, "content": content, "expected_revision": expected})
}

/// The path of a pad's file.
pub(super) fn file(place: &Place, pad: &str) -> PathBuf {
    place.state().file("scratchpads").join(format!("{pad}.md"))
}

/// Everything in the pads' folder.
pub(super) fn files(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.state().file("scratchpads")).into_iter().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A server in this process with a client.
pub(super) fn tools() -> (Place, Serving, ToolClient) {
    let place = Place::new();
    let server = place.serve_in_process();
    let tools = ToolClient::at(server.socket());
    (place, server, tools)
}

/// The short form of a number, or with `PATTERM_LONG=1` the long one.
pub(super) fn short_or_long(short: usize, long: usize) -> usize {
    let is_long = std::env::var_os("PATTERM_LONG").is_some_and(|value| value == "1");
    if is_long { long } else { short }
}
