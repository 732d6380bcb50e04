//! An HTTP server that answers as a test wants.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use rustix::net::{AddressFamily, SocketType};

/// Accept the request, and never answer.
pub(super) const SILENT: u16 = 0;

/// Answer with 200 and a body without end.
pub(super) const ENDLESS: u16 = 1;

/// A server on loopback; it ends with the test.
pub(super) struct Site {
    pub(super) port: u16,
    answer: Arc<AtomicU16>,
}

/// A port on loopback on which nothing listens. Nobody else gets it, except a server that binds to this very port and
/// allows addresses to be reused, as most do.
pub(super) struct ReservedPort {
    pub(super) port: u16,
    _socket: OwnedFd,
}

impl ReservedPort {
    pub(super) fn new() -> Self {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let bound = SocketAddrV4::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
        Self { port: bound.port(), _socket: socket }
    }
}

impl Site {
    /// A server that answers with this status.
    pub(super) fn with(status: u16) -> Self {
        Self::at(0, status)
    }

    /// The same on a port.
    pub(super) fn at(port: u16, status: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = Arc::new(AtomicU16::new(status));
        let (answers, silent) = (answer.clone(), Mutex::new(Vec::new()));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                match answers.load(Ordering::Relaxed) {
                    SILENT => silent.lock().unwrap().push(stream),
                    status => drop(std::thread::spawn(move || serve(stream, status))),
                }
            }
        });
        Self { port, answer }
    }

    /// Answers with this status from now on.
    pub(super) fn answer(&self, status: u16) {
        self.answer.store(status, Ordering::Relaxed);
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/health", self.port)
    }
}

fn serve(mut stream: TcpStream, status: u16) {
    let mut request = [0; 1024];
    let _ = stream.read(&mut request);
    let code = if status == ENDLESS { 200 } else { status };
    let _ = write!(stream, "HTTP/1.1 {code} x\r\nConnection: close\r\n\r\n");
    while status == ENDLESS && stream.write_all(&[b'x'; 4096]).is_ok() {}
}
