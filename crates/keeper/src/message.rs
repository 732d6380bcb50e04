//! Messages between server and keeper: a length, JSON, and descriptors beside it.

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

/// The longest message: a program with the kernel's own limit of arguments and environment (2 MiB)
/// fits with room to spare.
const MESSAGE_BYTES: usize = 8 << 20;

/// What the server asks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Start a program in a new pane of this name.
    Spawn { pane: String, program: Box<Program> },
    /// Hand over all panes.
    List,
    /// Take over a pane whose keeper died; its descriptors come along.
    Adopt { pane: String },
    /// Let go of a pane.
    Forget { pane: String },
    /// The server ends on purpose: end too.
    End,
}

/// What the keeper answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// A pane; its descriptors come along.
    Pane { pane: String },
    /// The program could not be started.
    Failed(SpawnError),
    /// Done, or the end of a list.
    Done,
}

/// Sends a message with some descriptors.
pub(crate) fn send<T: Serialize>(
    stream: &UnixStream,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?.to_ne_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(Pane::DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    // The length goes first and carries the descriptors, so that the other side has them before
    // it reads the rest.
    let sent = sendmsg(stream, &[IoSlice::new(&length)], &mut control, SendFlags::NOSIGNAL)?;
    let mut stream = stream;
    stream.write_all(&length[sent..])?;
    stream.write_all(&body)
}

/// Receives a message and the descriptors that came with it; `None` at the end of the stream.
pub(crate) fn receive<T: DeserializeOwned>(
    stream: &UnixStream,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
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
        return Ok(None);
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
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some((serde_json::from_slice(&body)?, descriptors)))
}
