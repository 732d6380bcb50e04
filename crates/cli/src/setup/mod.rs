//! `patterm setup`: registers `patterm mcp-stdio` in an MCP client's own settings, which keep
//! everything else they hold.

mod clients;
mod json;
mod toml_text;

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::args::Setup;
use crate::said::{say, shown_path};
use crate::trust::confirmed;
use clients::Form;

/// What becomes of a settings file.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// It says so already.
    None,
    /// It becomes this.
    To(String),
}

pub(crate) fn run(options: &Setup) -> anyhow::Result<()> {
    let client = clients::of(options.client)?;
    let program = own_program()?;
    let entry = client.entry(&program);
    let shown = match client.form {
        Form::Json { .. } => json::fragment(&client, &entry),
        Form::Toml => toml_text::fragment(&program),
    };
    let path = client.path.canonicalize().unwrap_or_else(|_| client.path.clone());
    if options.print {
        say(&format!("{}:\n\n{shown}", shown_path(&path)));
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
    let by_hand = || format!("{} is left as it is; add this by hand:\n\n{shown}", path.display());
    let Change::To(after) = changed.with_context(by_hand)? else {
        say(&format!("{} knows patterm already", shown_path(&path)));
        return Ok(());
    };
    say(&format!("{} gets:\n\n{shown}", shown_path(&path)));
    if !options.yes && !confirmed("\nChange it?")? {
        anyhow::bail!("nothing was changed");
    }
    write(&path, &after).with_context(|| format!("cannot write {}", path.display()))?;
    say(&format!("{} knows patterm now; what runs must be started again", client.title));
    Ok(())
}

/// How the client is to call this program: by its name where that finds it.
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
        false => own.into_os_string().into_string().ok().context("this program's path is no UTF-8"),
    }
}

/// Replaces a file in one step; its mode stays.
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
