//! Reads of a client's stream that leave time for other tasks.

use std::io;

use tokio::net::UnixStream;

/// Waits for bytes and reads them; 0 at the end of the stream. All connections share one thread, and a stream to which
/// the client writes without a pause is always readable, so each read is counted. Nothing is lost if this is
/// cancelled.
pub(super) async fn read_fairly(stream: &UnixStream, into: &mut [u8]) -> io::Result<usize> {
    loop {
        tokio::task::consume_budget().await;
        stream.readable().await?;
        match stream.try_read(into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_writes_without_a_pause_leaves_time_for_other_tasks() {
        let (client, server) = UnixStream::pair().unwrap();
        client.writable().await.unwrap();
        let mut written = 0;
        while let Ok(bytes) = client.try_write(&[b'x'; 4096]) {
            written += bytes;
        }
        server.readable().await.unwrap();
        let mut read = 0;
        let reads = async {
            loop {
                read += read_fairly(&server, &mut [0; 64]).await.unwrap();
            }
        };
        tokio::select! {
            biased;
            () = reads => {}
            () = std::future::ready(()) => {}
        }
        assert!((1..written).contains(&read), "read {read} of {written} bytes");
    }
}
