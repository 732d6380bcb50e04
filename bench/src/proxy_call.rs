//! A tool call through `mcp-stdio`, against the same answer from a bare rmcp stdio server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Measured;
use crate::row::{Bar, Row, median};
use crate::session::{Place, Session};

/// Turns taken by each side.
const ROUNDS: usize = 10;

/// Calls in a turn.
const CALLS: usize = 2_000;

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let place = Place::new()?;
    let mut ours = Session::start(&mut place.patterm(&["mcp-stdio"]))?;
    ours.handshake()?;
    let id = place.connect()?.spawn(&["sleep", "1000000"])?;
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "get_process_status", "arguments": {"process_id": id}}
    });
    let call = format!("{call}\n");
    let answer: Value = serde_json::from_str(ours.ask(&call)?)?;
    let answer = answer["result"]["structuredContent"].to_string();
    let mut peer = Session::start(place.program("bare-rmcp").arg(answer))?;
    peer.handshake()?;
    let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        turn(&mut ours, &call, &mut our_times)?;
        turn(&mut peer, &call, &mut peer_times)?;
    }
    let peer = ("bare rmcp stdio server", median(peer_times));
    let what = "tool call through mcp-stdio (get_process_status)";
    let row = Row::times(what, median(our_times), peer, Bar::AtMost(1.5));
    Ok(vec![row].into())
}

fn turn(session: &mut Session, call: &str, times: &mut Vec<Duration>) -> anyhow::Result<()> {
    for _ in 0..CALLS {
        let start = Instant::now();
        let answer = session.ask(call)?;
        times.push(start.elapsed());
        anyhow::ensure!(answer.contains("\"structuredContent\""), "{answer}");
    }
    Ok(())
}
