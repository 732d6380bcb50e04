//! A tool call through `mcp-stdio`, compared with the same response from a bare rmcp stdio server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Measured;
use crate::row::{Row, Target, median};
use crate::session::{Session, Workspace};

/// Rounds for each side.
const ROUNDS: usize = 10;

/// Calls per round.
const CALLS: usize = 2_000;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let workspace = Workspace::new()?;
    let mut ours = Session::start(&mut workspace.patterm(&["mcp-stdio"]))?;
    ours.handshake()?;
    let id = workspace.connect()?.spawn(&["sleep", "1000000"])?;
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "get_process_status", "arguments": {"process_id": id}}
    });
    let call = format!("{call}\n");
    let answer: Value = serde_json::from_str(ours.ask(&call)?)?;
    let answer = answer["result"]["structuredContent"].to_string();
    let mut peer = Session::start(workspace.program("bare-rmcp").arg(answer))?;
    peer.handshake()?;
    let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        round(&mut ours, &call, &mut our_times)?;
        round(&mut peer, &call, &mut peer_times)?;
    }
    let peer = ("bare rmcp stdio server", median(peer_times));
    let what = "tool call through mcp-stdio (get_process_status)";
    let row = Row::times(what, median(our_times), peer, Target::AtMost(1.0));
    Ok(vec![row].into())
}

fn round(session: &mut Session, call: &str, times: &mut Vec<Duration>) -> anyhow::Result<()> {
    for _ in 0..CALLS {
        let start = Instant::now();
        let answer = session.ask(call)?;
        times.push(start.elapsed());
        anyhow::ensure!(answer.contains("\"structuredContent\""), "{answer}");
    }
    Ok(())
}
