//! Hooks that send requests.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::{configure, events, exit_once, hook_until};
use crate::support::Place;
use crate::support::tool_client::ToolClient;

/// Takes one request and answers it; returns its head and its body.
fn take(listener: &TcpListener, answer: &str) -> (String, Value) {
    let (stream, _) = listener.accept().unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    stream.get_mut().write_all(answer.as_bytes()).unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

fn post_to(place: &Place, port: u16) {
    let text = format!(
        "[[hooks]]\non = ['process.exited']\nname = 'post'\npost = 'http://127.0.0.1:{port}/secret'\n"
    );
    configure(place, &text);
}

#[test]
fn a_host_that_was_down_gets_what_happened_when_it_is_back() {
    let place = Place::new();
    // Nobody listens, but the port stays ours.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    post_to(&place, port);
    let server = place.serve_in_process();
    let mut tools = ToolClient::of(&server);
    exit_once(&mut tools);
    exit_once(&mut tools);
    let down = hook_until(&mut tools, "post", |hook| hook["failing"] == true);
    let error = down["last_error"].as_str().unwrap();
    assert!(error.starts_with("127.0.0.1 cannot be reached: "), "{error}");
    assert!(!down.to_string().contains("secret"), "{down}");
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let close = "content-length: 0\r\nconnection: close\r\n\r\n";
    // A host that is up again may not work at once.
    let busy = take(&listener, &format!("HTTP/1.1 503 Busy\r\n{close}"));
    let first = take(&listener, &format!("HTTP/1.1 204 No Content\r\n{close}"));
    let second = take(&listener, &format!("HTTP/1.1 200 OK\r\n{close}"));
    assert_eq!(busy.1, first.1);
    for member in
        ["content-type: application/json", "post /secret http/1.1", "user-agent: patterm/"]
    {
        assert!(first.0.contains(member), "{member}: {}", first.0);
    }
    let sent = json!([first.1["seq"], second.1["seq"]]);
    let exits: Vec<_> =
        events(&mut tools, "process.exited").iter().map(|e| e["seq"].clone()).collect();
    assert_eq!(sent, json!(exits));
    let up = hook_until(&mut tools, "post", |hook| hook["fired"] == 2);
    assert_eq!(
        (&up["failing"], &up["failures"], &up["dropped"]),
        (&json!(false), &json!(0), &json!(0))
    );
    assert_eq!(events(&mut tools, "hook.failed").len(), 1);
}

#[test]
fn a_redirect_is_not_followed() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    post_to(&place, listener.local_addr().unwrap().port());
    let server = place.serve_in_process();
    let mut tools = ToolClient::of(&server);
    exit_once(&mut tools);
    let to = other.local_addr().unwrap();
    let answer = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{to}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    take(&listener, &answer);
    let failed = hook_until(&mut tools, "post", |hook| hook["failures"] == 1);
    assert!(
        failed["last_error"].as_str().unwrap().contains("redirects are not followed"),
        "{failed}"
    );
    for nobody in [listener, other] {
        nobody.set_nonblocking(true).unwrap();
        assert_eq!(nobody.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
