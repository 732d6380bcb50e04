//! A request that only asks for the status. The body is never read, so a server that sends one without end costs
//! nothing.

use std::net::SocketAddr;
use std::pin::pin;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::project_file::ProbeUrl;

/// The most that is buffered of a response: its head must fit. hyper needs at least 8 KiB.
const HEAD_BYTES: usize = 16 << 10;

/// What answered a request.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: StatusCode,
    /// The address that answered, if it is one of this machine.
    pub(super) address: Option<SocketAddr>,
}

/// Requests a URL; returns the answer, or why there is none.
pub(super) async fn request(url: &ProbeUrl) -> Result<HttpAnswer, String> {
    let stream = TcpStream::connect((url.host.as_str(), url.port)).await;
    let stream = stream.map_err(|error| format!("cannot be reached: {error}"))?;
    let is_here = |at: &SocketAddr| {
        at.ip().is_loopback() || stream.local_addr().is_ok_and(|own| own.ip() == at.ip())
    };
    let address = stream.peer_addr().ok().filter(is_here);
    let no_answer = |error: hyper::Error| format!("does not answer in HTTP: {error}");
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(no_answer)?;
    let request = Request::get(&url.target)
        .header(HOST, &url.authority)
        .header(USER_AGENT, "patterm")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| format!("cannot be requested: {error}"))?;
    let mut response = pin!(sender.send_request(request));
    let response = tokio::select! {
        response = &mut response => response,
        // The connection may end with the response.
        _ = connection => response.await,
    };
    response.map(|response| HttpAnswer { status: response.status(), address }).map_err(no_answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// The status of a server that answers every request with these bytes, repeated without end if `endless`.
    async fn status(answer: &'static [u8], endless: bool) -> Result<u16, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let _ = stream.write_all(answer).await;
            while endless && stream.write_all(&[b'x'; 4096]).await.is_ok() {}
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let url = ProbeUrl {
            text: String::new(),
            host: "127.0.0.1".into(),
            port,
            authority: format!("127.0.0.1:{port}"),
            target: "/health?x=1".into(),
        };
        let status = request(&url).await.map(|answer| answer.status.as_u16());
        let sent = serving.await.unwrap();
        assert!(sent.starts_with("GET /health?x=1 HTTP/1.1\r\n"), "{sent}");
        assert!(sent.contains(&format!("host: 127.0.0.1:{port}\r\n")), "{sent}");
        status
    }

    #[tokio::test]
    async fn the_status_is_read_and_the_body_is_not() {
        assert_eq!(status(b"HTTP/1.1 204 No Content\r\n\r\n", false).await, Ok(204));
        assert_eq!(status(b"HTTP/1.0 503 Busy\r\n\r\nsorry", false).await, Ok(503));
        let early =
            b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(status(early, false).await, Ok(200));
        // This would not return if the body was read.
        assert_eq!(status(b"HTTP/1.1 200 OK\r\n\r\n", true).await, Ok(200));
    }

    #[tokio::test]
    async fn what_is_not_http_is_a_failure() {
        for (answer, endless) in [(&b""[..], false), (b"SSH-2.0-x\r\n", false), (b"", true)] {
            let why = status(answer, endless).await.unwrap_err();
            assert!(why.starts_with("does not answer in HTTP"), "{why}");
        }
        let endless_head = status(b"HTTP/1.1 200 OK\r\nx: ", true).await.unwrap_err();
        assert!(endless_head.starts_with("does not answer in HTTP"), "{endless_head}");
    }
}
