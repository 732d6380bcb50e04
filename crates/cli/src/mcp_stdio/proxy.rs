//! The loop: it waits for the client, the server and signals, and never blocks on one of them.

use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Target;
use super::client::Client;
use super::link::Link;
use super::output::ClientOutput;
use super::relay::Relay;
use super::watch::Watch;

/// If this many bytes wait for one side, the other is not read.
const WAITING_BYTES: usize = 8 << 20;

/// How long the last responses may take: a little more than the server's own limit of 5 s.
const ENDING_PATIENCE: Duration = Duration::from_secs(7);

pub(super) struct Proxy {
    client: Client,
    relay: Relay,
    watch: Watch,
    /// Set once nothing more is read from the client: when to give up.
    ending: Option<Instant>,
}

/// What is ready.
#[derive(Debug, Default, PartialEq)]
struct Ready {
    client: bool,
    client_gone: bool,
    server: bool,
    starter: bool,
    end: bool,
}

/// What a descriptor belongs to.
#[derive(Clone, Copy)]
enum Source {
    Input,
    Output,
    Server,
    Starter,
    End,
}

impl Proxy {
    pub(super) fn new(target: Target, output: ClientOutput) -> anyhow::Result<Self> {
        let client = Client::new(output, target.message_bytes);
        Ok(Self { client, relay: Relay::new(target), watch: Watch::begin()?, ending: None })
    }

    /// Relays until the client has ended and everything is answered.
    pub(super) fn run(mut self) -> anyhow::Result<ExitCode> {
        loop {
            self.relay.send(self.ending.is_some());
            for body in self.relay.take_answers() {
                self.client.write(&body);
            }
            // The client no longer reads.
            if self.client.output.flush().is_err() {
                return Ok(ExitCode::SUCCESS);
            }
            if let Some(code) = self.finished() {
                return Ok(code);
            }
            let ready = self.wait()?;
            if ready.client_gone {
                return Ok(ExitCode::SUCCESS);
            }
            if ready.server {
                self.relay.read_server();
            }
            if ready.starter {
                self.relay.read_starter();
            }
            let relay = &mut self.relay;
            if ready.client && !self.client.read(|frame| relay.take(frame)) || ready.end {
                self.ending.get_or_insert_with(|| Instant::now() + ENDING_PATIENCE);
            }
        }
    }

    /// The exit code, once there is nothing left to do or to wait for.
    fn finished(&mut self) -> Option<ExitCode> {
        let late = Instant::now() >= self.ending?;
        if late {
            self.relay.give_up();
            for body in self.relay.take_answers() {
                self.client.write(&body);
            }
            let _ = self.client.output.flush();
        }
        let done = self.relay.is_done() && self.client.output.len() == 0;
        (done || late).then_some(match self.relay.link {
            Link::Refused(_) => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        })
    }

    /// Waits until something is ready, or for the deadline.
    fn wait(&self) -> anyhow::Result<Ready> {
        let watched = self.watched();
        let mut polled: Vec<_> =
            watched.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let patience = self.ending.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
        });
        let mut ready = Ready::default();
        match poll(&mut polled, patience.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(ready),
            Err(error) => return Err(error.into()),
        }
        for ((source, ..), polled) in watched.iter().zip(&polled) {
            let seen = polled.revents();
            let any = !seen.is_empty();
            match source {
                Source::Input => ready.client |= any,
                Source::Output => {
                    ready.client_gone |= seen.intersects(PollFlags::ERR | PollFlags::HUP);
                }
                Source::Server => ready.server |= seen.intersects(!PollFlags::OUT),
                Source::Starter => ready.starter |= any,
                Source::End => ready.end |= any,
            }
        }
        Ok(ready)
    }

    fn watched(&self) -> Vec<(Source, BorrowedFd<'_>, PollFlags)> {
        let room = self.client.output.len() < WAITING_BYTES;
        let when = |wanted: bool, flag: PollFlags| if wanted { flag } else { PollFlags::empty() };
        let output_flags = when(self.client.output.len() > 0, PollFlags::OUT);
        let mut watched = Vec::with_capacity(6);
        watched.push((Source::Output, self.client.output.descriptor(), output_flags));
        if self.ending.is_none() {
            if room && self.relay.queued_bytes() < WAITING_BYTES {
                watched.push((Source::Input, rustix::stdio::stdin(), PollFlags::IN));
            }
            watched.push((Source::End, self.watch.terminate(), PollFlags::IN));
            watched.extend(self.watch.parent().map(|parent| (Source::End, parent, PollFlags::IN)));
        }
        match &self.relay.link {
            Link::Up(connection) => {
                let flags =
                    when(room, PollFlags::IN) | when(self.relay.has_to_send(), PollFlags::OUT);
                watched.push((Source::Server, connection.descriptor(), flags));
            }
            Link::Starting(starter) => {
                watched.extend(
                    starter.stdout.as_ref().map(|o| (Source::Starter, o.as_fd(), PollFlags::IN)),
                );
            }
            Link::Down | Link::Refused(_) => {}
        }
        watched
    }
}
