//! `patterm trust`: what the project file would run, for a person to look at, and his word on it.

use std::io::{BufRead, IsTerminal, Write};

use patterm_host::TRUST_METHOD;
use patterm_host::project_file::{Content, ProjectFile, Trust, TrustError, describe, visible};
use patterm_store::state::StateDir;
use serde_json::json;

use crate::args;
use crate::client::Client;
use crate::said::say;
use crate::start;

/// Variables by which an agent is known: what it runs is no person's word.
const AGENTS_VARIABLES: [&str; 2] = ["PATTERM_IDENTITY", "PATTERM_IDENTITY_FILE"];

pub(crate) fn run(options: &args::Trust) -> anyhow::Result<()> {
    for_a_person("trusts a project file")?;
    let project = start::project_here()?;
    let content = Content::read(project.root())?.ok_or(TrustError::Absent)?;
    let name = visible(&content.path.to_string_lossy());
    let file = ProjectFile::parse(&content.text).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(|fault| format!("{name}:{fault}")).collect();
        TrustError::Faulty(faults.join("\n"))
    })?;
    let state = StateDir::from_env(project.key())?;
    if Trust::of(project.root(), &state).holds(&content.hash) {
        say(&format!("{name} is trusted as it is"));
        return Ok(());
    }
    say(&format!("{name} declares:\n\n{}", describe(&file)));
    if !options.yes && !confirmed("\nTrust it, as it is now?")? {
        anyhow::bail!("it is not trusted; nothing of it takes effect");
    }
    Client::connect()?.call(TRUST_METHOD, &json!({"hash": content.hash}))?;
    say("trusted; a changed file must be trusted again");
    Ok(())
}

/// Refuses what only a person does to an agent, before its server would.
pub(crate) fn for_a_person(what: &str) -> anyhow::Result<()> {
    let by_agent = AGENTS_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
    anyhow::ensure!(!by_agent, "only a person {what}; ask for attention instead");
    Ok(())
}

/// A person's yes.
pub(crate) fn confirmed(question: &str) -> anyhow::Result<bool> {
    anyhow::ensure!(
        std::io::stdin().is_terminal(),
        "there is no terminal to ask on; --yes answers in advance"
    );
    let mut stdout = std::io::stdout();
    write!(stdout, "{question} [y/N] ")?;
    stdout.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
