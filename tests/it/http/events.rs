//! `GET /events`: the project's events as a stream that a client can resume.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::raw::Client;
use super::{call, new_token, open};
use crate::support::Place;

/// Reads events from a stream: their ids and texts.
struct Events(BufReader<TcpStream>);

impl Events {
    fn begin(client: &Client, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut events = Self(BufReader::new(client.begin("GET", path, headers, "")));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(events.0.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.to_lowercase().contains("content-type: text/event-stream"), "{head}");
        events
    }

    fn next(&mut self) -> Option<(u64, Value)> {
        let mut id = None;
        let mut line = String::new();
        while self.0.read_line(&mut line).ok()? > 0 {
            if let Some(given) = line.strip_prefix("id: ") {
                id = given.trim().parse().ok();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((id?, serde_json::from_str(data).unwrap()));
            }
            line.clear();
        }
        None
    }
}

fn write(client: &Client, pad: &str) {
    let arguments = json!({"name": pad, "content": "x"});
    assert_eq!(client.own(&call(1, "scratchpad_write", arguments)).status, 200);
}

#[test]
fn a_client_that_connects_again_misses_no_event() {
    let place = Place::new();
    let (_server, client) = open(&place);
    write(&client, "first");
    let mut events = Events::begin(&client, "/events?since=1", &[]);
    let mut last = 0;
    let pad = loop {
        let (id, event) = events.next().unwrap();
        assert_eq!((id, &event["seq"]), (last + 1, &json!(id)));
        last = id;
        if event["type"] == "pad.created" {
            break event;
        }
    };
    assert_eq!(pad["actor"], json!({"kind": "token", "name": "test"}));
    drop(events);
    write(&client, "second");
    let mut events = Events::begin(&client, "/events", &[("Last-Event-ID", &last.to_string())]);
    let mut next = || events.next().unwrap();
    assert_eq!(next().0, last + 1);
    let second = std::iter::repeat_with(next).find(|(_, event)| event["type"] == "pad.created");
    assert_eq!(second.unwrap().1["data"]["name"], "second");
}

#[test]
fn a_token_needs_the_right_and_keeps_it() {
    let place = Place::new();
    let (_server, client) = open(&place);
    let with = |arguments: &[&str]| Client::new(client.address, &new_token(&place, arguments));
    let status = |client: &Client| client.send("GET", "/events", &[], "").status;
    assert_eq!(status(&Client::new(client.address, "no")), 401);
    assert_eq!(status(&with(&["other", "--servers", "search"])), 403);
    assert_eq!(status(&with(&["few", "--servers", "patterm", "--tools", "list_*"])), 403);
    let reader = with(&["reader", "--servers", "patterm", "--tools", "get_*", "--read-only"]);
    let mut events = Events::begin(&reader, "/events?since=1", &[]);
    assert_eq!(events.next().unwrap().1["type"], "system.started");
    place.run(&["token", "revoke", "reader"]);
    while events.next().is_some() {}
    assert_eq!(status(&reader), 401);
    let wrong = client.send("GET", "/events?since=soon", &[], "");
    assert_eq!(wrong.status, 400, "{wrong:?}");
}
