//! Connects a verb to the project's server, which is started if none is running, or to the project's state on
//! disk if the verb only reads. Repeats queries if the server dies.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::Context;
use patterm_host::on_disk::OnDisk;
use patterm_host::{PERSON, Project, Settings};
use patterm_wire::Method;
use patterm_wire::error::ServerEnd;
use patterm_wire::method::Empty;
use patterm_wire::tools::{ListProcesses, ProcessSummary};

use crate::client::{Client, ServerReply};
use crate::errors::ServerError;
use crate::identity::Identity;
use crate::print::error_chain;
use crate::{find, start};

/// How often a query is sent if the server dies each time.
pub(crate) const TRIES: u32 = 5;

impl Client {
    /// Connects to the server of the current folder's project, starting one if there is none.
    pub(crate) fn connect() -> anyhow::Result<Self> {
        Self::greet(PERSON)
    }

    /// Connects a verb that only reads, or that needs a running process: to the server if there is one, otherwise to the project's state on
    /// disk. It starts nothing; but if a server died, it waits for the one that the keeper is about to start.
    pub(crate) fn connect_to_read() -> anyhow::Result<Self> {
        let project = start::project_here()?;
        if start::is_served(&project)? {
            let mut client = Self::connect()?;
            client.only_reads = true;
            return Ok(client);
        }
        // A caller with an unusable identity is refused, as by a server.
        own_greeting(&project)?;
        let read = || anyhow::Ok(OnDisk::open(Settings::from_env(project)?)?);
        let read = read().map_err(|e| {
            anyhow::anyhow!("{}; `patterm doctor` checks the setup", error_chain(&e))
        })?;
        Ok(Self::on_disk(read))
    }

    /// Like [`Client::connect_to_read`], for completions: never waits longer than `timeout`.
    pub(crate) fn connect_to_read_within(timeout: Duration) -> anyhow::Result<Self> {
        let project = start::project_here()?;
        match start::find_running(&project)? {
            Some(entry) => {
                let stream = start::connect(&entry.socket)?.context("the server has ended")?;
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                Ok(Self::over(stream))
            }
            None => Ok(Self::on_disk(OnDisk::open(Settings::from_env(project)?)?)),
        }
    }

    /// Like [`Client::connect`], without claiming to be a person.
    pub(crate) fn connect_as_program() -> anyhow::Result<Self> {
        Self::greet("")
    }

    /// An agent that runs a verb in its own project uses its own identity; others use this greeting.
    fn greet(otherwise: &str) -> anyhow::Result<Self> {
        let project = start::project_here()?;
        let greeting = own_greeting(&project)?.unwrap_or_else(|| otherwise.to_owned());
        Ok(Self::greeting(open(&project)?, &greeting))
    }

    /// A connection on which nothing has been sent.
    pub(crate) fn open_here() -> anyhow::Result<Self> {
        Ok(Self::greeting(open(&start::project_here()?)?, ""))
    }

    /// Sends a request that only reads. If the server dies or is replaced, it is repeated.
    pub(crate) fn query<M: Method>(
        &mut self,
        params: &M::Params,
    ) -> anyhow::Result<ServerReply<M::Result>> {
        self.persist(|client| client.call::<M>(params))
    }

    /// The same for a wait of some seconds: a repeated request gets the time that is left.
    pub(crate) fn query_for<M: Method>(
        &mut self,
        seconds: f64,
        params: impl Fn(f64) -> M::Params,
    ) -> anyhow::Result<ServerReply<M::Result>> {
        let began = Instant::now();
        self.persist(|client| {
            let left = (seconds - began.elapsed().as_secs_f64()).max(0.0);
            client.call::<M>(&params(left))
        })
    }

