//! `patterm restore`: restarts what ran when the server was ended or the machine was rebooted.

use patterm_wire::restore::{METHOD, RestoreMode, RestoreRequest, RestoreResult};
use serde_json::Value;

use crate::client::Client;
use crate::said::{one_line, say, say_json};

pub(crate) fn run(as_json: bool) -> anyhow::Result<()> {
    let answer =
        Client::connect()?.call(METHOD, &serde_json::to_value(RestoreRequest::default())?)?;
    let RestoreResult { processes } = serde_json::from_value(answer.clone())?;
    match (as_json, processes.is_empty()) {
        (true, _) => say_json(&answer["processes"])?,
        (false, true) => say("nothing to restore"),
        (false, false) => {
            for back in &processes {
                say(&one_line(&format!("{:<6} {back}", back.process_id)));
            }
        }
    }
    let failed = processes.iter().filter(|back| back.how == RestoreMode::Not).count();
    anyhow::ensure!(failed == 0, "{failed} of {} processes could not be restored", processes.len());
    Ok(())
}

/// The line that `patterm ps` adds if there are processes to restore.
pub(crate) fn hint(processes: &[Value]) -> Option<String> {
    let waiting = processes.iter().filter(|p| p["can_be_brought_back"] == true).count();
    let (which, back) = match waiting {
        0 => return None,
        1 => ("1 process".to_owned(), "it"),
        many => (format!("{many} processes"), "them"),
    };
    Some(format!(
        "{which} ran when everything was ended; `patterm restore` restarts {back}, and `patterm` offers to"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hint_counts() {
        let waits = json!({"can_be_brought_back": true});
        assert_eq!(hint(&[json!({})]), None);
        assert!(hint(&[json!({}), waits.clone()]).unwrap().starts_with("1 process ran"));
        assert!(hint(&[waits.clone(), waits]).unwrap().starts_with("2 processes ran"));
    }
}
