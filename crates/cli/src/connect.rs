//! Connecting a verb to the project's server, which is started if none runs, and asking it again if
//! it dies meanwhile.

use std::io;
use std::os::unix::net::UnixStream;

use anyhow::Context;
use patterm_host::{PERSON, Project};
use serde_json::{Value, json};

use crate::client::{Client, text};
use crate::identity::Identity;
use crate::said::why;
use crate::start;

/// How often a server that dies at one and the same question is asked it.
const TRIES: u32 = 5;

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
        Ok(Self::greeting(open(&project)?, &greeting))
    }

    /// A connection on which nothing is said yet.
    pub(crate) fn open_here() -> anyhow::Result<Self> {
        Ok(Self::greeting(open(&start::project_here()?)?, ""))
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

/// Connects to the server of a project, starting one where there is none.
fn open(project: &Project) -> anyhow::Result<UnixStream> {
    let (entry, _) = start::find_or_start(project)
        .map_err(|e| anyhow::anyhow!("{}; `patterm doctor` checks the set-up", why(&e)))?;
    start::connect(&entry.socket)?.context("the server is gone again")
}

/// Whether a call failed because its server is gone.
fn is_lost(error: &anyhow::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let lost = |e: &io::Error| matches!(e.kind(), BrokenPipe | ConnectionReset | UnexpectedEof);
    error.downcast_ref::<io::Error>().is_some_and(lost)
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
