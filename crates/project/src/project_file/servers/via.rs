//! Servers behind a program on this machine that connects to them, such as `ssh`.

use serde::Deserialize;

use super::Location;
use super::local::LocalSettings;
use super::settings::{Kind, Section};
use crate::project_file::schema::{COMMAND, Schema, key};

/// The placeholder in `via` for `target`.
const TARGET: &str = "{target}";

pub(super) const KIND: Kind = Kind {
    selector: "via",
    keys: &[
        key(
            "via",
            COMMAND,
            "A program that connects to the server's machine, with its arguments, such as \
             `ssh {target}`. The command is appended.",
        ),
        key("target", Schema::Text, "The value of `{target}` in `via`."),
    ],
    accepts: &["command", "env", "directory"],
    read,
};

#[derive(Deserialize)]
struct RawVia {
    via: Vec<String>,
    target: Option<String>,
}

fn read(section: &mut Section<'_, '_>) -> Option<Location> {
    let RawVia { via, target } = section.read()?;
    let mut settings: LocalSettings = section.read()?;
    section.check_words(&via);
    section.check_program(&settings.command, "")?;
    match (via.iter().any(|word| word.contains(TARGET)), &target) {
        (true, None) => section.fault("via", "`via` contains `{target}`, but `target` is not set"),
        (false, Some(_)) => {
            section.fault("via", "`target` is set, but `via` does not contain `{target}`");
        }
        _ => {}
    }
    let target = target.unwrap_or_default();
    // A word stays one word: patterm passes it to no shell that could split it.
    let via = via.iter().map(|word| word.replace(TARGET, &target));
    settings.command = via.chain(settings.command).collect();
    Some(Location::Local(settings))
}
