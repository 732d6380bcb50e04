//! Messages between server and keeper: a length, JSON, and file descriptors.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::pane::Pane;
use crate::spawn::{Program, SpawnError};

/// The longest message: a program with the most arguments and environment that the kernel accepts
/// (6 MiB) fits easily.
pub(crate) const MESSAGE_BYTES: usize = 8 << 20;

/// A request from the server.
///
/// Requests have numbers since 0.1.1, and replies repeat them. A 0.1.0 keeper ignores the numbers
/// and does not know the requests that only exist with one, so the server sends those only after a
/// reply has shown that the keeper repeats numbers ([`KeeperRequest::hello`]).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum KeeperRequest {
    /// Start a program in a new pane of this name.
    Spawn {
        pane: String,
        program: Box<Program>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
    },
    /// Send all panes, as requested by 0.1.0.
    List,
    /// Take over a pane whose keeper died; its descriptors are attached.
    Adopt {
        pane: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
    },
    /// Drop a pane.
    Forget {
        pane: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
    },
    /// The server ends on purpose, end everything, as requested by 0.1.0.
    End,
    /// `List` with a number.
    ListPanes { id: u64 },
    /// `End` with a number. The reply reports what could not be ended.
    EndAll { id: u64 },
}

impl KeeperRequest {
    /// The first request of a connection: it has no effect (no pane has an empty name), and every
    /// keeper answers it. The form of the reply tells whether the keeper repeats numbers.
    pub(crate) fn hello(id: u64) -> Self {
        Self::Forget { pane: String::new(), id: Some(id) }
    }
}

/// A reply of the keeper. Replies with a number are sent only to a server that sent one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum KeeperReply {
    /// A pane; its descriptors are attached.
    Pane {
        pane: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
    },
    /// The program could not be started.
    Failed(SpawnError),
    /// Done, or the end of a list.
    Done,
    /// `Failed` with a number.
    Refused { id: u64, error: SpawnError },
    /// `Done` with a number.
    Completed { id: u64 },
    /// Everything was ended except this.
    Ended { id: u64, left: Vec<Survivor> },
}

impl KeeperReply {
    /// The number of the request that it answers, if any.
    pub(crate) fn id(&self) -> Option<u64> {
        match self {
            Self::Pane { id, .. } => *id,
            Self::Refused { id, .. } | Self::Completed { id } | Self::Ended { id, .. } => Some(*id),
            Self::Failed(_) | Self::Done => None,
        }
    }

    /// The reply to a request that succeeded and returns nothing.
    pub(crate) fn done(id: Option<u64>) -> Self {
        id.map_or(Self::Done, |id| Self::Completed { id })
    }

    /// The reply to a request that failed.
    pub(crate) fn failed(id: Option<u64>, error: SpawnError) -> Self {
        match id {
            Some(id) => Self::Refused { id, error },
            None => Self::Failed(error),
        }
    }
}

/// A process that could not be ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its process id.
    pub pid: i32,
    /// The name of its program, according to the kernel.
    pub name: String,
}

/// What was received.
#[derive(Debug)]
pub(crate) enum Received<T> {
    /// A message and its descriptors.
    Message(T, Vec<OwnedFd>),
    /// A message of this many bytes, which is too long and was skipped.
    TooLong(usize),
    /// The end of the stream.
    End,
}

/// Sends a message with descriptors.
pub(crate) fn send<T: Serialize>(
    stream: &UnixStream,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    if body.len() > MESSAGE_BYTES {
        // Nothing was written: the connection is still usable.
        let message = format!(
            "a message of {} bytes is too long for the keeper; the limit is {MESSAGE_BYTES}",
            body.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let length = u32::try_from(body.len()).map_err(io::Error::other)?.to_ne_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(Pane::DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    // The length is sent first and carries the descriptors, so that the receiver has them before it
    // reads the rest.
    let sent = sendmsg(stream, &[IoSlice::new(&length)], &mut control, SendFlags::NOSIGNAL)?;
    let mut stream = stream;
    stream.write_all(&length[sent..])?;
    stream.write_all(&body)
}

/// Receives a message and its descriptors. A message that is too long is skipped.
pub(crate) fn receive<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<Received<T>> {
    let mut length = [0; 4];
    let mut descriptors = Vec::new();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(Pane::DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut parts = [IoSliceMut::new(&mut length)];
        match recvmsg(stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(got) => break got.bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    };
    if got == 0 {
        return Ok(Received::End);
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    let mut stream = stream;
    stream.read_exact(&mut length[got..])?;
    let length = usize::try_from(u32::from_ne_bytes(length)).map_err(io::Error::other)?;
    if length > MESSAGE_BYTES {
        let skipped = io::copy(&mut stream.take(length as u64), &mut io::sink())?;
        return match skipped == length as u64 {
            true => Ok(Received::TooLong(length)),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        };
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Received::Message(serde_json::from_slice(&body)?, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn::SpawnFault;

    /// What 0.1.0 sends and expects on the wire.
    #[test]
    fn messages_are_compatible_with_version_0_1_0() {
        let json = |request: &KeeperRequest| serde_json::to_string(request).unwrap();
        let forget = |id| KeeperRequest::Forget { pane: "p1.1".into(), id };
        assert_eq!(json(&forget(None)), r#"{"Forget":{"pane":"p1.1"}}"#);
        assert_eq!(json(&forget(Some(7))), r#"{"Forget":{"pane":"p1.1","id":7}}"#);
        assert_eq!(json(&KeeperRequest::List), r#""List""#);
        let parsed =
            serde_json::from_str::<KeeperRequest>(r#"{"Forget":{"pane":"p1.1"}}"#).unwrap();
        assert!(matches!(parsed, KeeperRequest::Forget { id: None, .. }));
        let text = |reply: &KeeperReply| serde_json::to_string(reply).unwrap();
        assert_eq!(
            text(&KeeperReply::Pane { pane: "p".into(), id: None }),
            r#"{"Pane":{"pane":"p"}}"#
        );
        assert_eq!(text(&KeeperReply::done(None)), r#""Done""#);
        let failed = KeeperReply::failed(None, SpawnError::new(SpawnFault::System, "no"));
        assert_eq!(text(&failed), r#"{"Failed":{"fault":"System","message":"no"}}"#);
    }

    #[test]
    fn an_oversized_message_is_not_sent_and_is_skipped_when_received() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let long = "x".repeat(MESSAGE_BYTES);
        let refused = send(&ours, &long, &[]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{refused}");
        send(&ours, &"first", &[]).unwrap();
        let Received::Message(first, _) = receive::<String>(&theirs).unwrap() else {
            panic!("nothing was written before")
        };
        assert_eq!(first, "first");
        let sender = std::thread::spawn(move || {
            let length = u32::try_from(MESSAGE_BYTES + 1).unwrap().to_ne_bytes();
            (&ours).write_all(&length).unwrap();
            (&ours).write_all(&vec![b'x'; MESSAGE_BYTES + 1]).unwrap();
            send(&ours, &"next", &[]).unwrap();
        });
        let skipped = receive::<String>(&theirs).unwrap();
        assert!(matches!(skipped, Received::TooLong(bytes) if bytes == MESSAGE_BYTES + 1));
        let next = receive::<String>(&theirs).unwrap();
        assert!(matches!(next, Received::Message(next, _) if next == "next"));
        sender.join().unwrap();
    }
}
