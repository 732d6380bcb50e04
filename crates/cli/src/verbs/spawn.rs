//! The common part of `run`, `agent` and `shell`.

use patterm_wire::Method;
use patterm_wire::tools::StartedProcess;

use super::environment::EnvironmentArgs;
use super::user_settings;
use crate::client::Client;
use crate::print::{one_line, print, print_json, warn};
use crate::tui;

/// A name that a process can have.
pub(super) fn name(text: &str) -> Result<String, String> {
    patterm_host::tools::check_label(text).map(|()| text.to_owned())
}

/// Starts a process, and prints its id or shows it.
pub(super) fn spawn<M: Method<Result = StartedProcess>>(
    args: &M::Params,
    environment: &EnvironmentArgs,
    json: bool,
    attach: bool,
) -> anyhow::Result<()> {
    if attach {
        // Before anything is started.
        tui::must_have_terminal()?;
    }
    user_settings::hint().inspect(|hint| warn(hint));
    let mut client = Client::connect()?;
    environment.pass(&mut client)?;
    let reply = client.call::<M>(args)?;
    let id = reply.result.process_id;
    match (attach, json) {
        (true, _) => return tui::run(Some(id)),
        (false, true) => print_json(&reply.json)?,
        (false, false) => print(&one_line(&id)),
    }
    Ok(())
}