    /// Repeats something that only reads with the next server if the server dies or is replaced. After the server was
    /// ended on purpose, only a client that starts nothing continues: with the project's state on disk.
    fn persist<T>(
        &mut self,
        mut ask: impl FnMut(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut tries = TRIES;
        loop {
            let error = match ask(self) {
                Err(error) if is_lost(&error) => error,
                done => return done,
            };
            match server_end(&error) {
                Some(ServerEnd::Replaced) => {}
                Some(ServerEnd::Ended) if !self.only_reads => return Err(error),
                Some(ServerEnd::Ended) | None => tries -= 1,
            }
            if tries == 0 {
                return Err(error);
            }
            find::wait_for_successor(&start::project_here()?, self.server())?;
            *self = if self.only_reads { Self::connect_to_read()? } else { Self::connect()? };
        }
    }

    /// The id of a process that the user names by its id, its unique name, or the start of either.
    pub(crate) fn resolve(&mut self, given: &str) -> anyhow::Result<String> {
        pick(given, &self.names()?)
    }

    /// The same for several, each once. All of them are resolved before anything is done to any of them.
    pub(crate) fn resolve_all(&mut self, given: &[String]) -> anyhow::Result<Vec<String>> {
        let names = self.names()?;
        let mut ids = Vec::new();
        for given in given {
            let id = pick(given, &names)?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// The ids and names of all processes.
    fn names(&mut self) -> anyhow::Result<Vec<(String, String)>> {
        let processes = self.query::<ListProcesses>(&Empty {})?.result.processes;
        let named = |process: ProcessSummary| (process.process_id, process.name);
        Ok(processes.into_iter().map(named).collect())
    }
}

/// Connects to the server of a project, starting one if there is none.
fn open(project: &Project) -> anyhow::Result<UnixStream> {
    let (entry, _) = start::find_or_start(project)
        .map_err(|e| anyhow::anyhow!("{}; `patterm doctor` checks the setup", error_chain(&e)))?;
    start::connect(&entry.socket)?.context("the server ended right after its start")
}

/// Whether a call failed because the server died, was replaced or was ended.
pub(crate) fn is_lost(error: &anyhow::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let lost = |e: &io::Error| matches!(e.kind(), BrokenPipe | ConnectionReset | UnexpectedEof);
    error.downcast_ref::<io::Error>().is_some_and(lost) || server_end(error).is_some()
}

/// Why the server went away, if it said so.
fn server_end(error: &anyhow::Error) -> Option<ServerEnd> {
    error.downcast_ref::<ServerError>()?.0.details().server_end
}

/// The process that is meant; exact matches win.
fn pick(given: &str, processes: &[(String, String)]) -> anyhow::Result<String> {
    // Everything starts with an empty text.
    anyhow::ensure!(!given.is_empty(), "the ID is empty; `patterm ps` lists the processes");
    if processes.iter().any(|(id, _)| id == given) {
        return Ok(given.to_owned());
    }
    let mut starting: Vec<_> = processes.iter().filter(|(_, name)| name == given).collect();
    if starting.is_empty() {
        let starts =
            |(id, name): &&(String, String)| id.starts_with(given) || name.starts_with(given);
        starting = processes.iter().filter(starts).collect();
    }
    let list = |some: &[&(String, String)]| {
        some.iter().map(|(id, name)| format!("{id} ({name})")).collect::<Vec<_>>().join(", ")
    };
    match starting.as_slice() {
        [(id, _)] => Ok(id.clone()),
        [] if processes.is_empty() => anyhow::bail!(
            "there is no process `{given}`; this project has none, and `patterm run -- COMMAND` starts one"
        ),
        [] => {
            let all: Vec<_> = processes.iter().collect();
            anyhow::bail!("there is no process `{given}`; the processes are {}", list(&all))
        }
        several => anyhow::bail!("`{given}` is ambiguous: {}; use an id", list(several)),
    }
}

/// The greeting of an agent that runs a verb in its own project.
fn own_greeting(project: &Project) -> anyhow::Result<Option<String>> {
    let inside = std::env::var("PATTERM_PROJECT_KEY").is_ok_and(|key| key == project.key());
    match inside {
        true => Identity::find(None).greeting(Some(project.key())).map_err(anyhow::Error::msg),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_by_its_id_its_name_or_the_start_of_one() {
        let processes = [("p1", "dev"), ("p2", "test"), ("p12", "tests")]
            .map(|(id, name)| (id.to_owned(), name.to_owned()));
        let pick = |given: &str| pick(given, &processes).map_err(|e| e.to_string());
        assert_eq!(pick("p1").as_deref(), Ok("p1"));
        assert_eq!(pick("test").as_deref(), Ok("p2"));
        assert_eq!(pick("d").as_deref(), Ok("p1"));
        assert_eq!(pick("te").unwrap_err(), "`te` is ambiguous: p2 (test), p12 (tests); use an id");
        assert!(pick("").unwrap_err().starts_with("the ID is empty"));
        // An id wins over another process's name; a name that two processes have is ambiguous.
        let odd = [("p1", "p2"), ("p2", "web"), ("p3", "web"), ("p4", "webs")]
            .map(|(id, name)| (id.to_owned(), name.to_owned()));
        assert_eq!(super::pick("p2", &odd).unwrap(), "p2");
        let error = super::pick("web", &odd).unwrap_err().to_string();
        assert_eq!(error, "`web` is ambiguous: p2 (web), p3 (web); use an id");
        assert!(
            pick("x")
                .unwrap_err()
                .starts_with("there is no process `x`; the processes are p1 (dev)")
        );
    }
}
