//! Records the pictures and sessions in the documents from real runs of patterm, with real agents' CLIs and a scripted
//! model where agents take part. `scripts/picture` starts it.

mod harness;
mod recorder;
mod shapes;
mod svg;
mod tour;
mod walk;
mod walks;

use std::path::{Path, PathBuf};

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let clients = arguments.next().context("first argument: the folder with the agents' CLIs")?;
    let docs = arguments.next().context("second argument: the folder with the documents")?;
    let (clients, docs) = (PathBuf::from(clients), PathBuf::from(docs));
    let mut names: Vec<_> = arguments.map(|name| name.to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        names = ["tour", "tmux", "processes", "agents", "ssh"].map(str::to_owned).into();
    }
    for name in names {
        record(&name, &clients, &docs).with_context(|| format!("recording {name}"))?;
    }
    Ok(())
}

fn record(name: &str, clients: &Path, docs: &Path) -> anyhow::Result<()> {
    match name {
        "tour" => tour::record(clients, docs),
        "tmux" => walks::tmux::record(docs),
        "processes" => walks::processes::record(docs),
        "agents" => walks::agents::record(clients, docs),
        "ssh" => walks::ssh::record(docs),
        _ => anyhow::bail!("there is no recording `{name}`: tour, tmux, processes, agents or ssh"),
    }
}
