//! A connection to the project's server for one verb.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use patterm_host::PERSON;
use patterm_host::on_disk::{OnDisk, StateCopy};
use patterm_wire::error::METHOD_NOT_FOUND;
use patterm_wire::{ErrorObject, Framing, Id, Incoming, Message, Method, reply};
use rustix::process::Pid;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::errors::{ServerError, UnknownMethod};
use crate::find;
use crate::hung::Watch;
use crate::print::{printable_path, warn};

/// The errors if a server dies during a call that only reads, and during one that may have an effect.
const LOST: &str = "the server ended before it answered";
const LOST_WITH_EFFECT: &str = "the server ended before it answered; it may have done what you \
     asked for: check with `patterm ps` before you repeat it";

pub(crate) struct Client {
    stream: BufReader<UnixStream>,
    /// The greeting, sent together with the first request, so that a server that dies before is noticed
    /// where the request is repeated.
    greeting: Vec<u8>,
    /// It only reads: no server is started for it.
    pub(crate) only_reads: bool,
    /// No server is running; the answers come from this copy of the project's state.
    copy: Option<StateCopy>,
}

/// A result, and the JSON that it was read from.
#[derive(Debug)]
pub(crate) struct ServerReply<T> {
    pub(crate) result: T,
    /// For `--json`, which prints what the server sent.
    pub(crate) json: Value,
}

impl<T> ServerReply<T> {
    /// Reads the JSON as something else, for example as a list of unparsed items.
    pub(crate) fn read_as<U: DeserializeOwned>(self) -> anyhow::Result<U> {
        Ok(serde_json::from_value(self.json)?)
    }
}

impl Client {
    /// A person's client on an open connection.
    pub(crate) fn over(stream: UnixStream) -> Self {
        Self::greeting(stream, PERSON)
    }

    /// A client that sends this line first, or nothing if it is empty.
    pub(crate) fn greeting(stream: UnixStream, line: &str) -> Self {
        let greeting = if line.is_empty() { Vec::new() } else { format!("{line}\n").into_bytes() };
        Self { stream: BufReader::new(stream), greeting, only_reads: false, copy: None }
    }

    /// A client that reads a project's state on disk.
    pub(crate) fn on_disk(disk: OnDisk) -> Self {
        for file in &disk.damaged {
            warn(&damage(file));
        }
        let client = Self::over(disk.stream);
        Self { only_reads: true, copy: Some(disk.copy), ..client }
    }

    /// Whether the answers come from disk, because no server is running.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.copy.is_some()
    }

    /// The process of the server; `None` if the answers come from disk.
    pub(crate) fn server(&self) -> Option<Pid> {
        match self.copy {
            None => find::server_of(self.stream.get_ref()),
            Some(_) => None,
        }
    }

    /// The connection itself, for another protocol.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream.into_inner()
    }

    /// Sends a request that turns the connection into something else; returns what follows its result. While that
    /// is read, the copy of a state on disk must be kept.
    pub(crate) fn upgrade<M: Method>(
        self,
        params: &M::Params,
    ) -> anyhow::Result<(BufReader<UnixStream>, Option<StateCopy>)> {
        let (_, stream, copy) = self.upgrade_with_result::<M>(params)?;
        Ok((stream, copy))
    }

    /// The same with the result.
    pub(crate) fn upgrade_with_result<M: Method>(
        mut self,
        params: &M::Params,
    ) -> anyhow::Result<(M::Result, BufReader<UnixStream>, Option<StateCopy>)> {
        // It must be the first message of the connection.
        self.greeting.clear();
        let reply = self.call::<M>(params)?;
        Ok((reply.result, self.stream, self.copy))
    }

    /// Sends a request and waits for its result.
    pub(crate) fn call<M: Method>(
        &mut self,
        params: &M::Params,
    ) -> anyhow::Result<ServerReply<M::Result>> {
        match self.request(M::NAME, &serde_json::to_string(params)?)? {
            Ok(json) => Ok(ServerReply { result: serde_json::from_value(json.clone())?, json }),
            Err(error) if error.code == METHOD_NOT_FOUND => {
                Err(UnknownMethod(M::NAME.into()).into())
            }
            Err(error) => Err(ServerError(error).into()),
        }
    }

    /// Calls any tool. Its errors are passed on as the server words them.
    pub(crate) fn call_tool(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.request(tool, &arguments.to_string())?.map_err(|error| match error.code {
            METHOD_NOT_FOUND => UnknownMethod(tool.to_owned()).into(),
            _ => anyhow::anyhow!(error.message),
        })
    }

    fn request(
        &mut self,
        method: &str,
        params: &str,
    ) -> anyhow::Result<Result<Value, ErrorObject>> {
        let request = reply::request(&Id::from_number(1), method, Some(params));
        let mut line = std::mem::take(&mut self.greeting);
        Framing::Newline.encode(&request, &mut line);
        let mut watch = Watch::begin(self.stream.get_ref())?;
        self.stream.get_mut().write_all(&line)?;
        loop {
            let mut answer = Vec::new();
            // What was read before a timeout stays in the buffer.
            while let Err(error) = self.stream.read_until(b'\n', &mut answer) {
                watch.check(self.stream.get_ref(), error)?;
            }
            if answer.is_empty() {
                let lost = if self.only_reads { LOST } else { LOST_WITH_EFFECT };
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, lost).into());
            }
            // An error without an id means that the greeting was refused.
            let (Ok(Incoming::One(Message::Response { id: Some(_), outcome }))
            | Ok(Incoming::One(Message::Response { id: None, outcome: outcome @ Err(_) }))) =
                Incoming::parse(answer.trim_ascii_end())
            else {
                continue;
            };
            watch.end(self.stream.get_ref())?;
            return Ok(match outcome {
                Ok(result) => Ok(serde_json::from_str(result.get())?),
                Err(error) => Err(serde_json::from_str(error.get())?),
            });
        }
    }
}

/// What a damaged state file means for a verb that only reads.
fn damage(file: &Path) -> String {
    format!(
        "{} is damaged, so what it contained is missing here; the next server of this project sets it aside and \
         continues without it. To recover it, replace or repair the file before that",
        printable_path(file)
    )
}

#[cfg(test)]
mod tests {
    use patterm_wire::environment::{CallerEnvironment, PassEnvironment};

    use super::*;

    #[test]
    fn the_error_of_a_lost_server_says_whether_something_may_have_been_done() {
        let error = |only_reads: bool| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let server = std::thread::spawn(move || {
                let mut request = String::new();
                BufReader::new(&mut theirs).read_line(&mut request).unwrap();
            });
            let mut client = Client { only_reads, ..Client::over(ours) };
            let error = client.call::<PassEnvironment>(&CallerEnvironment::default());
            server.join().unwrap();
            error.unwrap_err().to_string()
        };
        assert_eq!(error(true), LOST);
        assert!(error(false).contains("`patterm ps`"));
    }
}
