//! `patterm attach`: the TUI, or with `--raw` one process, full screen, its bytes as they come. The
//! barest view: everything typed goes to the program, except after the leader key.

mod filter;
mod leader;
mod terminal;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::Context;
use patterm_wire::view::{self, FromView, ToView, ViewDecoder};
use patterm_wire::{Framing, Id, Incoming, Message, reply};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;

use crate::args::Attach;
use crate::client::Client;
use crate::said::say;
use crate::tui;
use filter::Filter;
use leader::{Leader, Typed};
use terminal::Terminal;

/// Bytes read in one go.
const READ_BYTES: usize = 64 << 10;

/// How a session ended.
enum End {
    Detached,
    Exited(Option<i32>, Option<i32>),
    ServerGone,
}

pub(crate) fn run(options: &Attach) -> anyhow::Result<()> {
    if !options.raw {
        tui::must_have_terminal()?;
    }
    let named = options.process.as_deref();
    let id = named.map(|words| Client::connect()?.resolve(words)).transpose()?;
    let Some(id) = id.clone().filter(|_| options.raw) else {
        return tui::run(id);
    };
    let mut stream = Client::open_here()?.into_stream();
    let terminal = Terminal::enter()?;
    let outcome = attach(&mut stream, &id, &terminal);
    drop(terminal);
    match outcome? {
        End::Detached => say(&format!("detached from {id}; `patterm attach {id} --raw` returns")),
        End::Exited(Some(code), _) => say(&format!("{id} exited with {code}")),
        End::Exited(None, signal) => say(&format!("{id} ended by signal {}", signal.unwrap_or(0))),
        End::ServerGone => anyhow::bail!("the server is gone; attach again"),
    }
    Ok(())
}

/// Asks to be a view and shows it to its end.
fn attach(stream: &mut UnixStream, id: &str, terminal: &Terminal) -> anyhow::Result<End> {
    let size = terminal.size();
    let params = json!({
        "version": view::VERSION, "process_id": id, "rows": size.rows, "columns": size.columns,
        "attends": true,
    });
    let request = reply::request(&Id::from_number(1), view::METHOD, Some(&params.to_string()));
    let mut line = Vec::new();
    Framing::Newline.encode(&request, &mut line);
    stream.write_all(&line)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut answer = Vec::new();
    reader.read_until(b'\n', &mut answer)?;
    match Incoming::parse(answer.trim_ascii_end()) {
        Ok(Incoming::One(Message::Response { outcome: Ok(_), .. })) => {}
        Ok(Incoming::One(Message::Response { outcome: Err(error), .. })) => {
            let error: serde_json::Value = serde_json::from_str(error.get())?;
            anyhow::bail!("{}", error["message"].as_str().unwrap_or("the server refused"));
        }
        _ => anyhow::bail!("the server does not know views; it is older than this patterm"),
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
        while let Some(frame) = decoder.next_to_view().ok().context("the server spoke nonsense")? {
            match frame {
                ToView::Snapshot { bytes, .. } => {
                    filter = Filter::default();
                    terminal.write(terminal::ANEW)?;
                    terminal.write(&filter.feed(&bytes))?;
                }
                ToView::Output { bytes, .. } => terminal.write(&filter.feed(&bytes))?,
                ToView::Ended { code, signal } => return Ok(End::Exited(code, signal)),
            }
        }
        let (typed, came, resized) = {
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
                        say_to(stream, &FromView::Input(input))?;
                    }
                }
                // The terminal closing is a detach.
                Typed::Input(_) | Typed::Detach => return Ok(End::Detached),
            }
        }
        if came {
            match stream.read(&mut scratch)? {
                0 => return Ok(End::ServerGone),
                bytes => decoder.feed(&scratch[..bytes]),
            }
        }
        if resized {
            terminal.take_resized();
            say_to(stream, &FromView::Size(terminal.size()))?;
        }
    }
}

fn say_to(stream: &mut UnixStream, frame: &FromView) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    Ok(stream.write_all(&bytes)?)
}
