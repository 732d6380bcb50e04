//! A connection to the project's server for one verb: a tool called by its name, its bare result.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use anyhow::Context;
use patterm_host::{PERSON, Project};
use patterm_wire::error::METHOD_NOT_FOUND;
use patterm_wire::{Framing, Id, Incoming, Message, reply};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::identity::Identity;
use crate::said::why;
use crate::{start, words};

/// What is said when a server dies in the middle of a call.
const LOST: &str = "the server ended while it was asked";

/// How often a server that dies at one and the same question is asked it.
const TRIES: u32 = 5;

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
    /// Connects to the server of the project here, starting one where there is none.
    pub(crate) fn connect() -> anyhow::Result<Self> {
        Self::greet(PERSON)
    }

    /// The same for a program that is not known to be a person's hand.
    pub(crate) fn connect_as_program() -> anyhow::Result<Self> {
        Self::greet("")
    }

    /// An agent that runs a verb in its own project is served as itself; others greet as they say.
    fn greet(otherwise: &str) -> anyhow::Result<Self> {
        let project = start::project_here()?;
        let inside = std::env::var("PATTERM_PROJECT_KEY").is_ok_and(|key| key == project.key());
        let own = match inside {
            true => Identity::find(None).greeting(Some(project.key())),
            false => Ok(None),
        };
        let greeting = own.map_err(anyhow::Error::msg)?.unwrap_or_else(|| otherwise.to_owned());
        let mut client = Self::open(&project)?;
        if !greeting.is_empty() {
            client.greeting = format!("{greeting}\n").into_bytes();
        }
        Ok(client)
    }

    /// A connection on which nothing is said yet.
    pub(crate) fn open_here() -> anyhow::Result<Self> {
        Self::open(&start::project_here()?)
    }

    fn open(project: &Project) -> anyhow::Result<Self> {
        let (entry, _) = start::find_or_start(project)
            .map_err(|e| anyhow::anyhow!("{}; `patterm doctor` checks the set-up", why(&e)))?;
        let stream = start::connect(&entry.socket)?.context("the server is gone again")?;
        Ok(Self { stream: BufReader::new(stream), greeting: Vec::new() })
    }

    /// The same over a connection that is there.
    pub(crate) fn over(stream: UnixStream) -> Self {
        let greeting = format!("{PERSON}\n").into_bytes();
        Self { stream: BufReader::new(stream), greeting }
    }

    /// The connection itself, for something else.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream.into_inner()
    }

    /// Calls a tool that only looks. A server that dies meanwhile is asked again when it is back.
    pub(crate) fn look(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        let mut tries = TRIES;
        loop {
            match self.call(tool, arguments) {
                Err(error) if tries > 1 && is_lost(&error) => {
                    tries -= 1;
                    *self = Self::connect()?;
                }
                answer => return answer,
            }
        }
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

    /// The id that a person's words mean: an id, a unique name, or the start of one.
    pub(crate) fn resolve(&mut self, words: &str) -> anyhow::Result<String> {
        let listed = self.look("list_processes", &json!({}))?;
        let processes: Vec<(String, String)> = listed["processes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|process| (text(&process["process_id"]), text(&process["name"])))
            .collect();
        pick(words, &processes)
    }
}

/// Whether a call failed because its server is gone.
fn is_lost(error: &anyhow::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let lost = |e: &io::Error| matches!(e.kind(), BrokenPipe | ConnectionReset | UnexpectedEof);
    error.downcast_ref::<io::Error>().is_some_and(lost)
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Whom the words mean, most exact first.
fn pick(words: &str, processes: &[(String, String)]) -> anyhow::Result<String> {
    // Nothing is the start of everything, and nobody means that.
    anyhow::ensure!(!words.is_empty(), "an empty ID names no process; `patterm ps` lists them");
    if processes.iter().any(|(id, _)| id == words) {
        return Ok(words.to_owned());
    }
    let mut starting: Vec<_> = processes.iter().filter(|(_, name)| name == words).collect();
    if starting.is_empty() {
        let starts =
            |(id, name): &&(String, String)| id.starts_with(words) || name.starts_with(words);
        starting = processes.iter().filter(starts).collect();
    }
    let list = |some: &[&(String, String)]| {
        some.iter().map(|(id, name)| format!("{id} ({name})")).collect::<Vec<_>>().join(", ")
    };
    match starting.as_slice() {
        [(id, _)] => Ok(id.clone()),
        [] if processes.is_empty() => anyhow::bail!(
            "there is no process `{words}`; there are none, and `patterm run -- COMMAND` starts one"
        ),
        [] => {
            let all: Vec<_> = processes.iter().collect();
            anyhow::bail!("there is no process `{words}`; there are {}", list(&all))
        }
        several => anyhow::bail!("`{words}` may mean {}; use its id", list(several)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_a_name_or_the_start_of_one() {
        let processes = [("p1", "dev"), ("p2", "test"), ("p12", "tests")]
            .map(|(id, name)| (id.to_owned(), name.to_owned()));
        let pick = |words: &str| pick(words, &processes).map_err(|e| e.to_string());
        assert_eq!(pick("p1").as_deref(), Ok("p1"));
        assert_eq!(pick("test").as_deref(), Ok("p2"));
        assert_eq!(pick("d").as_deref(), Ok("p1"));
        assert_eq!(pick("te").unwrap_err(), "`te` may mean p2 (test), p12 (tests); use its id");
        assert!(pick("").unwrap_err().starts_with("an empty ID"));
        // A name that is another's id means the other; one that two have means neither.
        let odd = [("p1", "p2"), ("p2", "web"), ("p3", "web"), ("p4", "webs")]
            .map(|(id, name)| (id.to_owned(), name.to_owned()));
        assert_eq!(super::pick("p2", &odd).unwrap(), "p2");
        let said = super::pick("web", &odd).unwrap_err().to_string();
        assert_eq!(said, "`web` may mean p2 (web), p3 (web); use its id");
        assert!(pick("x").unwrap_err().starts_with("there is no process `x`; there are p1 (dev)"));
    }
}
