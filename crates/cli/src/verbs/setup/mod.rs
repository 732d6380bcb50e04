//! `patterm setup`: registers `patterm mcp-stdio` in an MCP client's settings and leaves everything else in
//! them unchanged.

mod clients;
mod json;
mod toml_text;

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};

use super::trust::confirmed;
use crate::print::{print, printable_path};
use clients::Form;

/// How a settings file changes.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// Not at all.
    None,
    /// To this content.
    To(String),
}

/// Register patterm with an MCP client, for use outside of patterm
#[derive(Debug, Args)]
pub(crate) struct SetupVerb {
    /// The client
    client: SetupClient,
    /// Change its settings without asking
    #[arg(short, long)]
    yes: bool,
    /// Print what would be added, and change nothing
    #[arg(long, conflicts_with = "yes")]
    print: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SetupClient {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Cursor,
    Vscode,
}

impl SetupVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run(&self)
    }
}

fn run(options: &SetupVerb) -> anyhow::Result<()> {
    let client = clients::of(options.client)?;
    let program = own_program()?;
    let entry = client.entry(&program);
    let shown = match client.form {
        Form::Json { .. } => json::fragment(&client, &entry),
        Form::Toml => toml_text::fragment(&program),
    };
    let path = client.path.canonicalize().unwrap_or_else(|_| client.path.clone());
    if options.print {
        print(&format!("{}:\n\n{shown}", printable_path(&path)));
        return Ok(());
    }
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
    };
    let changed = match client.form {
        Form::Json { .. } => json::with_entry(&before, &client, &entry),
        Form::Toml => toml_text::with_entry(&before, &program),
    };
    let by_hand = || format!("{} was not changed; add this by hand:\n\n{shown}", path.display());
    let Change::To(after) = changed.with_context(by_hand)? else {
        print(&format!("{} already contains patterm", printable_path(&path)));
        return Ok(());
    };
    print(&format!("{} will get:\n\n{shown}", printable_path(&path)));
    if !options.yes && !confirmed("\nChange it?")? {
        anyhow::bail!("nothing was changed");
    }
    write(&path, &after).with_context(|| format!("cannot write {}", path.display()))?;
    print(&format!("{} now knows patterm; restart it if it is running", client.title));
    Ok(())
}

/// How the client should call this program: by its name if that finds it.
fn own_program() -> anyhow::Result<String> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let same = |at: PathBuf| {
        at.canonicalize().is_ok_and(|at| own.canonicalize().is_ok_and(|own| own == at))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first =
        std::env::split_paths(&path).map(|folder| folder.join("patterm")).find(|at| at.is_file());
    match first.is_some_and(same) {
        true => Ok("patterm".into()),
        false => {
            own.into_os_string().into_string().ok().context("this program's path is not UTF-8")
        }
    }
}

/// Replaces a file atomically and keeps its mode.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder)?;
    let mode = path.metadata().map_or(0o600, |meta| meta.permissions().mode() & 0o777);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = folder.join(name);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&new)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let written = written.and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}
