//! Accepts connections and routes requests: the number of connections and the time for headers are
//! limited, and every path has one handler. It does not check tokens and reads no bodies; handlers
//! do, in this order.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{Method, Request, StatusCode, header};
use axum::response::Response;
use hyper::rt::{Sleep, Timer};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::context::{HttpContext, NATIVE};
use super::response::{empty, not_allowed};
use super::{bots, cors, events, lane, mcp, monitor};

/// How long a connection that is being closed may take to finish its response.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Accepts connections, limited in number, until `end` is cancelled; then lets responses finish.
pub(super) async fn accept(listener: TcpListener, context: HttpContext, end: CancellationToken) {
    let connections = context.config().limits.connections;
    let room = Arc::new(Semaphore::new(connections));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = end.cancelled() => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors: other connections must end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (context, end) = (context.clone(), end.clone());
        tokio::spawn(async move {
            let mut connection = pin!(lane::serve(stream, context, end.clone()));
            if unless_ended(connection.as_mut(), &end).await.is_none() {
                let _ = tokio::time::timeout(END_TIMEOUT, connection).await;
            }
            drop(permit);
        });
    }
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(END_TIMEOUT, room.acquire_many(all.saturating_sub(1))).await;
}

/// Runs a future until `end` is cancelled; `None` then. A call polls this twice, and polling the token
/// costs more than asking it.
async fn unless_ended<F: Future>(
    mut future: Pin<&mut F>,
    end: &CancellationToken,
) -> Option<F::Output> {
    let mut ended = pin!(end.cancelled());
    let mut is_watched = false;
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        // A task is always polled with the same waker, so one registration is enough to be woken.
        if !is_watched || end.is_cancelled() {
            is_watched = true;
            return ended.as_mut().poll(context).map(|()| None);
        }
        Poll::Pending
    })
    .await
}

/// Lets hyper serve one request of a connection, of which these bytes were read already.
pub(super) async fn hand_over(
    stream: TcpStream,
    read: Vec<u8>,
    context: HttpContext,
    end: CancellationToken,
) {
    let header_timeout = context.config().limits.header_timeout;
    let service = service_fn(move |request| dispatch(context.clone(), request));
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(HeaderTimer::default()).header_read_timeout(header_timeout).keep_alive(false);
    let stream = PrefixedStream { read, at: 0, stream };
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        biased;
        _ = connection.as_mut() => {}
        () = end.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// A request body.
pub(super) trait RequestBody:
    hyper::body::Body<Data = Bytes, Error: Into<axum::BoxError>> + Send
{
}

impl<B: hyper::body::Body<Data = Bytes, Error: Into<axum::BoxError>> + Send> RequestBody for B {}

/// What a path refers to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    Servers,
    Metrics,
    Events,
    /// The MCP endpoint of a server.
    Mcp(String),
    /// Anything below `/bots`.
    Bots,
    Nothing,
}

impl Route {
    pub(super) fn of(path: &str) -> Self {
        match path {
            "/mcp" => Self::Mcp(NATIVE.to_owned()),
            "/healthz" => Self::Health,
            "/servers" => Self::Servers,
            "/metrics" => Self::Metrics,
            "/events" => Self::Events,
            "/bots" => Self::Bots,
            _ if path.starts_with("/bots/") => Self::Bots,
            _ => named_server(path).map_or(Self::Nothing, Self::Mcp),
        }
    }

    /// The methods it has.
    fn methods(&self) -> &'static str {
        match self {
            Self::Mcp(_) => mcp::METHODS,
            Self::Bots => bots::METHODS,
            Self::Health | Self::Servers | Self::Metrics | Self::Events | Self::Nothing => {
                "GET, HEAD, OPTIONS"
            }
        }
    }
}

/// The server in `/servers/{name}/mcp`.
fn named_server(path: &str) -> Option<String> {
    let name = path.strip_prefix("/servers/")?.strip_suffix("/mcp")?;
    if name.is_empty() || name.contains('/') {
        return None;
    }
    // A name that cannot be decoded is the name of no server.
    Some(percent_decode(name).unwrap_or_else(|| name.to_owned()))
}

