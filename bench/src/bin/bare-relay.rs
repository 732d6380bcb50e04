//! The upper bound: a minimal relay between HTTP and a server on pipes. It swaps ids, so that callers do
//! not get each other's responses, and does nothing else: no token, no session, no limits, no
//! inspection. Arguments: the server, and how many of it; the last number in a path says which. Prints its
//! port.

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::Write;
use std::process::Stdio;
use std::rc::Rc;

use anyhow::Context;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, oneshot};

/// A caller's id, and the channel to the caller.
type Waiting = (Vec<u8>, oneshot::Sender<Vec<u8>>);

#[derive(Default)]
struct Table {
    waiting: RefCell<HashMap<u64, Waiting>>,
    last: RefCell<u64>,
    queue: RefCell<Vec<u8>>,
    bell: Notify,
}

/// A message around the value of its `id`.
fn around_id(message: &[u8]) -> Option<[&[u8]; 3]> {
    let start = memchr::memmem::find(message, b"\"id\":")? + 5;
    let end = start + message[start..].iter().position(|byte| matches!(byte, b',' | b'}'))?;
    Some([&message[..start], &message[start..end], &message[end..]])
}

async fn relay(table: Rc<Table>, request: Request<Incoming>) -> anyhow::Result<Vec<u8>> {
    let body = request.into_body().collect().await?.to_bytes();
    let [before, id, after] = around_id(&body).context("a notification")?;
    let own = *table.last.borrow() + 1;
    table.last.replace(own);
    let (reply, answer) = oneshot::channel();
    table.waiting.borrow_mut().insert(own, (id.to_vec(), reply));
    let own = own.to_string();
    for part in [before, own.as_bytes(), after, b"\n"] {
        table.queue.borrow_mut().extend_from_slice(part);
    }
    table.bell.notify_one();
    Ok(answer.await?)
}

async fn write(table: Rc<Table>, mut input: pipe::Sender) -> anyhow::Result<()> {
    loop {
        let bytes = table.queue.take();
        match bytes.is_empty() {
            true => table.bell.notified().await,
            false => input.write_all(&bytes).await?,
        }
    }
}

async fn listen(table: Rc<Table>, mut output: pipe::Receiver) -> anyhow::Result<()> {
    let (mut bytes, mut held) = (vec![0; 1 << 16], Vec::new());
    loop {
        let read = output.read(&mut bytes).await?;
        anyhow::ensure!(read > 0, "the server ended");
        held.extend_from_slice(&bytes[..read]);
        let whole = memchr::memrchr(b'\n', &held).map_or(0, |end| end + 1);
        for line in held[..whole].split(|byte| *byte == b'\n') {
            let Some([before, own, after]) = around_id(line) else { continue };
            let own = std::str::from_utf8(own)?.parse()?;
            if let Some((id, reply)) = table.waiting.borrow_mut().remove(&own) {
                let _ = reply.send([before, &id, after].concat());
            }
        }
        held.drain(..whole);
    }
}

/// Starts a server.
fn start(server: &str) -> anyhow::Result<Rc<Table>> {
    #[expect(clippy::disallowed_methods, reason = "benchmarks start what they measure")]
    let mut command = std::process::Command::new(server);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let input = child.stdin.take().context("no input")?;
    let output = child.stdout.take().context("no output")?;
    let table = Rc::<Table>::default();
    tokio::task::spawn_local(write(table.clone(), pipe::Sender::from_owned_fd(input.into())?));
    tokio::task::spawn_local(listen(table.clone(), pipe::Receiver::from_owned_fd(output.into())?));
    Ok(table)
}

/// The server that a path names.
fn server_of(tables: &[Rc<Table>], path: &str) -> Rc<Table> {
    let digits = path.bytes().filter(u8::is_ascii_digit);
    let number = digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
    tables[number % tables.len()].clone()
}

async fn serve() -> anyhow::Result<()> {
    let server = std::env::args().nth(1).context("no server is named")?;
    let count = std::env::args().nth(2).map_or(Ok(1), |count| count.parse::<usize>())?;
    let tables: anyhow::Result<Vec<_>> = (0..count).map(|_| start(&server)).collect();
    let tables = Rc::new(tables?);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let tables = tables.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let table = server_of(&tables, request.uri().path());
            async move {
                // A message without an id is a notification; accept it.
                let answer = relay(table, request).await.unwrap_or_default();
                let mut response = Response::new(Full::new(Bytes::from(answer)));
                let kind = hyper::header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
                Ok::<_, Infallible>(response)
            }
        });
        let http = hyper::server::conn::http1::Builder::new();
        tokio::task::spawn_local(http.serve_connection(TokioIo::new(stream), service));
    }
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, serve())
}
