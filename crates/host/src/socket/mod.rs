//! The server's socket: admits clients, and runs one task for each connection.

mod calls;
mod connection;
mod dispatch;
mod fair_read;
mod follow;
mod listener;
mod logs;
mod recording;
mod shares;
mod upgrade;
mod view;

use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;

use tokio::net::UnixStream;

use crate::caller_origin::{Origins, Peer};
use crate::host::Host;
use crate::tools::Registry;

pub(crate) use dispatch::Dispatch;
pub(crate) use listener::Listener;

/// Serves one connection that no listener accepted, until it is closed.
pub(crate) async fn serve_one(
    stream: StdStream,
    host: Arc<Host>,
    tools: Arc<Registry>,
) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    let origins = Origins::new(host.panes.clone(), &host.project);
    let lookup = origins.begin_lookup(Peer::of(&stream));
    connection::Connection::serve(stream, lookup, host, tools).await;
    Ok(())
}
