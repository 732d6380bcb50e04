//! A remote shared server over https: here it belongs to another project, behind a TLS relay with a
//! test certificate.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::{everything, write};
use crate::support::Place;

/// The folder of certificates and keys.
const FOLDER: &str = "certificates";

fn openssl(place: &Place, arguments: &str) {
    let mut command = place.command(Path::new("openssl"));
    let output =
        command.current_dir(place.path(FOLDER)).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Creates an authority in `authority.pem`, and its certificate for localhost.
fn certificate(place: &Place) {
    let folder = place.folder(FOLDER);
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(
        place,
        &format!(
            "req -x509 {key} -keyout authority.key -out authority.pem -days 2 -subj /CN=authority"
        ),
    );
    openssl(place, &format!("req {key} -keyout key.pem -out request.pem -subj /CN=localhost"));
    std::fs::write(
        folder.join("extensions"),
        "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n",
    )
    .unwrap();
    openssl(
        place,
        "x509 -req -in request.pem -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 \
         -extfile extensions -out certificate.pem",
    );
}

/// The relay, which ends on drop.
struct Relay {
    child: Child,
    port: u16,
}

impl Relay {
    fn start(place: &Place, address: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tls-relay.py");
        let mut command = place.command(Path::new("python3"));
        command.current_dir(place.path(FOLDER)).args([
            script,
            address,
            "certificate.pem",
            "key.pem",
        ]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 is there");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_is_reached_over_https_only_with_a_trusted_certificate() {
    let far = Place::new();
    write(&far, &everything(""));
    far.run(&["trust", "--yes"]);
    let entry: Value =
        serde_json::from_str(&far.run(&["serve", "--http", "127.0.0.1:0", "--json"])).unwrap();
    let token = far.run(&["token", "new", "near"]);
    certificate(&far);
    let relay = Relay::start(&far, entry["http"].as_str().unwrap());
    let settings = format!(
        "[servers.far]\nurl = 'https://localhost:{}/servers/all/mcp'\n\
         headers = {{ Authorization = 'Bearer {}' }}\n",
        relay.port,
        token.trim()
    );

    let mut near = Place::new();
    write(&near, &settings);
    near.set("SSL_CERT_FILE", far.path(FOLDER).join("authority.pem"));
    near.run(&["trust", "--yes"]);
    let printed = near.run(&["call", "far__slow", r#"{"milliseconds": 1}"#]);
    assert!(printed.contains("\"milliseconds\": 1"), "{printed}");

    let stranger = Place::new();
    write(&stranger, &settings);
    stranger.run(&["trust", "--yes"]);
    let refused = stranger.patterm(&["call", "far__slow", "{}"]).output().unwrap();
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && why.contains("certificate"), "{why}");
    let listed = stranger.run(&["servers"]);
    assert!(listed.contains("certificate"), "the list says what is wrong: {listed}");
}
