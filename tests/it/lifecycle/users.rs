//! The socket is for one user, even where file modes would let others in.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Place, User};

/// Opens a folder or socket for everybody.
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
fn another_user_is_not_served_even_where_modes_let_it_in() {
    let place = Place::new();
    let server = place.serve();
    for path in [place.path(""), place.path("run"), place.path("run/patterm"), server.socket()] {
        open_to_all(&path);
    }
    let user = User::reserve();
    let ping = format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    let said = user.does(|| {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        // It may be turned away before it has said anything.
        let _ = stream.write_all(ping.as_bytes());
        let mut said = Vec::new();
        let mut buffer = [0; 4096];
        // The end may come as a reset, since what was sent is never read.
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            said.extend_from_slice(&buffer[..bytes]);
        }
        said
    });
    let answer: Value = serde_json::from_slice(&said).expect("one line and no more");
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

    // Its owner is served as ever.
    let mut own = UnixStream::connect(server.socket()).unwrap();
    own.write_all(ping.as_bytes()).unwrap();
    own.shutdown(std::net::Shutdown::Write).unwrap();
    let mut said = String::new();
    own.read_to_string(&mut said).unwrap();
    assert_eq!(said, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}
