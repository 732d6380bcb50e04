//! Edits a scratchpad in the user's editor, for `patterm pad --edit` and the TUI.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use patterm_pads::PadName;
use patterm_store::state::StateDir;
use patterm_wire::tools::{PadRef, ReadPad};

use crate::client::Client;
use crate::print::{one_line, print};
use crate::start;

/// Opens the file in the user's editor; then the server reads the new content.
pub(crate) fn edit(name: &PadName) -> anyhow::Result<()> {
    let project = start::project_here()?;
    let state = StateDir::from_env(project.key())?;
    let file = patterm_pads::file_for_editing(&state, name)?;
    let set = |variable| std::env::var(variable).ok().filter(|editor| !editor.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).with_context(|| {
        format!("neither VISUAL nor EDITOR is set; open {} with any editor", file.display())
    })?;
    let status = editor_on(&editor, &file).status();
    let status = status.with_context(|| format!("cannot start `{editor}`"))?;
    anyhow::ensure!(status.success(), "`{editor}` failed ({status})");
    anyhow::ensure!(file.exists(), "nothing was saved, so there is no scratchpad `{name}`");
    let pad = Client::connect()?.query::<ReadPad>(&PadRef { name: name.to_string() })?.result;
    print(&format!("{name} is at revision {}", one_line(&pad.revision)));
    Ok(())
}

/// The variables contain a command line, for example `code --wait`.
#[expect(clippy::disallowed_methods, reason = "the user's editor on the user's terminal")]
fn editor_on(editor: &str, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(file);
    command
}
