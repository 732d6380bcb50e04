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

/// A secret is sent, and nothing that anybody can read has it.
#[test]
fn headers_have_values_of_variables_that_nobody_sees() {
    let mut place = Place::new();
    place.set("HOOK_TOKEN", "s3cret-of-the-server");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::fs::write(place.path("project/.env"), "HOOK_KEY=s3cret-of-the-file\n").unwrap();
    let keys = format!(
        "[[hooks]]\non = ['process.exited']\nname = 'post'\npost = 'http://127.0.0.1:{port}/'\nenv_file = '.env'\n"
    );
    let headers = "{ Authorization = 'Bearer ${HOOK_TOKEN}', X-Key = '${HOOK_KEY}', X-None = '${NONE:-none}' }";
    configure(&place, &format!("{keys}headers = {headers}\n"));
    let server = place.serve();
    let mut tools = ToolClient::at(&server.socket());
    exit_once(&mut tools);
    let close = "content-length: 0\r\nconnection: close\r\n\r\n";
    let (head, body) = take(&listener, &format!("HTTP/1.1 200 OK\r\n{close}"));
    for header in
        ["authorization: bearer s3cret-of-the-server", "x-key: s3cret-of-the-file", "x-none: none"]
    {
        assert!(head.contains(&format!("\r\n{header}\r\n")), "{header}: {head}");
    }
    hook_until(&mut tools, "post", |hook| hook["fired"] == 1);
    // Without the file there is no value; the failure is reported without the others.
    std::fs::remove_file(place.path("project/.env")).unwrap();
    exit_once(&mut tools);
    hook_until(&mut tools, "post", |hook| hook["failures"] == 1);
    std::fs::write(place.path("project/.env"), "OTHER=1\n").unwrap();
    exit_once(&mut tools);
    let failing = hook_until(&mut tools, "post", |hook| hook["failures"] == 2);
    let error = failing["last_error"].as_str().unwrap();
    assert!(error.contains("`X-Key`") && error.contains("`HOOK_KEY`"), "{error}");
    let mut seen = body.to_string();
    for arguments in
        [&["hooks", "--json"][..], &["ps", "--json"], &["doctor", "--json"], &["events", "--json"]]
    {
        let output = place.patterm(arguments).output().unwrap();
        seen.push_str(&String::from_utf8_lossy(&output.stdout));
        seen.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    let state = place.state().file("server.log");
    seen.push_str(&std::fs::read_to_string(state).unwrap());
    assert!(seen.contains("HOOK_KEY") && !seen.contains("s3cret"), "{seen}");
}
