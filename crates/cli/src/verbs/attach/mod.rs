//! `patterm attach`: the TUI, or with `--raw` one process full screen, its bytes unchanged. Everything typed
//! goes to the program, except after the leader key.

mod filter;
mod leader;
mod terminal;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::Context;
use clap::Args;
use patterm_wire::view::{self, FromView, SizePolicy, ToView, View, ViewDecoder, ViewRequest};
use patterm_wire::{Framing, Id, Incoming, Message, Method, reply};
use rustix::event::{PollFd, PollFlags, poll};

use crate::client::Client;
use crate::errors::ServerError;
use crate::print::print;
use crate::tui;
use filter::Filter;
use leader::{Leader, Typed};
use terminal::Terminal;

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;

/// How a session ended.
enum End {
    Detached,
    Exited(Option<i32>, Option<i32>),
    ServerGone,
}

/// Show this project on this terminal; ctrl+b d detaches
#[derive(Debug, Args)]
#[command(alias = "a")]
pub(crate) struct AttachVerb {
    /// An id, a unique name, or the start of one [default: what was shown last]
    #[arg(value_name = "ID", required_if_eq("raw", "true"))]
    process: Option<String>,
    /// Show only that process, full screen, with its bytes unchanged
    #[arg(long)]
    raw: bool,
}

impl AttachVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if !self.raw {
            tui::must_have_terminal()?;
        }
        let named = self.process.as_deref();
        let id = named.map(|given| Client::connect()?.resolve(given)).transpose()?;
        match id {
            Some(id) if self.raw => run_raw(&id),
            id => tui::run(id),
        }
    }
}

fn run_raw(id: &str) -> anyhow::Result<()> {
    let mut stream = Client::open_here()?.into_stream();
    let terminal = Terminal::enter()?;
    let outcome = attach(&mut stream, id, &terminal);
    drop(terminal);
    match outcome? {
        End::Detached => {
            print(&format!("detached from {id}; `patterm attach {id} --raw` attaches again"))
        }
        End::Exited(Some(code), _) => print(&format!("{id} exited with code {code}")),
        End::Exited(None, signal) => {
            print(&format!("{id} was ended by signal {}", signal.unwrap_or(0)))
        }
        End::ServerGone => anyhow::bail!("the server has ended; attach again"),
    }
    Ok(())
}

/// Attaches a view and shows it until it ends.
fn attach(stream: &mut UnixStream, id: &str, terminal: &Terminal) -> anyhow::Result<End> {
    let size = terminal.size();
    let params = ViewRequest {
        version: view::VERSION,
        process_id: id.to_owned(),
        rows: Some(size.rows),
        columns: Some(size.columns),
        sizes: SizePolicy::default(),
        pictures: false,
        attends: true,
    };
    let params = serde_json::to_string(&params)?;
    let request = reply::request(&Id::from_number(1), View::NAME, Some(&params));
    let mut line = Vec::new();
    Framing::Newline.encode(&request, &mut line);
    stream.write_all(&line)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut answer = Vec::new();
    reader.read_until(b'\n', &mut answer)?;
    match Incoming::parse(answer.trim_ascii_end()) {
        Ok(Incoming::One(Message::Response { outcome: Ok(_), .. })) => {}
        Ok(Incoming::One(Message::Response { outcome: Err(error), .. })) => {
            return Err(ServerError(serde_json::from_str(error.get())?).into());
        }
        _ => anyhow::bail!("the server does not support views; it is older than this patterm"),
    }
    let mut decoder = ViewDecoder::default();
    decoder.feed(reader.buffer());
    show(stream, &mut decoder, terminal)
}

fn show(
    stream: &mut UnixStream,
    decoder: &mut ViewDecoder,
    terminal: &Terminal,
) -> anyhow::Result<End> {
    let mut filter = Filter::default();
    let mut leader = Leader::default();
    let mut scratch = vec![0; READ_BYTES];
    loop {
        while let Some(frame) =
            decoder.next_to_view().ok().context("the server sent an invalid frame")?
        {
            match frame {
                ToView::Snapshot { bytes, .. } => {
                    filter = Filter::default();
                    terminal.write(terminal::RESET)?;
                    terminal.write(&filter.feed(&bytes))?;
                }
                ToView::Output { bytes, .. } => terminal.write(&filter.feed(&bytes))?,
                ToView::Ended { code, signal } => return Ok(End::Exited(code, signal)),
            }
        }
        let (typed, received, resized) = {
            let mut watched = [
                PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN),
                PollFd::new(&*stream, PollFlags::IN),
                PollFd::from_borrowed_fd(terminal.resized(), PollFlags::IN),
            ];
            match poll(&mut watched, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            }
            let ready = |n: usize| !watched[n].revents().is_empty();
            (ready(0), ready(1), ready(2))
        };
        if typed {
            let bytes = rustix::io::read(rustix::stdio::stdin(), &mut scratch)?;
            match leader.feed(&scratch[..bytes]) {
                Typed::Input(input) if bytes > 0 => {
                    if !input.is_empty() {
                        send_frame(stream, &FromView::Input(input))?;
                    }
                }
                // A closed terminal is a detach.
                Typed::Input(_) | Typed::Detach => return Ok(End::Detached),
            }
        }
        if received {
            match stream.read(&mut scratch)? {
                0 => return Ok(End::ServerGone),
                bytes => decoder.feed(&scratch[..bytes]),
            }
        }
        if resized {
            terminal.take_resized();
            send_frame(stream, &FromView::Size(terminal.size()))?;
        }
    }
}

fn send_frame(stream: &mut UnixStream, frame: &FromView) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    Ok(stream.write_all(&bytes)?)
}
