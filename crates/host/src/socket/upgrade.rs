//! Connections whose first message turns them into something other than a caller's connection.

use std::io;

use patterm_wire::{ErrorObject, Framing, Id, Incoming, Message, reply};
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

/// Such a request, with its parameters or the reason why they are invalid.
#[derive(Debug)]
pub(super) struct Upgrade<P> {
    pub(super) id: Id,
    pub(super) params: Result<P, String>,
}

impl<P: DeserializeOwned> Upgrade<P> {
    /// Parses a message as a request of this method; `None` if it is another one.
    pub(super) fn by(wanted: &str, body: &[u8]) -> Option<Self> {
        match Incoming::parse(body) {
            Ok(Incoming::One(Message::Request { id, method, params })) if method == wanted => {
                let text = params.map_or("{}", |params| params.get());
                Some(Self { id, params: serde_json::from_str(text).map_err(|e| e.to_string()) })
            }
            _ => None,
        }
    }

    /// Sends an error; the connection ends after it.
    pub(super) async fn refuse(&self, stream: UnixStream, error: &ErrorObject) -> io::Result<()> {
        let mut line = Vec::new();
        Framing::Newline.encode(&reply::error(Some(&self.id), error), &mut line);
        stream.writable().await?;
        stream.try_write(&line).map(drop)
    }
}
