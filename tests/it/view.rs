//! Views: a snapshot of the screen, then the output as it arrives; several of them, of any size, at
//! any pace.

use patterm_wire::Method;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use patterm_screen::{Screen, Size};
use patterm_wire::Framing;
use patterm_wire::view::{self, FromView, ToView, ViewDecoder, ViewSize};
use serde_json::{Value, json};

use crate::support::{Peer, Place, Serving, Transport};

const SOCKET: Transport = Transport::Socket(Framing::Newline);

/// A view with its own screen, like the TUI's.
pub(crate) struct View {
    stream: UnixStream,
    decoder: ViewDecoder,
    pub(crate) screen: Screen,
    /// The number of snapshots received.
    snapshots: usize,
    ended: Option<(Option<i32>, Option<i32>)>,
}

impl View {
    /// Requests to be attached; returns the response and the stream.
    fn ask(socket: &Path, params: &Value) -> (Value, UnixStream) {
        let mut stream = UnixStream::connect(socket).unwrap();
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": view::View::NAME, "params": params});
        stream.write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\n") {
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "an answer comes first");
            line.push(byte[0]);
        }
        (serde_json::from_slice(&line).unwrap(), stream)
    }

    fn attach(server: &Serving, id: &str, rows: u16, columns: u16) -> Self {
        Self::attach_at(server.socket(), id, rows, columns)
    }

    pub(crate) fn attach_at(socket: &Path, id: &str, rows: u16, columns: u16) -> Self {
        Self::attach_with(socket, id, Size::new(rows, columns), "smallest")
    }

    fn attach_with(socket: &Path, id: &str, size: Size, sizes: &str) -> Self {
        let more = json!({"sizes": sizes});
        Self::attach_as(socket, id, size, more)
    }

    fn attach_as(socket: &Path, id: &str, size: Size, mut params: Value) -> Self {
        let (rows, columns) = (size.rows, size.columns);
        params["version"] = view::VERSION.into();
        params["process_id"] = id.into();
        (params["rows"], params["columns"]) = (rows.into(), columns.into());
        let (answer, stream) = Self::ask(socket, &params);
        assert_eq!(answer["result"]["version"], view::VERSION, "{answer}");
        Self {
            stream,
            decoder: ViewDecoder::default(),
            screen: Screen::new(Size::new(rows, columns)),
            snapshots: 0,
            ended: None,
        }
    }

    /// Reads frames until the view's screen matches.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Self) -> bool) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            while let Some(frame) = self.decoder.next_to_view().unwrap() {
                self.take(frame);
            }
            if wanted(self) {
                return;
            }
            let bytes = self.stream.read(&mut buffer).unwrap();
            assert!(bytes > 0, "the server ended the view");
            self.decoder.feed(&buffer[..bytes]);
        }
    }

    fn take(&mut self, frame: ToView) {
        match frame {
            ToView::Snapshot { offset, size, bytes } => {
                self.screen = Screen::new(Size::new(size.rows, size.columns));
                self.screen.feed(&bytes);
                self.screen.set_offset(offset);
                self.snapshots += 1;
            }
            ToView::Output { offset, bytes } => {
                assert_eq!(offset, self.screen.offset(), "not a byte is missing or doubled");
                self.screen.feed(&bytes);
            }
            ToView::Ended { code, signal } => self.ended = Some((code, signal)),
        }
    }

    /// Whether the program has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// How long the next frame may take; by default any time.
    pub(crate) fn set_patience(&self, patience: std::time::Duration) {
        self.stream.set_read_timeout(Some(patience)).unwrap();
    }

    pub(crate) fn shows(&self, text: &str) -> bool {
        self.screen.rows().iter().any(|row| row.contains(text))
    }

    pub(crate) fn send(&mut self, frame: &FromView) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }
}

