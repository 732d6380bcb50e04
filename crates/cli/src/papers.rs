//! What comes from the definitions themselves: completions, man pages, the project file's schema.

use anyhow::Context;
use clap::CommandFactory;
use patterm_project::project_file;

use crate::args::{Arguments, Completions, Man};
use crate::said::{say, say_bytes, say_json_text, shown_path};

pub(crate) fn completions(options: &Completions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "patterm", &mut script);
    say_bytes(&script);
    Ok(())
}

pub(crate) fn man(options: &Man) -> anyhow::Result<()> {
    let folder = &options.folder;
    let cannot = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(Arguments::command(), folder).with_context(cannot)?;
    say(&format!("wrote man pages to {}", shown_path(folder)));
    Ok(())
}

pub(crate) fn schema() -> anyhow::Result<()> {
    say_json_text(&serde_json::to_string_pretty(&project_file::schema())?);
    Ok(())
}
