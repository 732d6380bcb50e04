//! The input of a server in a container: data, heartbeats in between, and its end, which the engine
//! must be told.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// How often a heartbeat is sent; the wrapper gives up after four times as long.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Bytes buffered on the way to the engine.
const BUFFER_BYTES: usize = 64 << 10;

/// A stream to write to. If the wrapper reads it, `first` is sent first and heartbeats follow.
pub(super) fn input<W>(to: W, first: Option<Vec<u8>>) -> DuplexStream
where
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (input, from) = duplex(BUFFER_BYTES);
    tokio::spawn(pass_on(from, to, first));
    input
}

async fn pass_on<W: AsyncWrite + Unpin>(mut from: DuplexStream, mut to: W, first: Option<Vec<u8>>) {
    let beats = first.is_some();
    if to.write_all(&first.unwrap_or_default()).await.is_err() {
        return;
    }
    let mut beat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut bytes = vec![0; BUFFER_BYTES];
    loop {
        let written = tokio::select! {
            biased;
            read = from.read(&mut bytes) => match read {
                Ok(read) if read > 0 => to.write_all(&bytes[..read]).await,
                _ => break,
            },
            _ = beat.tick(), if beats => to.write_all(&[0]).await,
        };
        if written.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn heartbeats_are_sent_while_idle_and_stop_with_the_input() {
        let (to, mut seen) = duplex(1 << 10);
        let mut input = input(to, Some(b"A=1\0".to_vec()));
        input.write_all(b"{}\n").await.unwrap();
        tokio::time::sleep(HEARTBEAT * 2 + HEARTBEAT / 2).await;
        drop(input);
        let mut all = Vec::new();
        seen.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"A=1\0{}\n\0\0");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_without_the_wrapper_gets_no_heartbeats() {
        let (to, mut seen) = duplex(1 << 10);
        let mut input = input(to, None);
        input.write_all(b"{}\n").await.unwrap();
        tokio::time::sleep(HEARTBEAT * 3).await;
        drop(input);
        let mut all = Vec::new();
        seen.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"{}\n");
    }
}
