//! Somebody who looks: a client of a multiplexer on a terminal of its own, whose output is read as
//! fast as it comes.

use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::Context;

use crate::session::Place;

/// How long a client may take to draw its first picture.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Viewer {
    child: Child,
    /// Held open: its end would be a detach.
    _input: ChildStdin,
}

impl Viewer {
    /// Runs a client's command line on a terminal of 24 rows and 80 columns, and waits until it has
    /// drawn something.
    pub(crate) fn start(place: &Place, line: &str) -> anyhow::Result<Self> {
        let line = format!("stty rows 24 cols 80; exec {line}");
        let mut script = place.command(Path::new("script"));
        script.args(["-qfc", &line, "/dev/null"]).env("TERM", "xterm-256color");
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = script.spawn()?;
        let input = child.stdin.take().context("no input")?;
        let mut output = child.stdout.take().context("no output")?;
        let (first, drawn) = sync_channel(1);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while output.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {
                let _ = first.try_send(());
            }
        });
        drawn.recv_timeout(PATIENCE).context("the client draws nothing")?;
        Ok(Self { child, _input: input })
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