/// Percent-decodes a segment of a path.
pub(super) fn percent_decode(segment: &str) -> Option<String> {
    if !segment.contains('%') {
        return Some(segment.to_owned());
    }
    let mut bytes = Vec::new();
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let hex = std::str::from_utf8(&digits).ok().filter(|hex| !hex.starts_with('+'));
                u8::from_str_radix(hex?, 16).ok()?
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

/// Handles a request. Futures other than those of MCP calls are boxed: most requests are calls, and
/// each future is moved once.
pub(super) async fn dispatch<B: RequestBody + 'static>(
    context: HttpContext,
    request: Request<B>,
) -> Result<Response, Infallible> {
    let route = Route::of(request.uri().path());
    if request.method() == Method::OPTIONS && route != Route::Nothing {
        return Ok(cors::preflight(&context, &request, route.methods()));
    }
    let Some(origin) = request.headers().get(header::ORIGIN).cloned() else {
        return Ok(handle(context, route, request).await);
    };
    let mut response = Box::pin(handle(context.clone(), route, request)).await;
    cors::expose(&context, origin, &mut response);
    Ok(response)
}

async fn handle<B: RequestBody + 'static>(
    context: HttpContext,
    route: Route,
    request: Request<B>,
) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    match route {
        Route::Mcp(server) => mcp::serve(context, &server, request).await,
        Route::Bots => Box::pin(bots::serve(context, request)).await,
        Route::Nothing => empty(StatusCode::NOT_FOUND),
        _ if !is_read => not_allowed(route.methods()),
        Route::Health => monitor::healthz(),
        Route::Servers => monitor::servers(&context, request.uri(), request.headers()),
        Route::Metrics => monitor::metrics(&context, request.uri(), request.headers()),
        Route::Events => events::serve(&context, request.uri(), request.headers()),
    }
}

type IdleTimer = Option<Pin<Box<tokio::time::Sleep>>>;

/// The timeout for a request's headers, for hyper: one timer per connection, reset for each request
/// instead of created again. Holds the timer while it is not used.
#[derive(Debug, Clone, Default)]
struct HeaderTimer(Arc<Mutex<IdleTimer>>);

impl HeaderTimer {
    fn idle(&self) -> MutexGuard<'_, IdleTimer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timer for HeaderTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = deadline.into();
        let sleep = match self.idle().take() {
            Some(mut sleep) => {
                sleep.as_mut().reset(deadline);
                sleep
            }
            None => Box::pin(tokio::time::sleep_until(deadline)),
        };
        Box::pin(HeaderTimeout { timer: self.clone(), sleep: Some(sleep) })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// The timer while headers are read.
struct HeaderTimeout {
    timer: HeaderTimer,
    sleep: IdleTimer,
}

impl Sleep for HeaderTimeout {}

impl Future for HeaderTimeout {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().map_or(Poll::Ready(()), |sleep| sleep.as_mut().poll(context))
    }
}

impl Drop for HeaderTimeout {
    fn drop(&mut self) {
        *self.timer.idle() = self.sleep.take();
    }
}

/// A connection of which some bytes were read already.
struct PrefixedStream {
    read: Vec<u8>,
    /// How many of them were read again.
    at: usize,
    stream: TcpStream,
}

impl AsyncRead for PrefixedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let rest = self.read.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, into);
        }
        let count = rest.len().min(into.remaining());
        into.put_slice(&rest[..count]);
        self.at += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PrefixedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_one_handler() {
        let mcp = |name: &str| Route::Mcp(name.to_owned());
        for (path, route) in [
            ("/healthz", Route::Health),
            ("/servers", Route::Servers),
            ("/metrics", Route::Metrics),
            ("/mcp", mcp("patterm")),
            ("/servers/search/mcp", mcp("search")),
            ("/servers/my%20server/mcp", mcp("my server")),
            ("/servers/a%2Fb/mcp", mcp("a/b")),
            ("/servers/%zz/mcp", mcp("%zz")),
            ("/bots", Route::Bots),
            ("/bots/", Route::Bots),
            ("/bots/a/containers/b/mcp", Route::Bots),
            ("/", Route::Nothing),
            ("", Route::Nothing),
            ("*", Route::Nothing),
            ("/mcp/", Route::Nothing),
            ("/MCP", Route::Nothing),
            ("/servers/", Route::Nothing),
            ("/servers//mcp", Route::Nothing),
            ("/servers/mcp", Route::Nothing),
            ("/servers/a/b/mcp", Route::Nothing),
            ("/servers/a/mcp/", Route::Nothing),
            ("/botsy", Route::Nothing),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }
}
