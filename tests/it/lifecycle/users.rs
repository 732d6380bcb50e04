//! The socket is for one user, even if file modes would admit others.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Place, User};

/// Makes a folder or socket accessible to everyone.
fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
}

#[test]
fn another_user_cannot_reach_the_socket() {
    let place = Place::new();
    let server = place.serve();
    open_to_all(&place.path(""));
    open_to_all(&place.path("run"));
    let user = User::reserve();
    let refused = || user.does(|| UnixStream::connect(server.socket()).unwrap_err().kind());
    assert_eq!(refused(), std::io::ErrorKind::PermissionDenied, "the folder is closed");
    open_to_all(&place.path("run/patterm"));
    assert_eq!(refused(), std::io::ErrorKind::PermissionDenied, "the socket is closed");
}

#[test]
fn another_user_is_not_served_even_if_the_modes_allow_it() {
    let place = Place::new();
    let server = place.serve();
    for path in [place.path(""), place.path("run"), place.path("run/patterm"), server.socket()] {
        open_to_all(&path);
    }
    let user = User::reserve();
    let ping = format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    let received = user.does(|| {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        // It may be refused before it has sent anything.
        let _ = stream.write_all(ping.as_bytes());
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        // The end may come as a reset, since what was sent is never read.
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            received.extend_from_slice(&buffer[..bytes]);
        }
        received
    });
    let answer: Value = serde_json::from_slice(&received).expect("one line and no more");
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000,
            "message": "this server belongs to another user"}})
    );
    let log = std::fs::read_to_string(place.state().file("server.log")).unwrap();
    assert!(
        log.contains(&format!("another user's connection was refused uid={}", user.uid)),
        "{log}"
    );

    // Its owner is still served.
    let mut own = UnixStream::connect(server.socket()).unwrap();
    own.write_all(ping.as_bytes()).unwrap();
    own.shutdown(std::net::Shutdown::Write).unwrap();
    let mut received = String::new();
    own.read_to_string(&mut received).unwrap();
    assert_eq!(received, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}