fn spawn(peer: &mut Peer, argv: &[&str]) -> String {
    let answer = peer.answer(1, "spawn_process", json!({"argv": argv}));
    answer["result"]["process_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn grid(peer: &mut Peer, id: &str) -> Value {
    peer.answer(2, "get_process_output", json!({"process_id": id}))["result"].take()
}

fn rows(grid: &Value) -> Vec<String> {
    let rows = grid["rows"].as_array().unwrap();
    let rows = rows.iter().map(|row| row.as_str().unwrap().to_owned());
    let blank = usize::try_from(grid["blank_rows"].as_u64().unwrap_or(0)).unwrap();
    rows.chain(std::iter::repeat_n(String::new(), blank)).collect()
}

fn wait(peer: &mut Peer, id: &str, pattern: &str) {
    let arguments = json!({"process_id": id, "pattern": pattern});
    let answer = peer.answer(3, "wait_for_pattern", arguments);
    assert_eq!(answer["result"]["matched"], true, "{answer}");
}

#[test]
fn a_size_that_changes_and_changes_back_leaves_no_old_cells() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    // Full rows on the alternate screen, which a narrower size cuts off.
    let script = "printf '\\033[?1049h'; for i in 1 2 3; do printf '%080d\\r\\n' $i; done; \
                  printf ready; cat >/dev/null";
    let id = spawn(&mut peer, &["sh", "-c", script]);
    let mut view = View::attach(&server, &id, 24, 80);
    view.until(|view| view.shows("ready"));
    let before = view.snapshots;
    let mut bytes = Vec::new();
    for columns in [60, 80] {
        FromView::Size(ViewSize { rows: 24, columns }).encode(&mut bytes);
    }
    view.stream.write_all(&bytes).unwrap();
    view.until(|view| view.snapshots > before && view.screen.size().columns == 80);
    let shown: Vec<_> = view.screen.rows().iter().map(|row| row.trim_end().to_owned()).collect();
    assert_eq!(shown, rows(&grid(&mut peer, &id)));
    assert_eq!(shown[0].len(), 60, "the rest was cut off at 60 columns");
}

#[test]
fn a_program_that_asks_for_it_reads_each_new_size() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    let script = "stty raw -echo; printf '\\033[?2048h'; cat -v";
    let id = spawn(&mut peer, &["sh", "-c", script]);
    let mut view = View::attach(&server, &id, 30, 90);
    view.until(|view| view.shows("^[[48;30;90;0;0t"));
    view.send(&FromView::Size(ViewSize { rows: 20, columns: 70 }));
    view.until(|view| view.shows("^[[48;20;70;0;0t"));
}

#[test]
fn a_view_shows_old_and_new_output_and_types() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    let id = spawn(&mut peer, &["sh", "-c", "echo before; cat; exit 4"]);
    wait(&mut peer, &id, "before");
    let mut view = View::attach(&server, &id, 24, 80);
    view.until(|view| view.shows("before"));
    view.send(&FromView::Input(b"typed here\r".to_vec()));
    view.until(|view| view.screen.rows().iter().filter(|row| *row == "typed here").count() == 2);
    let shown: Vec<_> = view.screen.rows().iter().map(|row| row.trim_end().to_owned()).collect();
    assert_eq!(rows(&grid(&mut peer, &id)), shown);
    view.send(&FromView::Input(b"\x04".to_vec()));
    view.until(|view| view.ended.is_some());
    assert_eq!(view.ended, Some((Some(4), None)));
    assert_eq!(view.snapshots, 1, "one snapshot, then only output");
}

#[test]
fn the_smallest_view_determines_the_size_and_the_program_is_notified() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    let script = "trap 'stty size' WINCH; echo up; while :; do sleep 0.01; done";
    let id = spawn(&mut peer, &["sh", "-c", script]);
    wait(&mut peer, &id, "up");
    let mut large = View::attach(&server, &id, 50, 120);
    large.until(|view| view.shows("50 120"));
    let mut small = View::attach(&server, &id, 30, 100);
    large.until(|view| view.screen.size() == Size::new(30, 100) && view.shows("30 100"));
    small.send(&FromView::Size(ViewSize { rows: 40, columns: 60 }));
    large.until(|view| view.screen.size() == Size::new(40, 60) && view.shows("40 60"));
    drop(small);
    large.until(|view| view.screen.size() == Size::new(50, 120));
    let size = grid(&mut peer, &id)["size"].take();
    assert_eq!(size, json!({"rows": 50, "columns": 120}));
}

