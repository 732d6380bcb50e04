//! A connection to the project's server for one verb: a tool called by its name, its bare result.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use patterm_host::PERSON;
use patterm_wire::error::METHOD_NOT_FOUND;
use patterm_wire::{Framing, Id, Incoming, Message, reply};
use serde::Deserialize;
use serde_json::Value;

use crate::words;

/// What is said when a server dies in the middle of a call.
const LOST: &str = "the server ended while it was asked";

pub(crate) struct Client {
    stream: BufReader<UnixStream>,
    /// The greeting, until it is sent with the first request: a server that dies meanwhile is met
    /// where that is repeated.
    greeting: Vec<u8>,
}

/// Why a call failed, as the server said it.
#[derive(Debug, Deserialize)]
struct Refusal {
    code: i64,
    message: String,
}

/// The same as an error.
#[derive(Debug)]
struct Refused(String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// The server knows no tool or method of this name: it may be older than this binary.
#[derive(Debug)]
pub(crate) struct Unknown(String);

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no tool `{}`; `patterm call whoami` lists them", self.0)
    }
}

impl std::error::Error for Unknown {}

impl Client {
    /// A client for a person, over a connection that is open.
    pub(crate) fn over(stream: UnixStream) -> Self {
        Self::greeting(stream, PERSON)
    }

    /// A client that greets the server with this line, or not at all if the line is empty.
    pub(crate) fn greeting(stream: UnixStream, line: &str) -> Self {
        let greeting = if line.is_empty() { Vec::new() } else { format!("{line}\n").into_bytes() };
        Self { stream: BufReader::new(stream), greeting }
    }

    /// The connection itself, for something else.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream.into_inner()
    }

    /// Calls a tool for a person, who knows verbs and not tools.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.call_tool(tool, arguments).map_err(|error| match error.downcast::<Refused>() {
            Ok(Refused(words)) => anyhow::anyhow!(words::for_people(&words)),
            Err(error) => error,
        })
    }

    /// Calls a tool and waits for its result.
    pub(crate) fn call_tool(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        let request = reply::request(&Id::from_number(1), tool, Some(&arguments.to_string()));
        let mut line = std::mem::take(&mut self.greeting);
        Framing::Newline.encode(&request, &mut line);
        self.stream.get_mut().write_all(&line)?;
        loop {
            let mut answer = Vec::new();
            self.stream.read_until(b'\n', &mut answer)?;
            if answer.is_empty() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, LOST).into());
            }
            // An error without an id is the answer to a greeting that was refused.
            let (Ok(Incoming::One(Message::Response { id: Some(_), outcome }))
            | Ok(Incoming::One(Message::Response { id: None, outcome: outcome @ Err(_) }))) =
                Incoming::parse(answer.trim_ascii_end())
            else {
                continue;
            };
            return match outcome {
                Ok(result) => Ok(serde_json::from_str(result.get())?),
                Err(error) => {
                    let refusal: Refusal = serde_json::from_str(error.get())?;
                    match refusal.code {
                        METHOD_NOT_FOUND => Err(Unknown(tool.to_owned()).into()),
                        _ => Err(Refused(refusal.message).into()),
                    }
                }
            };
        }
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
