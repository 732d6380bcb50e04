//! `patterm attach`: the TUI, or with `--raw` one process full screen, its bytes unchanged. Everything typed
//! goes to the program, except after the leader key.

mod filter;
mod leader;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use patterm_host::registry;
use patterm_host::runtime::RuntimeDir;
use patterm_wire::view::{self, FromView, SizePolicy, ToView, View, ViewDecoder, ViewRequest};
use patterm_wire::{Framing, Id, Incoming, Message, Method, reply};
use rustix::event::{PollFd, PollFlags, poll};

use crate::client::Client;
use crate::connect::is_lost;
use crate::errors::ServerError;
use crate::print::print;
use crate::verbs::terminal::{self, Terminal};
use crate::{find, start, tui};
use filter::Filter;
use leader::{Leader, Typed};

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;

/// How a session ended.
enum End {
    Detached,
    Exited(Option<i32>, Option<i32>),
    ServerGone,
}

/// Show this or another project on this terminal; ctrl+b d detaches
#[derive(Debug, Args)]
#[command(alias = "a")]
pub(crate) struct AttachVerb {
    /// A process: an id, a unique name, or a unique prefix of either [default: what was shown last]; or another
    /// project: its folder, or the folder's name if the project has a server
    #[arg(value_name = "ID|PROJECT", required_if_eq("raw", "true"))]
    target: Option<String>,
    /// Show only that process, full screen, with its bytes unchanged
    #[arg(long)]
    raw: bool,
}

impl AttachVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if !self.raw {
            tui::must_have_terminal()?;
        }
        let Some(given) = self.target else { return tui::run(None) };
        if given.contains('/') {
            enter(Path::new(&given))?;
            return tui::run(None);
        }
        // This starts no server yet: the name may be that of another project.
        let unknown = match Client::connect_to_read()?.resolve(&given) {
            Ok(id) if self.raw => return run_raw(&id),
            Ok(id) => return tui::run(Some(id)),
            Err(unknown) => unknown,
        };
        let servers = registry::list(&RuntimeDir::candidates(None));
        let folders: Vec<_> = servers.into_iter().map(|entry| entry.project).collect();
        match project_named(&given, &folders)? {
            Some(folder) if !self.raw => {
                enter(folder)?;
                tui::run(None)
            }
            _ => Err(unknown),
        }
    }
}

/// Makes another project the current one.
fn enter(folder: &Path) -> anyhow::Result<()> {
    std::env::set_current_dir(folder)
        .with_context(|| format!("there is no project at {}", folder.display()))
}

/// The only project whose folder has this name.
fn project_named<'a>(name: &str, folders: &'a [PathBuf]) -> anyhow::Result<Option<&'a PathBuf>> {
    let named =
        |folder: &&PathBuf| folder.file_name().is_some_and(|own| own.to_str() == Some(name));
    let found: Vec<_> = folders.iter().filter(named).collect();
    match found.as_slice() {
        [] => Ok(None),
        [folder] => Ok(Some(folder)),
        several => {
            let paths: Vec<_> = several.iter().map(|folder| folder.to_string_lossy()).collect();
            anyhow::bail!(
                "several projects are called `{name}`: {}; give the path",
                paths.join(", ")
            )
        }
    }
}

fn run_raw(id: &str) -> anyhow::Result<()> {
    let project = start::project_here()?;
    let client = Client::open_here()?;
    let mut server = client.server();
    let mut stream = client.into_stream();
    let terminal = Terminal::enter()?;
    let outcome = loop {
        let outcome = attach(&mut stream, id, &terminal);
        match &outcome {
            Ok(End::ServerGone) => {}
            Err(error) if is_lost(error) => {}
            _ => break outcome,
        }
        // The next server shows the screen again. None is started: this one may have been ended on purpose.
        find::wait_for_successor(&project, server)?;
        match find::find_running(&project)?.map(|entry| find::connect(&entry.socket)).transpose()? {
            Some(Some(next)) => {
                server = find::server_of(&next);
                stream = next;
            }
            _ => break Ok(End::ServerGone),
        }
    };
    drop(terminal);
    match outcome? {
        End::Detached => {
            print(&format!("detached from {id}; `patterm attach {id} --raw` attaches again"))
        }
        End::Exited(Some(code), _) => print(&format!("{id} exited with code {code}")),
        End::Exited(None, signal) => {
            print(&format!("{id} was killed by signal {}", signal.unwrap_or(0)))
        }
        End::ServerGone => anyhow::bail!("the server has ended"),
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
        attends: false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_known_by_the_name_of_its_folder() {
        let folders = ["/a/shop", "/b/shop", "/b/api"].map(PathBuf::from);
        assert_eq!(project_named("api", &folders).unwrap(), Some(&folders[2]));
        assert_eq!(project_named("ap", &folders).unwrap(), None);
        let error = project_named("shop", &folders).unwrap_err().to_string();
        assert_eq!(error, "several projects are called `shop`: /a/shop, /b/shop; give the path");
    }
}
