//! From starting `mcp-stdio` to its first response, compared with starting `true`.

use std::path::Path;
use std::time::Instant;

use crate::Measured;
use crate::row::{Row, Target, median};
use crate::session::{Session, Workspace};

/// Starts of each side.
const STARTS: usize = 300;

const LIST: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let workspace = Workspace::new()?;
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let start = Instant::now();
        let mut session = Session::start(&mut workspace.patterm(&["mcp-stdio"]))?;
        let answer = session.ask(LIST)?;
        ours.push(start.elapsed());
        anyhow::ensure!(answer.contains("\"whoami\""), "{answer}");
        drop(session);
        let start = Instant::now();
        let status = workspace.command(Path::new("true")).status()?;
        peer.push(start.elapsed());
        anyhow::ensure!(status.success(), "{status}");
    }
    let what = "mcp-stdio, start to tools/list, server running";
    let peer = ("starting `true`", median(peer));
    Ok(vec![Row::times(what, median(ours), peer, Target::AtMost(3.5))].into())
}
