//! A token's text is in the identity file and the greeting, and nowhere else.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use patterm_agents::identity::write_file;
use patterm_wire::Framing;
use serde_json::{Value, json};

use crate::support::{Peer, Place, Transport};

/// Everything that a test can see and that must not contain a secret.
struct Seen(Vec<(String, Vec<u8>)>);

impl Seen {
    fn file(&mut self, path: &Path) {
        self.0.push((path.display().to_string(), std::fs::read(path).unwrap()));
    }

    /// Command line and environment of a process.
    fn process(&mut self, pid: u32) {
        for what in ["cmdline", "environ"] {
            self.file(Path::new(&format!("/proc/{pid}/{what}")));
        }
    }

    /// All files below a folder, and their names.
    fn folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            self.0.push(("a file's name".into(), entry.path().to_str().unwrap().into()));
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                self.folder(&entry.path());
            } else if kind.is_file() {
                self.file(&entry.path());
            }
        }
    }

    #[track_caller]
    fn assert_without(&self, secret: &str) {
        for (place, text) in &self.0 {
            let found = text.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "there is a token in {place}");
        }
    }
}

#[test]
fn no_token_is_stored_anywhere_but_in_its_file() {
    let place = Place::new();
    let mut issuing = place.serve_in_process();
    let (lead, token) = issuing.agent("lead", None);
    let (gone, gone_token) = issuing.agent("gone", None);
    issuing.host().identities.revoke(&gone.id).unwrap();
    issuing.stop();
    let forged = "5ec2e7".repeat(11)[..64].to_owned();
    let file = place.path("token");
    write_file(&token, &file).unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);

    // The most verbose log, of the server and of the proxy, which starts it.
    let mut command = place.patterm(&["mcp-stdio", "--identity-file", file.to_str().unwrap()]);
    let stderr = std::fs::File::create(place.path("state/proxy.log")).unwrap();
    let mut proxy =
        Peer::through(command.env("PATTERM_LOG", "trace").stderr(stderr), Framing::Newline);
    let mut seen = Seen(Vec::new());
    let mut answers = Vec::new();
    let who = proxy.call(1, "whoami", json!({}));
    assert_eq!(who["caller"]["process_id"], json!(lead.id));
    answers.push(who.clone());
    answers.push(proxy.answer(2, "tools/list", json!({})));
    for (id, topic) in [(3, json!({})), (4, json!({"topic": "whoami"})), (5, json!({"topic": "?"}))]
    {
        answers.push(proxy.answer(id, "help", topic));
    }
    let server = u32::try_from(who["server"]["pid"].as_u64().unwrap()).unwrap();
    seen.process(server);
    seen.process(proxy.pid().unwrap());

    // Refused ones are secrets too: they may be another server's.
    let socket = place.path(&format!("run/patterm/{server}.sock"));
    let refused = [
        (gone_token.reveal(), None),
        (forged.clone(), None),
        (token.reveal(), Some("0123456789abcdef")),
    ];
    for (token, key) in refused {
        let mut peer = Peer::connect(Transport::Socket(Framing::Newline), &socket);
        peer.greet(&token, key);
        answers.push(peer.receive());
        assert_eq!(peer.try_receive(), None);
    }
    // In the wrong place: as a message, and in invalid JSON.
    let mut peer = Peer::connect(Transport::Socket(Framing::Newline), &socket);
    peer.answer(1, "ping", json!({}));
    peer.greet(&token.reveal(), None);
    answers.push(peer.receive());
    drop(peer);

    assert_eq!(proxy.finish(), Vec::<Value>::new());
    place.run(&["kill"]);
    seen.folder(&place.path("state"));
    seen.folder(&place.path("run"));
    seen.0.push(("an answer".into(), format!("{answers:?}").into_bytes()));
    for secret in [token.reveal(), gone_token.reveal(), forged] {
        seen.assert_without(&secret);
    }
    let log = place.state().file("server.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("a connection was refused").count(), 3, "it was searched:\n{log}");
}

/// The caller itself put it into the proxy's environment; it must not be passed on.
#[test]
fn a_token_in_the_environment_reaches_no_other_process() {
    let place = Place::new();
    let mut issuing = place.serve_in_process();
    let (lead, token) = issuing.agent("lead", None);
    issuing.stop();
    let mut command = place.patterm(&["mcp-stdio"]);
    let mut proxy =
        Peer::through(command.env("PATTERM_IDENTITY", token.reveal()), Framing::Newline);
    let who = proxy.call(1, "whoami", json!({}));
    assert_eq!(who["caller"]["process_id"], json!(lead.id));
    let mut seen = Seen(Vec::new());
    seen.process(u32::try_from(who["server"]["pid"].as_u64().unwrap()).unwrap());
    seen.file(Path::new(&format!("/proc/{}/cmdline", proxy.pid().unwrap())));
    seen.folder(&place.path("state"));
    seen.folder(&place.path("run"));
    seen.assert_without(&token.reveal());
    assert_eq!(proxy.finish(), Vec::<Value>::new());
}
