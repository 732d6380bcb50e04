//! `patterm trust`: shows what the project file would run, and trusts it if the user confirms.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use patterm_project::line_diff::diff;
use patterm_project::project_file::{
    Content, ProjectFile, Trust as TrustRecord, TrustError, describe, visible,
};
use patterm_store::state::StateDir;
use patterm_wire::requests::{Trust, TrustRequest};

use crate::client::Client;
use crate::print::{one_line, print};
use crate::start;

/// Variables that identify an agent: what it runs does not act for a person.
const AGENTS_VARIABLES: [&str; 2] = ["PATTERM_IDENTITY", "PATTERM_IDENTITY_FILE"];

/// Show what this project's patterm.toml would run, and trust it
#[derive(Debug, Args)]
pub(crate) struct TrustVerb {
    /// Trust it without asking
    #[arg(short, long)]
    yes: bool,
}

impl TrustVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        run(self.yes)
    }
}

fn run(yes: bool) -> anyhow::Result<()> {
    for_a_person("trust a project file")?;
    let project = start::project_here()?;
    let content = Content::read(project.root())?.ok_or(TrustError::Absent)?;
    let name = visible(&content.path.to_string_lossy());
    let file = ProjectFile::parse(&content.text).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(|fault| format!("{name}:{fault}")).collect();
        TrustError::Faulty(faults.join("\n"))
    })?;
    let state = StateDir::from_env(project.key())?;
    let record = TrustRecord::of(project.root(), &state);
    if record.holds(&content.hash) {
        print(&format!("{name} is already trusted"));
        return Ok(());
    }
    if let Some(before) = record.last_content() {
        let changes = diff(&before, &content.text, visible);
        print(&format!("{name} has changed since you trusted it (- before, + now):\n\n{changes}"));
    }
    print(&format!("{name} declares:\n\n{}", describe(&file)));
    if !yes && !confirmed("\nTrust this content?")? {
        anyhow::bail!("{}", not_trusted(&record));
    }
    Client::connect()?.call::<Trust>(&TrustRequest { hash: content.hash })?;
    print("trusted; a changed file must be trusted again");
    Ok(())
}

/// The consequence of not trusting the content.
fn not_trusted(record: &TrustRecord) -> &'static str {
    match record.is_empty() {
        true => "it is not trusted and does not take effect",
        false => {
            "this content is not trusted and does not take effect; a running server keeps the content that \
             you trusted last"
        }
    }
}

/// A line for verbs that start what the file declares, if the content in effect is not that of the file.
pub(super) fn outdated_hint() -> Option<String> {
    let project = start::project_here().ok()?;
    let record = TrustRecord::of(project.root(), &StateDir::from_env(project.key()).ok()?);
    if record.is_empty() { None } else { hint() }
}

/// A line for lists, if the project file is not in effect.
pub(super) fn hint() -> Option<String> {
    let project = start::project_here().ok()?;
    let content = Content::read(project.root()).ok().flatten()?;
    let record = TrustRecord::of(project.root(), &StateDir::from_env(project.key()).ok()?);
    let first_fault = ProjectFile::parse(&content.text).err().map(|faults| {
        let first = faults.first().map(|fault| format!(" (patterm.toml:{fault})"));
        first.unwrap_or_default()
    });
    let is_trusted = record.holds(&content.hash);
    hint_about(first_fault.as_deref(), is_trusted, record.is_empty())
}

/// The line about a file whose first error is this, if it has one.
fn hint_about(first_fault: Option<&str>, is_trusted: bool, is_first: bool) -> Option<String> {
    if let Some(fault) = first_fault {
        let effect = match is_first {
            true => "so nothing in it takes effect",
            false => "so a running server keeps the content that you trusted last",
        };
        let fault = one_line(fault);
        return Some(format!(
            "patterm.toml has errors{fault}, {effect}; `patterm trust` lists them"
        ));
    }
    if is_trusted {
        return None;
    }
    Some(match is_first {
        true => "patterm.toml is not trusted, so nothing in it takes effect; `patterm trust` shows what it \
            declares"
            .into(),
        false => "patterm.toml has changed since you trusted it; a running server keeps the content that you \
            trusted last, and `patterm trust` shows the changes"
            .into(),
    })
}

/// Refuses to let an agent do what only a person may do, before the server refuses it.
pub(super) fn for_a_person(what: &str) -> anyhow::Result<()> {
    let by_agent = AGENTS_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
    anyhow::ensure!(!by_agent, "only a person may {what}; ask for it with request_human_attention");
    Ok(())
}

/// Asks the user.
pub(super) fn confirmed(question: &str) -> anyhow::Result<bool> {
    anyhow::ensure!(
        std::io::stdin().is_terminal(),
        "there is no terminal to ask on; use --yes to answer in advance"
    );
    let mut stdout = std::io::stdout();
    write!(stdout, "{question} [y/N] ")?;
    stdout.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_errors_is_not_called_changed() {
        let fault = Some(" (patterm.toml:3:1: no)");
        assert_eq!(
            hint_about(fault, false, false).unwrap(),
            "patterm.toml has errors (patterm.toml:3:1: no), so a running server keeps the content that you \
             trusted last; `patterm trust` lists them"
        );
        assert!(hint_about(fault, false, true).unwrap().contains("nothing in it takes effect"));
        assert!(hint_about(None, false, false).unwrap().contains("has changed"));
        assert!(hint_about(None, false, true).unwrap().contains("is not trusted"));
        assert_eq!(hint_about(None, true, false), None);
    }
}
