//! Ten agents that use four servers: each server shared, compared with one copy per agent.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::Measured;
use crate::peers::installed;
use crate::proc;
use crate::row::{Row, Target};
use crate::session::{Session, Workspace};

const AGENTS: usize = 10;

const SERVERS: [&str; 4] = ["one", "two", "three", "four"];

/// A typical server: a few lines on the Python SDK.
const SERVER: &str = "from mcp.server.fastmcp import FastMCP\n\
    server = FastMCP('typical')\n\
    @server.tool()\n\
    def echo(text: str) -> str:\n    return text\n\
    server.run()\n";

/// Even on a busy machine, ten interpreters start within this time.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn measure() -> anyhow::Result<Measured> {
    let what = "ten agents with four servers";
    let python = installed().map(|at| at.join("venv/bin/python")).filter(|python| python.exists());
    let Some(python) = python else {
        return Ok(vec![Row::missing(what, "a server on the Python SDK", Target::None)].into());
    };
    let python = python.to_str().context("the path of Python is not UTF-8")?;
    let (with, without) = (shared(python)?, alone(python)?);
    let row = |part: &str, ours: f64, theirs: f64, unit: &str| {
        Row::ratio(
            format!("{what}: {part}"),
            ours,
            ("one copy per agent", theirs),
            unit,
            Target::Less,
        )
    };
    Ok(vec![
        row("processes", with.1 as f64, without.1 as f64, ""),
        row("memory", with.0, without.0, "MiB"),
    ]
    .into())
}

/// Memory in MiB and processes, including all of patterm's.
fn shared(python: &str) -> anyhow::Result<(f64, usize)> {
    let one = |name| format!("[servers.{name}]\ncommand = [{python:?}, \"-c\", {SERVER:?}]\n");
    let workspace = Workspace::serving(&[], &SERVERS.map(one).concat())?;
    let mut agents = Vec::new();
    for _ in 0..AGENTS {
        let mut agent = Session::start(&mut workspace.patterm(&["mcp-stdio"]))?;
        agent.handshake()?;
        wait_for_tools(&mut agent)?;
        for server in SERVERS {
            call(&mut agent, &format!("{server}__echo"))?;
        }
        agents.push(agent);
    }
    Ok(proc::pss_and_count(&proc::processes_in(workspace.folder())))
}

/// The same where each agent starts its own.
fn alone(python: &str) -> anyhow::Result<(f64, usize)> {
    let folder = tempfile::tempdir()?;
    let mut all = Vec::new();
    for _ in 0..AGENTS * SERVERS.len() {
        #[expect(clippy::disallowed_methods, reason = "benchmarks start what they measure")]
        let mut command = Command::new(python);
        command.args(["-c", SERVER]).current_dir(folder.path());
        let mut server = Session::start(command.stderr(std::process::Stdio::null()))?;
        server.handshake()?;
        call(&mut server, "echo")?;
        all.push(server);
    }
    Ok(proc::pss_and_count(&proc::processes_in(folder.path())))
}

/// Servers are started by the first who wants to know their tools, and come when they are ready.
fn wait_for_tools(agent: &mut Session) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let list = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n";
        let list = ask(agent, 2, list)?;
        let has = |server: &&str| list.contains(&format!("\"{server}__echo\""));
        if SERVERS.iter().all(has) {
            return Ok(());
        }
        anyhow::ensure!(start.elapsed() < TIMEOUT, "not all servers are there: {list}");
        proc::pause(Duration::from_millis(100));
    }
}

fn call(agent: &mut Session, tool: &str) -> anyhow::Result<()> {
    let call = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{{\
         \"name\":\"{tool}\",\"arguments\":{{\"text\":\"a word\"}}}}}}\n"
    );
    let answer = ask(agent, 3, &call)?;
    anyhow::ensure!(answer.contains("a word"), "{tool}: {answer}");
    Ok(())
}

/// Asks, and passes over what is told before the answer.
fn ask(agent: &mut Session, id: u64, line: &str) -> anyhow::Result<String> {
    agent.send(line)?;
    loop {
        let heard = agent.receive()?;
        if heard.contains(&format!("\"id\":{id}")) {
            return Ok(heard.to_owned());
        }
    }
}