#[test]
fn the_size_follows_the_typing_view_if_configured() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    let id = spawn(&mut peer, &["sh", "-c", "echo up; cat"]);
    wait(&mut peer, &id, "up");
    let (large, small) = (Size::new(50, 120), Size::new(30, 100));
    let mut one = View::attach_with(server.socket(), &id, large, "last");
    one.until(|view| view.screen.size() == large);
    let mut other = View::attach_with(server.socket(), &id, small, "last");
    one.until(|view| view.screen.size() == small);
    one.send(&FromView::Input(b"x".to_vec()));
    other.until(|view| view.screen.size() == large);
    other.send(&FromView::Input(b"y".to_vec()));
    one.until(|view| view.screen.size() == small);
}

#[test]
fn the_next_server_shows_the_screen_in_the_size_it_had() {
    let place = Place::new();
    let server = place.serve();
    let id = place.run(&["run", "--", "sh", "-c", "seq 1 100; cat"]);
    let id = id.trim();
    place.run(&["wait", id, "^100"]);
    let params = json!({"version": view::VERSION, "process_id": id, "rows": 10, "columns": 30});
    let (answer, stream) = View::ask(&server.socket(), &params);
    assert_eq!(answer["result"]["version"], view::VERSION, "{answer}");
    drop(stream);
    let screen = place.run(&["screen", id]);
    assert_eq!(screen.lines().count(), 9, "{screen}");
    place.run(&["upgrade"]);
    assert_eq!(place.run(&["screen", id]), screen);
}

#[test]
fn a_view_that_does_not_read_costs_nothing_and_restarts_when_it_does() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = server.connect(SOCKET);
    let script = "read go; seq 1 2000000; echo the end; read stay";
    let id = spawn(&mut peer, &["sh", "-c", script]);
    let mut lazy = View::attach(&server, &id, 24, 80);
    let mut keen = View::attach(&server, &id, 24, 80);
    keen.until(|view| view.snapshots > 0);
    keen.send(&FromView::Input(b"go\r".to_vec()));
    keen.until(|view| view.shows("the end"));
    let shown: Vec<_> = keen.screen.rows().iter().map(|row| row.trim_end().to_owned()).collect();
    assert_eq!(rows(&grid(&mut peer, &id)), shown);
    // The slow view did not read 15 MB; it gets a snapshot instead.
    lazy.until(|view| view.shows("the end"));
    assert_eq!(lazy.screen.rows(), keen.screen.rows());
    assert!(lazy.snapshots >= 2, "{} pictures", lazy.snapshots);
}

#[test]
fn a_snapshot_view_shows_the_end_of_a_flood_and_later_output() {
    let place = Place::new();
    let server = place.serve_in_process();
    let mut peer = Peer::connect(SOCKET, server.socket());
    let script = "stty -echo; read go; seq 1 400000; echo all; cat";
    let id = spawn(&mut peer, &["sh", "-c", script]);
    let size = Size::new(24, 80);
    let mut view = View::attach_as(server.socket(), &id, size, json!({"pictures": true}));
    view.send(&FromView::Input(b"\n".to_vec()));
    view.until(|view| view.shows("all"));
    assert_eq!(view.screen.rows(), rows(&grid(&mut peer, &id)));
    let pictures = view.snapshots;
    view.send(&FromView::Input(b"a little\n".to_vec()));
    view.until(|view| view.shows("a little"));
    assert_eq!(view.snapshots, pictures, "a small amount is sent unchanged");
}

#[test]
fn a_refused_view_is_told_why() {
    let place = Place::new();
    let server = place.serve_in_process();
    for (params, code, reason) in [
        (
            json!({"version": 999, "process_id": "p1"}),
            -32008,
            "version 1 of the view protocol, but the client speaks 999",
        ),
        (json!({"version": view::VERSION, "process_id": "p1"}), -32001, "no process `p1`"),
        (json!({"version": view::VERSION}), -32602, "process_id"),
    ] {
        let (answer, mut stream) = View::ask(server.socket(), &params);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(reason), "{answer}");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "and closed");
    }
}
