//! Servers on this machine: programs started by the keeper, with pipes instead of a terminal.
//! Whatever happens to patterm's server, the keeper knows them and ends them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use patterm_keeper::{Exit, Pane, PaneEvent, Program, SpawnError};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Backend, BoxFuture, Channel, ServerControl, ServerExit};
use crate::error::{GatewayError, GatewayErrorKind};

/// How long a server may take to exit after its input was closed.
const GRACE: Duration = Duration::from_secs(1);

/// How long it may take after SIGTERM before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// How long its last process may take to disappear: the kernel needs a moment after SIGKILL.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(5);

/// Starts programs.
pub trait Spawner: Send + Sync + std::fmt::Debug {
    /// Starts a program with these as its standard input, output and error.
    fn spawn(
        &self,
        program: Program,
        streams: [OwnedFd; 3],
    ) -> BoxFuture<Result<Spawned, SpawnError>>;

    /// Drops a pane, with everything in it.
    fn forget(&self, name: String) -> BoxFuture<()>;
}

/// A program that was started.
#[derive(Debug)]
pub struct Spawned {
    /// The name of its pane.
    pub name: String,
    /// Its pane.
    pub pane: Arc<Pane>,
}

/// A server that is a program on this machine.
#[derive(Debug, Clone)]
pub struct Local {
    /// The program.
    pub program: Program,
    /// Starts it.
    pub spawner: Arc<dyn Spawner>,
}

impl Backend for Local {
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>> {
        let (program, spawner) = (self.program.clone(), self.spawner.clone());
        Box::pin(async move {
            let name = program.argv.first().cloned().unwrap_or_default();
            let refuse = |why: &dyn std::fmt::Display| {
                let message = format!("`{name}` cannot be started: {why}");
                GatewayError::new(GatewayErrorKind::Unavailable, message)
            };
            let system = |e: std::io::Error| refuse(&e);
            let (read, input) = std::io::pipe().map_err(system)?;
            let (output, write) = std::io::pipe().map_err(system)?;
            let (errors, write_errors) = std::io::pipe().map_err(system)?;
            let input = pipe::Sender::from_owned_fd(input.into()).map_err(system)?;
            let output = pipe::Receiver::from_owned_fd(output.into()).map_err(system)?;
            let errors = pipe::Receiver::from_owned_fd(errors.into()).map_err(system)?;
            let streams = [read.into(), write.into(), write_errors.into()];
            let spawned = spawner.spawn(program, streams).await.map_err(|e| refuse(&e))?;
            let pid = spawned.pane.status().ok().flatten().map(|status| status.program);
            let control = LocalControl::begin(spawned, spawner).map_err(system)?;
            Ok(Channel {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(errors),
                pid,
                control: Box::new(control),
            })
        })
    }
}

/// The state of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProcessState {
    exit: Option<Exit>,
    empty: bool,
}

struct LocalControl {
    spawned: Arc<Spawned>,
    spawner: Arc<dyn Spawner>,
    state: watch::Receiver<ProcessState>,
}

impl LocalControl {
    fn begin(spawned: Spawned, spawner: Arc<dyn Spawner>) -> std::io::Result<Self> {
        let spawned = Arc::new(spawned);
        let events = spawned.pane.events().as_fd().try_clone_to_owned()?;
        // A socket of packets, used as a datagram socket: only its readiness matters.
        let events = std::os::unix::net::UnixDatagram::from(events);
        events.set_nonblocking(true)?;
        let events = UnixDatagram::from_std(events)?;
        let (sender, state) = watch::channel(ProcessState::default());
        tokio::spawn(follow(spawned.clone(), events, sender));
        Ok(Self { spawned, spawner, state })
    }
}

/// Follows a program until nothing that it started is left.
async fn follow(spawned: Arc<Spawned>, events: UnixDatagram, sender: watch::Sender<ProcessState>) {
    loop {
        let event = spawned.pane.next_event();
        let status = spawned.pane.status().ok().flatten();
        let gone = event == PaneEvent::Gone;
        let exit = status.and_then(|status| status.exit);
        let empty = gone || status.is_some_and(|status| status.empty);
        sender.send_replace(ProcessState { exit, empty });
        if empty {
            return;
        }
        if event == PaneEvent::Quiet {
            // A read that finds nothing clears spurious readiness.
            let changed = events.async_io(Interest::READABLE, || match spawned.pane.next_event() {
                PaneEvent::Quiet => Err(std::io::ErrorKind::WouldBlock.into()),
                event => Ok(event),
            });
            let Ok(_) = changed.await else { return };
        }
    }
}

impl ServerControl for LocalControl {
    fn wait(&self) -> BoxFuture<ServerExit> {
        let mut state = self.state.clone();
        Box::pin(async move {
            let ended = state.wait_for(|state| state.exit.is_some() || state.empty).await;
            match ended.ok().and_then(|state| state.exit) {
                Some(Exit::Code(code)) => ServerExit::Code(code.into()),
                Some(Exit::Signal(signal)) => ServerExit::Signal(signal),
                None => ServerExit::unknown(),
            }
        })
    }

    fn end(&self) -> BoxFuture<()> {
        let (mut state, spawned) = (self.state.clone(), self.spawned.clone());
        let spawner = self.spawner.clone();
        Box::pin(async move {
            let exited = state.wait_for(|state| state.exit.is_some() || state.empty);
            let by_itself = timeout(GRACE, exited).await.is_ok();
            let grace = if by_itself { Duration::ZERO } else { STOP_GRACE };
            // Processes that it left behind are ended as well.
            let _ = spawned.pane.stop(SIGTERM, grace);
            let _ = timeout(EMPTY_TIMEOUT, state.wait_for(|state| state.empty)).await;
            spawner.forget(spawned.name.clone()).await;
        })
    }
}

const SIGTERM: i32 = 15;
