//! Commands from the server to an init, as packets of a fixed size.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags, recv, send};

/// A command to an init.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitCommand {
    /// Sends a signal to the program's process group only.
    Signal(i32),
    /// Sends the signal, and ends everything after the grace period.
    Stop {
        /// The first signal.
        signal: i32,
        /// How long the program may take.
        grace: Duration,
    },
    /// Ends everything now.
    Kill,
}

const SIZE: usize = 12;

impl InitCommand {
    fn encode(self) -> [u8; SIZE] {
        let (kind, signal, grace) = match self {
            Self::Signal(signal) => (1i32, signal, 0),
            Self::Stop { signal, grace } => {
                (2, signal, u32::try_from(grace.as_millis()).unwrap_or(u32::MAX))
            }
            Self::Kill => (3, 0, 0),
        };
        let mut packet = [0; SIZE];
        packet[..4].copy_from_slice(&kind.to_ne_bytes());
        packet[4..8].copy_from_slice(&signal.to_ne_bytes());
        packet[8..].copy_from_slice(&grace.to_ne_bytes());
        packet
    }

    fn decode(packet: [u8; SIZE]) -> Option<Self> {
        let word = |n: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&packet[n * 4..n * 4 + 4]);
            word
        };
        let signal = i32::from_ne_bytes(word(1));
        match i32::from_ne_bytes(word(0)) {
            1 => Some(Self::Signal(signal)),
            2 => {
                let grace = Duration::from_millis(u32::from_ne_bytes(word(2)).into());
                Some(Self::Stop { signal, grace })
            }
            3 => Some(Self::Kill),
            _ => None,
        }
    }

    /// Sends the command; an error means that the init is gone.
    pub(crate) fn send(self, socket: impl AsFd) -> rustix::io::Result<()> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        send(socket, &self.encode(), flags).map(drop)
    }
}

/// What an init finds on its socket.
pub(crate) enum ControlEvent {
    Command(InitCommand),
    Nothing,
    /// The other end is closed.
    Closed,
}

/// Receives the next command, if there is one.
pub(crate) fn receive(socket: impl AsFd) -> ControlEvent {
    let mut packet = [0; SIZE];
    match recv(socket, &mut packet, RecvFlags::DONTWAIT) {
        Ok((_, 0)) => ControlEvent::Closed,
        Ok(_) => InitCommand::decode(packet).map_or(ControlEvent::Nothing, ControlEvent::Command),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => ControlEvent::Nothing,
        Err(_) => ControlEvent::Closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_decoded_as_they_were_encoded() {
        for command in [
            InitCommand::Signal(15),
            InitCommand::Stop { signal: 2, grace: Duration::from_millis(1_500) },
            InitCommand::Kill,
        ] {
            assert_eq!(InitCommand::decode(command.encode()), Some(command));
        }
    }
}
