//! The server in the background inherits nothing from its starter, and logs to its own file.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use patterm_wire::Framing;
use serde_json::json;

use super::{Traces, mode};
use crate::support::{Peer, Place, Transport};

/// Runs a shell line whose standard output is also its descriptor 7; returns everything that was
/// written to it until *nobody* had it open.
fn shell(place: &Place, line: &str, configure: impl FnOnce(&mut Command)) -> String {
    let mut command = place.command(Path::new("sh"));
    command.arg("-c").arg(format!("exec 7>&1; {line}")).env("PATTERM", place.binary());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    configure(&mut command);
    let mut child = command.spawn().unwrap();
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    child.wait().unwrap();
    printed
}

/// A client's request that makes the proxy start a server.
const ASK: &str = r#"echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | "$PATTERM" mcp-stdio"#;

#[test]
fn it_inherits_no_descriptor_from_its_starter() {
    for line in [r#""$PATTERM" serve --json"#, ASK, r#""$PATTERM""#] {
        let place = Place::new();
        // The pipe ends although the server lives: it holds no copy, of 1 or of 7.
        shell(&place, line, |_| {});
        let entry = Traces::of(&place).entry();
        // A response shows that it is alive and has closed the pipe on which it reported its start.
        let mut peer = Peer::connect(Transport::Socket(Framing::Newline), &entry.socket);
        assert_eq!(peer.answer(1, "ping", json!({}))["result"], json!({}));
        check_descriptors(&place, entry.pid);
    }
}

/// Everything that the server has open is its own.
fn check_descriptors(place: &Place, pid: u32) {
    let open = |fd: &str| std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap();
    assert_eq!([open("0"), open("1")], [Path::new("/dev/null"); 2]);
    let log = place.state().file("server.log");
    assert_eq!(open("2"), log);
    let locks = Traces::of(place).locks;
    for fd in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let name = fd.unwrap().file_name().into_string().unwrap();
        let target = open(&name);
        let text = target.to_str().unwrap();
        let own = ["socket:[", "anon_inode:[", "anon_inode:inotify"]
            .iter()
            .any(|kind| text.starts_with(kind))
            || [Path::new("/dev/null"), &log].contains(&&*target)
            || locks.contains(&target)
            || target.starts_with(place.state().file("events"));
        assert!(own, "{name} is {text}");
    }
}

#[test]
fn it_has_a_session_of_its_own_and_no_terminal() {
    let place = Place::new();
    let server = place.serve();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    // After the name in parentheses: state, parent, group, session, terminal.
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let own = server.pid().to_string();
    assert_eq!([fields[2], fields[3], fields[4]], [&*own, &*own, "0"]);
}

#[test]
fn it_does_not_inherit_its_starters_identity() {
    for line in [r#""$PATTERM" serve --json"#, ASK, r#""$PATTERM""#] {
        let place = Place::new();
        let token = "0123456789abcdef".repeat(4);
        let key = place.project().key().to_owned();
        shell(&place, line, |command| {
            command
                .env("PATTERM_IDENTITY", &token)
                .env("PATTERM_IDENTITY_FILE", place.path("token"))
                .env("PATTERM_SOCKET", place.path("nobody.sock"))
                .env("PATTERM_PROJECT_KEY", key);
        });
        let pid = Traces::of(&place).entry().pid;
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        let names: Vec<_> = environment
            .split(|byte| *byte == 0)
            .filter_map(|variable| variable.split(|byte| *byte == b'=').next())
            .map(String::from_utf8_lossy)
            .filter(|name| name.starts_with("PATTERM_"))
            .collect();
        assert_eq!(names, [] as [&str; 0], "{line}");
        let command_line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!command_line.contains(&token));
    }
}

#[test]
fn it_logs_in_the_state_folder_for_its_owner_only() {
    let place = Place::new();
    let server = place.serve();
    place.run(&["kill"]);
    let log = place.state().file("server.log");
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.iter().any(|line| line.contains("INFO") && line.contains("serving")), "{text}");
    assert!(text.contains(server.socket().to_str().unwrap()), "{text}");
    assert!(lines.last().unwrap().contains("ended"), "{text}");
    assert_eq!((mode(&log), mode(log.parent().unwrap())), (0o600, 0o700));
    assert_eq!(log.metadata().unwrap().uid(), rustix::process::getuid().as_raw());
}
